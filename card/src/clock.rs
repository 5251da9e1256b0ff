//! Time as a parameter, so that a test waits eight seconds in no time.

use std::time::{Duration, Instant};

/// A clock that only goes forward, and a way to wait on it.
pub trait Clock: Send + Sync {
    /// Time since a fixed start of this clock's own choosing.
    fn now(&self) -> Duration;
    /// Waits for at least `pause`.
    fn sleep(&self, pause: Duration);
}

/// The machine's monotonic clock.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// A clock whose start is now.
    #[must_use]
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
        }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn sleep(&self, pause: Duration) {
        std::thread::sleep(pause);
    }
}
