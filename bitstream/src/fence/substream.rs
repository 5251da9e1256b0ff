//! What a sub-stream is read with, and what it turned out to be.

use super::pipeline::{Allowed, Contents, Record};
use super::reason::Reason;
use super::refusal::Refusal;
use super::written::Written;
use crate::device::{Device, FrameAddress, FrameSet};
use crate::xilinx::XilinxStream;

/// What a sub-stream turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Writes frames, and neither stops nor starts the device.
    Frames,
    /// Masks columns before, or after, flip-flops are restored (UltraScale+).
    Marks,
    /// Stops the device and holds its interconnect.
    Stops,
    /// Writes frames, restores flip-flops and starts the device again.
    Restarts,
}

/// A sub-stream that was found in order.
#[derive(Debug)]
pub(super) struct SubStream {
    pub(super) kind: Kind,
    /// The word after its end.
    pub(super) end: usize,
    pub(super) device: Device,
    pub(super) frames: Written,
    pub(super) marks: Written,
    pub(super) crc_checks: u32,
    pub(super) compressed: bool,
    pub(super) contents: Option<Contents>,
    /// The interconnect was let go at its end.
    pub(super) released: bool,
    /// The columns whose flip-flops it restores, but those that every file does.
    pub(super) restored: FrameSet,
    /// Block memory was cleared at its beginning.
    pub(super) cleared: bool,
}

/// What all sub-streams share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Task<'s, 'a> {
    pub(super) stream: &'s XilinxStream<'a>,
    /// The device that it must be for; none: the one that it names.
    pub(super) device: Option<Device>,
    pub(super) allowed: Allowed<'s>,
    pub(super) record: Record,
}

impl Task<'_, '_> {
    /// A refusal at a word.
    pub(super) fn refuse(
        &self,
        reason: Reason,
        word: usize,
        frame: Option<FrameAddress>,
    ) -> Refusal {
        Refusal {
            reason,
            offset: self.stream.offset_of(word),
            frame,
        }
    }
}
