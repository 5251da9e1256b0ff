//! Pauses that grow: quick at first, seldom later.
//!
//! Knows durations. Must not know what is tried between them.

use std::time::Duration;

/// The first pause. Small loads end within milliseconds.
const FIRST: Duration = Duration::from_millis(10);

/// An endless row of pauses, each twice the one before, up to a longest.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
    longest: Duration,
}

impl Backoff {
    /// Pauses from 10 ms up to `longest`.
    pub(crate) fn new(longest: Duration) -> Self {
        Self {
            next: FIRST.min(longest),
            longest,
        }
    }

    /// The next pause; never zero, so that nobody turns in a tight loop.
    pub(crate) fn next(&mut self) -> Duration {
        let pause = self.next.max(Duration::from_millis(1));
        self.next = self.next.saturating_mul(2).min(self.longest);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_the_longest_and_never_vanish() {
        let mut pauses = Backoff::new(Duration::from_millis(35));
        let row: Vec<_> = (0..5).map(|_| pauses.next().as_millis()).collect();
        assert_eq!(row, [10, 20, 35, 35, 35]);
        assert_eq!(
            Backoff::new(Duration::ZERO).next(),
            Duration::from_millis(1)
        );
    }
}
