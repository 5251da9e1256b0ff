//! GBS, the container of Intel's DFL cards.
//!
//! Layout, little endian: 16 bytes of magic, `u32` length of the metadata, the
//! metadata in JSON, the payload to the end of the file. Source: opae-sdk,
//! `libraries/libbitstream` and `python/packager`.
//!
//! Knows this layout. Must not know what the payload means: it is the card's.

mod build;
mod metadata;

use std::fmt;

use ::uuid::Uuid;

use crate::detect::u32_at;
use crate::error::ContainerError;

pub use build::{BuildError, Draft, build};

/// Bytes before the metadata.
pub const HEADER_LEN: usize = 20;
/// Longest metadata that is read, in bytes.
pub const METADATA_MAX: u32 = 64 * 1024;
/// `magic-no` of every GBS: 0x1d1f8680.
pub const MAGIC_NO: u32 = 0x1d1f_8680;

const MAGIC: [u8; 16] = *b"XeonFPGA\xb7GBSv001";
/// The magic up to the digits of the version.
const MAGIC_FAMILY: &[u8] = b"XeonFPGA\xb7GBSv";
/// Before there was metadata: `magic-no`, and an interface id backwards.
const LEGACY: [u8; 4] = MAGIC_NO.to_le_bytes();

/// One wish for a user clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// This frequency, in kHz.
    Khz(u32),
    /// `auto`: the fastest that the design met timing at.
    Auto,
    /// `auto-N`: the same, at most N; in kHz.
    AutoUpTo(u32),
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Clock::Khz(khz) => write!(f, "{khz} kHz"),
            Clock::Auto => f.write_str("auto"),
            Clock::AutoUpTo(khz) => write!(f, "auto, at most {khz} kHz"),
        }
    }
}

/// The wishes for the two user clocks. Absent: the design uses none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Clocks {
    /// `clock-frequency-high`.
    pub high: Option<Clock>,
    /// `clock-frequency-low`.
    pub low: Option<Clock>,
}

/// The generation of the metadata's schema. All three hold the same fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaVersion {
    /// 1.
    V1,
    /// 640, an early 1.
    V640,
    /// 650, an early 1.
    V650,
}

/// A GBS, read in full. What it says of itself is a claim; see the crate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gbs<'a> {
    /// The schema of the metadata.
    pub version: SchemaVersion,
    /// Which regions the bitstream fits.
    pub interface_id: Uuid,
    /// The function that appears in the region.
    pub accelerator: Uuid,
    /// The function's name: at most 255 bytes, without control characters.
    pub name: String,
    /// The user clocks.
    pub clocks: Clocks,
    /// Watts, 0 for "not stated".
    pub power: u32,
    /// The bytes for the card: never empty.
    pub payload: &'a [u8],
    /// Where they begin in the file, in bytes.
    pub payload_offset: usize,
}

impl Gbs<'_> {
    /// Whether the payload fills whole 32-bit words. The card's data register
    /// takes words: the engine pads the last one with zeros, after every check.
    #[must_use]
    pub fn fills_words(&self) -> bool {
        self.payload.len().is_multiple_of(4)
    }
}

/// The file means to be a GBS, be it a broken one.
pub(crate) fn looks_like(file: &[u8]) -> bool {
    file.starts_with(MAGIC_FAMILY) || file.starts_with(&LEGACY) || is_reversed(file)
}

fn is_reversed(file: &[u8]) -> bool {
    file.get(..MAGIC.len())
        .is_some_and(|head| head.iter().rev().eq(MAGIC.iter()))
}

/// Reads a file whose first bytes are those of a GBS.
///
/// # Errors
///
/// [`ContainerError`], with the byte and the reason.
pub fn parse(file: &[u8]) -> Result<Gbs<'_>, ContainerError> {
    if file.starts_with(&LEGACY) {
        return Err(ContainerError::LegacyHeader);
    }
    if is_reversed(file) {
        return Err(ContainerError::MagicReversed);
    }
    if !file.starts_with(MAGIC_FAMILY) {
        return Err(ContainerError::Unrecognised);
    }
    let short = ContainerError::HeaderTruncated { len: file.len() };
    let Some((header, rest)) = file.split_at_checked(HEADER_LEN) else {
        return Err(short);
    };
    if !header.starts_with(&MAGIC) {
        return Err(ContainerError::HeaderVersion);
    }
    let Some(len) = u32_at(header, MAGIC.len()) else {
        return Err(short);
    };
    let (metadata, payload) = split(rest, len)?;
    let payload_offset = HEADER_LEN.saturating_add(metadata.len());
    if payload.is_empty() {
        return Err(ContainerError::PayloadMissing { at: payload_offset });
    }
    let facts = metadata::read(metadata)?;
    Ok(Gbs {
        version: facts.version,
        interface_id: facts.interface_id,
        accelerator: facts.accelerator,
        name: facts.name,
        clocks: facts.clocks,
        power: facts.power,
        payload,
        payload_offset,
    })
}

/// Cuts what follows the header into metadata and payload, by a length that
/// is checked against limit and file before anything is done with it.
fn split(rest: &[u8], len: u32) -> Result<(&[u8], &[u8]), ContainerError> {
    if len == 0 {
        return Err(ContainerError::MetadataEmpty);
    }
    if len > METADATA_MAX {
        return Err(ContainerError::MetadataTooLong { len });
    }
    usize::try_from(len)
        .ok()
        .and_then(|at| rest.split_at_checked(at))
        .ok_or(ContainerError::MetadataBeyondFile {
            len,
            available: rest.len(),
        })
}

#[cfg(test)]
mod tests;
