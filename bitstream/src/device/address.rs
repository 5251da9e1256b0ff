//! The frame address: what the FAR register says, field by field.
//!
//! Knows where each family keeps block type, row, column and minor address.
//! Must not know which of them a device has: that is its geometry's.

use std::fmt;

use thiserror::Error;

use super::family::Family;

/// The block type of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Block {
    /// Type 0: logic, routing, clocks, I/O.
    Logic,
    /// Type 1: the content of block RAM.
    Bram,
    /// Type 2: one frame for each column of logic, which says whether restoring
    /// the flip-flops touches it (7-series).
    ClbMask,
    /// Any other type (3 to 7): no device is known to have frames of it.
    Other(u8),
}

impl Block {
    fn from_bits(bits: u32) -> Block {
        match bits {
            0 => Block::Logic,
            1 => Block::Bram,
            2 => Block::ClbMask,
            other => Block::Other(u8::try_from(other).unwrap_or(u8::MAX)),
        }
    }

    fn bits(self) -> u32 {
        match self {
            Block::Logic => 0,
            Block::Bram => 1,
            Block::ClbMask => 2,
            Block::Other(other) => u32::from(other),
        }
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Block::Logic => f.write_str("logic"),
            Block::Bram => f.write_str("bram"),
            Block::ClbMask => f.write_str("clb mask"),
            Block::Other(other) => write!(f, "block type {other}"),
        }
    }
}

/// The half of a 7-series die; its rows are counted from the middle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Half {
    /// Above the middle: first in configuration order.
    Top,
    /// Below the middle.
    Bottom,
}

impl fmt::Display for Half {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Half::Top => "top",
            Half::Bottom => "bottom",
        })
    }
}

/// A value of the FAR register that means nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the frame address 0x{raw:08x} sets bits that are reserved in {family}")]
pub struct AddressError {
    /// The family it was read for.
    pub family: Family,
    /// The value.
    pub raw: u32,
}

/// The address of one configuration frame, of a known family.
///
/// Whether a device has such a frame is for [`Geometry::index`] to say. The
/// order of addresses within a family is configuration order.
///
/// [`Geometry::index`]: super::Geometry::index
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameAddress {
    family: Family,
    raw: u32,
}

impl FrameAddress {
    /// Reads a value of the FAR register.
    ///
    /// # Errors
    ///
    /// [`AddressError`] where a bit is set that the family reserves.
    pub fn parse(family: Family, raw: u32) -> Result<FrameAddress, AddressError> {
        if raw & !family.fields().defined() != 0 {
            return Err(AddressError { family, raw });
        }
        Ok(FrameAddress { family, raw })
    }

    /// The address with these fields; `None` where one does not fit, or where
    /// `half` is given for a family without halves or missing for one with them.
    #[must_use]
    pub fn new(
        family: Family,
        block: Block,
        half: Option<Half>,
        row: u32,
        column: u32,
        minor: u32,
    ) -> Option<FrameAddress> {
        let fields = family.fields();
        let half = match (fields.half, half) {
            (Some(field), Some(Half::Top)) => field.put(0)?,
            (Some(field), Some(Half::Bottom)) => field.put(1)?,
            (None, None) => 0,
            _ => return None,
        };
        let raw = half
            | fields.block.put(block.bits())?
            | fields.row.put(row)?
            | fields.column.put(column)?
            | fields.minor.put(minor)?;
        Some(FrameAddress { family, raw })
    }

    /// The family whose fields these are.
    #[must_use]
    pub fn family(self) -> Family {
        self.family
    }

    /// The register's value.
    #[must_use]
    pub fn raw(self) -> u32 {
        self.raw
    }

    /// The block type.
    #[must_use]
    pub fn block(self) -> Block {
        Block::from_bits(self.family.fields().block.get(self.raw))
    }

    /// The half of the die; `None` in families that have no halves.
    #[must_use]
    pub fn half(self) -> Option<Half> {
        self.family
            .fields()
            .half
            .map(|field| match field.get(self.raw) {
                0 => Half::Top,
                _ => Half::Bottom,
            })
    }

    /// The row, counted in its half where there are halves.
    #[must_use]
    pub fn row(self) -> u32 {
        self.family.fields().row.get(self.raw)
    }

    /// The column, counted among the columns of its block type.
    #[must_use]
    pub fn column(self) -> u32 {
        self.family.fields().column.get(self.raw)
    }

    /// The frame's number within its column.
    #[must_use]
    pub fn minor(self) -> u32 {
        self.family.fields().minor.get(self.raw)
    }

    /// The first frame of the same column.
    #[must_use]
    pub fn column_base(self) -> FrameAddress {
        let raw = self.raw & !self.family.fields().minor.bits();
        FrameAddress { raw, ..self }
    }

    /// The same place in another block type; `None`: no such type.
    pub(super) fn with_block(self, block: Block) -> Option<FrameAddress> {
        let field = self.family.fields().block;
        let raw = (self.raw & !field.bits()) | field.put(block.bits())?;
        Some(FrameAddress { raw, ..self })
    }

    /// This is the address that bitstreams end with, where no frame is.
    #[must_use]
    pub fn is_park(self) -> bool {
        self.raw == self.family.park()
    }
}

/// In the device's terms: `logic, top row 0, column 2, minor 5 (FAR 00000105)`.
impl fmt::Display for FrameAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, ", self.block())?;
        if let Some(half) = self.half() {
            write!(f, "{half} ")?;
        }
        write!(
            f,
            "row {}, column {}, minor {} (FAR {:08x})",
            self.row(),
            self.column(),
            self.minor(),
            self.raw
        )
    }
}
