//! Frame data: which frame each word of a write ends in.

use std::num::NonZeroU32;
use std::ops::Range;

use super::super::frames::{Frames, sum};
use super::super::masks::Mask;
use super::super::reason::Reason;
use super::{Buffer, Fault, Outcome, Pipeline, Place};
use crate::device::{Block, Family, FrameAddress, FrameBlock, FrameIndex, Geometry, RegionFrames};
use crate::xilinx::Words;

/// Frames of one mark, at most: in every genuine file they are one or two.
const MOST_MARKS: usize = 2;

impl Pipeline<'_> {
    /// Frame data. `begin` is the number of its first word in the stream,
    /// `marks` says whether the frames mask columns.
    pub(in crate::fence) fn data(
        &mut self,
        data: Words<'_>,
        begin: usize,
        marks: bool,
    ) -> Result<(), Fault> {
        let at = |reason, word: usize, frame| Fault {
            reason,
            word: begin.saturating_add(word),
            frame,
        };
        if !std::mem::take(&mut self.armed) {
            let why = "frame data, and writing was not commanded for it";
            return Err(at(Reason::Order(why), 0, None));
        }
        self.moved_on = None;
        let length = self.device.family().frame_words();
        let frames = Frames::cut(data, length)
            .ok_or_else(|| at(Reason::FrameLength(data.len()), 0, None))?;
        let place = self
            .place
            .take()
            .ok_or_else(|| at(Reason::NoAddress, 0, None))?;
        let written = match place {
            Place::Frame(first) => self.design(&frames, first, marks),
            Place::Mask(first) => self.mask_frames(&frames, first),
            Place::Raw(first, _) => self.block(&frames, first, marks),
        };
        written
            .map_err(|(reason, frame, address)| at(reason, frame.saturating_mul(length), address))
    }

    /// Frames of logic or block RAM, row by row.
    fn design(&mut self, frames: &Frames<'_>, first: FrameIndex, marks: bool) -> Outcome {
        let Some(geometry) = self.geometry else {
            return Err((Reason::NoSuchFrame, 0, None));
        };
        let name = |index| geometry.address(index);
        let mut next = Some(first);
        let mut passed = 0_usize;
        loop {
            let rest = frames.count.saturating_sub(passed);
            let Some((here, row)) = next.and_then(|here| Some((here, geometry.row_of(here)?)))
            else {
                return Err((Reason::NoSuchFrame, passed, None));
            };
            let in_row = usize::try_from(row.frames.end.0.saturating_sub(here.0)).unwrap_or(0);
            let ends_here = rest <= in_row;
            // Within a row the last frame of the write stays in the buffer.
            let committed = if ends_here {
                rest.saturating_sub(1)
            } else {
                in_row
            };
            let end = here
                .0
                .saturating_add(u32::try_from(committed).unwrap_or(u32::MAX));
            let range = here..FrameIndex(end);
            if marks && committed > MOST_MARKS {
                return Err((Reason::FrameLength(frames.data.len()), passed, name(here)));
            }
            if let Some(outside) = self.outside(&range) {
                let before = outside.0.saturating_sub(here.0);
                let at = passed.saturating_add(usize::try_from(before).unwrap_or(0));
                return Err((Reason::OutsideRegion, at, name(outside)));
            }
            if marks {
                self.marks.add(&range);
            } else {
                self.frames.add(&range);
            }
            self.record(frames, passed, &range);
            passed = passed.saturating_add(committed);
            if ends_here {
                self.hold(frames, passed, None);
                self.moved_on = Some(Place::Frame(FrameIndex(end)));
                return Ok(());
            }
            let last = FrameIndex(end.saturating_sub(1));
            frames
                .pads(passed)
                .map_err(|reason| (reason, passed, name(last)))?;
            passed = passed.saturating_add(2);
            next = geometry.next(last);
            if passed == frames.count {
                self.buffer = Buffer::Spent;
                return Ok(());
            }
        }
    }

    /// Notes what is in frames, from one of the write on.
    fn record(&mut self, frames: &Frames<'_>, from: usize, range: &Range<FrameIndex>) {
        if let Some(contents) = &mut self.contents {
            for (at, frame) in (from..).zip(range.start.0..range.end.0) {
                contents.insert(frame, sum(frames.get(at).unwrap_or(frames.none)));
            }
        }
    }

    /// The first frame of a range that is not the region's.
    pub(super) fn outside(&self, range: &Range<FrameIndex>) -> Option<FrameIndex> {
        let set = self.allowed.set()?;
        if set.contains_range(range) {
            return None;
        }
        (range.start.0..range.end.0)
            .map(FrameIndex)
            .find(|frame| !set.contains(*frame))
    }

    /// Masks of columns, one frame each.
    fn mask_frames(&mut self, frames: &Frames<'_>, first: usize) -> Outcome {
        let all = self.geometry.and_then(Geometry::clb_mask);
        let all = all.ok_or((Reason::NoSuchFrame, 0, None))?;
        let mut position = first;
        let mut passed = 0_usize;
        loop {
            if position >= all.count() {
                return Err((Reason::NoSuchFrame, passed, None));
            }
            let fault = |reason| (reason, passed, all.address(position));
            let frame = frames.get(passed).unwrap_or(frames.none);
            let mask = Mask::read(frame).ok_or_else(|| fault(Reason::MaskContent))?;
            passed = passed.saturating_add(1);
            if passed == frames.count {
                self.hold(frames, passed.saturating_sub(1), Some(mask));
                self.moved_on = Some(Place::Mask(position));
                return Ok(());
            }
            self.masks.set(position, mask);
            if all.row_end(position) {
                frames
                    .pads(passed)
                    .map_err(|reason| (reason, passed, all.address(position)))?;
                passed = passed.saturating_add(2);
                if passed == frames.count {
                    self.buffer = Buffer::Spent;
                    return Ok(());
                }
            }
            position = position.saturating_add(1);
        }
    }

    /// A block of a device without geometry.
    fn block(&mut self, frames: &Frames<'_>, first: FrameAddress, marks: bool) -> Outcome {
        let last = frames.count.saturating_sub(1);
        self.hold(frames, last, None);
        let passed = u32::try_from(last).map_err(|_error| (Reason::TooMany, 0, Some(first)))?;
        self.moved_on = Some(Place::Raw(first, passed));
        // A write of one frame only fills the buffer.
        let Some(count) = NonZeroU32::new(passed) else {
            return Ok(());
        };
        let block = FrameBlock {
            address: first,
            frames: count,
        };
        self.add_block(block, marks)
            .map_err(|reason| (reason, 0, Some(first)))
    }

    pub(super) fn add_block(&mut self, block: FrameBlock, marks: bool) -> Result<(), Reason> {
        if let Some(RegionFrames::Blocks(list)) = self.allowed.region
            && !list.contains(block)
        {
            return Err(Reason::OutsideBlocks(block));
        }
        let masks =
            block.address.family() == Family::Series7 && block.address.block() == Block::ClbMask;
        self.masks_written |= masks;
        if marks {
            self.marks.add_block(block)
        } else {
            self.frames.add_block(block)
        }
    }

    fn hold(&mut self, frames: &Frames<'_>, at: usize, mask: Option<Mask>) {
        let frame = frames.get(at).unwrap_or(frames.none);
        if self.contents.is_some() {
            self.held = sum(frame);
        }
        self.buffer = Buffer::Holds {
            empty: frame.all_zero(),
            mask,
        };
    }
}
