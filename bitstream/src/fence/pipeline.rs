//! The way of frame data through the device: the frame address, the buffer of
//! one frame, pads at the ends of rows, and copies of the buffer.
//!
//! Knows which frame each word of a write ends in (UG470's pad frames, and
//! what was measured): a write of n frames commits n - 1 of them, from the
//! address on; the last stays in the buffer, and the address has moved on by
//! n - 1. After the last frame of a row two pads pass by; `data` does that.
//! Must not know
//! commands and registers: when data may come is the machine's.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use super::masks::{Mask, Masks};
use super::reason::Reason;
use super::written::Written;
use crate::device::{
    Block, Device, Family, FrameAddress, FrameBlock, FrameIndex, FrameSet, Geometry, RegionFrames,
};

mod data;

/// Where the next frame goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A frame of logic or block RAM.
    Frame(FrameIndex),
    /// The mask of a column, by position.
    Mask(usize),
    /// So many frames after an address, of a device without geometry.
    Raw(FrameAddress, u32),
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
    /// Columns outside of it whose flip-flops may be restored.
    pub(super) restores: Option<&'a FrameSet>,
}

impl<'a> Allowed<'a> {
    pub(super) fn set(self) -> Option<&'a FrameSet> {
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
    /// Some were written of a device whose columns are not known.
    masks_written: bool,
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
            masks_written: false,
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

    /// The buffer holds the mask of a column; of a device without published
    /// columns nobody can say.
    pub(super) fn holds_mask(&self) -> bool {
        self.geometry.is_none() || matches!(self.buffer, Buffer::Holds { mask: Some(_), .. })
    }

    /// The next frame is the mask of a column (7-series).
    pub(super) fn at_mask(&self) -> bool {
        match self.place {
            Some(Place::Mask(_)) => true,
            Some(Place::Raw(address, _)) => address.block() == Block::ClbMask,
            Some(Place::Frame(_)) | None => false,
        }
    }

    fn place_of(&self, address: FrameAddress) -> Option<Place> {
        let Some(geometry) = self.geometry else {
            // What is in the other blocks nobody has told.
            let masks = self.device.family() == Family::Series7;
            let known = match address.block() {
                Block::Logic | Block::Bram => true,
                Block::ClbMask => masks,
                Block::Other(_) => false,
            };
            if !known {
                return None;
            }
            return Some(Place::Raw(address, 0));
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

    /// No address is good for anything any more.
    pub(super) fn forget_address(&mut self) {
        self.place = None;
        self.moved_on = None;
    }

    /// Writing is commanded.
    pub(super) fn arm(&mut self) {
        self.armed = true;
    }

    /// The buffer is written: the first time to where the address has moved on
    /// to, then each time to an address of its own.
    pub(super) fn copy(&mut self, first: bool) -> Result<(), (Reason, Option<FrameAddress>)> {
        let (moved_on, place) = (self.moved_on.take(), self.place.take());
        // Whether an address in between is obeyed the first time is not measured.
        let place = if first { moved_on } else { place };
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
            // Also said from the block's beginning, where that is all one knows.
            (Place::Raw(address, passed), None) => {
                let block = FrameBlock {
                    address,
                    frames: NonZeroU32::MIN.saturating_add(passed),
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

    /// Masks of columns were written (7-series).
    pub(super) fn masked(&self) -> bool {
        self.masks_written || self.masks.any()
    }

    /// May flip-flops be restored now (7-series)?
    pub(super) fn may_restore(&self) -> Result<(), (Reason, Option<FrameAddress>)> {
        if self.geometry.is_none() {
            // Which columns these are nobody knows: for no region it is right.
            let written = self.masks_written;
            return match self.allowed.region {
                None if written => Ok(()),
                None => Err((Reason::MaskIncomplete, None)),
                Some(_) => Err((Reason::MaskUnknown, None)),
            };
        }
        self.masks
            .check(self.device, self.allowed)
            .map_err(|(reason, column)| (reason, column.map(|column| column.address())))
    }
}

/// What a write did, or: why not, at which of its frames, about which frame.
type Outcome = Result<(), (Reason, usize, Option<FrameAddress>)>;
