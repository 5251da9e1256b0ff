//! Which frames a die has, and in which order configuration passes them.
//!
//! Knows rows and columns as the tables give them. Must not know packets: pad
//! frames have no number here, [`Geometry::row_end`] says where they stand.

use std::ops::Range;

use thiserror::Error;

use super::address::{Block, FrameAddress, Half};
use super::family::Family;
use super::mask::ClbMask;

/// A die of more frames than this is a mistake in a table. The largest known
/// one has 175 340.
const MOST_FRAMES: u32 = 1 << 22;

/// The number of a frame in configuration order, pads not counted: all frames
/// of logic, then all of block RAM; in each, row after row (7-series: top rows
/// first), column after column, minor after minor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct FrameIndex(pub u32);

/// One column of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// What its frames hold: logic, or the content of block RAM.
    pub block: Block,
    /// The half of the die (7-series).
    pub half: Option<Half>,
    /// The row, in its half.
    pub row: u32,
    /// The column's number in its row, among those of its block type.
    pub column: u32,
    /// How many frames it has; never 0.
    pub frames: u32,
    /// Its first frame.
    pub first: FrameIndex,
    base: FrameAddress,
}

impl Column {
    /// The address of its first frame.
    #[must_use]
    pub fn address(&self) -> FrameAddress {
        self.base
    }

    /// Its frames.
    #[must_use]
    pub fn range(&self) -> Range<FrameIndex> {
        self.first..FrameIndex(self.first.0.saturating_add(self.frames))
    }
}

/// One row of one block type: what configuration passes before two pads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// What its frames hold.
    pub block: Block,
    /// The half of the die (7-series).
    pub half: Option<Half>,
    /// The row, in its half.
    pub row: u32,
    /// Its frames.
    pub frames: Range<FrameIndex>,
    columns: Range<usize>,
}

/// What a table says of one row.
pub(super) struct RowSpec {
    pub(super) block: Block,
    pub(super) half: Option<Half>,
    pub(super) row: u32,
    /// Frames of each column.
    pub(super) columns: Vec<u32>,
}

/// A table that describes no device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum GeometryError {
    /// A row, column or minor address does not fit its field, or a half is
    /// given or missing against the family's nature.
    #[error("a frame address of row {row} does not exist in {family}")]
    Address {
        /// The family.
        family: Family,
        /// The row.
        row: u32,
    },
    /// Not in configuration order, or a row twice.
    #[error("row {row} is out of configuration order")]
    Order {
        /// The row.
        row: u32,
    },
    /// A row without columns, a column without frames, or a die without rows.
    #[error("something has no frames")]
    Empty,
    /// More frames than any die has.
    #[error("too many frames")]
    TooLarge,
}

/// The frames of one die.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Geometry {
    family: Family,
    /// Ascending by address, which is configuration order.
    columns: Vec<Column>,
    rows: Vec<Row>,
    frame_count: u32,
}

impl Geometry {
    pub(super) fn new(
        family: Family,
        specs: impl IntoIterator<Item = RowSpec>,
    ) -> Result<Geometry, GeometryError> {
        let mut geometry = Geometry {
            family,
            columns: Vec::new(),
            rows: Vec::new(),
            frame_count: 0,
        };
        for spec in specs {
            geometry.push(&spec)?;
        }
        if geometry.rows.is_empty() {
            Err(GeometryError::Empty)
        } else {
            Ok(geometry)
        }
    }

