//! Bitstream containers: what a file is, what it says about itself, and which
//! of its bytes go to a card.
//!
//! Bytes in, facts out. May know the formats that vendors' tools write. Must
//! not know who asks, whether the file is trusted, or any device: a fact read
//! here is a claim until the signed list says the same.
//!
//! A container is recognised by its content, never by its name. GBS is read in
//! full, and so are AMD's `.bit` and `.bin`; other formats are recognised and
//! refused by name, each with a reason of its own. What the words of an AMD
//! bitstream do is for the [`fence`] to say, before any device gets them; which
//! frames a [`device`] has is said by the tables in `geometry/`.
//!
//! Nothing here allocates by a length that a file states, and no input makes
//! it panic.

#![forbid(unsafe_code)]

#[cfg(test)]
mod cases;
mod detect;
pub mod device;
pub mod draw;
mod error;
pub mod fence;
pub mod gbs;
mod json;
mod target;
mod uuid;
mod xclbin;
pub mod xilinx;

#[doc(hidden)]
pub mod fuzz;

pub use crate::detect::Format;
pub use crate::error::ContainerError;
pub use crate::gbs::Gbs;
pub use crate::target::{Fact, TargetMismatch};
pub use crate::uuid::{UuidError, parse_uuid};
pub use crate::xclbin::{Xclbin, XclbinSection};

use crate::xilinx::XilinxStream;

/// A container that can be loaded, borrowed from the file's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Container<'a> {
    /// Intel's GBS: a header, metadata in JSON, and the payload.
    Gbs(Gbs<'a>),
    /// AMD's `.bit` or `.bin`: configuration words, and perhaps a header.
    Xilinx(XilinxStream<'a>),
    /// Intel's raw bitstream: bytes that nobody outside the vendor can read.
    Rbf(&'a [u8]),
}

impl<'a> Container<'a> {
    /// The bytes that a card is given: what follows the header, and nothing else.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        match self {
            Container::Gbs(gbs) => gbs.payload,
            Container::Xilinx(stream) => stream.payload(),
            Container::Rbf(bytes) => bytes,
        }
    }

    /// Where the payload begins in the file, in bytes.
    #[must_use]
    pub fn payload_offset(&self) -> usize {
        match self {
            Container::Gbs(gbs) => gbs.payload_offset,
            Container::Xilinx(stream) => stream.payload_offset(),
            Container::Rbf(_) => 0,
        }
    }
}

/// Reads a container from the whole of a file.
///
/// # Errors
///
/// [`ContainerError`] says what is wrong and at which byte; a format that is
/// recognised and cannot be loaded yet is [`ContainerError::NotLoadable`].
pub fn parse(file: &[u8]) -> Result<Container<'_>, ContainerError> {
    parse_as(file, detect::recognise(file)?)
}

/// Reads the whole of a file as the container that somebody says it is: the
/// only way to read a raw bitstream of Intel's, which has no mark of its own.
///
/// # Errors
///
/// As [`parse`]; a file of another format is refused as what it should have been.
pub fn parse_as(file: &[u8], format: Format) -> Result<Container<'_>, ContainerError> {
    if file.is_empty() {
        return Err(ContainerError::Empty);
    }
    match format {
        Format::Gbs => gbs::parse(file).map(Container::Gbs),
        Format::XilinxBit => xilinx::parse_bit(file).map(Container::Xilinx),
        Format::XilinxBin(order) => xilinx::parse_bin(file, order).map(Container::Xilinx),
        Format::Rbf => Ok(Container::Rbf(file)),
        Format::Xclbin | Format::ZynqBoot => Err(ContainerError::NotLoadable { format }),
    }
}
