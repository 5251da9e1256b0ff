//! Partial bitstreams of AMD devices, made or changed for a world.
//!
//! Knows the packets of genuine partials, as far as it takes to build one for a
//! region, to change frames of one, and to make its checksums right again. Must
//! not be used to judge anything: it is a publisher's tool, here in the hands of
//! tests, and shares no code with the fence or with the simulated card.

use anyhow::{Context, Result, ensure};
use bitstream::device::{Device, FrameIndex, RegionFrames};
use uuid::Uuid;

const SYNC: u32 = 0xaa99_5566;
const NOP: u32 = 0x2000_0000;
const CRC: u32 = 0;
const FAR: u32 = 1;
const FDRI: u32 = 2;
const CMD: u32 = 4;
const IDCODE: u32 = 12;
const WCFG: u32 = 1;
const RCRC: u32 = 7;
const DESYNC: u32 = 13;

/// A partial bitstream as a `.bit` file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partial {
    header: Vec<u8>,
    words: Vec<u32>,
}

/// One write of a register, on its way into the file.
#[derive(Debug)]
pub struct Write<'a> {
    /// The register.
    pub register: u32,
    /// What FAR was last set to.
    pub far: u32,
    /// Where it begins, in bytes of the file.
    pub offset: usize,
    /// Its data, to be changed at will.
    pub data: &'a mut [u32],
}

impl Partial {
    /// Reads a `.bit` file.
    ///
    /// # Errors
    /// It has no data.
    pub fn read(file: &[u8]) -> Result<Self> {
        let mut at = 13_usize;
        loop {
            let key = *file.get(at).context("a header without data")?;
            let wide = if key == b'e' { 4 } else { 2 };
            let from = at.saturating_add(1);
            let to = from.saturating_add(wide);
            let length = file.get(from..to).context("a length")?;
            let length = length
                .iter()
                .fold(0_usize, |sum, byte| (sum << 8) | usize::from(*byte));
            if key != b'e' {
                at = to.saturating_add(length);
                continue;
            }
            let data = file.get(to..).context("the data")?;
            ensure!(data.len() == length, "the data's length");
            let (words, rest) = data.as_chunks::<4>();
            ensure!(rest.is_empty(), "whole words");
            return Ok(Self {
                header: file.get(..to).context("the header")?.to_vec(),
                words: words.iter().map(|word| u32::from_be_bytes(*word)).collect(),
            });
        }
    }

    /// Makes a partial for a 7-series device that writes every frame of a region: words from
    /// `seed`, and at their head what makes the simulated card show `function`.
    ///
    /// # Errors
    /// The device has no geometry that is known.
    pub fn build(device: Device, region: &RegionFrames, function: Uuid, seed: u32) -> Result<Self> {
        let geometry = device.geometry().context("the device's geometry")?;
        let RegionFrames::Set(frames) = region else {
            anyhow::bail!("a region of frames by geometry");
        };
        let length = device.family().frame_words();
        let mut words = vec![u32::MAX; 8];
        words.extend([0x0000_00bb, 0x1122_0044, u32::MAX, u32::MAX, SYNC, NOP]);
        words.extend([write(CMD), RCRC, NOP, NOP, write(IDCODE), device.idcode()]);
        let mut head = simcard::mark::words(function).to_vec();
        let mut noise = seed;
        for run in runs(frames.iter(), |index| geometry.row_end(index)) {
            let first = *run.first().context("a run of frames")?;
            let address = geometry.address(first).context("a frame of the device")?;
            // One pad pushes the last frame out of the buffer; at the end of a row there are two.
            let pads = if run.last().is_some_and(|last| geometry.row_end(*last)) {
                2
            } else {
                1
            };
            let mut data: Vec<u32> = Vec::new();
            for _frame in &run {
                let mut frame: Vec<u32> = std::mem::take(&mut head);
                frame.resize_with(length, || {
                    noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    noise
                });
                data.extend(frame);
            }
            data.resize(data.len().saturating_add(length.saturating_mul(pads)), 0);
            words.extend([write(CMD), WCFG, NOP, write(FAR), address.raw(), NOP]);
            let count = u32::try_from(data.len()).context("a block's length")?;
            words.extend([0x3000_4000, 0x5000_0000 | count]);
            words.extend(data);
        }
        words.extend([write(CRC), 0, write(CMD), DESYNC]);
        words.resize(words.len().saturating_add(16), NOP);
        let mut made = Self {
            header: header(device.name(), words.len().saturating_mul(4))?,
            words,
        };
        made.edit(|_write| ())?;
        Ok(made)
    }

