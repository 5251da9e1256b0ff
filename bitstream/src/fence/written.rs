//! What a stream was seen to write, frame by frame or block by block.
//!
//! Knows sets. Bounded by the device's own size, whatever the stream does: one
//! bit a frame, or a limited number of blocks.

use std::ops::Range;

use super::reason::Reason;
use crate::device::{Block, BlockList, FrameBlock, FrameIndex, FrameSet, Geometry, RegionFrames};

/// More blocks than this has no genuine file.
const MOST_BLOCKS: usize = 1 << 13;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Written {
    /// By frame: one bit each.
    Frames(Vec<u64>),
    /// By block, for a device without geometry.
    Blocks(Vec<FrameBlock>),
}

impl Written {
    /// Nothing yet.
    pub(super) fn nothing(geometry: Option<&Geometry>) -> Self {
        match geometry {
            Some(geometry) => {
                let bits = usize::try_from(geometry.frame_count()).unwrap_or(0);
                Self::Frames(vec![0; bits.div_ceil(64)])
            }
            None => Self::Blocks(Vec::new()),
        }
    }

    /// These frames were written.
    pub(super) fn add(&mut self, range: &Range<FrameIndex>) {
        if let Self::Frames(words) = self {
            for frame in range.start.0..range.end.0 {
                if let Some(word) = words.get_mut(usize::try_from(frame >> 6).unwrap_or(usize::MAX))
                {
                    *word |= 1_u64.wrapping_shl(frame & 63);
                }
            }
        }
    }

    /// This block was written.
    pub(super) fn add_block(&mut self, block: FrameBlock) -> Result<(), Reason> {
        if let Self::Blocks(blocks) = self {
            if blocks.len() >= MOST_BLOCKS {
                return Err(Reason::TooMany);
            }
            blocks.push(block);
        }
        Ok(())
    }

    /// Adds what another stream part wrote.
    pub(super) fn join(&mut self, other: &Self) -> Result<(), Reason> {
        match (self, other) {
            (Self::Frames(mine), Self::Frames(theirs)) => {
                for (mine, theirs) in mine.iter_mut().zip(theirs) {
                    *mine |= theirs;
                }
            }
            (Self::Blocks(mine), Self::Blocks(theirs)) => {
                if mine.len().saturating_add(theirs.len()) > MOST_BLOCKS {
                    return Err(Reason::TooMany);
                }
                mine.extend_from_slice(theirs);
            }
            _ => {}
        }
        Ok(())
    }

    /// Nothing was written.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Frames(words) => words.iter().all(|word| *word == 0),
            Self::Blocks(blocks) => blocks.is_empty(),
        }
    }

    /// Frames were written that are no masks of columns (7-series).
    pub(super) fn any_of_design(&self) -> bool {
        match self {
            Self::Frames(_) => !self.is_empty(),
            Self::Blocks(blocks) => {
                let mut kinds = blocks.iter().map(|block| block.address.block());
                kinds.any(|block| block != Block::ClbMask)
            }
        }
    }

    /// The same frames, or the same blocks in any order.
    pub(super) fn same(&self, other: &Self) -> bool {
        self.region() == other.region()
    }

    /// Every frame is among the other's. Of blocks nobody can say: `true`.
    pub(super) fn within(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Frames(mine), Self::Frames(theirs)) => mine
                .iter()
                .zip(theirs)
                .all(|(mine, theirs)| mine & !theirs == 0),
            _ => true,
        }
    }

    /// As a region is said.
    pub(super) fn region(&self) -> RegionFrames {
        match self {
            Self::Frames(words) => RegionFrames::Set(set(words)),
            Self::Blocks(blocks) => {
                RegionFrames::Blocks(blocks.iter().copied().collect::<BlockList>())
            }
        }
    }
}

fn set(words: &[u64]) -> FrameSet {
    let mut set = FrameSet::new();
    let mut first = 0_u32;
    for word in words {
        let mut rest = *word;
        let mut from = first;
        // A run of ones at a time; in ascending order each insertion is cheap.
        while rest != 0 {
            let zeros = rest.trailing_zeros();
            rest = rest.checked_shr(zeros).unwrap_or(0);
            let ones = rest.trailing_ones();
            rest = rest.checked_shr(ones).unwrap_or(0);
            let begin = from.saturating_add(zeros);
            from = begin.saturating_add(ones);
            set.insert_range(FrameIndex(begin)..FrameIndex(from));
        }
        first = first.saturating_add(64);
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;

    #[test]
    fn bits_and_ranges_say_the_same() {
        let geometry = Device::named("xc7z020").unwrap().geometry().unwrap();
        let mut written = Written::nothing(Some(geometry));
        assert!(written.is_empty());
        let ranges = [0..1, 63..65, 128..192, 200..201, 10_000..10_005];
        let expected: FrameSet = ranges
            .iter()
            .map(|range| FrameIndex(range.start)..FrameIndex(range.end))
            .collect();
        for range in expected.ranges() {
            written.add(range);
        }
        assert_eq!(written.region(), RegionFrames::Set(expected));
    }
}
