//! The way of frame data through the device: the frame address, the buffer of
//! one frame, pads at the ends of rows, and copies of the buffer.
//!
//! Knows which frame each word of a write ends in (UG470's pad frames, and
//! what was measured): a write of n frames commits n - 1 of them, from the
//! address on; the last stays in the buffer, and the address has moved on by
//! n - 1. After the last frame of a row two pads pass by. Must not know
//! commands and registers: when data may come is the machine's.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::ops::Range;

use super::frames::{Frames, sum};
use super::masks::{Mask, Masks};
use super::reason::Reason;
use super::written::Written;
use crate::device::{
    Block, Device, Family, FrameAddress, FrameBlock, FrameIndex, FrameSet, Geometry, RegionFrames,
};
use crate::xilinx::Words;

/// Where the next frame goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A frame of logic or block RAM.
    Frame(FrameIndex),
    /// The mask of a column, by position.
    Mask(usize),
    /// An address of a device without geometry.
    Raw(FrameAddress),
}

/// The buffer of one frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Buffer {
    /// Nothing that would be missed.
    Spent,
    /// The last frame of a write: has it content, and is it a mask?
    Holds { empty: bool, mask: Option<Mask> },
}

/// A refusal inside frame data: why, at which word, about which frame.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) reason: Reason,
    pub(super) word: usize,
    pub(super) frame: Option<FrameAddress>,
}

/// The region that writes are held against.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowed<'a> {
    /// None: any frame that the device has.
    pub(super) region: Option<&'a RegionFrames>,
}

impl<'a> Allowed<'a> {
    fn set(self) -> Option<&'a FrameSet> {
        match self.region {
            Some(RegionFrames::Set(set)) => Some(set),
            _ => None,
        }
    }
}

/// Is the content of frames of interest?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Record {
    /// Only where they go.
    Nothing,
    /// Also what is in them.
    Contents,
}

/// See the module. One for each sub-stream.
#[derive(Debug)]
pub(super) struct Pipeline<'a> {
    device: Device,
    geometry: Option<&'static Geometry>,
    allowed: Allowed<'a>,
    /// Where the next frame goes, if an address was given for it.
    place: Option<Place>,
    /// Where the last write has moved on to: the first copy goes there.
    moved_on: Option<Place>,
    /// Writing was commanded, which emptied the buffer, and nothing was written
    /// since. Without that the device would write what is in the buffer first,
    /// and every frame would end one address further on.
    armed: bool,
    buffer: Buffer,
    /// Frames of the design.
    pub(super) frames: Written,
    /// Masks of columns that are frames of the design as well (UltraScale+).
    pub(super) marks: Written,
    /// Masks of columns in block type 2 (7-series).
    pub(super) masks: Masks,
    /// The last content of each frame, as a sum, where it is asked for.
    pub(super) contents: Option<Contents>,
    /// The sum of what the buffer holds.
    held: u64,
}

/// By frame: a sum of its words.
pub(super) type Contents = BTreeMap<u32, u64>;

impl<'a> Pipeline<'a> {
    pub(super) fn new(device: Device, allowed: Allowed<'a>, record: Record) -> Self {
        let geometry = device.geometry();
        Self {
            device,
            geometry,
            allowed,
            place: None,
            moved_on: None,
            armed: false,
            buffer: Buffer::Spent,
            frames: Written::nothing(geometry),
            marks: Written::nothing(geometry),
            masks: Masks::none(geometry.and_then(Geometry::clb_mask)),
            contents: match record {
                Record::Nothing => None,
                Record::Contents => Some(Contents::new()),
            },
            held: 0,
        }
    }

    /// The frame address register is written.
    pub(super) fn address(&mut self, value: u32) -> Result<(), (Reason, Option<FrameAddress>)> {
        let family = self.device.family();
        let address =
            FrameAddress::parse(family, value).map_err(|error| (Reason::Address(error), None))?;
        self.moved_on = None;
        if address.is_park() {
            self.place = None;
            return Ok(());
        }
        let place = self
            .place_of(address)
            .ok_or((Reason::NoSuchFrame, Some(address)))?;
        if let (Place::Frame(frame), Some(set)) = (place, self.allowed.set())
            && !set.contains(frame)
        {
            return Err((Reason::OutsideRegion, Some(address)));
        }
        self.place = Some(place);
        Ok(())
    }

