//! The region journal with its clock and its cost: each durable write of a
//! job is counted and timed, for the job's end.
//!
//! Knows the journal. Must not know when to write what.

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use card::journal::{Entry, Journal, JournalError, Recovered, RegionState, UnixMillis};

use super::region::Region;

/// What durable writes cost since they were last asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Syncs {
    /// How many.
    pub count: u32,
    /// How long, in all.
    pub time: Duration,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Ledger {
    path: PathBuf,
    journal: Journal,
    syncs: Syncs,
}

impl Ledger {
    /// Opens the journal, or makes it.
    ///
    /// # Errors
    /// See [`Journal::open`].
    pub(super) fn open(path: PathBuf) -> Result<(Self, Recovered), JournalError> {
        let (journal, recovered) = Journal::open(&path)?;
        let ledger = Self {
            path,
            journal,
            syncs: Syncs::default(),
        };
        Ok((ledger, recovered))
    }

    /// Writes one step of `region` down. Afterwards it is durable, and the region's state.
    ///
    /// # Errors
    /// Nothing is known to be durable; the region's state is as it was.
    pub(super) fn write(&mut self, region: &mut Region, entry: &Entry) -> Result<(), JournalError> {
        let now = unix_millis();
        let begun = Instant::now();
        let written = self.append(region, entry, now);
        self.syncs.count = self.syncs.count.saturating_add(1);
        self.syncs.time = self.syncs.time.saturating_add(begun.elapsed());
        if let Err(error) = written {
            // It may be in the file or not, so what the file says of the region is not known.
            region.recorded = RegionState::UNKNOWN;
            return Err(error);
        }
        region.state = entry.state(now);
        region.recorded = region.state;
        Ok(())
    }

    fn append(
        &mut self,
        region: &Region,
        entry: &Entry,
        now: UnixMillis,
    ) -> Result<(), JournalError> {
        match self.journal.append(region.id, entry, now) {
            // An earlier write failed (a full disk, say), and what the file holds was uncertain
            // since. Reading it again tells; what this process knows stays the truth about the
            // regions, for each record tells its region's whole state.
            Err(JournalError::Poisoned) => {
                let (journal, recovered) = Journal::open(&self.path)?;
                tracing::warn!(found = ?recovered.found, "the journal was opened again");
                self.journal = journal;
                self.journal.append(region.id, entry, now)
            }
            other => other,
        }
    }

    /// What durable writes cost since the last call.
    pub(super) fn take_syncs(&mut self) -> Syncs {
        std::mem::take(&mut self.syncs)
    }
}

/// Milliseconds since 1970; 0 on a clock before that.
pub(super) fn unix_millis() -> UnixMillis {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
