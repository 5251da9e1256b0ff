//! PCI configuration space of one function: 4 KiB of bytes with a mask of what
//! a driver may write.
//!
//! Each function has one 64-bit BAR, a PCI Express capability (a root complex
//! integrated endpoint that can do a function level reset) and no interrupts.
//! The management function also has a Device Serial Number; a user function
//! has none, for a guest need not know on which card it sits.

use crate::csr::Level;

/// Size of a PCI Express function's configuration space.
pub const CONFIG_SPACE: u64 = 4096;

const COMMAND: usize = 0x04;
const COMMAND_BUS_MASTER: u8 = 1 << 2;
/// Memory, bus master, parity, SERR, interrupt disable.
const COMMAND_WRITABLE: u16 = 0x0546;
const STATUS: usize = 0x06;
const STATUS_CAPABILITIES: u16 = 1 << 4;
const CLASS: usize = 0x08;
const BAR0: usize = 0x10;
const BAR_64_BIT: u32 = 0x4;
const SUBSYSTEM: usize = 0x2c;
const CAPABILITIES: usize = 0x34;
const INTERRUPT_LINE: usize = 0x3c;

const EXPRESS: usize = 0x40;
/// Version 2, type 9: root complex integrated endpoint.
const EXPRESS_FLAGS: u16 = 0x0092;
/// Function level reset, role-based error reporting.
const EXPRESS_CAPABILITIES: u32 = 1 << 28 | 1 << 15;
const DEVICE_CONTROL: usize = EXPRESS + 8;
const DEVICE_CONTROL_WRITABLE: u16 = 0x7fff;
const INITIATE_FLR: u8 = 1 << 7;

const EXTENDED: usize = 0x100;
/// Device Serial Number, version 1, last of the list.
const SERIAL_HEADER: u32 = 0x0001_0003;

/// What a function is on the bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) vendor: u16,
    pub(crate) device: u16,
    pub(crate) serial: Option<u64>,
    pub(crate) bar_size: u64,
}

/// What a write to configuration space asks of the function besides storing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    Nothing,
    FunctionLevelReset,
}

/// The space and its write mask.
#[derive(Debug, Clone)]
pub(crate) struct ConfigSpace {
    bytes: Vec<u8>,
    writable: Vec<u8>,
}

impl ConfigSpace {
    pub(crate) fn new(identity: Identity) -> Self {
        let size = usize::try_from(CONFIG_SPACE).unwrap_or(0);
        let mut space = Self {
            bytes: vec![0; size],
            writable: vec![0; size],
        };
        space.set(0, &identity.vendor.to_le_bytes());
        space.set(2, &identity.device.to_le_bytes());
        space.allow(COMMAND, &COMMAND_WRITABLE.to_le_bytes());
        space.set(STATUS, &STATUS_CAPABILITIES.to_le_bytes());
        // Revision 1; class 12h, a processing accelerator.
        space.set(CLASS, &[1, 0, 0, 0x12]);
        space.set(BAR0, &BAR_64_BIT.to_le_bytes());
        // Address bits below the size read zero: how a driver learns the size.
        space.allow(BAR0, &(!identity.bar_size.wrapping_sub(1)).to_le_bytes());
        space.set(SUBSYSTEM, &identity.vendor.to_le_bytes());
        space.set(CAPABILITIES, &[0x40]);
        space.allow(INTERRUPT_LINE, &[0xff]);

        space.set(EXPRESS, &[0x10, 0]);
        space.set(EXPRESS + 2, &EXPRESS_FLAGS.to_le_bytes());
        space.set(EXPRESS + 4, &EXPRESS_CAPABILITIES.to_le_bytes());
        space.allow(DEVICE_CONTROL, &DEVICE_CONTROL_WRITABLE.to_le_bytes());

        if let Some(serial) = identity.serial {
            space.set(EXTENDED, &SERIAL_HEADER.to_le_bytes());
            space.set(EXTENDED + 4, &serial.to_le_bytes());
        }
        space
    }

