//! What is owed to a region, and who has it meanwhile.
//!
//! Knows when to look and how a reservation ends. Must not know packets: the
//! deeds are `chores`'.

use std::sync::Arc;
use std::time::Duration;

use tracing::warn;

use super::audit::Record;
use super::chores;
use super::duties::{Memory, Owed};
use super::host::Host;
use super::plan::RegionKey;
use super::registry::Registration;

/// A region that is a job's until this is dropped, however that job ends: a reservation that
/// outlived its job would leave the region unscrubbed for ever. Then the region is looked at again.
#[derive(Debug)]
#[must_use = "the region is free again when this is dropped"]
pub(super) struct Reservation {
    host: Arc<Host>,
    key: RegionKey,
}

impl Reservation {
    /// Of a region that was reserved just now.
    pub(super) fn of(host: Arc<Host>, key: RegionKey) -> Self {
        Self { host, key }
    }

    /// The host.
    pub(super) fn host(&self) -> &Arc<Host> {
        &self.host
    }

    /// The region.
    pub(super) fn key(&self) -> RegionKey {
        self.key
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.host.state().regions.release(self.key);
        self.host.attend(self.key);
    }
}

impl Host {
    /// Looks at a region and does what is owed to it.
    pub fn attend(&self, key: RegionKey) {
        // Without a runtime the process is on its way out; the next one looks again.
        let (Some(me), Ok(runtime)) = (self.arc(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        match self.take_duty(key) {
            Owed::Nothing => {}
            Owed::Held(why) => {
                warn!(region = self.plan.label(key), why, "a region is held");
                self.note(&Record {
                    event: "held",
                    region: Some(self.plan.label(key)),
                    reason: Some(why),
                    ..Record::default()
                });
            }
            Owed::Later(pause) => {
                runtime.spawn(look_later(me, key, pause));
            }
            // Each takes its reservation when it first runs: a runtime that ends drops what it is
            // given, and a reservation dropped there would look again, and be given, and dropped.
            Owed::Scrub(why) => {
                runtime.spawn(async move {
                    // The story was told and written; the next look decides.
                    let _told = chores::scrub(Reservation::of(me, key), why, None).await;
                });
            }
            Owed::Reopen(tag, digest) => {
                runtime.spawn(async move {
                    chores::reopen(Reservation::of(me, key), tag, digest).await;
                });
            }
        }
    }

    fn take_duty(&self, key: RegionKey) -> Owed {
        let now = self.uptime();
        let mut state = self.state();
        if state.leaving {
            return Owed::Nothing;
        }
        let holders: Vec<_> = state
            .registry
            .holders(&self.plan, key)
            .map(Registration::tag)
            .collect();
        let owner = state
            .regions
            .get(key)
            .and_then(|region| region.report.as_ref()?.tag);
        let memory = if owner.is_some_and(|tag| state.ended.contains(&tag)) {
            Memory::Whole
        } else {
            state.memory
        };
        state
            .regions
            .take_duty(key, &holders, memory, self.limits.scrub_tries, now)
    }
}

async fn look_later(host: Arc<Host>, key: RegionKey, pause: Duration) {
    tokio::time::sleep(pause).await;
    host.state().regions.disarm(key);
    host.attend(key);
}
