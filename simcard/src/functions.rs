//! What can appear in a region: small functions whose work a person can see
//! through their registers.
//!
//! Offsets are from the AFU's base. Each AFU begins with its header (+0x00),
//! its id (+0x08 low, +0x10 high) and `NEXT_AFU` (+0x18, zero); a function's own
//! registers begin at [`FUNCTION_REGISTERS`]. README.md has the table.

use std::time::Duration;

use uuid::Uuid;

use crate::csr::Store;
use crate::dfl::{self, List, Type};

/// The function that is none: what a blank image leaves behind.
pub const BLANK: Uuid = Uuid::from_u128(0xb1a4_c000_5c12_4be1_8000_7265_636f_6e66);
/// Adds two numbers.
pub const ADDER: Uuid = Uuid::from_u128(0xadde_4000_2f6a_4d0c_9b57_7265_636f_6e66);
/// Counts microseconds.
pub const COUNTER: Uuid = Uuid::from_u128(0xc001_7e40_81d3_4a6b_a1c4_7265_636f_6e66);
/// CRC-32 of what is written.
pub const CRC32: Uuid = Uuid::from_u128(0xc4c3_2000_9e75_4f12_b3e8_7265_636f_6e66);
/// Enciphers a stream of words with a toy key stream.
pub const CIPHER: Uuid = Uuid::from_u128(0xc1f4_e400_d058_4c39_8d2f_7265_636f_6e66);
/// What a fault puts in a region instead of what was asked for.
pub const WRONG: Uuid = Uuid::from_u128(0xbad0_bad0_bad0_4bad_8bad_7265_636f_6e66);

/// Where a function's own registers begin.
pub const FUNCTION_REGISTERS: u64 = 0x40;

const R0: u64 = FUNCTION_REGISTERS;
const R1: u64 = FUNCTION_REGISTERS + 0x08;
const R2: u64 = FUNCTION_REGISTERS + 0x10;
const R3: u64 = FUNCTION_REGISTERS + 0x18;

/// A region's content.
#[derive(Debug, Clone)]
pub(crate) struct Function {
    id: Option<Uuid>,
    logic: Logic,
}

/// What the content does.
#[derive(Debug, Clone)]
enum Logic {
    /// Nothing is configured, or half of something: reads zeros.
    Nothing,
    Blank,
    Adder {
        a: u64,
        b: u64,
    },
    /// Counts from the given time of the card.
    Counter {
        since: Duration,
    },
    Crc32 {
        crc: u32,
        bytes: u64,
    },
    Cipher {
        key: u64,
        stream: u64,
        out: u64,
        words: u64,
    },
    /// A function that the card does not know: one register of plain storage.
    Scratch(u64),
}

impl Function {
    /// No function: after power-up, and from the start of a reconfiguration to its good end.
    pub(crate) fn nothing() -> Self {
        Self {
            id: None,
            logic: Logic::Nothing,
        }
    }

    /// The function that an AFU id names, in its reset state.
    pub(crate) fn named(id: Uuid, now: Duration) -> Self {
        Self {
            id: Some(id),
            logic: Logic::fresh(id, now),
        }
    }

    /// The AFU id.
    pub(crate) fn id(&self) -> Option<Uuid> {
        self.id
    }

    /// A word for people.
    pub(crate) fn name(&self) -> &'static str {
        match self.logic {
            Logic::Nothing => "none",
            Logic::Blank => "blank",
            Logic::Adder { .. } => "adder",
            Logic::Counter { .. } => "counter",
            Logic::Crc32 { .. } => "crc32",
            Logic::Cipher { .. } => "cipher",
            Logic::Scratch(_) => "unknown",
        }
    }

    /// All registers to their reset values.
    pub(crate) fn reset(&mut self, now: Duration) {
        if let Some(id) = self.id {
            self.logic = Logic::fresh(id, now);
        }
    }

    pub(crate) fn read(&self, register: u64, now: Duration) -> u64 {
        let Some(id) = self.id else { return 0 };
        let (high, low) = dfl::halves(id);
        match register {
            0x00 => dfl::header(Type::Afu, 0, List::Ends),
            0x08 => low,
            0x10 => high,
            _ => self.logic.read(register, now),
        }
    }

    pub(crate) fn write(&mut self, store: Store, now: Duration) {
        self.logic.write(store, now);
    }
}

impl Logic {
    fn fresh(id: Uuid, now: Duration) -> Self {
        match id {
            BLANK => Self::Blank,
            ADDER => Self::Adder { a: 0, b: 0 },
            COUNTER => Self::Counter { since: now },
            CRC32 => Self::Crc32 { crc: 0, bytes: 0 },
            CIPHER => Self::Cipher {
                key: 0,
                stream: 0,
                out: 0,
                words: 0,
            },
            _ => Self::Scratch(0),
        }
    }

    fn read(&self, register: u64, now: Duration) -> u64 {
        match (self, register) {
            (Self::Adder { a, .. }, R0) => *a,
            (Self::Adder { b, .. }, R1) => *b,
            (Self::Adder { a, b }, R2) => a.wrapping_add(*b),
            (Self::Counter { since }, R0) => {
                u64::try_from(now.saturating_sub(*since).as_micros()).unwrap_or(u64::MAX)
            }
            (Self::Crc32 { crc, .. }, R1) => u64::from(*crc),
            (Self::Crc32 { bytes, .. }, R2) => *bytes,
            (Self::Cipher { key, .. }, R0) => *key,
            (Self::Cipher { out, .. }, R2) => *out,
            (Self::Cipher { words, .. }, R3) => *words,
            (Self::Scratch(value), R0) => *value,
            _ => 0,
        }
    }

