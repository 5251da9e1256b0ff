//! The frames of block type 2 of 7-series devices: one for each column of
//! logic, which masks that column when flip-flops are restored.
//!
//! Knows their order and addresses. Must not know what a legal mask says.

use super::address::{Block, FrameAddress};
use super::geometry::{Column, FrameIndex, Geometry};

/// The mask frames of a die, numbered from 0 in configuration order, pads not
/// counted. They belong to no [`FrameSet`](super::FrameSet).
#[derive(Debug, Clone, Copy)]
pub struct ClbMask<'a> {
    geometry: &'a Geometry,
    columns: &'a [Column],
}

impl<'a> ClbMask<'a> {
    pub(super) fn new(geometry: &'a Geometry) -> ClbMask<'a> {
        let all = geometry.columns();
        let logic = all.partition_point(|column| column.block == Block::Logic);
        ClbMask {
            geometry,
            columns: all.get(..logic).unwrap_or_default(),
        }
    }

    /// How many there are: as many as columns of logic.
    #[must_use]
    pub fn count(&self) -> usize {
        self.columns.len()
    }

    /// The columns of logic that they mask, in the same order.
    #[must_use]
    pub fn columns(&self) -> &'a [Column] {
        self.columns
    }

    /// The number of the mask frame at an address; `None`: there is none.
    #[must_use]
    pub fn position(&self, address: FrameAddress) -> Option<usize> {
        if address.block() != Block::ClbMask || address.minor() != 0 {
            return None;
        }
        let masked = address.with_block(Block::Logic)?;
        self.columns
            .binary_search_by_key(&masked, Column::address)
            .ok()
    }

    /// The address of a mask frame; `None`: there are not so many.
    #[must_use]
    pub fn address(&self, position: usize) -> Option<FrameAddress> {
        self.columns
            .get(position)?
            .address()
            .with_block(Block::ClbMask)
    }

    /// This is the last mask frame of its row: two pads follow it in a stream.
    #[must_use]
    pub fn row_end(&self, position: usize) -> bool {
        self.columns.get(position).is_some_and(|column| {
            let last = column.range().end.0.saturating_sub(1);
            self.geometry.row_end(FrameIndex(last))
        })
    }
}
