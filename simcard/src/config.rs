//! What a card is made of and how fast it is: the values that are fixed when it
//! starts. Knows nothing of sockets; parsed at the edge, so that the rest of
//! the crate never meets a bad value.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;
use uuid::Uuid;

use crate::clock::Clock;
use crate::silicon::Geometry;
use crate::table::Table;

/// How many regions, and so ports and user functions, a card has.
pub const REGIONS: usize = 2;

/// Everything that one card needs to know at its start.
#[derive(Debug, Clone)]
pub struct Config {
    /// Whose register map it has.
    pub shape: Shape,
    /// Device serial number (extended capability 0003h of the management function).
    pub serial: u64,
    /// Which partial bitstreams fit: read back at `INTFC_ID_H`, `INTFC_ID_L`.
    /// Nil in the AMD shape, which has no such register.
    pub interface_id: Uuid,
    /// How fast the configuration engine swallows words.
    pub rate: Rate,
    /// How many words the FIFO before the configuration engine holds.
    pub fifo: FifoDepth,
    /// Payloads of other formats, known by their digest.
    pub table: Table,
    /// What happens to a function when its client goes away.
    pub on_close: OnClose,
    /// What the card takes for time.
    pub clock: Clock,
}

impl Config {
    /// A card of the DFL shape with the usual values: instant, 256 words deep, no table, state kept on close.
    #[must_use]
    pub fn new(serial: u64, interface_id: Uuid) -> Self {
        Self {
            shape: Shape::Dfl,
            serial,
            interface_id,
            rate: Rate::Instant,
            fifo: FifoDepth::default(),
            table: Table::default(),
            on_close: OnClose::KeepState,
            clock: Clock::wall(),
        }
    }
}

/// Whose register map a card has.
#[derive(Debug, Clone)]
pub enum Shape {
    /// Device feature list, classic.
    Dfl,
    /// AXI HWICAP, decouplers and identity blocks, around a device of this geometry.
    Hwicap(Box<Geometry>),
}

/// What happens to a function when its vfio-user client disconnects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnClose {
    /// Nothing: vfio-user's own behaviour.
    KeepState,
    /// A function level reset, as the kernel's VFIO does at the last close.
    Reset,
}

/// How fast the configuration engine takes words out of its FIFO.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// Each word is gone before the next access: credits are always full.
    Instant,
    /// Bytes of payload a second, never zero.
    BytesPerSecond(u64),
}

/// Why a rate could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "a rate is `instant`, or bytes a second above zero, with `k` (1000) or `M` (1000000) behind it"
)]
pub struct BadRate;

impl FromStr for Rate {
    type Err = BadRate;

    fn from_str(text: &str) -> Result<Self, BadRate> {
        if text == "instant" {
            return Ok(Self::Instant);
        }
        let (digits, unit) = if let Some(digits) = text.strip_suffix('k') {
            (digits, 1_000)
        } else if let Some(digits) = text.strip_suffix('M') {
            (digits, 1_000_000)
        } else {
            (text, 1)
        };
        let number: u64 = digits
            .parse()
            .map_err(|_bad: std::num::ParseIntError| BadRate)?;
        match number.checked_mul(unit) {
            None | Some(0) => Err(BadRate),
            Some(rate) => Ok(Self::BytesPerSecond(rate)),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Instant => f.write_str("instant"),
            Self::BytesPerSecond(rate) => write!(f, "{rate}"),
        }
    }
}

/// Depth of the data FIFO in 32-bit words, 2 to 511: the credit field is nine bits wide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FifoDepth(u16);

/// Why a depth was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the FIFO holds 2 to 511 words (the credit field is nine bits wide)")]
pub struct BadFifoDepth;

impl FifoDepth {
    /// Checks the bounds.
    ///
    /// # Errors
    /// Below 2 or above 511.
    pub fn new(words: u16) -> Result<Self, BadFifoDepth> {
        if (2..=511).contains(&words) {
            Ok(Self(words))
        } else {
            Err(BadFifoDepth)
        }
    }

    /// The depth in words.
    #[must_use]
    pub fn words(self) -> u16 {
        self.0
    }
}

impl Default for FifoDepth {
    fn default() -> Self {
        Self(256)
    }
}

impl FromStr for FifoDepth {
    type Err = BadFifoDepth;

    fn from_str(text: &str) -> Result<Self, BadFifoDepth> {
        Self::new(
            text.parse()
                .map_err(|_bad: std::num::ParseIntError| BadFifoDepth)?,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_as_people_write_them() {
        assert_eq!("instant".parse(), Ok(Rate::Instant));
        assert_eq!("4096".parse(), Ok(Rate::BytesPerSecond(4096)));
        assert_eq!("20k".parse(), Ok(Rate::BytesPerSecond(20_000)));
        assert_eq!("2M".parse(), Ok(Rate::BytesPerSecond(2_000_000)));
        for bad in [
            "",
            "0",
            "k",
            "-1",
            "2G",
            "99999999999999999999",
            "18446744073709551615M",
        ] {
            assert_eq!(bad.parse::<Rate>(), Err(BadRate), "{bad}");
        }
    }

    #[test]
    fn fifo_depth_fits_the_credit_field() {
        assert!("2".parse::<FifoDepth>().is_ok());
        assert!("511".parse::<FifoDepth>().is_ok());
        for bad in ["0", "1", "512", "x"] {
            assert_eq!(bad.parse::<FifoDepth>(), Err(BadFifoDepth), "{bad}");
        }
    }
}
