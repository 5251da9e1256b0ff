//! Waiting for hardware: looks with pauses between them, until a deadline.

use std::time::Duration;

use crate::clock::Clock;

/// Looks that are taken without a pause between them.
const EAGER_LOOKS: u32 = 8;
/// The first pause, and the longest.
const SHORT_PAUSE: Duration = Duration::from_micros(10);
const LONG_PAUSE: Duration = Duration::from_millis(1);

/// Waiting with a deadline: at first eagerly, then with longer pauses.
pub(crate) struct Patience {
    until: Duration,
    looks: u32,
    pause: Duration,
}

impl Patience {
    pub(crate) fn new(until: Duration) -> Self {
        Self {
            until,
            looks: 0,
            pause: SHORT_PAUSE,
        }
    }

    /// Waits a little before the next look; `false` when the time is over.
    #[must_use]
    pub(crate) fn another(&mut self, clock: &dyn Clock) -> bool {
        if clock.now() >= self.until {
            return false;
        }
        self.looks = self.looks.saturating_add(1);
        if self.looks > EAGER_LOOKS {
            clock.sleep(self.pause);
            self.pause = self.pause.saturating_mul(2).min(LONG_PAUSE);
        }
        true
    }
}