    fn write(&mut self, store: Store, now: Duration) {
        match (self, store.register) {
            (Self::Adder { a, .. }, R0) => *a = store.over(*a),
            (Self::Adder { b, .. }, R1) => *b = store.over(*b),
            (Self::Counter { since }, R1) => *since = now,
            (Self::Crc32 { crc, bytes }, R0) => feed_crc(crc, bytes, store),
            (Self::Crc32 { crc, bytes }, R3) => (*crc, *bytes) = (0, 0),
            (
                Self::Cipher {
                    key,
                    stream,
                    out,
                    words,
                },
                R0,
            ) => {
                *key = store.over(*key);
                (*stream, *out, *words) = (*key, 0, 0);
            }
            (
                Self::Cipher {
                    stream, out, words, ..
                },
                R1,
            ) => {
                *stream = xorshift(*stream);
                *out = store.over(0) ^ *stream;
                *words = words.wrapping_add(1);
            }
            (Self::Scratch(value), R0) => *value = store.over(*value),
            _ => {}
        }
    }
}

/// Feeds the bytes of the lanes that the store drives, lowest first.
fn feed_crc(crc: &mut u32, bytes: &mut u64, store: Store) {
    let mut hasher = crc32fast::Hasher::new_with_initial(*crc);
    let driven = store.mask.to_le_bytes();
    for (byte, lane) in store.value.to_le_bytes().into_iter().zip(driven) {
        if lane != 0 {
            hasher.update(&[byte]);
            *bytes = bytes.wrapping_add(1);
        }
    }
    *crc = hasher.finalize();
}

/// One step of xorshift64 (Marsaglia 2003). Zero stays zero: with no key the
/// cipher is clear text.
fn xorshift(mut x: u64) -> u64 {
    x ^= x << 13;
    x ^= x >> 7;
    x ^ (x << 17)
}

#[cfg(test)]
mod tests {
    use super::*;

    const T0: Duration = Duration::ZERO;

    fn with(id: Uuid, writes: &[(u64, u64)]) -> Function {
        let mut function = Function::named(id, T0);
        for (register, value) in writes {
            function.write(Store::whole(*register, *value), T0);
        }
        function
    }

    #[test]
    fn every_function_shows_its_id() {
        for id in [BLANK, ADDER, COUNTER, CRC32, CIPHER, Uuid::from_u128(5)] {
            let function = Function::named(id, T0);
            assert_eq!(function.read(0, T0) >> 60, 1);
            let high = u128::from(function.read(0x10, T0));
            assert_eq!(high << 64 | u128::from(function.read(8, T0)), id.as_u128());
        }
        assert_eq!(Function::nothing().read(0, T0), 0);
    }

    #[test]
    fn the_adder_adds() {
        assert_eq!(with(ADDER, &[(R0, 40), (R1, 2)]).read(R2, T0), 42);
        assert_eq!(with(ADDER, &[(R0, u64::MAX), (R1, 2)]).read(R2, T0), 1);
    }

    #[test]
    fn the_counter_counts_and_starts_over() {
        let mut counter = with(COUNTER, &[]);
        assert_eq!(counter.read(R0, Duration::from_millis(3)), 3000);
        counter.write(Store::whole(R1, 1), Duration::from_millis(3));
        assert_eq!(counter.read(R0, Duration::from_millis(4)), 1000);
        counter.reset(Duration::from_millis(4));
        assert_eq!(counter.read(R0, Duration::from_millis(4)), 0);
    }

    #[test]
    fn the_crc_takes_only_the_bytes_that_were_stored() {
        let mut crc = with(CRC32, &[(R0, u64::from_le_bytes(*b"12345678"))]);
        for store in crate::csr::stores(R0, b"9") {
            crc.write(store, T0);
        }
        assert_eq!(crc.read(R1, T0), 0xcbf4_3926);
        assert_eq!(crc.read(R2, T0), 9);
        crc.write(Store::whole(R3, 1), T0);
        assert_eq!((crc.read(R1, T0), crc.read(R2, T0)), (0, 0));
    }

    #[test]
    fn the_cipher_deciphers_itself() {
        let sealed: Vec<u64> = (0..3)
            .scan(with(CIPHER, &[(R0, 77)]), |cipher, word| {
                cipher.write(Store::whole(R1, word), T0);
                Some(cipher.read(R2, T0))
            })
            .collect();
        let mut back = with(CIPHER, &[(R0, 77)]);
        for (word, sealed) in (0..3).zip(sealed) {
            assert_ne!(sealed, word);
            back.write(Store::whole(R1, sealed), T0);
            assert_eq!(back.read(R2, T0), word);
        }
        assert_eq!(back.read(R3, T0), 3);
    }

    #[test]
    fn a_function_nobody_knows_has_one_register() {
        let function = with(Uuid::from_u128(5), &[(R0, 9), (R1, 9)]);
        assert_eq!((function.read(R0, T0), function.read(R1, T0)), (9, 0));
    }

    #[test]
    fn reset_clears_registers() {
        let mut adder = with(ADDER, &[(R0, 40)]);
        adder.reset(T0);
        assert_eq!(adder.read(R0, T0), 0);
    }
}
