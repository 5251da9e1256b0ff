//! What the worker says: the end of each job, the state of each region; and
//! which job numbers it has heard.
//!
//! Knows packets and logs. Must not change a region.

use std::time::Duration;

use super::ending::{Failure, Refusal, Story};
use super::inbox::ConnectionId;
use super::worker::{CardGone, Worker};
use crate::ipc::{FromCard, JobEnd, JobId, Outcome, RegionIndex};

/// How many ended jobs are remembered, so that a late word about one is no violation.
const REMEMBERED: usize = 64;

impl Worker {
    /// A job or a scrub failed: for the operator, and for the loop if the card is gone.
    pub(super) fn note(&mut self, failure: &Failure) {
        tracing::warn!(
            outcome = ?failure.outcome,
            stage = ?failure.stage,
            words = ?failure.words,
            text = %failure.text,
            "a job failed",
        );
        if failure.is_card_gone() {
            self.gone = Some(CardGone(failure.text.clone()));
        }
    }

    /// Whether a job number was not seen yet.
    pub(super) fn fresh(&self, job: JobId) -> Result<(), Refusal> {
        let waits = self.offers.iter().any(|offer| offer.verified.job() == job);
        if waits || self.ended.contains(&job) {
            return Err(Refusal::new(Outcome::Violation, "this job was seen before"));
        }
        Ok(())
    }

    /// A word about a job that does not wait. Honest if the job has just ended.
    pub(super) fn unheard_of(&mut self, job: JobId, from: ConnectionId, text: &str) {
        if self.ended.contains(&job) {
            return;
        }
        tracing::warn!(job = %job.to_hex(), text, "IpcViolation");
        let refusal = Refusal::new(Outcome::Violation, text);
        self.end(job, from, RegionIndex(0), refusal.into());
    }

    /// Tells the end of a job, after the state that its region is in now.
    pub(super) fn end(
        &mut self,
        job: JobId,
        from: ConnectionId,
        region: RegionIndex,
        story: Story,
    ) {
        let syncs = self.bench.ledger.take_syncs();
        self.report(region);
        self.ended.push_back(job);
        if self.ended.len() > REMEMBERED {
            self.ended.pop_front();
        }
        tracing::info!(
            job = %job.to_hex(),
            region = region.0,
            outcome = ?story.outcome,
            text = %story.text,
            "job ended",
        );
        let end = JobEnd {
            job,
            region,
            outcome: story.outcome,
            stage: story.stage,
            words: story.words,
            text: story.text,
            device_ns: nanos(story.device),
            sync_ns: nanos(syncs.time),
            syncs: syncs.count,
        };
        self.bench.outlet.say(from, &FromCard::Done(end));
    }

    /// Tells one region's state to whoever greeted.
    pub(super) fn report(&self, index: RegionIndex) {
        let region = self.regions.iter().find(|region| region.index == index);
        if let (Some(region), Some(to)) = (region, self.greeted) {
            self.bench
                .outlet
                .say(to, &FromCard::Region(region.report()));
        }
    }

    /// Tells all regions' states.
    pub(super) fn report_all(&self, to: ConnectionId) {
        for region in &self.regions {
            self.bench
                .outlet
                .say(to, &FromCard::Region(region.report()));
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
