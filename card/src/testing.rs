//! Test doubles: a clock that only moves when told, a card made of registers,
//! and a decorator that fails the k-th access. Register numbers are written
//! down here a second time, from the facts and not from `dfl/registers.rs`.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "a test may fail where a number does not fit"
)]

mod faulty;
pub(crate) mod icap;
mod model;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::Clock;

pub(crate) use faulty::{Effect, Faulty, Lasting};
pub(crate) use model::{Kind, Model, ModelDevice, Trouble};

/// A clock that stands still unless someone sleeps on it or moves it.
#[derive(Debug, Default)]
pub(crate) struct VirtualClock(AtomicU64);

impl VirtualClock {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    pub(crate) fn advance(&self, by: Duration) {
        let nanos = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX / 4);
        self.0.fetch_add(nanos, Ordering::Relaxed);
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }

    fn sleep(&self, pause: Duration) {
        self.advance(pause);
    }
}
