//! The memory of frames: what each holds, and which were written since somebody
//! last asked to forget.

use serde::Serialize;

use super::geometry::Geometry;

/// All frames of a die; blank after power-up.
#[derive(Debug, Clone)]
pub(super) struct Frames {
    frame_words: usize,
    words: Vec<u32>,
    /// Since the last mark.
    written: Vec<bool>,
}

/// Frames in a row that were written, for the control socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Range {
    /// Index of the first, in configuration order without pads.
    pub first: u32,
    /// How many.
    pub count: u32,
    /// Frame address of the first, eight hexadecimal digits.
    pub far: String,
    /// Frame address of the last.
    pub last_far: String,
}

/// What was written since the last mark.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Written {
    /// Frames of logic and block RAM, counted once each.
    pub frames: u32,
    /// Where they are.
    pub ranges: Vec<Range>,
    /// Mask frames of a 7-series part (block type 2); their indices follow all others.
    pub mask_ranges: Vec<Range>,
}

impl Frames {
    pub(super) fn new(geometry: &Geometry) -> Self {
        let frame_words = geometry.family().frame_words();
        let frames = usize::try_from(geometry.all_frames()).unwrap_or(0);
        Self {
            frame_words,
            words: vec![0; frames.saturating_mul(frame_words)],
            written: vec![false; frames],
        }
    }

    /// Power went: all content is lost, what was written is still known.
    pub(super) fn lose(&mut self) {
        self.words.fill(0);
    }

    pub(super) fn forget(&mut self) {
        self.written.fill(false);
    }

    pub(super) fn write(&mut self, index: u32, frame: &[u32]) {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        let from = index.saturating_mul(self.frame_words);
        let to = from.saturating_add(self.frame_words);
        if let (Some(held), Some(written)) =
            (self.words.get_mut(from..to), self.written.get_mut(index))
        {
            for (held, new) in held.iter_mut().zip(frame) {
                *held = *new;
            }
            *written = true;
        }
    }

    /// A frame's words; empty where there is none.
    #[cfg(test)]
    pub(super) fn get(&self, index: u32) -> &[u32] {
        let from = usize::try_from(index)
            .unwrap_or(usize::MAX)
            .saturating_mul(self.frame_words);
        self.words
            .get(from..from.saturating_add(self.frame_words))
            .unwrap_or_default()
    }

    pub(super) fn written(&self, geometry: &Geometry) -> Written {
        let content = geometry.frame_count();
        let mut out = Written::default();
        let mut open: Option<(u32, u32)> = None;
        for (index, written) in (0u32..).zip(self.written.iter().chain([&false])) {
            let cut = index == content || !written;
            if let Some((first, count)) = open.take_if(|_| cut) {
                out.add(geometry, first, count);
            }
            if *written {
                let (first, count) = open.unwrap_or((index, 0));
                open = Some((first, count.saturating_add(1)));
            }
        }
        out
    }
}

impl Written {
    fn add(&mut self, geometry: &Geometry, first: u32, count: u32) {
        let last = first.saturating_add(count).saturating_sub(1);
        let far = |index| format!("{:08x}", geometry.far(index).unwrap_or(u32::MAX));
        let range = Range {
            first,
            count,
            far: far(first),
            last_far: far(last),
        };
        if first < geometry.frame_count() {
            self.frames = self.frames.saturating_add(count);
            self.ranges.push(range);
        } else {
            self.mask_ranges.push(range);
        }
    }
}