    fn push(&mut self, spec: &RowSpec) -> Result<(), GeometryError> {
        let RowSpec {
            block,
            half,
            row,
            ref columns,
        } = *spec;
        let first = FrameIndex(self.frame_count);
        let first_column = self.columns.len();
        for (&frames, column) in columns.iter().zip(0..) {
            let no_address = GeometryError::Address {
                family: self.family,
                row,
            };
            let address = |minor| FrameAddress::new(self.family, block, half, row, column, minor);
            let last = frames.checked_sub(1).ok_or(GeometryError::Empty)?;
            address(last).ok_or(no_address)?;
            let base = address(0).ok_or(no_address)?;
            if self
                .columns
                .last()
                .is_some_and(|before| before.base >= base)
            {
                return Err(GeometryError::Order { row });
            }
            let first = FrameIndex(self.frame_count);
            self.columns.push(Column {
                block,
                half,
                row,
                column,
                frames,
                first,
                base,
            });
            self.frame_count = self
                .frame_count
                .checked_add(frames)
                .filter(|&count| count <= MOST_FRAMES)
                .ok_or(GeometryError::TooLarge)?;
        }
        if columns.is_empty() {
            return Err(GeometryError::Empty);
        }
        let frames = first..FrameIndex(self.frame_count);
        let columns = first_column..self.columns.len();
        self.rows.push(Row {
            block,
            half,
            row,
            frames,
            columns,
        });
        Ok(())
    }

    /// The family.
    #[must_use]
    pub fn family(&self) -> Family {
        self.family
    }

    /// How many frames there are, of logic and block RAM, without pads.
    #[must_use]
    pub fn frame_count(&self) -> u32 {
        self.frame_count
    }

    /// The number of the frame at an address; `None`: there is no such row,
    /// column or minor, or it is of a block type or family without numbers here.
    #[must_use]
    pub fn index(&self, address: FrameAddress) -> Option<FrameIndex> {
        let base = address.column_base();
        let at = self
            .columns
            .binary_search_by_key(&base, |column| column.base)
            .ok()?;
        let column = self.columns.get(at)?;
        if address.minor() >= column.frames {
            return None;
        }
        column.first.0.checked_add(address.minor()).map(FrameIndex)
    }

    /// The address of a frame; `None`: there are not so many.
    #[must_use]
    pub fn address(&self, index: FrameIndex) -> Option<FrameAddress> {
        let column = self.column_of(index)?;
        let minor = index.0.checked_sub(column.first.0)?;
        let Column {
            block,
            half,
            row,
            column,
            ..
        } = *column;
        FrameAddress::new(self.family, block, half, row, column, minor)
    }

    /// The column that a frame is in.
    #[must_use]
    pub fn column_of(&self, index: FrameIndex) -> Option<&Column> {
        if index.0 >= self.frame_count {
            return None;
        }
        let after = self.columns.partition_point(|column| column.first <= index);
        self.columns.get(after.checked_sub(1)?)
    }

    /// The row that a frame is in.
    #[must_use]
    pub fn row_of(&self, index: FrameIndex) -> Option<&Row> {
        if index.0 >= self.frame_count {
            return None;
        }
        let after = self.rows.partition_point(|row| row.frames.start <= index);
        self.rows.get(after.checked_sub(1)?)
    }

    /// This is the last frame of its row: two pads follow it in a stream.
    #[must_use]
    pub fn row_end(&self, index: FrameIndex) -> bool {
        let end = index.0.checked_add(1);
        self.row_of(index)
            .is_some_and(|row| Some(row.frames.end.0) == end)
    }

    /// The frame that the device goes on with, across columns, rows and from
    /// logic to block RAM; `None` after the last.
    #[must_use]
    pub fn next(&self, index: FrameIndex) -> Option<FrameIndex> {
        index
            .0
            .checked_add(1)
            .filter(|&next| next < self.frame_count)
            .map(FrameIndex)
    }

    /// Every column of every row, in configuration order.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Every row, in configuration order.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The columns of one row.
    #[must_use]
    pub fn row_columns(&self, row: &Row) -> &[Column] {
        self.columns.get(row.columns.clone()).unwrap_or_default()
    }

    /// The row with these coordinates.
    #[must_use]
    pub fn row(&self, block: Block, half: Option<Half>, row: u32) -> Option<&Row> {
        self.rows
            .iter()
            .find(|r| (r.block, r.half, r.row) == (block, half, row))
    }

    /// The frames of block type 2, one a column of logic; `None` in families
    /// that have none.
    #[must_use]
    pub fn clb_mask(&self) -> Option<ClbMask<'_>> {
        match self.family {
            Family::Series7 => Some(ClbMask::new(self)),
            Family::UltraScale | Family::UltraScalePlus => None,
        }
    }
}
