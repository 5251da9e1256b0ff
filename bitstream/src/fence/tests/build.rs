//! Streams word by word, with the checksum kept by its definition.

use super::{Command, Device, Family, FrameIndex, Register};
use crate::xilinx::{BUS_WIDTH, NOP, PAD, SYNC};

/// Words as a `.bin` file has them.
pub(super) fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// A stream that grows.
#[derive(Debug, Clone, Default)]
pub(super) struct Stream {
    pub(super) words: Vec<u32>,
    crc: u32,
}

impl Stream {
    /// Padding and the sync word.
    pub(super) fn sync(&mut self) -> &mut Self {
        self.words.extend([PAD; 8]);
        self.words.extend(BUS_WIDTH);
        self.words.extend([PAD, PAD, SYNC, NOP]);
        self
    }

    pub(super) fn nops(&mut self, count: usize) -> &mut Self {
        self.words.extend(vec![NOP; count]);
        self
    }

    /// One word for a register.
    pub(super) fn put(&mut self, register: Register, value: u32) -> &mut Self {
        self.write(register, &[value])
    }

    /// Words for a register, in the short form.
    pub(super) fn write(&mut self, register: Register, data: &[u32]) -> &mut Self {
        let count = u32::try_from(data.len()).unwrap();
        assert!(count < 2048);
        self.words
            .push(0x3000_0000 | u32::from(register.0) << 13 | count);
        self.data(register, data)
    }

    fn data(&mut self, register: Register, data: &[u32]) -> &mut Self {
        for word in data {
            self.words.push(*word);
            self.sum(*word, 32);
            self.sum(u32::from(register.0), 5);
        }
        self
    }

    fn sum(&mut self, value: u32, bits: u32) {
        for bit in 0..bits {
            let low = (self.crc ^ (value >> bit)) & 1;
            self.crc = (self.crc >> 1) ^ if low == 1 { 0x82f6_3b78 } else { 0 };
        }
    }

    /// A command, and the time that genuine files give it.
    pub(super) fn command(&mut self, command: Command) -> &mut Self {
        self.bare(command);
        self.nops(match command {
            Command::SHUTDOWN | Command::GRESTORE | Command::START => 1,
            Command::AGHIGH => 100,
            Command::LFRM => 20,
            Command::MFW => 12,
            _ => 0,
        })
    }

    /// A command that is given no time.
    pub(super) fn bare(&mut self, command: Command) -> &mut Self {
        self.put(Register::CMD, command.0);
        if command == Command::RCRC {
            self.crc = 0;
        }
        self
    }

    /// The right checksum.
    pub(super) fn crc(&mut self) -> &mut Self {
        let crc = self.crc;
        self.words.extend([0x3000_0001, crc]);
        self.crc = 0;
        self
    }

    /// Frame data in the long form.
    pub(super) fn frames(&mut self, data: &[u32]) -> &mut Self {
        let count = u32::try_from(data.len()).unwrap();
        self.words.extend([0x3000_4000, 0x5000_0000 | count]);
        self.data(Register::FDRI, data)
    }

    /// Sync, checksum, device.
    pub(super) fn open(&mut self, device: Device) -> &mut Self {
        self.sync()
            .command(Command::RCRC)
            .nops(2)
            .put(Register::IDCODE, device.idcode())
    }

    /// An address, writing, and frames with a pad behind them.
    pub(super) fn block(&mut self, device: Device, first: FrameIndex, frames: u32) -> &mut Self {
        let geometry = device.geometry().unwrap();
        let address = geometry.address(first).unwrap().raw();
        let length = device.family().frame_words();
        let mut data = Vec::new();
        for frame in first.0..first.0 + frames {
            data.extend(vec![frame.wrapping_mul(0x9e37_79b9) | 1; length]);
            if geometry.row_end(FrameIndex(frame)) {
                data.extend(vec![0; length * 2]);
            }
        }
        if !geometry.row_end(FrameIndex(first.0 + frames - 1)) {
            data.extend(vec![0; length]);
        }
        self.command(Command::WCFG)
            .nops(1)
            .put(Register::FAR, address)
            .nops(1)
            .frames(&data)
    }

    /// Tells the device that frames are copied (7-series), or no longer.
    pub(super) fn copying(&mut self, copying: bool) -> &mut Self {
        self.put(Register::MASK, 0x1000)
            .put(Register::CTL1, if copying { 0x1000 } else { 0 })
    }

    pub(super) fn park(&mut self, family: Family) -> &mut Self {
        self.put(Register::FAR, family.park())
    }

    /// A last checksum, and the end.
    pub(super) fn close(&mut self) -> &mut Self {
        self.crc().command(Command::DESYNC).nops(16)
    }

    /// Masks of every column of a 7-series device: kept but for those whose
    /// position is named.
    pub(super) fn masks(&mut self, device: Device, restored: &[usize]) -> &mut Self {
        let mask = device.geometry().unwrap().clb_mask().unwrap();
        let mut data = Vec::new();
        for position in 0..mask.count() {
            let mut frame = [0; 101];
            if !restored.contains(&position) {
                frame[50] = 0xe000_09bc;
            }
            data.extend(frame);
            if mask.row_end(position) {
                data.extend([0; 202]);
            }
        }
        self.command(Command::WCFG)
            .put(Register::FAR, 0x0100_0000)
            .frames(&data)
    }

    /// Stops the device as 7-series partials do.
    pub(super) fn stop(&mut self) -> &mut Self {
        self.crc()
            .command(Command::SHUTDOWN)
            .nops(1)
            .crc()
            .nops(4)
            .command(Command::NULL)
            .put(Register::MASK, 0x100)
            .put(Register::CTL0, 0x100)
            .put(Register::MASK, 0x400)
            .put(Register::CTL0, 0x400)
    }

    /// Restores flip-flops, starts and ends as 7-series partials do.
    pub(super) fn restart(&mut self) -> &mut Self {
        self.command(Command::GRESTORE)
            .nops(1)
            .put(Register::MASK, 0x100)
            .put(Register::CTL0, 0)
            .command(Command::START)
            .nops(1)
            .park(Family::Series7)
            .close()
    }
}
