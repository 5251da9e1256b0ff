//! Configuration files of AMD (Xilinx) devices: `.bit` and `.bin`, as far as
//! the device does not see them.
//!
//! Knows headers, byte orders and how words are spelled as packets. Must not
//! know what a packet does: that is the fence's.

mod header;
mod names;
mod packet;
mod words;

use std::fmt;

use crate::error::ContainerError;

pub use self::header::BitHeader;
pub(crate) use self::header::MAGIC;
pub use self::names::{Command, Register};
pub use self::packet::{Packet, PacketFault, Packets};
pub use self::words::Words;

/// The word that makes a device listen.
pub const SYNC: u32 = 0xaa99_5566;
/// What a device passes over before it listens.
pub const PAD: u32 = 0xffff_ffff;
/// The two words from which a parallel port learns its width.
pub const BUS_WIDTH: [u32; 2] = [0x0000_00bb, 0x1122_0044];
/// The one spelling of "do nothing" that tools write.
pub const NOP: u32 = 0x2000_0000;

/// How the bytes of a file make words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WordOrder {
    /// As vendors' documents print them.
    BigEndian,
    /// Each word with its bytes in reverse, as some loaders want them.
    LittleEndian,
}

impl fmt::Display for WordOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WordOrder::BigEndian => "big-endian",
            WordOrder::LittleEndian => "little-endian",
        })
    }
}

/// The words that go to a device, and what the file says around them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XilinxStream<'a> {
    /// The header of a `.bit` file. For people: no device sees it, and nothing
    /// in the device covers it.
    pub header: Option<BitHeader<'a>>,
    /// The words as bytes; a multiple of four.
    payload: &'a [u8],
    /// Where they begin in the file, in bytes.
    offset: usize,
    order: WordOrder,
}

impl<'a> XilinxStream<'a> {
    /// The bytes that go to the device.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Where these begin in the file, in bytes.
    #[must_use]
    pub fn payload_offset(&self) -> usize {
        self.offset
    }

    /// How they make words.
    #[must_use]
    pub fn order(&self) -> WordOrder {
        self.order
    }

    /// The words.
    #[must_use]
    pub fn words(&self) -> Words<'a> {
        Words::new(self.payload, self.order)
    }

    /// The byte of the file where a word begins.
    #[must_use]
    pub fn offset_of(&self, word: usize) -> usize {
        self.offset.saturating_add(word.saturating_mul(4))
    }
}

/// Reads a `.bit` file.
///
/// # Errors
///
/// A header that is cut, repeated or lies about the length; no whole number of
/// words.
pub(crate) fn parse_bit(file: &[u8]) -> Result<XilinxStream<'_>, ContainerError> {
    let (header, offset) = header::parse(file)?;
    let payload = file.get(offset..).unwrap_or_default();
    stream(Some(header), payload, offset, WordOrder::BigEndian)
}

/// Reads bare words.
///
/// # Errors
///
/// No whole number of words.
pub(crate) fn parse_bin(file: &[u8], order: WordOrder) -> Result<XilinxStream<'_>, ContainerError> {
    stream(None, file, 0, order)
}

fn stream<'a>(
    header: Option<BitHeader<'a>>,
    payload: &'a [u8],
    offset: usize,
    order: WordOrder,
) -> Result<XilinxStream<'a>, ContainerError> {
    let over = payload.len().checked_rem(4).unwrap_or(0);
    if payload.is_empty() {
        return Err(ContainerError::PayloadMissing { at: offset });
    }
    if over != 0 {
        return Err(ContainerError::NotWords { len: payload.len() });
    }
    Ok(XilinxStream {
        header,
        payload,
        offset,
        order,
    })
}
