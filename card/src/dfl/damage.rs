//! Where things are on a card, and what can be wrong with its feature lists.

use std::fmt;

use crate::device::{Bar, DeviceError};

/// A place in a BAR.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Which BAR.
    pub bar: Bar,
    /// Bytes from its beginning.
    pub offset: u64,
}

impl Place {
    /// A place in a bar.
    #[must_use]
    pub fn new(bar: Bar, offset: u64) -> Self {
        Self { bar, offset }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} + {:#x}", self.bar, self.offset)
    }
}

/// Why a card's feature lists are not believed.
#[derive(Debug, thiserror::Error)]
pub enum WalkError {
    /// The device could not be read.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A header or register would lie beyond the end of its BAR.
    #[error("the feature list goes beyond the end at {0}")]
    BeyondBar(Place),
    /// A header does not lie on eight bytes.
    #[error("the feature list is not aligned at {0}")]
    Unaligned(Place),
    /// A register reads as all ones while the card answers elsewhere.
    #[error("nothing answers at {0}")]
    AllOnes(Place),
    /// Two lists share a header.
    #[error("the feature lists meet at {0}")]
    Overlap(Place),
    /// More headers than any card has.
    #[error("the feature lists have too many headers")]
    TooManyHeaders,
    /// A list begins in a BAR that PCI does not have.
    #[error("a feature list is said to begin in BAR {0}")]
    NoSuchBar(u8),
    /// A management unit or port with a header whose layout is not known.
    #[error("the unit at {place} has header version {version}, which is not known")]
    Version {
        /// Where it is.
        place: Place,
        /// The version.
        version: u8,
    },
    /// Two management units.
    #[error("a second management unit at {0}")]
    SecondFme(Place),
    /// Two PR features.
    #[error("a second PR feature at {0}")]
    SecondPrFeature(Place),
    /// What the management unit calls a port is none.
    #[error("the management unit leads to {0} for a port, and there is none")]
    NoPort(Place),
    /// A port calls itself by another number than the management unit does.
    #[error("the port at {place} is number {found}, and should be {expected}")]
    PortNumber {
        /// Where it is.
        place: Place,
        /// Number in the management unit.
        expected: u8,
        /// Number in the port.
        found: u8,
    },
    /// Two ports of one number: the wrong one would be shut.
    #[error("two ports are number {0}")]
    DuplicatePort(u8),
    /// The function's registers are nowhere, or reach into something else.
    #[error("the function's registers at {0} do not fit there")]
    AfuPlace(Place),
    /// The parameters of a version 1 header are damaged.
    #[error("the parameters of the feature at {place} are damaged")]
    Parameters {
        /// Where the feature is.
        place: Place,
    },
}
