//! The registers and commands of the configuration logic by number, and which
//! of them no partial bitstream has any business with.

use serde::Serialize;

use crate::stats::count;

/// Registers.
pub(super) mod reg {
    pub(crate) const CRC: u8 = 0;
    pub(crate) const FAR: u8 = 1;
    pub(crate) const FDRI: u8 = 2;
    pub(crate) const CMD: u8 = 4;
    pub(crate) const CTL0: u8 = 5;
    pub(crate) const MASK: u8 = 6;
    pub(crate) const STAT: u8 = 7;
    pub(crate) const LOUT: u8 = 8;
    pub(crate) const COR0: u8 = 9;
    pub(crate) const MFWR: u8 = 10;
    pub(crate) const IDCODE: u8 = 12;
    pub(crate) const CTL1: u8 = 24;
}

/// Commands.
pub(super) mod cmd {
    pub(crate) const NULL: u32 = 0;
    pub(crate) const WCFG: u32 = 1;
    pub(crate) const MFW: u32 = 2;
    pub(crate) const LFRM: u32 = 3;
    pub(crate) const START: u32 = 5;
    /// Clears URAM on UltraScale+; captures flip-flops on 7 series.
    pub(crate) const URAM: u32 = 6;
    pub(crate) const RCRC: u32 = 7;
    pub(crate) const AGHIGH: u32 = 8;
    pub(crate) const GRESTORE: u32 = 10;
    pub(crate) const SHUTDOWN: u32 = 11;
    pub(crate) const DESYNC: u32 = 13;
    pub(crate) const IPROG: u32 = 15;
}

/// The bits of CTL0 that partial bitstreams set (measured): 8 and 10.
const CTL0_USUAL: u32 = 1 << 8 | 1 << 10;

/// What a stream did that could hurt others, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Dangers {
    /// IPROG: the part loaded itself anew, all regions are lost.
    pub reboots: u64,
    /// Commands that partial bitstreams do not use, or that do not exist.
    pub commands: u64,
    /// Writes to registers that partial bitstreams do not use, or that do not exist.
    pub registers: u64,
    /// Reads of other registers than IDCODE and STAT.
    pub reads: u64,
    /// Stores that set bits of CTL0 which take something from others.
    pub control_bits: u64,
    /// Headers of no described type or operation.
    pub packets: u64,
}

impl Dangers {
    pub(super) fn command(&mut self, command: u32) {
        match command {
            cmd::IPROG => count(&mut self.reboots),
            cmd::NULL
            | cmd::WCFG
            | cmd::MFW
            | cmd::LFRM
            | cmd::START
            | cmd::URAM
            | cmd::RCRC
            | cmd::AGHIGH
            | cmd::GRESTORE
            | cmd::SHUTDOWN
            | cmd::DESYNC => {}
            _ => count(&mut self.commands),
        }
    }

    pub(super) fn write(&mut self, register: u8) {
        match register {
            reg::CRC
            | reg::FAR
            | reg::FDRI
            | reg::CMD
            | reg::CTL0
            | reg::MASK
            | reg::COR0
            | reg::MFWR
            | reg::IDCODE
            | reg::CTL1 => {}
            _ => count(&mut self.registers),
        }
    }

    pub(super) fn read(&mut self, register: u8) {
        if !matches!(register, reg::IDCODE | reg::STAT) {
            count(&mut self.reads);
        }
    }

    pub(super) fn control(&mut self, value: u32) {
        if value & !CTL0_USUAL != 0 {
            count(&mut self.control_bits);
        }
    }
}
