//! The blank image into a region: the one way out of a quarantine.
//!
//! Needs no metadata, no repository and no consent: the image is pinned by the
//! shell file and held since the start. What was in the region is out of trust
//! before anything is written, so that a crash in the middle leaves a
//! quarantine. Must not know who asked.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use card::journal::{Entry, OwnerTag};

use super::bench::{Bench, Condemned};
use super::ending::Failure;
use super::inbox::GivenUp;
use super::region::{Blank, Region};
use super::steps::Step;
use super::write::{self, Talk};
use crate::ipc::{CardStage, Outcome, RegionIndex};

/// What a scrub came to.
#[derive(Debug)]
pub(super) enum Scrubbed {
    /// Blank, and in the journal; the time from the first data store to the card's verdict.
    Blank(Duration),
    /// The region stays quarantined, and the failure is counted.
    Failed(Failure),
    /// The process is told to stop: not the region's fault, and not counted.
    Interrupted(Failure),
}

/// Scrubs the region; afterwards `owner` owns it, or nobody.
pub(super) fn scrub(
    region: &mut Region,
    bench: &mut Bench,
    owner: Option<OwnerTag>,
    talk: &Talk,
) -> Scrubbed {
    let failures = region.scrub_failures();
    let attempt = bench
        .condemn(region, owner, failures)
        .and_then(|condemned| blank(region, bench, owner, talk, condemned));
    let failure = match attempt {
        Ok(took) => return Scrubbed::Blank(took),
        Err(failure) => failure,
    };
    if failure.given_up == Some(GivenUp::Stopping) {
        return Scrubbed::Interrupted(failure);
    }
    let again = bench.condemn(region, owner, failures.saturating_add(1));
    if let Err(failure) = again {
        tracing::error!(region = %region.name, story = %failure.text, "after a failed scrub");
    }
    Scrubbed::Failed(failure)
}

fn blank(
    region: &mut Region,
    bench: &mut Bench,
    owner: Option<OwnerTag>,
    talk: &Talk,
    _condemned: Condemned,
) -> Result<Duration, Failure> {
    let (fitted, function) = match &region.blank {
        Blank::Held { fitted, function } => (Arc::clone(fitted), *function),
        Blank::None | Blank::Unusable(_) => {
            let text = "there is no blank image for it";
            return Err(Failure::new(
                Outcome::ScrubFailed,
                CardStage::Isolating,
                text,
            ));
        }
    };
    let took = write::payload(region, bench, &fitted, talk)?;
    write::identity(region, bench, function)?;
    // Reading the identity took it out of reset; an empty region waits in reset.
    bench.shut(region, CardStage::Checking)?;
    bench.steps.reached(Step::BlankWritten);
    bench
        .ledger
        .write(region, &Entry::Blank { owner })
        .map_err(|error| Failure::journal(CardStage::Committing, &error))?;
    bench.steps.reached(Step::BlankDurable);
    Ok(took)
}

/// The scrubs that this process owes its regions, and when each is due.
#[derive(Debug)]
pub(super) struct Owed {
    due: BTreeMap<RegionIndex, Instant>,
    /// Failed scrubs after which only the operator's word starts another.
    tries: u32,
    /// Waiting time after each failed scrub.
    pause: Duration,
}

impl Owed {
    /// None yet. After a failure the next try waits `pause`, and after the next one longer; after
    /// `tries` of them there is no next one.
    pub(super) fn new(tries: u32, pause: Duration) -> Self {
        Self {
            due: BTreeMap::new(),
            tries,
            pause,
        }
    }

    /// The region is out of trust: scrub it soon, unless that failed too often.
    pub(super) fn add(&mut self, region: &Region) {
        let failures = region.scrub_failures();
        if region.programmable().is_err() {
            return;
        }
        if u32::from(failures) >= self.tries {
            self.due.remove(&region.index);
            tracing::error!(
                region = %region.name,
                failures,
                "scrubs failed; the region waits for the operator's scrub",
            );
            return;
        }
        let now = Instant::now();
        let pause = self.pause.saturating_mul(u32::from(failures));
        self.due
            .insert(region.index, now.checked_add(pause).unwrap_or(now));
    }

    /// The region needs none any more.
    pub(super) fn remove(&mut self, region: RegionIndex) {
        self.due.remove(&region);
    }

    /// When the next one is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.due.values().min().copied()
    }

    /// Takes one that is due.
    pub(super) fn take(&mut self, now: Instant) -> Option<RegionIndex> {
        let (&region, _) = self.due.iter().find(|(_, due)| **due <= now)?;
        self.due.remove(&region);
        Some(region)
    }
}
