//! Bitstream containers: what a file is, what it says about itself, and which
//! of its bytes go to a card.
//!
//! Bytes in, facts out. May know the formats that vendors' tools write. Must
//! not know who asks, whether the file is trusted, or any device: a fact read
//! here is a claim until the signed list says the same.
//!
//! A container is recognised by its content, never by its name. GBS is read in
//! full; other formats are recognised and refused by name, each with a reason
//! of its own. The static inspection of configuration frames (the fence) will
//! stand beside the parsers, as a module of its own that takes a
//! [`Container`]'s payload.
//!
//! Nothing here allocates by a length that a file states, and no input makes
//! it panic.

#![forbid(unsafe_code)]

#[cfg(test)]
mod cases;
mod detect;
pub mod device;
mod error;
pub mod gbs;
mod json;
mod target;
mod uuid;

#[doc(hidden)]
pub mod fuzz;

pub use crate::detect::Format;
pub use crate::error::ContainerError;
pub use crate::gbs::Gbs;
pub use crate::target::{Fact, TargetMismatch};
pub use crate::uuid::{UuidError, parse_uuid};

/// A container that can be loaded, borrowed from the file's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Container<'a> {
    /// Intel's GBS: a header, metadata in JSON, and the payload.
    Gbs(Gbs<'a>),
}

impl<'a> Container<'a> {
    /// The bytes that a card is given: what follows the header, and nothing else.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        match self {
            Container::Gbs(gbs) => gbs.payload,
        }
    }

    /// Where the payload begins in the file, in bytes.
    #[must_use]
    pub fn payload_offset(&self) -> usize {
        match self {
            Container::Gbs(gbs) => gbs.payload_offset,
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
    match detect::recognise(file)? {
        Format::Gbs => gbs::parse(file).map(Container::Gbs),
        format => Err(ContainerError::NotLoadable { format }),
    }
}
