//! What partial bitstreams may write, register by register.
//!
//! Knows allow-lists: what is not named here is refused. They are what was
//! found in genuine partial bitstreams of both families, and no more.

use super::reason::Reason;
use crate::device::Family;
use crate::xilinx::{Command, Register};

/// COR0 as every UltraScale+ partial writes it.
const COR0: u32 = 0x3800_3fe5;
/// CTL0: the mask of LUT memory.
const CTL0_GLUTMASK: u32 = 1 << 8;
/// CTL0: set, an error does not make the device load another bitstream.
const CTL0_NO_FALLBACK: u32 = 1 << 10;
const CTL0: u32 = CTL0_GLUTMASK | CTL0_NO_FALLBACK;
/// CTL0, and its mask: decryption.
const CTL0_DECRYPT: u32 = 1 << 6;
/// CTL1: frames are written many times (7-series).
const CTL1_COMPRESS: u32 = 1 << 12;
/// CTL1: the frames that follow are masks of columns (UltraScale+).
pub(super) const CTL1_MASKS: u32 = 1 << 17;
/// CTL1: each frame has a checksum.
const CTL1_FRAME_CRC: u32 = 1 << 21;

/// The bits of CTL1 that may be set.
fn ctl1(family: Family) -> u32 {
    match family {
        Family::Series7 => CTL1_COMPRESS,
        Family::UltraScale | Family::UltraScalePlus => CTL1_MASKS,
    }
}

/// Is this register one that partial bitstreams write?
pub(super) fn register(family: Family, register: Register) -> Result<(), Reason> {
    let common = [
        Register::CRC,
        Register::FAR,
        Register::FDRI,
        Register::CMD,
        Register::CTL0,
        Register::MASK,
        Register::IDCODE,
        Register::CTL1,
    ];
    let own = match family {
        Family::Series7 => Register::MFWR,
        Family::UltraScale | Family::UltraScalePlus => Register::COR0,
    };
    if common.contains(&register) || register == own {
        return Ok(());
    }
    Err(match register {
        Register::MFWR => Reason::Compressed,
        _ => unusual(register, None),
    })
}

/// Why a register may not be written before the device is named.
pub(super) fn before_device(register: Register, value: Option<u32>) -> Reason {
    let sometimes = [Family::Series7, Family::UltraScalePlus]
        .into_iter()
        .any(|family| self::register(family, register).is_ok());
    if sometimes {
        Reason::BeforeIdcode(register)
    } else {
        unusual(register, value)
    }
}

/// Why a register is refused that only other bitstreams write. `value` is its
/// first word; `None` where that does not matter.
fn unusual(register: Register, value: Option<u32>) -> Reason {
    match register {
        Register::SLR => Reason::MultiDie,
        Register::CBC | Register::DECRYPT => Reason::Encrypted,
        // Bitstreams for a whole device begin with both of them, as 0.
        Register::WBSTAR | Register::TIMER if value == Some(0) => Reason::FullBitstream,
        _ => Reason::Register(register),
    }
}

/// Is this command one that partial bitstreams give?
pub(super) fn command(family: Family, command: Command) -> Result<(), Reason> {
    let common = [
        Command::NULL,
        Command::WCFG,
        Command::START,
        Command::RCRC,
        Command::GRESTORE,
        Command::SHUTDOWN,
        Command::DESYNC,
    ];
    let own: &[Command] = match family {
        Family::Series7 => &[Command::MFW],
        Family::UltraScale | Family::UltraScalePlus => {
            &[Command::LFRM, Command::URAM, Command::AGHIGH]
        }
    };
    if common.contains(&command) || own.contains(&command) {
        return Ok(());
    }
    Err(match command {
        Command::MFW => Reason::Compressed,
        Command::SWITCH => Reason::FullBitstream,
        _ => Reason::Command(command),
    })
}

/// NOPs that follow a command in every genuine file, at least: the time that the
/// device takes for it.
pub(super) fn wait(command: Command) -> u32 {
    match command {
        Command::SHUTDOWN | Command::GRESTORE | Command::START => 1,
        Command::AGHIGH => 100,
        Command::LFRM => 20,
        Command::MFW => 12,
        _ => 0,
    }
}

/// May a value be written to one of the registers of options?
pub(super) fn value(family: Family, register: Register, value: u32) -> Result<(), Reason> {
    let good = match register {
        Register::MASK => value & !(CTL0 | ctl1(family)) == 0,
        Register::CTL0 => value & !CTL0 == 0,
        Register::CTL1 => value & !ctl1(family) == 0,
        // One value and no other, not even 0.
        Register::COR0 => value == COR0,
        _ => false,
    };
    if good {
        return Ok(());
    }
    Err(special(register, value).unwrap_or(Reason::Value(register, value)))
}

/// Values that tell what kind of bitstream this is, before its device is known.
pub(super) fn special(register: Register, value: u32) -> Option<Reason> {
    let mask = register == Register::MASK;
    if (mask || register == Register::CTL0) && value & CTL0_DECRYPT != 0 {
        return Some(Reason::Encrypted);
    }
    if (mask || register == Register::CTL1) && value & CTL1_FRAME_CRC != 0 {
        return Some(Reason::PerFrameCrc);
    }
    None
}

/// The two control registers and what guards them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Controls {
    /// Unknown until it is written: the device keeps what it was left.
    mask: Option<u32>,
    ctl0: u32,
    ctl1: u32,
}

impl Controls {
    /// A value that [`value`] allows is written. `Err`: the mask in force would
    /// let it reach bits of the other register's.
    pub(super) fn write(
        &mut self,
        family: Family,
        register: Register,
        value: u32,
    ) -> Result<(), Reason> {
        let (reach, place) = match register {
            Register::MASK => {
                self.mask = Some(value);
                return Ok(());
            }
            Register::CTL0 => (CTL0, &mut self.ctl0),
            Register::CTL1 => (ctl1(family), &mut self.ctl1),
            _ => return Ok(()),
        };
        let Some(mask) = self.mask else {
            let why = "a control register is written, and its mask was not before";
            return Err(Reason::Order(why));
        };
        if mask & !reach != 0 {
            return Err(Reason::Value(Register::MASK, mask));
        }
        let cleared = mask & !value;
        if register == Register::CTL0 && cleared & CTL0_NO_FALLBACK != 0 {
            return Err(Reason::Value(register, value));
        }
        *place = (*place & !mask) | (value & mask);
        Ok(())
    }

    /// Frames are written in one of the special ways.
    pub(super) fn any_of_ctl1(self) -> bool {
        self.ctl1 != 0
    }

    /// LUTs that are memory are written, too.
    pub(super) fn frees_lut_memory(self) -> bool {
        self.ctl0 & CTL0_GLUTMASK != 0
    }

    /// The frames that follow are masks of columns.
    pub(super) fn writes_masks(self) -> bool {
        self.ctl1 & CTL1_MASKS != 0
    }

    /// Bits that must not be set when the device is left: the register, and
    /// which.
    pub(super) fn left_set(self) -> Result<(), Reason> {
        if self.ctl1 != 0 {
            return Err(Reason::LeftSet(Register::CTL1, self.ctl1));
        }
        match self.ctl0 & CTL0_GLUTMASK {
            0 => Ok(()),
            bits => Err(Reason::LeftSet(Register::CTL0, bits)),
        }
    }
}
