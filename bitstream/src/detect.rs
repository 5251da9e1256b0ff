//! What is this file? Told by its content.
//!
//! Knows first bytes and the few words after them. Must not interpret a file
//! further than its name asks for: the parsers do that.

use std::fmt;

use crate::error::{ByteOrder, ContainerError};
use crate::gbs;
use crate::xclbin;
use crate::xilinx::{self, WordOrder};

/// A container or stream that is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Intel's GBS.
    Gbs,
    /// Xilinx' xclbin, version 2.
    Xclbin,
    /// Vivado's `.bit`: a header, then configuration words.
    XilinxBit,
    /// Bare configuration words, as Vivado's `.bin`, in either order of bytes.
    XilinxBin(WordOrder),
    /// An image for the Zynq boot ROM, which may hold a bitstream.
    ZynqBoot,
    /// Intel's raw bitstream. It has no mark, so nothing is recognised as one.
    Rbf,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Gbs => "a GBS file",
            Format::Xclbin => "an xclbin file",
            Format::XilinxBit => "a Xilinx .bit file",
            Format::XilinxBin(_) => "a Xilinx .bin file",
            Format::ZynqBoot => "a Zynq boot image",
            Format::Rbf => "a raw binary file (RBF)",
        })
    }
}

const ELF: &[u8] = b"\x7fELF";
const XCLBIN: &[u8] = b"xclbin2\0";
const XCLBIN_ANY: &[u8] = b"xclbin";
/// The boot ROM's width word stands at 0x20; it is the sync word of
/// configuration streams too, which is why a search for "the first sync" errs.
const ZYNQ_BOOT_WIDTH: (usize, &[u8]) = (0x20, &[0x66, 0x55, 0x99, 0xaa]);
const ZYNQ_BOOT_NAME: (usize, &[u8]) = (0x24, b"XNLX");

pub(crate) fn recognise(file: &[u8]) -> Result<Format, ContainerError> {
    if file.is_empty() {
        return Err(ContainerError::Empty);
    }
    if gbs::looks_like(file) {
        return Ok(Format::Gbs);
    }
    if file.starts_with(XCLBIN) {
        return xclbin::recognise(file);
    }
    if file.starts_with(XCLBIN_ANY) {
        return Err(ContainerError::XclbinVersion);
    }
    if file.starts_with(xilinx::MAGIC) {
        return Ok(Format::XilinxBit);
    }
    if file.starts_with(ELF) {
        return Err(ContainerError::Program);
    }
    if has(file, ZYNQ_BOOT_WIDTH) && has(file, ZYNQ_BOOT_NAME) {
        return Ok(Format::ZynqBoot);
    }
    configuration_words(file)
}

fn has(file: &[u8], (at, what): (usize, &[u8])) -> bool {
    file.get(at..).is_some_and(|rest| rest.starts_with(what))
}

/// The sync word and the words allowed before it, in one byte order.
struct Order {
    sync: [u8; 4],
    bus_width: [[u8; 4]; 2],
    verdict: Result<Format, ByteOrder>,
}

const PAD: [u8; 4] = [0xff; 4];
const ORDERS: [Order; 3] = [
    Order {
        sync: [0xaa, 0x99, 0x55, 0x66],
        bus_width: [[0x00, 0x00, 0x00, 0xbb], [0x11, 0x22, 0x00, 0x44]],
        verdict: Ok(Format::XilinxBin(WordOrder::BigEndian)),
    },
    Order {
        sync: [0x66, 0x55, 0x99, 0xaa],
        bus_width: [[0xbb, 0x00, 0x00, 0x00], [0x44, 0x00, 0x22, 0x11]],
        verdict: Ok(Format::XilinxBin(WordOrder::LittleEndian)),
    },
    Order {
        sync: [0x55, 0x99, 0xaa, 0x66],
        bus_width: [[0x00, 0x00, 0x00, 0xdd], [0x88, 0x44, 0x00, 0x22]],
        verdict: Err(ByteOrder::BitsSwapped),
    },
];

/// Walks over padding words to the sync word; any other word before it ends
/// the walk, so that a sync word deep inside other data is not found.
fn configuration_words(file: &[u8]) -> Result<Format, ContainerError> {
    let mut words = 0usize;
    for word in file.chunks_exact(4) {
        for order in &ORDERS {
            if word == order.sync {
                return order.verdict.map_err(|order| ContainerError::WordOrder {
                    order,
                    at: words.saturating_mul(4),
                });
            }
        }
        let allowed = word == PAD
            || ORDERS
                .iter()
                .any(|order| order.bus_width.iter().any(|w| word == w));
        if !allowed {
            break;
        }
        words = words.saturating_add(1);
    }
    if words == 0 {
        Err(ContainerError::Unrecognised)
    } else {
        Err(ContainerError::NoSyncWord {
            at: words.saturating_mul(4),
        })
    }
}

/// A little-endian number at `at`, if the bytes are there.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let end = at.checked_add(4)?;
    let word: [u8; 4] = bytes.get(at..end)?.try_into().ok()?;
    Some(u32::from_le_bytes(word))
}
