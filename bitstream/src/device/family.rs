//! The three families: how long a frame is and where its address keeps what.
//!
//! Knows constants of the silicon. Must not know any single device.

use std::fmt;

/// A family of devices with one form of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// Artix-7, Kintex-7, Spartan-7, Virtex-7 and Zynq-7000 (UG470).
    Series7,
    /// Kintex and Virtex UltraScale (UG570).
    UltraScale,
    /// Artix, Kintex, Virtex and Zynq UltraScale+, Alveo and Kria (UG570).
    UltraScalePlus,
}

/// Some adjacent bits of a frame address.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    shift: u32,
    mask: u32,
}

impl Field {
    /// The field's value in a raw address.
    pub(super) fn get(self, raw: u32) -> u32 {
        raw.checked_shr(self.shift).unwrap_or(0) & self.mask
    }

    /// The bits of a raw address that say `value`; `None`: it does not fit.
    pub(super) fn put(self, value: u32) -> Option<u32> {
        if value > self.mask {
            return None;
        }
        value.checked_shl(self.shift)
    }

    /// The field's bits in a raw address.
    pub(super) fn bits(self) -> u32 {
        self.mask.checked_shl(self.shift).unwrap_or(0)
    }
}

/// Where a family's frame address keeps what.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields {
    pub(super) block: Field,
    pub(super) half: Option<Field>,
    pub(super) row: Field,
    pub(super) column: Field,
    pub(super) minor: Field,
}

impl Fields {
    /// Every bit that means something; the others are reserved.
    pub(super) fn defined(self) -> u32 {
        self.block.bits()
            | self.half.map_or(0, Field::bits)
            | self.row.bits()
            | self.column.bits()
            | self.minor.bits()
    }
}

impl Family {
    /// Every family.
    pub const ALL: [Family; 3] = [Family::Series7, Family::UltraScale, Family::UltraScalePlus];

    /// The length of one configuration frame, in words of 32 bits.
    #[must_use]
    pub fn frame_words(self) -> usize {
        match self {
            Family::Series7 => 101,
            Family::UltraScale => 123,
            Family::UltraScalePlus => 93,
        }
    }

    /// The frame address that bitstreams end with: the last row of the last
    /// block type, where no device has a frame.
    #[must_use]
    pub fn park(self) -> u32 {
        match self {
            Family::Series7 | Family::UltraScale => 0x03be_0000,
            Family::UltraScalePlus => 0x07fc_0000,
        }
    }

    /// How many pad frames follow the last frame of a row in a stream.
    #[must_use]
    pub fn row_pads(self) -> u32 {
        2
    }

    /// How many minor addresses a column can have; no column has so many
    /// frames and one more.
    pub(super) fn minor_count(self) -> u32 {
        self.fields().minor.mask.saturating_add(1)
    }

    /// The word that stands for the family in the tables.
    pub(super) fn keyword(self) -> &'static str {
        match self {
            Family::Series7 => "series7",
            Family::UltraScale => "ultrascale",
            Family::UltraScalePlus => "ultrascale+",
        }
    }

    pub(super) fn fields(self) -> Fields {
        let field = |shift, width| Field {
            shift,
            mask: !u32::MAX.checked_shl(width).unwrap_or(0),
        };
        match self {
            Family::Series7 => Fields {
                block: field(23, 3),
                half: Some(field(22, 1)),
                row: field(17, 5),
                column: field(7, 10),
                minor: field(0, 7),
            },
            Family::UltraScale => Fields {
                block: field(23, 3),
                half: None,
                row: field(17, 6),
                column: field(7, 10),
                minor: field(0, 7),
            },
            Family::UltraScalePlus => Fields {
                block: field(24, 3),
                half: None,
                row: field(18, 6),
                column: field(8, 10),
                minor: field(0, 8),
            },
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Family::Series7 => "7-series",
            Family::UltraScale => "UltraScale",
            Family::UltraScalePlus => "UltraScale+",
        })
    }
}
