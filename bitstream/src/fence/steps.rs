//! Streams for the fuzzer: each byte of its input is a step, and the checksums
//! are made right.
//!
//! Knows the steps that bring a stream far, with values that are right most of
//! the time. Must not be used to judge.

use super::crc::Crc;
use crate::device::{Device, Family};
use crate::xilinx::{BUS_WIDTH, Command, NOP, PAD, Register, SYNC, WordOrder, Words};

/// Longest input that is read.
const MOST_STEPS: usize = 512;

/// The stream that these steps make, as a `.bin` file.
pub(crate) fn steps(device: Device, input: &[u8]) -> Vec<u8> {
    let mut stream = Steps::default();
    stream.sync();
    let mut input = input.iter().copied().take(MOST_STEPS);
    while let Some(step) = input.next() {
        let mut byte = || u32::from(input.next().unwrap_or(0));
        match step % 16 {
            0 => stream.put(Register::CMD, byte() % 20),
            1 => stream.put(Register::CMD, Command::WCFG.0),
            2 => stream.put(
                Register::FAR,
                (byte() << 7) | (byte() << 16) | (byte() % 44),
            ),
            3 => stream.put(Register::FAR, byte() % 48),
            4 => stream.put(Register::FAR, device.family().park()),
            5 => stream.frames(device.family(), byte() % 48, byte()),
            6 => stream.crc(),
            7 => stream.put(Register::IDCODE, device.idcode() | (byte() << 28)),
            8 => stream.put(Register::MASK, 1 << (byte() % 24)),
            9 => stream.put(Register::CTL0, 1 << (byte() % 24)),
            10 => stream.put(Register::CTL1, 1 << (byte() % 24)),
            11 => stream.put(Register::COR0, 0x3800_3fe5),
            12 => stream.write(Register::MFWR, &[0; 8]),
            13 => stream.write(Register::MFWR, &[0; 4]),
            14 => stream.sync(),
            _ => stream.words.push(NOP),
        }
    }
    stream.crc();
    stream.put(Register::CMD, Command::DESYNC.0);
    stream
        .words
        .iter()
        .flat_map(|word| word.to_be_bytes())
        .collect()
}

#[derive(Default)]
struct Steps {
    words: Vec<u32>,
    crc: Crc,
}

impl Steps {
    /// Padding, the sync word, and a checksum that begins.
    fn sync(&mut self) {
        self.words.push(PAD);
        self.words.extend(BUS_WIDTH);
        self.words.push(SYNC);
        self.put(Register::CMD, Command::RCRC.0);
    }

    fn put(&mut self, register: Register, value: u32) {
        self.write(register, &[value]);
        if register == Register::CMD && value == Command::RCRC.0 {
            self.crc.reset();
        }
    }

    fn write(&mut self, register: Register, data: &[u32]) {
        let count = u32::try_from(data.len()).unwrap_or(0);
        self.words
            .push(0x3000_0000 | u32::from(register.0) << 13 | count);
        self.data(register, data);
    }

    fn data(&mut self, register: Register, data: &[u32]) {
        let bytes: Vec<u8> = data.iter().flat_map(|word| word.to_be_bytes()).collect();
        self.crc
            .words(register, Words::new(&bytes, WordOrder::BigEndian));
        self.words.extend_from_slice(data);
    }

    /// So many frames of one content, and an empty one.
    fn frames(&mut self, family: Family, frames: u32, content: u32) {
        let length = family.frame_words();
        let frames = usize::try_from(frames).unwrap_or(0);
        let mut data = vec![content; length.saturating_mul(frames)];
        data.resize(data.len().saturating_add(length), 0);
        let count = u32::try_from(data.len()).unwrap_or(0);
        self.words.extend([0x3000_4000, 0x5000_0000 | count]);
        self.data(Register::FDRI, &data);
    }

    fn crc(&mut self) {
        self.words.extend([0x3000_0001, self.crc.value()]);
        self.crc.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_steps_make_a_stream_that_is_accepted() {
        let device = Device::named("xc7z020").unwrap();
        // IDCODE, WCFG, FAR 0, four frames.
        let bytes = steps(device, &[7, 0, 1, 3, 0, 5, 4, 9]);
        let crate::Container::Xilinx(stream) = crate::parse(&bytes).unwrap() else {
            panic!("no words");
        };
        let fenced = super::super::check(&stream, None, None).unwrap();
        let lines = fenced.frames().to_lines(device);
        assert_eq!(lines, ["logic top row 0 column 0 minors 0-3"]);
    }
}
