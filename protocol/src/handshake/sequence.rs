//! Numbers of requests within one session: they only rise.

/// A request's number is not above those before it: a repeat, or a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("sequence {got} after {last}")]
pub struct NotRising {
    /// The highest number so far.
    pub last: u32,
    /// The number that came.
    pub got: u32,
}

/// The receiver's side. Numbers may be left out, never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SequenceCheck {
    last: u32,
}

impl SequenceCheck {
    /// Accepts a number above all before it; 0 is never accepted.
    ///
    /// # Errors
    ///
    /// [`NotRising`] for any other number.
    pub const fn accept(&mut self, got: u32) -> Result<(), NotRising> {
        if got <= self.last {
            return Err(NotRising {
                last: self.last,
                got,
            });
        }
        self.last = got;
        Ok(())
    }
}

/// The sender's side: 1, 2, 3, …
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SequenceSource {
    last: u32,
}

impl SequenceSource {
    /// The next number, or `None` when they are used up and a new session is
    /// due.
    pub fn draw(&mut self) -> Option<u32> {
        self.last = self.last.checked_add(1)?;
        Some(self.last)
    }
}
