//! Frames and their addresses, changed.

use bitstream::device::FrameIndex;

use super::Mutation;
use crate::legal::number;
use crate::stream::{FAR, FDRI, MFW, MFWR, Part};

impl Mutation<'_> {
    /// A frame address: outside, where nothing is, of another block, reserved.
    pub(super) fn address(&mut self) -> Option<()> {
        let at = self.one_of(FAR)?;
        let geometry = self.legal.geometry;
        let old = self.parts[at].words_mut()[0];
        let new = match self.dice.below(7) {
            0 => old ^ 1 << self.dice.below(32),
            1 => old.wrapping_add(1),
            2 => old.wrapping_sub(1),
            3 => self.dice.word(),
            4 => self.legal.device.family().park(),
            5 => {
                // A row, a column or a minor one past the last.
                let columns = geometry.columns();
                let column = self.dice.pick(columns);
                let base = column.address().raw();
                *self.dice.pick(&[
                    base + column.frames,
                    base | 0x1f << 18,
                    base | 0x3ff << 8,
                    base | 0x1ff << 7,
                    base ^ 0x0080_0000,
                ])
            }
            _ => {
                let frame = self.dice.below(geometry.frame_count() as usize);
                geometry.address(FrameIndex(number(frame)))?.raw()
            }
        };
        *self.parts[at].words_mut() = vec![new];
        Some(())
    }

    /// The device goes on by itself: more frames than the region has, or
    /// fewer, from an address before, at each edge.
    pub(super) fn edge(&mut self) -> Option<()> {
        let at = self.one_of(FDRI)?;
        let length = self.legal.device.family().frame_words();
        let content = if self.dice.once_in(2) { 0 } else { 0x0bad_f00d };
        let frames = [1, 1, 2, 3, 4, 40][self.dice.below(6)];
        let more = vec![content; frames * length];
        let before = self.parts[..at]
            .iter()
            .rposition(|part| part.register() == Some(FAR))?;
        let words = self.parts[at].words_mut();
        let end = words.len();
        match self.dice.below(6) {
            // Before the pad, behind it, and at the beginning.
            0 => drop(words.splice(end - length..end - length, more)),
            1 => words.extend(more),
            2 => drop(words.splice(0..0, more)),
            // Earlier by as many frames as come first.
            3 => {
                words.splice(0..0, more);
                let far = self.parts[before].words_mut();
                far[0] = far[0].wrapping_sub(number(frames));
            }
            // The write goes on without an address of its own.
            4 => {
                let register = FDRI;
                let more = Part::Write {
                    register,
                    words: more,
                };
                self.parts.insert(at + 1, more);
            }
            _ => {
                let device = self.legal.device;
                let row_end = self.legal.region.iter().find(|frame| {
                    self.legal.geometry.row_end(*frame)
                        || self.legal.geometry.next(*frame).is_none()
                });
                let frame = row_end.or_else(|| self.legal.region.iter().last())?;
                let far = self.legal.geometry.address(frame)?.raw();
                let frames = 2 + self.dice.below(4);
                *self.parts[at].words_mut() = vec![content; frames * device.family().frame_words()];
                *self.parts[before].words_mut() = vec![far];
            }
        }
        Some(())
    }

    /// Pads that hold something, or are missing, or too many.
    pub(super) fn pad(&mut self) -> Option<()> {
        let at = self.one_of(FDRI)?;
        let length = self.legal.device.family().frame_words();
        let choice = self.dice.below(5);
        let place = self.dice.below(length);
        let words = self.parts[at].words_mut();
        let end = words.len();
        match choice {
            0 => words[end - length + place] = 0xbad,
            1 => words.truncate(end - length),
            2 => words.extend(vec![0; length]),
            3 => {
                words.pop();
            }
            _ => {
                // An empty frame somewhere within: a pad of a row, if there is one.
                let empty: Vec<usize> = (0..end / length)
                    .filter(|frame| words[frame * length..][..length].iter().all(|w| *w == 0))
                    .collect();
                let frame = *self.dice.pick(if empty.is_empty() { &[0] } else { &empty });
                let words = self.parts[at].words_mut();
                words[frame * length + place] = 1 << (place % 32);
            }
        }
        Some(())
    }

    /// 7-series: the masks that keep a reset off the columns of others.
    pub(super) fn column_mask(&mut self) -> Option<()> {
        let at = (0..self.parts.len()).find(|at| {
            let far = |part: &Part| *part == Part::write(FAR, 0x0100_0000);
            self.parts[*at].register() == Some(FDRI) && self.parts[..*at].iter().any(far)
        })?;
        let length = self.legal.device.family().frame_words();
        let choice = self.dice.below(5);
        let frames = self.parts[at].words_mut().len() / length;
        let frame = self.dice.below(frames) * length;
        let bit = self.dice.below(32);
        let words = self.parts[at].words_mut();
        match choice {
            0 => words[frame..frame + length].fill(0),
            1 => words[frame + 50] = 0xe000_09bc,
            2 => words[frame + 50] ^= 1 << bit,
            3 => words[frame + bit] ^= 1,
            _ => drop(self.parts.drain(at - 4..=at)),
        }
        Some(())
    }

    /// Multi-frame writes.
    pub(super) fn copy(&mut self) -> Option<()> {
        let at = match self.one_of(MFWR) {
            Some(at) => at,
            // A stream that has none: copy the last frame elsewhere.
            None => self.one_of(FDRI)?,
        };
        let far = match self.dice.below(3) {
            0 => 0,
            1 => self.dice.word() & 0x00ff_ffff,
            _ => {
                let frame = self.dice.below(self.legal.geometry.frame_count() as usize);
                self.legal
                    .geometry
                    .address(FrameIndex(number(frame)))?
                    .raw()
            }
        };
        let copy = |words| Part::Write {
            register: MFWR,
            words,
        };
        match self.dice.below(8) {
            // An address, or the command, between a frame and its first copy.
            5 => self.parts.insert(at, Part::write(FAR, far)),
            6 => {
                let more = [Part::write(FAR, far), Part::command(MFW)];
                let place = at - usize::from(self.dice.once_in(2));
                self.parts.splice(place..place, more);
            }

            0 => {
                let more = [Part::write(FAR, far), copy(vec![0; 4])];
                self.parts.splice(at + 1..at + 1, more);
            }
            1 => self.parts.insert(at + 1, copy(vec![0; 4])),
            2 => self.parts[at].words_mut().push(0),
            3 => self.parts[at].words_mut()[0] ^= 1,
            4 => {
                let more = [
                    Part::command(MFW),
                    copy(vec![0; 8]),
                    Part::write(FAR, far),
                    copy(vec![0; 4]),
                ];
                self.parts.splice(at + 1..at + 1, more);
            }
            _ => drop(self.parts.remove(at)),
        }
        Some(())
    }

    /// A write of the neighbour's frames among the region's own.
    pub(super) fn foreign(&mut self) {
        let all = &self.foreign.parts;
        let writes: Vec<usize> = (0..all.len())
            .filter(|at| all[*at].register() == Some(FDRI))
            .collect();
        let from = *self.dice.pick(&writes);
        let begin = all[..from]
            .iter()
            .rposition(|part| part.register() == Some(FAR))
            .unwrap_or(from);
        let mut taken = vec![Part::command(1)];
        taken.extend(all[begin..=from].iter().cloned());
        let at = match self.one_of(FDRI) {
            Some(at) if !self.dice.once_in(3) => at + 1,
            _ => self.anywhere(),
        };
        self.parts.splice(at..at, taken);
    }
}
