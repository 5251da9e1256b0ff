//! Words, packets and checksums, changed.

use super::Mutation;
use crate::legal::number;
use crate::stream::{CMD, CRC, FAR, FDRI, MASK, MFWR, NOP, header, mend, words};

impl Mutation<'_> {
    /// One bit of one header.
    pub(super) fn header_bit(&mut self) -> Vec<u32> {
        let at = self.anywhere();
        let place = words(&self.parts[..at]).len();
        let mut words = words(&self.parts);
        words[place] ^= 1 << self.dice.below(32);
        mend(&mut words);
        words
    }

    pub(super) fn checksum(&mut self) -> Option<Vec<u32>> {
        let at = self.one_of(CRC)?;
        let place = words(&self.parts[..at]).len();
        match self.dice.below(3) {
            0 => {
                self.parts.remove(at);
                Some(words(&self.parts))
            }
            1 => {
                self.parts.retain(|part| part.register() != Some(CRC));
                Some(words(&self.parts))
            }
            _ => {
                let mut words = words(&self.parts);
                words[place + 1] ^= 1 << self.dice.below(32);
                Some(words)
            }
        }
    }

    /// The count in a header, and not the words that follow.
    pub(super) fn count(&mut self) -> Option<Vec<u32>> {
        let register = *self.dice.pick(&[FDRI, FDRI, FAR, CMD, MFWR, MASK]);
        let at = self.one_of(register)?;
        let place = words(&self.parts[..at]).len();
        let count = self.parts[at].words_mut().len();
        let mut words = words(&self.parts);
        let headers = header(register, count).len();
        let word = &mut words[place + headers - 1];
        *word = match self.dice.below(6) {
            0 => word.wrapping_add(1),
            1 => word.wrapping_sub(1),
            2 if headers == 2 => 0x5000_0000,
            3 if headers == 2 => 0x57ff_ffff,
            4 => *word & !0x7ff,
            _ => *word ^ 1 << self.dice.below(11),
        };
        if headers == 2 && self.dice.once_in(3) {
            words.insert(place + 1, NOP);
        }
        if self.dice.once_in(4) {
            words.insert(place, 0x5000_0000 | number(self.dice.below(4)));
        }
        mend(&mut words);
        Some(words)
    }

    /// Words that no tool writes: types 0 and 3 to 7, operations 1 and 3.
    pub(super) fn packet_type(&mut self) -> Vec<u32> {
        let at = self.anywhere();
        let place = words(&self.parts[..at]).len();
        let mut words = words(&self.parts);
        if self.dice.once_in(2) {
            let kind = number(self.dice.below(8));
            words[place] = words[place] & 0x1fff_ffff | kind << 29;
        } else {
            let operation = number(self.dice.below(4));
            words[place] = words[place] & !(3 << 27) | operation << 27;
        }
        mend(&mut words);
        words
    }

    pub(super) fn byte_order(&mut self) -> Vec<u32> {
        let mut words = words(&self.parts);
        let at = self.dice.below(words.len());
        match self.dice.below(4) {
            0 => words[at] = words[at].swap_bytes(),
            1 => words[at..].iter_mut().for_each(|w| *w = w.swap_bytes()),
            2 => words.iter_mut().for_each(|w| *w = w.rotate_left(16)),
            _ => words
                .iter_mut()
                .for_each(|w| *w = w.swap_bytes().reverse_bits()),
        }
        words
    }

    pub(super) fn cut(&mut self) -> Vec<u32> {
        let mut words = words(&self.parts);
        let at = if self.dice.once_in(2) {
            words.len() - self.dice.below(words.len().min(60))
        } else {
            self.dice.below(words.len())
        };
        words.truncate(at);
        words
    }

    /// Words that are no data are changed at random.
    pub(super) fn word(&mut self) -> Vec<u32> {
        let part = self.anywhere();
        let start = words(&self.parts[..part]).len();
        let within = self.parts[part].words_mut().len() + 1;
        let mut words = words(&self.parts);
        let at = (start + self.dice.below(within.min(3))).min(words.len() - 1);
        match self.dice.below(5) {
            0 => words[at] = self.dice.word(),
            1 => words[at] ^= 1 << self.dice.below(32),
            2 => drop(words.remove(at)),
            3 => words.insert(at, words[at]),
            _ => {
                let next = (at + 1).min(words.len() - 1);
                words.swap(at, next);
            }
        }
        mend(&mut words);
        words
    }
}