    fn set(&mut self, at: usize, value: &[u8]) {
        for (to, from) in self.bytes.iter_mut().skip(at).zip(value) {
            *to = *from;
        }
    }

    fn allow(&mut self, at: usize, mask: &[u8]) {
        for (to, from) in self.writable.iter_mut().skip(at).zip(mask) {
            *to = *from;
        }
    }

    /// Whether the driver let the function reach memory.
    pub(crate) fn bus_master(&self) -> Level {
        match self.bytes.get(COMMAND) {
            Some(command) if command & COMMAND_BUS_MASTER != 0 => Level::High,
            _ => Level::Low,
        }
    }

    /// What is beyond the space reads all-ones.
    pub(crate) fn read(&self, offset: u64, out: &mut [u8]) {
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let held = self
            .bytes
            .iter()
            .copied()
            .skip(from)
            .chain(std::iter::repeat(0xff));
        for (to, byte) in out.iter_mut().zip(held) {
            *to = byte;
        }
    }

    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) -> Asked {
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let cells = self.bytes.iter_mut().zip(&self.writable).skip(from);
        for ((cell, mask), byte) in cells.zip(bytes) {
            *cell = (*cell & !mask) | (byte & mask);
        }
        let flr = (DEVICE_CONTROL + 1)
            .checked_sub(from)
            .and_then(|index| bytes.get(index));
        if flr.is_some_and(|byte| byte & INITIATE_FLR != 0) {
            Asked::FunctionLevelReset
        } else {
            Asked::Nothing
        }
    }

    /// Everything a driver wrote is gone.
    pub(crate) fn reset(&mut self) {
        for (cell, mask) in self.bytes.iter_mut().zip(&self.writable) {
            *cell &= !mask;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space() -> ConfigSpace {
        ConfigSpace::new(Identity {
            vendor: 0x8086,
            device: 0x09c4,
            serial: Some(0x1122_3344_5566_7788),
            bar_size: 512 << 10,
        })
    }

    fn word(space: &ConfigSpace, at: u64) -> u32 {
        let mut out = [0; 4];
        space.read(at, &mut out);
        u32::from_le_bytes(out)
    }

    #[test]
    fn the_bar_tells_its_size() {
        let mut space = space();
        assert_eq!(space.write(0x10, &[0xff; 8]), Asked::Nothing);
        assert_eq!(word(&space, 0x10), 0xfff8_0004);
        assert_eq!(word(&space, 0x14), 0xffff_ffff);
        space.reset();
        assert_eq!(word(&space, 0x10), 4);
    }

    #[test]
    fn the_serial_number_is_an_extended_capability() {
        assert_eq!(word(&space(), 0x100), 0x0001_0003);
        assert_eq!(word(&space(), 0x104), 0x5566_7788);
        assert_eq!(word(&space(), 0x108), 0x1122_3344);
    }

    #[test]
    fn identity_cannot_be_written() {
        let mut space = space();
        space.write(0, &[0; 4]);
        assert_eq!(word(&space, 0), 0x09c4_8086);
    }

    #[test]
    fn a_function_level_reset_is_noticed_in_any_size() {
        assert_eq!(space().write(0x48, &[0, 0x80]), Asked::FunctionLevelReset);
        assert_eq!(space().write(0x49, &[0x80]), Asked::FunctionLevelReset);
        assert_eq!(space().write(0x48, &[0x80, 0]), Asked::Nothing);
        assert_eq!(space().write(0x4a, &[0x80, 0x80]), Asked::Nothing);
    }

    #[test]
    fn beyond_the_end_reads_all_ones() {
        let mut out = [0; 4];
        space().read(4094, &mut out);
        assert_eq!(out, [0, 0, 0xff, 0xff]);
        space().read(u64::MAX, &mut out);
        assert_eq!(out, [0xff; 4]);
    }

    #[test]
    fn bus_mastering_is_seen() {
        let mut space = space();
        assert_eq!(space.bus_master(), Level::Low);
        space.write(4, &[6, 0]);
        assert_eq!(space.bus_master(), Level::High);
    }
}
