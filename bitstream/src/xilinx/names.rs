//! Registers and commands of the configuration logic, by number and name.
//!
//! Knows UG470's and UG570's names, which 7-series, UltraScale and UltraScale+
//! share. Must not know which of them are harmless.

use std::fmt;

/// A configuration register: five bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Register(pub u8);

impl Register {
    /// Compared with the device's own checksum.
    pub const CRC: Self = Self(0);
    /// Frame address.
    pub const FAR: Self = Self(1);
    /// Frame data in.
    pub const FDRI: Self = Self(2);
    /// Command.
    pub const CMD: Self = Self(4);
    /// Control 0.
    pub const CTL0: Self = Self(5);
    /// Which bits of the control registers a write reaches.
    pub const MASK: Self = Self(6);
    /// Configuration options 0.
    pub const COR0: Self = Self(9);
    /// Writes the frame buffer once more.
    pub const MFWR: Self = Self(10);
    /// Initial value of the decryption.
    pub const CBC: Self = Self(11);
    /// Which device is meant.
    pub const IDCODE: Self = Self(12);
    /// Warm boot address.
    pub const WBSTAR: Self = Self(16);
    /// Watchdog.
    pub const TIMER: Self = Self(17);
    /// Control 1.
    pub const CTL1: Self = Self(24);
    /// 7-series: words to decrypt; later: RSA data.
    pub const DECRYPT: Self = Self(26);
    /// Words for another die of the same device.
    pub const SLR: Self = Self(30);

    /// The vendor's name, if one is known.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            0 => "CRC",
            1 => "FAR",
            2 => "FDRI",
            3 => "FDRO",
            4 => "CMD",
            5 => "CTL0",
            6 => "MASK",
            7 => "STAT",
            8 => "LOUT",
            9 => "COR0",
            10 => "MFWR",
            11 => "CBC",
            12 => "IDCODE",
            13 => "AXSS",
            14 => "COR1",
            16 => "WBSTAR",
            17 => "TIMER",
            22 => "BOOTSTS",
            24 => "CTL1",
            31 => "BSPI",
            _ => return None,
        })
    }
}

impl fmt::Display for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => f.pad(&format!("register {}", self.0)),
        }
    }
}

/// A value of the CMD register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Command(pub u32);

impl Command {
    /// Nothing.
    pub const NULL: Self = Self(0);
    /// Frame data is written from now on.
    pub const WCFG: Self = Self(1);
    /// The frame buffer is written many times.
    pub const MFW: Self = Self(2);
    /// The last frame was written.
    pub const LFRM: Self = Self(3);
    /// Start-up.
    pub const START: Self = Self(5);
    /// UltraScale+: clears the block memory of the region.
    pub const URAM: Self = Self(6);
    /// The checksum begins anew.
    pub const RCRC: Self = Self(7);
    /// Holds interconnect while frames change.
    pub const AGHIGH: Self = Self(8);
    /// Another configuration clock.
    pub const SWITCH: Self = Self(9);
    /// Flip-flops take their initial values.
    pub const GRESTORE: Self = Self(10);
    /// The device is stopped.
    pub const SHUTDOWN: Self = Self(11);
    /// The device listens no more.
    pub const DESYNC: Self = Self(13);

    /// The vendor's name, if one is known. 6 means another thing in 7-series.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            0 => "NULL",
            1 => "WCFG",
            2 => "MFW",
            3 => "LFRM",
            4 => "RCFG",
            5 => "START",
            6 => "RCAP/URAM",
            7 => "RCRC",
            8 => "AGHIGH",
            9 => "SWITCH",
            10 => "GRESTORE",
            11 => "SHUTDOWN",
            12 => "GCAPTURE",
            13 => "DESYNC",
            15 => "IPROG",
            16 => "CRCC",
            17 => "LTIMER",
            18 => "BSPI_READ",
            19 => "FALL_EDGE",
            _ => return None,
        })
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => f.pad(&format!("command {}", self.0)),
        }
    }
}
