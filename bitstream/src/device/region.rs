//! What a region is, for the fence: a set of frames, or a list of blocks.
//!
//! Knows when two regions meet. Must not know shells or policy: the daemon
//! reads the lines from a shell file and asks here what they say.

use std::fmt;

use super::blocks::{BlockList, FrameBlock};
use super::fault::FrameSetError;
use super::frames::FrameSet;
use super::geometry::FrameIndex;
use super::parse;
use super::part::Device;

/// The frames of a region, or those that a bitstream writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RegionFrames {
    /// By the device's geometry.
    Set(FrameSet),
    /// By the exact writes of reference bitstreams, for a device without one.
    Blocks(BlockList),
}

/// Where two regions meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overlap {
    /// The first frame that both have.
    Frame(FrameIndex),
    /// A block of the one and a block of the other that share a frame.
    Blocks(FrameBlock, FrameBlock),
    /// One is a set and the other a list of blocks: nobody can say.
    Incomparable,
}

impl RegionFrames {
    /// Reads the lines of a shell file, for the device that it names.
    ///
    /// A device with a geometry takes lines such as
    /// `logic top row 0 columns 2-14` (see [`FrameSet::parse`]); one without,
    /// lines such as `block 0x00420100 frames 272`.
    ///
    /// # Errors
    ///
    /// [`FrameSetError`] names the line, counted from 0, and what is wrong.
    pub fn parse<L: AsRef<str>>(
        device: Device,
        lines: &[L],
    ) -> Result<RegionFrames, FrameSetError> {
        parse::parse_region(device, lines)
    }

    /// The lines that a shell file has for this; canonical, so that equal
    /// regions have equal lines, and [`RegionFrames::parse`] reads them back.
    ///
    /// `device` is the one that the frames are of; frames that it does not have
    /// are left out.
    #[must_use]
    pub fn to_lines(&self, device: Device) -> Vec<String> {
        match self {
            RegionFrames::Set(set) => device
                .geometry()
                .map(|geometry| set.to_lines(geometry))
                .unwrap_or_default(),
            RegionFrames::Blocks(list) => list.blocks().iter().map(ToString::to_string).collect(),
        }
    }

    /// Where this region meets another of the same device.
    ///
    /// For sets the answer is exact. For lists of blocks `None` means that no
    /// meeting is certain ([`BlockList::surely_common`]).
    #[must_use]
    pub fn overlap(&self, other: &RegionFrames) -> Option<Overlap> {
        match (self, other) {
            (RegionFrames::Set(left), RegionFrames::Set(right)) => {
                left.first_common(right).map(Overlap::Frame)
            }
            (RegionFrames::Blocks(left), RegionFrames::Blocks(right)) => left
                .surely_common(right)
                .map(|(left, right)| Overlap::Blocks(left, right)),
            (RegionFrames::Set(_), RegionFrames::Blocks(_))
            | (RegionFrames::Blocks(_), RegionFrames::Set(_)) => Some(Overlap::Incomparable),
        }
    }

    /// There is no frame in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self {
            RegionFrames::Set(set) => set.is_empty(),
            RegionFrames::Blocks(list) => list.is_empty(),
        }
    }
}

impl Overlap {
    /// What to tell an operator, in the device's terms.
    #[must_use]
    pub fn describe(self, device: Device) -> String {
        let address = |index| {
            device
                .geometry()
                .and_then(|geometry| geometry.address(index))
        };
        match self {
            Overlap::Frame(index) => match address(index) {
                Some(address) => format!("both have the frame {address}"),
                None => format!("both have frame {}", index.0),
            },
            overlap => overlap.to_string(),
        }
    }
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Overlap::Frame(index) => write!(f, "both have frame {}", index.0),
            Overlap::Blocks(left, right) if left == right => write!(f, "both have {left}"),
            Overlap::Blocks(left, right) => write!(f, "{left} and {right} share frames"),
            Overlap::Incomparable => f.write_str(
                "one is a set of columns and the other a list of blocks, so they cannot be compared",
            ),
        }
    }
}
