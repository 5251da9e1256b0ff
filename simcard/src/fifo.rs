//! The word FIFO before the configuration engine, as far as a driver sees it:
//! a level that rises with each store and falls with time.

use std::time::Duration;

use crate::config::Rate;

const NANOSECONDS: u128 = 1_000_000_000;
const WORD_LEN: u128 = 4;

/// How the FIFO empties.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Drain {
    At(Rate),
    /// Never (a fault).
    Blocked,
}

/// Whether a word was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Push {
    Taken,
    /// The FIFO was full: the word is lost.
    Lost,
}

/// A level between empty and full.
#[derive(Debug, Clone)]
pub(crate) struct Fifo {
    depth: u16,
    level: u16,
    drain: Drain,
    /// Up to which time the level was worked out.
    settled: Duration,
}

impl Fifo {
    pub(crate) fn new(depth: u16) -> Self {
        Self {
            depth,
            level: 0,
            drain: Drain::At(Rate::Instant),
            settled: Duration::ZERO,
        }
    }

    /// Empties it, and starts over at the given speed with so many words already taken.
    pub(crate) fn start(&mut self, drain: Drain, taken: u16, now: Duration) {
        self.drain = drain;
        self.level = taken.min(self.depth);
        self.settled = now;
    }

    pub(crate) fn depth(&self) -> u16 {
        self.depth
    }

    /// Words that can be pushed before one is lost.
    pub(crate) fn credit(&self) -> u16 {
        self.depth.saturating_sub(self.level)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.level == 0
    }

    /// Whether a fault keeps it from emptying.
    pub(crate) fn blocked(&self) -> bool {
        self.drain == Drain::Blocked
    }

    pub(crate) fn push(&mut self) -> Push {
        match self.drain {
            Drain::At(Rate::Instant) => Push::Taken,
            _ if self.level >= self.depth => Push::Lost,
            _ => {
                self.level = self.level.saturating_add(1);
                Push::Taken
            }
        }
    }

    /// Works out the level at `now`.
    pub(crate) fn settle(&mut self, now: Duration) {
        let rate = match self.drain {
            Drain::Blocked => return,
            Drain::At(Rate::Instant) => {
                self.level = 0;
                return;
            }
            Drain::At(Rate::BytesPerSecond(rate)) => u128::from(rate.max(1)),
        };
        let passed = now.saturating_sub(self.settled).as_nanos();
        let word_cost = WORD_LEN.saturating_mul(NANOSECONDS);
        let words = passed
            .saturating_mul(rate)
            .checked_div(word_cost)
            .unwrap_or(0);
        match u16::try_from(words) {
            Ok(words) if words < self.level => {
                self.level = self.level.saturating_sub(words);
                // Only the time of whole words is spent: no rounding error gathers.
                let spent = u128::from(words).saturating_mul(word_cost).div_ceil(rate);
                let spent = Duration::from_nanos(u64::try_from(spent).unwrap_or(u64::MAX));
                self.settled = self.settled.saturating_add(spent);
            }
            _ => {
                self.level = 0;
                self.settled = now;
            }
        }
    }
}

#[cfg(test)]
#[expect(
    clippy::arithmetic_side_effects,
    reason = "a test may stop at an overflow"
)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn credits_return_with_time() {
        let mut fifo = Fifo::new(4);
        fifo.start(Drain::At(Rate::BytesPerSecond(4000)), 0, Duration::ZERO);
        for _ in 0..4 {
            assert_eq!(fifo.push(), Push::Taken);
        }
        assert_eq!(fifo.push(), Push::Lost);
        fifo.settle(Duration::from_micros(1999));
        assert_eq!(fifo.credit(), 1);
        fifo.settle(Duration::from_micros(2000));
        assert_eq!(fifo.credit(), 2);
        fifo.settle(Duration::from_millis(4));
        assert!(fifo.is_empty());
    }

    #[test]
    fn a_blocked_fifo_gives_nothing_back() {
        let mut fifo = Fifo::new(4);
        fifo.start(Drain::Blocked, 3, Duration::ZERO);
        fifo.settle(Duration::from_secs(100));
        assert_eq!(fifo.credit(), 1);
    }

    proptest! {
        #[test]
        fn looking_often_changes_nothing(rate in 1u64..10_000_000, looks in prop::collection::vec(0u64..5_000_000, 1..40)) {
            let mut often = Fifo::new(511);
            often.start(Drain::At(Rate::BytesPerSecond(rate)), 511, Duration::ZERO);
            let mut once = often.clone();
            let mut now = Duration::ZERO;
            for step in looks {
                now += Duration::from_nanos(step);
                often.settle(now);
            }
            once.settle(now);
            prop_assert!(often.level.abs_diff(once.level) <= 1);
        }
    }
}
