//! The frames of a region, learnt from partial bitstreams that were built for it.
//!
//! Knows that all modules of a region write the same frames. Must not believe
//! one reference against another: they agree, or nothing is learnt.

use super::refusal::Refusal;
use super::{Fenced, check};
use crate::device::{Device, FrameAddress, FrameIndex, FrameSet, RegionFrames};
use crate::xilinx::XilinxStream;

/// What references say of their region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Learnt {
    /// The device.
    pub device: Device,
    /// The frames of the region.
    pub frames: RegionFrames,
    /// Columns outside of it whose flip-flops they restore (7-series), other than
    /// those of which that was measured: see [`Bounds::restores`](super::Bounds).
    pub restores: FrameSet,
}

/// Why nothing was learnt. References are counted from 0.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LearnError {
    /// There is none.
    #[error("no reference was given")]
    NoReference,
    /// A reference is no partial bitstream that can be checked.
    #[error("reference {reference}: {refusal}")]
    Refused {
        /// Which.
        reference: usize,
        /// Why.
        refusal: Box<Refusal>,
    },
    /// It writes no frames.
    #[error("reference {reference} writes no frames")]
    Empty {
        /// Which.
        reference: usize,
    },
    /// For another device than the first.
    #[error("reference {reference} is for {found}, and the first one for {first}")]
    OtherDevice {
        /// Which.
        reference: usize,
        /// Its device.
        found: Device,
        /// The first one's.
        first: Device,
    },
    /// It writes, or restores, other frames than the first.
    #[error("reference {reference} does not write and restore the frames that the first one does{}", example(*.frame))]
    Disagrees {
        /// Which.
        reference: usize,
        /// A frame that only one of them writes, where one can be named.
        frame: Option<FrameAddress>,
    },
}

fn example(frame: Option<FrameAddress>) -> String {
    frame.map_or(String::new(), |frame| {
        format!(": only one of them has the frame {frame}")
    })
}

/// Learns what a region is from partial bitstreams built for it.
///
/// Several references of one region must write the same frames. `device` is
/// the one that they must be for, if that is known.
///
/// # Errors
///
/// See [`LearnError`].
pub fn learn(
    references: &[XilinxStream<'_>],
    device: Option<Device>,
) -> Result<Learnt, LearnError> {
    let mut first: Option<Fenced> = None;
    for (reference, stream) in references.iter().enumerate() {
        let fenced = check(stream, device, None).map_err(|refusal| LearnError::Refused {
            reference,
            refusal: Box::new(refusal),
        })?;
        if fenced.frames().is_empty() {
            return Err(LearnError::Empty { reference });
        }
        let Some(first) = &first else {
            first = Some(fenced);
            continue;
        };
        if fenced.device() != first.device() {
            return Err(LearnError::OtherDevice {
                reference,
                found: fenced.device(),
                first: first.device(),
            });
        }
        if fenced.frames() != first.frames() || fenced.restores != first.restores {
            return Err(LearnError::Disagrees {
                reference,
                frame: difference(first, &fenced),
            });
        }
    }
    let first = first.ok_or(LearnError::NoReference)?;
    Ok(Learnt {
        device: first.device,
        frames: first.frames,
        restores: first.restores,
    })
}

/// A frame that only one of the two writes.
fn difference(one: &Fenced, other: &Fenced) -> Option<FrameAddress> {
    let (RegionFrames::Set(left), RegionFrames::Set(right)) = (one.frames(), other.frames()) else {
        return None;
    };
    let only = [left.difference(right), right.difference(left)];
    let frame: FrameIndex = only.iter().find_map(|set| set.ranges().first())?.start;
    one.device().geometry()?.address(frame)
}
