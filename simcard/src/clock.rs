//! The card's time. A card has no thread that ticks: on each access it asks how
//! late it is and does what would have happened since.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Where a card takes its time from; it only ever rises.
#[derive(Debug, Clone)]
pub struct Clock(Source);

#[derive(Debug, Clone)]
enum Source {
    Wall(Instant),
    Manual(Arc<AtomicU64>),
}

impl Clock {
    /// Real time, counted from now.
    #[must_use]
    pub fn wall() -> Self {
        Self(Source::Wall(Instant::now()))
    }

    /// A clock that stands still until its [`Hand`] is moved.
    #[must_use]
    pub fn manual() -> (Self, Hand) {
        let nanoseconds = Arc::new(AtomicU64::new(0));
        (
            Self(Source::Manual(Arc::clone(&nanoseconds))),
            Hand(nanoseconds),
        )
    }

    /// Time since the clock was made.
    #[must_use]
    pub fn now(&self) -> Duration {
        match &self.0 {
            Source::Wall(start) => start.elapsed(),
            Source::Manual(nanoseconds) => Duration::from_nanos(nanoseconds.load(Ordering::SeqCst)),
        }
    }
}

/// Moves a manual clock.
#[derive(Debug, Clone)]
pub struct Hand(Arc<AtomicU64>);

impl Hand {
    /// Lets `step` pass (no more than about 584 years in all).
    pub fn advance(&self, step: Duration) {
        let step = u64::try_from(step.as_nanos()).unwrap_or(u64::MAX);
        self.0.fetch_add(step, Ordering::SeqCst);
    }
}
