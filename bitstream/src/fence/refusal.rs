//! A refusal: the reason, and the place in the file and on the device.

use super::reason::Reason;
use crate::device::FrameAddress;

/// A stream that must not be loaded: why, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Refusal {
    pub(super) reason: Reason,
    pub(super) offset: usize,
    pub(super) frame: Option<FrameAddress>,
}

impl Refusal {
    /// Why.
    #[must_use]
    pub fn reason(&self) -> &Reason {
        &self.reason
    }

    /// A stable name for the reason.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.reason.code()
    }

    /// The byte of the file that the refusal is about.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The frame that it is about, where it is about one.
    #[must_use]
    pub fn frame(&self) -> Option<FrameAddress> {
        self.frame
    }

    /// What to do about it, in one sentence.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        self.reason.remedy()
    }
}