    fn place_of(&self, address: FrameAddress) -> Option<Place> {
        let Some(geometry) = self.geometry else {
            return Some(Place::Raw(address));
        };
        if address.family() == Family::Series7 && address.block() == Block::ClbMask {
            return geometry.clb_mask()?.position(address).map(Place::Mask);
        }
        geometry.index(address).map(Place::Frame)
    }

    /// The buffer is dropped. What it still holds would be lost.
    pub(super) fn drop_buffer(&mut self) -> Result<(), Reason> {
        if let Buffer::Holds { empty: false, .. } = self.buffer {
            return Err(Reason::LeftInBuffer);
        }
        self.buffer = Buffer::Spent;
        Ok(())
    }

    /// Writing is commanded.
    pub(super) fn arm(&mut self) {
        self.armed = true;
    }

    /// Frame data. `begin` is the number of its first word in the stream,
    /// `marks` says whether the frames mask columns.
    pub(super) fn data(&mut self, data: Words<'_>, begin: usize, marks: bool) -> Result<(), Fault> {
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
            Place::Raw(first) => self.block(&frames, first, marks),
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
    fn outside(&self, range: &Range<FrameIndex>) -> Option<FrameIndex> {
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
        // A write of one frame only fills the buffer.
        let Some(count) = u32::try_from(last).ok().and_then(NonZeroU32::new) else {
            self.moved_on = Some(Place::Raw(first));
            return Ok(());
        };
        let block = FrameBlock {
            address: first,
            frames: count,
        };
        self.add_block(block, marks)
            .map_err(|reason| (reason, 0, Some(first)))
    }

    fn add_block(&mut self, block: FrameBlock, marks: bool) -> Result<(), Reason> {
        if let Some(RegionFrames::Blocks(list)) = self.allowed.region
            && !list.contains(block)
        {
            return Err(Reason::OutsideBlocks(block));
        }
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

    /// The buffer is written once more, to the address.
    pub(super) fn copy(&mut self) -> Result<(), (Reason, Option<FrameAddress>)> {
        let moved_on = self.moved_on.take();
        let place = self.place.take().or(moved_on);
        let place = place.ok_or((Reason::NoAddress, None))?;
        let Buffer::Holds { mask, .. } = self.buffer else {
            return Err((
                Reason::Order("a frame is copied and none is in the buffer"),
                None,
            ));
        };
        // Written at least once: it may be dropped from now on.
        self.buffer = Buffer::Holds { empty: true, mask };
        match (place, mask) {
            (Place::Frame(frame), None) => {
                let range = frame..FrameIndex(frame.0.saturating_add(1));
                if self.outside(&range).is_some() {
                    let address = self.geometry.and_then(|geometry| geometry.address(frame));
                    return Err((Reason::OutsideRegion, address));
                }
                self.frames.add(&range);
                if let Some(contents) = &mut self.contents {
                    contents.insert(frame.0, self.held);
                }
                Ok(())
            }
            (Place::Mask(position), Some(mask)) => {
                self.masks.set(position, mask);
                Ok(())
            }
            (Place::Raw(address), None) => {
                let block = FrameBlock {
                    address,
                    frames: NonZeroU32::MIN,
                };
                self.add_block(block, false)
                    .map_err(|reason| (reason, Some(address)))
            }
            _ => Err((
                Reason::Order("a frame of one kind is copied to an address of another"),
                None,
            )),
        }
    }

    /// May flip-flops be restored now (7-series)?
    pub(super) fn may_restore(&self) -> Result<(), (Reason, Option<FrameAddress>)> {
        self.masks
            .check(self.device, self.allowed.set())
            .map_err(|(reason, column)| (reason, column.map(|column| column.address())))
    }
}

/// What a write did, or: why not, at which of its frames, about which frame.
type Outcome = Result<(), (Reason, usize, Option<FrameAddress>)>;
