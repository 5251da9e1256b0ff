//! A stream as parts that can be changed one by one, and its checksums.
//!
//! Knows how packets are put into words. Its checksum is the definition, bit by
//! bit in a table of its own: nothing here comes from the crate under test.

use std::sync::LazyLock;

pub(crate) const SYNC: u32 = 0xaa99_5566;
pub(crate) const NOP: u32 = 0x2000_0000;

pub(crate) const CRC: u32 = 0;
pub(crate) const FAR: u32 = 1;
pub(crate) const FDRI: u32 = 2;
pub(crate) const CMD: u32 = 4;
pub(crate) const CTL0: u32 = 5;
pub(crate) const MASK: u32 = 6;
pub(crate) const LOUT: u32 = 8;
pub(crate) const COR0: u32 = 9;
pub(crate) const MFWR: u32 = 10;
pub(crate) const IDCODE: u32 = 12;
pub(crate) const CTL1: u32 = 24;

pub(crate) const WCFG: u32 = 1;
pub(crate) const MFW: u32 = 2;
pub(crate) const RCRC: u32 = 7;
pub(crate) const DESYNC: u32 = 13;

/// A part of a stream; what a mutation takes, moves or changes as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// Words as they are: padding, sync, NOP, or what a mutation makes of it.
    Raw(Vec<u32>),
    /// A write to a register.
    Write { register: u32, words: Vec<u32> },
}

impl Part {
    pub(crate) fn write(register: u32, word: u32) -> Part {
        let words = vec![word];
        Part::Write { register, words }
    }

    pub(crate) fn command(command: u32) -> Part {
        Part::write(CMD, command)
    }

    pub(crate) fn nop(count: usize) -> Part {
        Part::Raw(vec![NOP; count])
    }

    pub(crate) fn register(&self) -> Option<u32> {
        match self {
            Part::Raw(_) => None,
            Part::Write { register, .. } => Some(*register),
        }
    }

    pub(crate) fn words_mut(&mut self) -> &mut Vec<u32> {
        match self {
            Part::Raw(words) | Part::Write { words, .. } => words,
        }
    }

    fn put(&self, out: &mut Vec<u32>) {
        match self {
            Part::Raw(words) => out.extend(words),
            Part::Write { register, words } => {
                out.extend(header(*register, words.len()));
                out.extend(words);
            }
        }
    }
}

/// The header of a write: one word, or two where the count needs it.
pub(crate) fn header(register: u32, count: usize) -> Vec<u32> {
    let first = 0x3000_0000 | register << 13;
    let count = u32::try_from(count).expect("no stream of the tests is so long");
    if count < 2048 {
        vec![first | count]
    } else {
        vec![first, 0x5000_0000 | count]
    }
}

/// The words of a stream, its checksums as they must be.
pub(crate) fn words(parts: &[Part]) -> Vec<u32> {
    let mut words = Vec::new();
    for part in parts {
        part.put(&mut words);
    }
    mend(&mut words);
    words
}

/// Walks a stream as a device would and puts the right value into each write of
/// the CRC register.
pub(crate) fn mend(words: &mut [u32]) {
    let (mut at, mut synced) = (0, false);
    let (mut register, mut crc, mut command) = (0, 0, 0);
    while at < words.len() {
        let word = words[at];
        at += 1;
        if !synced {
            synced = word == SYNC;
            continue;
        }
        let count = match word >> 29 {
            1 if word >> 27 & 3 == 0 => continue,
            1 => {
                register = word >> 13 & 0x3fff;
                word & 0x7ff
            }
            2 => word & 0x07ff_ffff,
            _ => continue,
        };
        if word >> 27 & 3 == 1 {
            continue;
        }
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let end = at.saturating_add(count).min(words.len());
        for word in &mut words[at..end] {
            if register == CRC {
                *word = crc;
                crc = 0;
                continue;
            }
            if register != LOUT {
                crc = step(crc, register, *word);
            }
            if register == CMD {
                command = *word;
            }
            if (register == CMD || register == FAR) && command == RCRC {
                crc = 0;
            }
            synced = synced && !(register == CMD && command == DESYNC);
        }
        at = end;
    }
}

fn slow(mut crc: u32, bits: u32) -> u32 {
    for _ in 0..bits {
        crc = crc >> 1 ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 };
    }
    crc
}

static BYTES: LazyLock<Vec<u32>> = LazyLock::new(|| (0..256).map(|byte| slow(byte, 8)).collect());

/// One word written to a register: 32 bits of it, then 5 of the register.
fn step(crc: u32, register: u32, word: u32) -> u32 {
    let mut crc = crc ^ word;
    for _ in 0..4 {
        crc = crc >> 8 ^ BYTES[crc.to_le_bytes()[0] as usize];
    }
    slow(crc ^ register & 31, 5)
}

/// How the words lie in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    Bit,
    Big,
    Little,
}

impl Layout {
    pub(crate) const ALL: [Layout; 3] = [Layout::Bit, Layout::Big, Layout::Little];

    pub(crate) fn file(self, words: &[u32]) -> Vec<u8> {
        let big = words.iter().flat_map(|word| word.to_be_bytes());
        match self {
            Layout::Big => big.collect(),
            Layout::Little => words.iter().flat_map(|word| word.to_le_bytes()).collect(),
            Layout::Bit => {
                let mut file = vec![
                    0, 9, 0x0f, 0xf0, 0x0f, 0xf0, 0x0f, 0xf0, 0x0f, 0xf0, 0, 0, 1,
                ];
                for (key, text) in [
                    (b'a', "made;PARTIAL=TRUE;Version=2022.1\0"),
                    (b'b', "unknown\0"),
                    (b'c', "2024/01/01\0"),
                    (b'd', "00:00:00\0"),
                ] {
                    file.push(key);
                    file.extend(u16::try_from(text.len()).unwrap_or(0).to_be_bytes());
                    file.extend(text.as_bytes());
                }
                file.push(b'e');
                let length = u32::try_from(words.len() * 4).expect("no test is so long");
                file.extend(length.to_be_bytes());
                file.extend(big);
                file
            }
        }
    }
}

#[test]
fn checksums_that_others_measured() {
    assert_eq!(step(0, 16, 0), 0x82f6_3b78);
    assert_eq!(step(0, 31, 0xffff_ffff), 0xbf86_d4df);
    assert_eq!(step(0xffff_ffff, 0, 0), 0xc631_e365);
    assert_eq!(step(0, CMD, 11), 0x5da9_8e32);
}
