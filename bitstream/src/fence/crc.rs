//! The device's checksum: CRC-32C over what is written to registers.
//!
//! Each word of data goes in, least bit first, and after it the five bits of
//! the register's address. The checksum proves that a stream is whole, and
//! nothing about where it comes from.
//!
//! Advancing by those 37 bits is linear, so that a long run is cut into four
//! parts which are summed side by side and put together again: the check must
//! not cost more than the hash of the same bytes.

use std::sync::OnceLock;

use crate::xilinx::{Register, Words};

/// CRC-32C, its bits in reverse.
const POLYNOMIAL: u32 = 0x82f6_3b78;
/// Bits of data and address in one step.
const STEP: u32 = 37;
/// Below this many words one part is faster than four.
const WORTH_CUTTING: usize = 512;

/// A running checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Crc(u32);

impl Crc {
    /// The sum so far, as it would stand in the CRC register's write.
    pub(super) fn value(self) -> u32 {
        self.0
    }

    /// Begins anew.
    pub(super) fn reset(&mut self) {
        self.0 = 0;
    }

    /// Words for one register.
    pub(super) fn words(&mut self, register: Register, words: Words<'_>) {
        let tables = tables();
        let address = address(register);
        if words.len() < WORTH_CUTTING {
            self.0 = run(tables, self.0, words, address);
            return;
        }
        let (parts, over) = words.quarters();
        let [first, second, third, fourth] = parts;
        let mut sums = [self.0, 0, 0, 0];
        let quarters = first
            .iter()
            .zip(second.iter())
            .zip(third.iter().zip(fourth.iter()));
        for ((a, b), (c, d)) in quarters {
            let [sa, sb, sc, sd] = sums;
            sums = [
                step(tables, sa, a, address),
                step(tables, sb, b, address),
                step(tables, sc, c, address),
                step(tables, sd, d, address),
            ];
        }
        let [sum, rest @ ..] = sums;
        let whole = rest
            .into_iter()
            .fold(sum, |sum, part| tables.advance(sum, first.len()) ^ part);
        self.0 = run(tables, whole, over, address);
    }
}

fn run(tables: &Tables, sum: u32, words: Words<'_>, address: u32) -> u32 {
    words
        .iter()
        .fold(sum, |sum, word| step(tables, sum, word, address))
}

/// What the five bits of an address add at the end of a step.
fn address(register: Register) -> u32 {
    shift(u32::from(register.0), 5)
}

fn step(tables: &Tables, sum: u32, word: u32, address: u32) -> u32 {
    let [a, b, c, d] = (sum ^ word).to_le_bytes();
    let [ta, tb, tc, td] = &tables.step;
    at(ta, a) ^ at(tb, b) ^ at(tc, c) ^ at(td, d) ^ address
}

/// A table of 256 has an entry for every byte.
fn at(table: &[u32; 256], byte: u8) -> u32 {
    table.get(usize::from(byte)).copied().unwrap_or(0)
}

/// A register of 32 bits after that many zero bits.
fn shift(sum: u32, bits: u32) -> u32 {
    (0..bits).fold(sum, |sum, _bit| {
        let low = sum & 1;
        (sum >> 1) ^ (POLYNOMIAL & 0_u32.wrapping_sub(low))
    })
}

struct Tables {
    /// By byte of the sum: what it is after one step.
    step: [[u32; 256]; 4],
    /// By power of two: the images of the 32 single bits after that many steps.
    powers: [[u32; 32]; 32],
}

impl Tables {
    fn make() -> Self {
        let mut tables = Self {
            step: [[0; 256]; 4],
            powers: [[0; 32]; 32],
        };
        for (table, place) in tables.step.iter_mut().zip([0_u32, 8, 16, 24]) {
            for (entry, byte) in table.iter_mut().zip(0_u32..) {
                *entry = shift(byte.wrapping_shl(place), STEP);
            }
        }
        let mut power = single_bits().map(|bit| shift(bit, STEP));
        for entry in &mut tables.powers {
            *entry = power;
            power = power.map(|image| apply(&power, image));
        }
        tables
    }

    /// The sum after that many steps of zeros without address.
    fn advance(&self, sum: u32, steps: usize) -> u32 {
        let set = |power: usize| (steps >> power) & 1 == 1;
        self.powers
            .iter()
            .enumerate()
            .filter(|(power, _)| set(*power))
            .fold(sum, |sum, (_, images)| apply(images, sum))
    }
}

fn single_bits() -> [u32; 32] {
    let mut bit = 1_u32;
    [(); 32].map(|()| {
        let this = bit;
        bit = bit.wrapping_shl(1);
        this
    })
}

/// A linear map, given by the images of the single bits.
fn apply(images: &[u32; 32], value: u32) -> u32 {
    images.iter().enumerate().fold(0, |sum, (bit, image)| {
        let set = (value >> bit) & 1;
        sum ^ (image & 0_u32.wrapping_sub(set))
    })
}

fn tables() -> &'static Tables {
    static TABLES: OnceLock<Tables> = OnceLock::new();
    TABLES.get_or_init(Tables::make)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xilinx::WordOrder;
    use proptest::prelude::*;

    /// The definition, bit by bit.
    fn slow(sum: u32, register: Register, word: u32) -> u32 {
        let bits = (0..32)
            .map(|bit| (word >> bit) & 1)
            .chain((0..5).map(|bit| (u32::from(register.0) >> bit) & 1));
        bits.fold(sum, |sum, bit| {
            let low = (sum ^ bit) & 1;
            (sum >> 1) ^ if low == 1 { POLYNOMIAL } else { 0 }
        })
    }

    fn one(sum: u32, register: u8, word: u32) -> u32 {
        let mut crc = Crc(sum);
        let bytes = word.to_be_bytes();
        crc.words(Register(register), Words::new(&bytes, WordOrder::BigEndian));
        crc.value()
    }

    #[test]
    fn published_vectors() {
        assert_eq!(one(0, 16, 0), 0x82f6_3b78);
        assert_eq!(one(0, 31, 0xffff_ffff), 0xbf86_d4df);
        assert_eq!(one(0xffff_ffff, 0, 0), 0xc631_e365);
        // CMD = SHUTDOWN alone: stands in every genuine 7-series partial.
        assert_eq!(one(0, 4, 11), 0x5da9_8e32);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn words_side_by_side_give_the_sum_of_one_after_the_other(
            bytes in proptest::collection::vec(any::<u8>(), 0..12_000),
            register in 0_u8..32,
            sum: u32,
        ) {
            let register = Register(register);
            for order in [WordOrder::BigEndian, WordOrder::LittleEndian] {
                let words = Words::new(&bytes, order);
                let expected = words.iter().fold(sum, |sum, word| slow(sum, register, word));
                let mut crc = Crc(sum);
                crc.words(register, words);
                prop_assert_eq!(crc.value(), expected);
            }
        }
    }
}
