//! The frame fence beside the hash of the same bytes.
//!
//! Both read 32 MiB once. The fence must not be the dearer one: it stands in
//! every first load, beside the hash.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use bitstream::device::Device;
use bitstream::fence::check;
use bitstream::{Container, parse};
use ring::digest::{SHA256, digest};

use super::report::{Report, Verdict, median, number, ratio};

/// How often each is done, one after the other.
const ROUNDS: u32 = 15;
/// Words of the stream, about.
const WORDS: usize = 8 << 20;
/// The goal, in times of the hash.
const GOAL: f64 = 1.0;

/// Measures both.
pub(super) fn measure(report: &mut Report) -> Result<()> {
    let device = Device::named("xc7a200t").context("a device")?;
    let file = partial(device)?;
    let Container::Xilinx(stream) = parse(&file)? else {
        anyhow::bail!("no configuration words");
    };
    let own = check(&stream, None, None)?;
    let mut fences = Vec::new();
    let mut hashes = Vec::new();
    for _round in 0..ROUNDS {
        let begin = Instant::now();
        let fenced = check(black_box(&stream), Some(device), Some(own.frames()))?;
        fences.push(begin.elapsed());
        ensure!(fenced == own, "the verdict changed");
        let begin = Instant::now();
        black_box(digest(&SHA256, black_box(&file)));
        hashes.push(begin.elapsed());
    }
    let (fence, hash) = (median(fences), median(hashes));
    let bytes = number(u64::try_from(file.len())?);
    let speed = |took: std::time::Duration| {
        let seconds = took.as_secs_f64().max(f64::MIN_POSITIVE);
        format!("{:.2} GB/s", bytes / 1e9 / seconds)
    };
    report.figure("SHA-256 of 32 MiB", &speed(hash));
    report.figure("the fence over the same bytes", &speed(fence));
    let times = ratio(fence, hash);
    report.judged(
        "the fence, in times of SHA-256",
        &format!("{times:.2} ×"),
        "1",
        Verdict::at_most(times, GOAL),
    );
    Ok(())
}

/// A partial bitstream that writes the whole first row of a 7-series device
/// again and again.
fn partial(device: Device) -> Result<Vec<u8>> {
    let geometry = device.geometry().context("its geometry")?;
    let row = geometry.rows().first().context("a row")?;
    let frames = row.frames.end.0.saturating_sub(row.frames.start.0);
    let length = device.family().frame_words();
    // Every frame of the row, and two pads.
    let content = usize::try_from(frames)?.saturating_mul(length);
    let count = content.saturating_add(length.saturating_mul(2));
    let mut words = vec![u32::MAX, 0x0000_00bb, 0x1122_0044, 0xaa99_5566];
    let mut crc = Crc(0);
    crc.put(&mut words, 4, 7);
    crc.0 = 0;
    crc.put(&mut words, 12, device.idcode());
    while words.len() < WORDS {
        crc.put(&mut words, 4, 1);
        crc.put(&mut words, 1, 0);
        words.extend([0x3000_4000, 0x5000_0000 | u32::try_from(count)?]);
        for at in 0..count {
            let noise = u32::try_from(at)?.wrapping_mul(0x9e37_79b9);
            crc.data(&mut words, 2, if at < content { noise } else { 0 });
        }
    }
    words.extend([0x3000_0001, crc.0]);
    crc.put(&mut words, 4, 13);
    Ok(words.into_iter().flat_map(u32::to_be_bytes).collect())
}

/// The device's checksum, by its definition.
struct Crc(u32);

impl Crc {
    fn put(&mut self, words: &mut Vec<u32>, register: u32, value: u32) {
        words.push(0x3000_0001 | register << 13);
        self.data(words, register, value);
    }

    fn data(&mut self, words: &mut Vec<u32>, register: u32, value: u32) {
        words.push(value);
        let word = (0..32).map(|bit| value >> bit);
        for bit in word.chain((0..5).map(|bit| register >> bit)) {
            let low = (self.0 ^ bit) & 1;
            self.0 = (self.0 >> 1) ^ if low == 1 { 0x82f6_3b78 } else { 0 };
        }
    }
}
