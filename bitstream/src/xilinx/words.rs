//! Bytes seen as words, without a copy.

use std::ops::Range;

use super::WordOrder;

/// Words of 32 bits, borrowed from a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Words<'a> {
    bytes: &'a [[u8; 4]],
    order: WordOrder,
}

impl<'a> Words<'a> {
    /// The words of these bytes; what is less than a word is left out.
    pub(crate) fn new(bytes: &'a [u8], order: WordOrder) -> Self {
        let (bytes, _rest) = bytes.as_chunks::<4>();
        Self { bytes, order }
    }

    /// How many there are.
    #[must_use]
    pub fn len(self) -> usize {
        self.bytes.len()
    }

    /// There are none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.bytes.is_empty()
    }

    /// One word.
    #[must_use]
    pub fn get(self, at: usize) -> Option<u32> {
        self.bytes.get(at).map(|bytes| self.word(*bytes))
    }

    /// Some of them; none where the range is not inside.
    #[must_use]
    pub fn slice(self, range: Range<usize>) -> Self {
        Self {
            bytes: self.bytes.get(range).unwrap_or_default(),
            order: self.order,
        }
    }

    /// One after the other.
    pub fn iter(self) -> impl Iterator<Item = u32> + Clone + use<'a> {
        self.bytes.iter().map(move |bytes| self.word(*bytes))
    }

    /// Every one is zero. The order of bytes does not matter.
    #[must_use]
    pub fn all_zero(self) -> bool {
        self.bytes.as_flattened().iter().all(|byte| *byte == 0)
    }

    /// The same words in four parts of equal length, and what is over.
    pub(crate) fn quarters(self) -> ([Self; 4], Self) {
        let quarter = self.bytes.len() >> 2;
        let part = |number: usize| {
            let begin = quarter.saturating_mul(number);
            self.slice(begin..begin.saturating_add(quarter))
        };
        let over = quarter.saturating_mul(4)..self.bytes.len();
        ([part(0), part(1), part(2), part(3)], self.slice(over))
    }

    fn word(self, bytes: [u8; 4]) -> u32 {
        match self.order {
            WordOrder::BigEndian => u32::from_be_bytes(bytes),
            WordOrder::LittleEndian => u32::from_le_bytes(bytes),
        }
    }
}
