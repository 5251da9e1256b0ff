//! What can be wrong with the lines of a frame set.
//!
//! Knows what to tell the operator who wrote them. Must not know the file they
//! stand in.

use thiserror::Error;

use super::address::{Block, Half};

/// More lines than this are no region that a person can check.
pub(super) const MOST_LINES: usize = 16_384;

/// A line that names no frames.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {} of the frames: {why}", line.saturating_add(1))]
pub struct FrameSetError {
    /// Which line, counted from 0.
    pub line: usize,
    /// What is wrong with it.
    pub why: FrameSetFault,
}

/// What is wrong with a line, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FrameSetFault {
    /// There are no lines at all.
    #[error("there are none, so nothing could be loaded; name the region's frames")]
    Nothing,
    /// More lines than a region can need.
    #[error("there are more than {MOST_LINES} lines")]
    TooManyLines,
    /// Another word was expected here, or one more.
    #[error("{found} stands where {expected} is expected")]
    Word {
        /// What stands there: quoted, or `the end`.
        found: String,
        /// What may stand there.
        expected: &'static str,
    },
    /// Something that is neither a number nor an ascending list of them.
    #[error("{found} is not {expected}")]
    Number {
        /// What stands there, quoted.
        found: String,
        /// What may stand there.
        expected: &'static str,
    },
    /// The die has no such row.
    #[error("there is no {block}{} row {row}; there are rows 0 to {last}",
        half.map(|half| format!(" {half}")).unwrap_or_default())]
    Row {
        /// Of which block type.
        block: Block,
        /// In which half.
        half: Option<Half>,
        /// The row asked for.
        row: u32,
        /// The last row that there is.
        last: u32,
    },
    /// The die has no frames of this kind in this half.
    #[error("the device has no {block} there")]
    NoRows {
        /// Of which block type.
        block: Block,
    },
    /// The row has fewer columns.
    #[error("there is no column {column} in row {row}; there are columns 0 to {last}")]
    Column {
        /// The column asked for.
        column: u32,
        /// The row.
        row: u32,
        /// The last column of that row.
        last: u32,
    },
    /// The column has fewer frames.
    #[error(
        "there is no minor {minor} in column {column} of row {row}; there are minors 0 to {last}"
    )]
    Minor {
        /// The minor asked for.
        minor: u32,
        /// The column.
        column: u32,
        /// The row.
        row: u32,
        /// The last minor of that column.
        last: u32,
    },
    /// A frame address that sets reserved bits, or no block has frames of.
    #[error("{found} is no frame address of this family")]
    Address {
        /// What stands there, quoted.
        found: String,
    },
    /// A list of blocks, for a device whose columns are known.
    #[error("the columns of {device} are known: write rows and columns, as \"{example}\"")]
    BlocksNotNeeded {
        /// The device.
        device: &'static str,
        /// A line of the right form.
        example: String,
    },
    /// Rows and columns, for a device whose columns are not known.
    #[error(
        "the columns of {device} are not known: write \"block 0x… frames …\", \
        as `reconfctl region learn` does"
    )]
    BlocksNeeded {
        /// The device.
        device: &'static str,
    },
    /// A device of several dies.
    #[error("{device} is of several dies, whose frames cannot be fenced yet")]
    MultiDie {
        /// The device.
        device: &'static str,
    },
}
