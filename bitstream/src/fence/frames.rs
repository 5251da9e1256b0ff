//! The frames of one write, and what tells two frames apart.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::reason::Reason;
use crate::xilinx::Words;

/// A sum of words, to tell frames apart.
pub(super) fn sum(words: Words<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for word in words.iter() {
        word.hash(&mut hasher);
    }
    hasher.finish()
}

/// Frame data, a whole number of frames and at least one.
pub(super) struct Frames<'a> {
    pub(super) data: Words<'a>,
    pub(super) length: usize,
    pub(super) count: usize,
    /// No words at all: what is read past the end.
    pub(super) none: Words<'a>,
}

impl<'a> Frames<'a> {
    pub(super) fn cut(data: Words<'a>, length: usize) -> Option<Self> {
        let count = data.len().checked_div(length)?;
        let whole = count.checked_mul(length)? == data.len() && count > 0;
        whole.then(|| Self {
            data,
            length,
            count,
            none: data.slice(0..0),
        })
    }

    pub(super) fn get(&self, at: usize) -> Option<Words<'a>> {
        if at >= self.count {
            return None;
        }
        let begin = at.saturating_mul(self.length);
        Some(self.data.slice(begin..begin.saturating_add(self.length)))
    }

    /// Two pads from a frame on, both empty.
    pub(super) fn pads(&self, at: usize) -> Result<(), Reason> {
        for pad in 0..2 {
            match self.get(at.saturating_add(pad)) {
                None => return Err(Reason::Order("one pad frame ends a row, and there are two")),
                Some(frame) if frame.all_zero() => {}
                Some(_) => return Err(Reason::Pad),
            }
        }
        Ok(())
    }
}