    /// The file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        [self.header.clone(), self.payload()].concat()
    }

    /// What a card is given.
    #[must_use]
    pub fn payload(&self) -> Vec<u8> {
        self.words
            .iter()
            .copied()
            .flat_map(u32::to_be_bytes)
            .collect()
    }

    /// Shows each write to `change`, and makes the checksums right again.
    ///
    /// # Errors
    /// Its packets are none that genuine partials have.
    pub fn edit(&mut self, mut change: impl FnMut(Write<'_>)) -> Result<()> {
        let (mut at, mut synced, mut crc, mut far, mut register) = (0_usize, false, 0, 0, 0);
        while let Some(&word) = self.words.get(at) {
            at = at.saturating_add(1);
            if !synced {
                synced = word == SYNC;
                continue;
            }
            // Type and operation.
            let count = match (word >> 29, (word >> 27) & 3) {
                (1, 0) => continue,
                (1, 2) => {
                    register = (word >> 13) & 0x1f;
                    word & 0x7ff
                }
                (2, 2) => word & 0x07ff_ffff,
                _ => anyhow::bail!("a packet {word:08x}"),
            };
            let end = at.saturating_add(usize::try_from(count)?);
            let offset = self.header.len().saturating_add(at.saturating_mul(4));
            let data = self.words.get_mut(at..end).context("a packet's data")?;
            at = end;
            if register == CRC {
                data.fill(crc);
                crc = 0;
                continue;
            }
            let place = Write {
                register,
                far,
                offset,
                data,
            };
            change(place);
            let data = self
                .words
                .get(end.saturating_sub(usize::try_from(count)?)..end);
            for &word in data.unwrap_or_default() {
                crc = crc_of(crc, register, word);
                match (register, word) {
                    (FAR, address) => far = address,
                    (CMD, RCRC) => crc = 0,
                    (CMD, DESYNC) => synced = false,
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// The same writes with all frames of logic and memory zero: what an empty region holds.
    ///
    /// # Errors
    /// As for [`Partial::edit`].
    pub fn blank(&self) -> Result<Self> {
        let mut blank = self.clone();
        blank.edit(|write| {
            // Block type 2 of 7-series devices is no content: it says what a reset reaches.
            if write.register == FDRI && write.far >> 23 != 2 {
                write.data.fill(0);
            }
        })?;
        Ok(blank)
    }

    /// The same with one FAR changed wherever it is written.
    ///
    /// # Errors
    /// As for [`Partial::edit`]; or there is no such FAR.
    pub fn moved(&self, from: u32, to: u32) -> Result<Self> {
        let (mut moved, mut found) = (self.clone(), false);
        moved.edit(|write| {
            if let (FAR, [address]) = (write.register, write.data)
                && *address == from
            {
                *address = to;
                found = true;
            }
        })?;
        ensure!(found, "no FAR {from:08x}");
        Ok(moved)
    }
}

/// The header of a register write with one word.
fn write(register: u32) -> u32 {
    0x3000_0001 | (register << 13)
}

/// Frames that follow one another within a row.
fn runs(
    frames: impl Iterator<Item = FrameIndex>,
    row_end: impl Fn(FrameIndex) -> bool,
) -> Vec<Vec<FrameIndex>> {
    let mut runs: Vec<Vec<FrameIndex>> = Vec::new();
    for frame in frames {
        match runs.last_mut() {
            Some(run)
                if run.last().is_some_and(|last| {
                    last.0.checked_add(1) == Some(frame.0) && !row_end(*last)
                }) =>
            {
                run.push(frame);
            }
            _ => runs.push(vec![frame]),
        }
    }
    runs
}

/// The checksum of configuration registers: 32 bits of data, then 5 of address, lowest first.
fn crc_of(crc: u32, register: u32, data: u32) -> u32 {
    let bits = (u64::from(register) << 32) | u64::from(data);
    (0..37).fold(crc, |crc, bit| {
        let low = (crc ^ u32::from((bits >> bit) & 1 == 1)) & 1;
        (crc >> 1) ^ if low == 1 { 0x82f6_3b78 } else { 0 }
    })
}

fn header(part: &str, length: usize) -> Result<Vec<u8>> {
    let mut header = vec![
        0, 9, 0x0f, 0xf0, 0x0f, 0xf0, 0x0f, 0xf0, 0x0f, 0xf0, 0, 0, 1,
    ];
    for (key, text) in [
        (b'a', "test;PARTIAL=TRUE;Version=2018.3"),
        (b'b', part.strip_prefix("xc").unwrap_or(part)),
        (b'c', "2018/01/01"),
        (b'd', "00:00:00"),
    ] {
        header.push(key);
        let length = u16::try_from(text.len().saturating_add(1))?;
        header.extend(length.to_be_bytes());
        header.extend(text.as_bytes());
        header.push(0);
    }
    header.push(b'e');
    header.extend(u32::try_from(length)?.to_be_bytes());
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_checksums() {
        assert_eq!(crc_of(0, 16, 0), 0x82f6_3b78);
        assert_eq!(crc_of(0, 31, u32::MAX), 0xbf86_d4df);
        assert_eq!(crc_of(u32::MAX, 0, 0), 0xc631_e365);
        assert_eq!(crc_of(0, CMD, 11), 0x5da9_8e32);
    }

    #[test]
    fn genuine_files_have_the_checksums_that_an_edit_makes() {
        let shared = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/bitstreams");
        for name in [
            "byu_z7020_ascii_s0_partial.bit",
            "byu_z7020_gscreen_mux_partial.bit",
            "yunqu_z7020_led_0_partial.bit",
            "yunqu_zu7ev_led_0_partial.bit",
        ] {
            let Ok(file) = std::fs::read(format!("{shared}/{name}")) else {
                eprintln!("SKIPPED: {name}: no folder {shared}");
                return;
            };
            let read = Partial::read(&file).unwrap();
            let mut edited = read.clone();
            edited.edit(|_write| ()).unwrap();
            assert_eq!(edited, read, "{name}");
            assert_eq!(edited.to_bytes(), file, "{name}");
            let blank = read.blank().unwrap();
            assert_ne!(blank, read, "{name}");
            assert_eq!(blank.words.len(), read.words.len());
        }
    }
}
