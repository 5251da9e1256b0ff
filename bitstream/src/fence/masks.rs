//! Column masks of 7-series devices: block type 2, one frame a column, which
//! says whether restoring flip-flops touches the column.
//!
//! Knows the two contents that tools write, and what a mask must cover before
//! flip-flops are restored.

use super::pipeline::Allowed;
use super::reason::Reason;
use crate::device::{ClbMask, Column, Device, FrameSet, Geometry, Half};
use crate::xilinx::Words;

/// The word that a masked column's frame has, and where; all others are 0.
const MASKED: (usize, u32) = (50, 0xe000_09bc);

/// What a mask frame says of its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mask {
    /// Its flip-flops stay as they are.
    Kept,
    /// Its flip-flops are restored.
    Restored,
}

impl Mask {
    /// Reads the content of one frame.
    pub(super) fn read(frame: Words<'_>) -> Option<Self> {
        if frame.all_zero() {
            return Some(Self::Restored);
        }
        let (place, value) = MASKED;
        let right = frame
            .iter()
            .enumerate()
            .all(|(at, word)| word == if at == place { value } else { 0 });
        right.then_some(Self::Kept)
    }
}

/// The masks of all columns, as far as they were written.
#[derive(Debug, Clone, Default)]
pub(super) struct Masks {
    columns: Vec<Option<Mask>>,
}

impl Masks {
    /// None of them written.
    pub(super) fn none(mask: Option<ClbMask<'_>>) -> Self {
        Self {
            columns: vec![None; mask.map_or(0, |mask| mask.count())],
        }
    }

    /// The mask of one column was written.
    pub(super) fn set(&mut self, position: usize, mask: Mask) {
        if let Some(place) = self.columns.get_mut(position) {
            *place = Some(mask);
        }
    }

    /// One at least was written.
    pub(super) fn any(&self) -> bool {
        self.columns.iter().any(Option::is_some)
    }

    /// The columns whose flip-flops would be restored.
    ///
    /// # Errors
    /// Not every column has a mask.
    fn restored<'a>(
        &'a self,
        all: ClbMask<'a>,
    ) -> Result<impl Iterator<Item = &'a Column> + 'a, Reason> {
        if self.columns.is_empty() || self.columns.iter().any(Option::is_none) {
            return Err(Reason::MaskIncomplete);
        }
        let restored = |mask: &Option<Mask>| *mask == Some(Mask::Restored);
        let pairs = all.columns().iter().zip(&self.columns);
        Ok(pairs.filter_map(move |(column, mask)| restored(mask).then_some(column)))
    }

    /// The columns whose flip-flops are restored, but those of which it is known
    /// that every file restores them.
    pub(super) fn restored_columns(&self, device: Device) -> FrameSet {
        let all = device.geometry().and_then(Geometry::clb_mask);
        let Some(Ok(restored)) = all.map(|all| self.restored(all)) else {
            return FrameSet::new();
        };
        restored
            .filter(|column| !always_restored(device, column))
            .map(Column::range)
            .collect()
    }

    /// May flip-flops be restored? Only of the region's columns, and of those
    /// that hold none.
    ///
    /// # Errors
    /// The column that must not be restored, where it is about one.
    pub(super) fn check(
        &self,
        device: Device,
        allowed: Allowed<'_>,
    ) -> Result<(), (Reason, Option<Column>)> {
        let all = device.geometry().and_then(Geometry::clb_mask);
        let all = all.ok_or((Reason::MaskIncomplete, None))?;
        let restored = self.restored(all).map_err(|reason| (reason, None))?;
        let Some(region) = allowed.set() else {
            return Ok(());
        };
        for column in restored {
            let range = column.range();
            let own = region.contains_range(&range)
                || allowed
                    .restores
                    .is_some_and(|besides| besides.contains_range(&range));
            if !own && !always_restored(device, column) {
                return Err((Reason::RestoresOutside, Some(*column)));
            }
        }
        Ok(())
    }
}

/// Columns whose mask is 0 in every partial bitstream of the device, whatever
/// its region: they hold no flip-flops of the design. Measured for these three
/// dies; of others it is not known, and nothing outside the region is taken.
fn always_restored(device: Device, column: &Column) -> bool {
    let Column {
        half, row, column, ..
    } = *column;
    let middle = row == 0 && matches!(half, Some(Half::Top | Half::Bottom));
    let measured = match device.idcode() {
        // 7A15T, 7A35T and 7A50T share a die, and so do 7A75T and 7A100T.
        0x0362_e093 | 0x0362_d093 | 0x0362_c093 | 0x0363_2093 | 0x0363_1093 => {
            (12..=17).contains(&column)
        }
        0x0372_7093 => column <= 17 || (44..=49).contains(&column),
        _ => false,
    };
    middle && measured
}
