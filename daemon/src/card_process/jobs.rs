//! What each kind of packet makes the worker do.
//!
//! Knows the packets. Must not know registers or the order of a load's steps.

use std::time::{Duration, Instant};

use card::engine::EngineCause;
use card::journal::{Content, OwnerTag, Sha256};

use super::ending::{Failure, Refusal, Story, given_up};
use super::inbox::{ConnectionId, GivenUp};
use super::pipeline::{Intended, Offered};
use super::region::{Gate, Region};
use super::reopen::{self, Reopening};
use super::scrub::{self, Scrubbed};
use super::steps::Step;
use super::worker::{Waiting, Worker};
use super::write::Talk;
use crate::ipc::{CardStage, JobId, Outcome, RegionIndex};

/// How long a verified offer waits for `Go`.
const GO_WAIT: Duration = Duration::from_secs(30);

impl Worker {
    /// Verifies an offer at once, and keeps it for its `Go`.
    pub(super) fn offer(&mut self, region: RegionIndex, offered: Offered) {
        let (job, from) = (offered.job, offered.from);
        match self.verify(region, offered) {
            Ok(waiting) => {
                self.offers.push(waiting);
                self.bench.steps.reached(Step::Verified);
            }
            Err(refusal) => self.end(job, from, region, refusal.into()),
        }
    }

    fn verify(&mut self, index: RegionIndex, offered: Offered) -> Result<Waiting, Refusal> {
        self.fresh(offered.job)?;
        if self.offers.iter().any(|offer| offer.region == index) {
            let text = "another offer for this region waits";
            return Err(Refusal::new(Outcome::Busy, text));
        }
        let region = region(&mut self.regions, index)?;
        let stage = CardStage::Verifying;
        Talk::Load(offered.job, offered.from).progress(&self.bench.outlet, stage, 0, 0);
        let verified = offered.verify(region, &mut self.trusted, &mut self.known)?;
        let now = Instant::now();
        Ok(Waiting {
            region: index,
            until: now.checked_add(GO_WAIT).unwrap_or(now),
            verified,
        })
    }

    /// Runs an offered load to its end.
    pub(super) fn go(&mut self, job: JobId, from: ConnectionId) {
        let waits = |offer: &Waiting| offer.verified.job() == job && offer.verified.from() == from;
        let Some(at) = self.offers.iter().position(waits) else {
            self.unheard_of(job, from, "it was never offered");
            return;
        };
        let offer = self.offers.remove(at);
        let story = match self.begin(offer) {
            Ok(intended) => self.load(intended),
            Err((index, refusal)) => (index, refusal.into()),
        };
        self.end(job, from, story.0, story.1);
    }

    fn begin(&mut self, offer: Waiting) -> Result<(RegionIndex, Intended), (RegionIndex, Refusal)> {
        let index = offer.region;
        region(&mut self.regions, index)
            .and_then(|region| {
                offer
                    .verified
                    .intend(region, &mut self.trusted, &mut self.bench)
            })
            .map(|intended| (index, intended))
            .map_err(|refusal| (index, refusal))
    }

    /// From INTENT to the guest's access, or to the quarantine.
    fn load(&mut self, (index, intended): (RegionIndex, Intended)) -> (RegionIndex, Story) {
        let region = match region(&mut self.regions, index) {
            Ok(region) => region,
            Err(refusal) => return (index, refusal.into()),
        };
        let bench = &mut self.bench;
        let mut device = Duration::ZERO;
        let loaded = intended
            .write(region, bench)
            .and_then(|written| {
                device = written.took();
                written.ask(bench)
            })
            .and_then(|consented| consented.commit(region, &mut self.trusted, bench))
            .and_then(|committed| committed.open(region, bench));
        let story = match loaded {
            Ok(()) => Story::done(device),
            Err(failure) => Story {
                device,
                ..self.condemned(index, failure)
            },
        };
        (index, story)
    }

    /// Gives a waiting offer up. A running one hears it elsewhere, a scrub does not.
    pub(super) fn abort(&mut self, job: JobId, from: ConnectionId) {
        let known = self.offers.iter().any(|offer| offer.verified.job() == job);
        self.drop_offers(|_, offer| (offer.verified.job() == job).then_some(GivenUp::Aborted));
        if !known {
            self.unheard_of(job, from, "there is nothing to give up");
        }
    }

    /// Drops the offers for which `why` has a reason.
    pub(super) fn drop_offers(&mut self, why: impl Fn(&Self, &Waiting) -> Option<GivenUp>) {
        let mut kept = Vec::new();
        for offer in std::mem::take(&mut self.offers) {
            match why(self, &offer) {
                None => kept.push(offer),
                Some(why) => {
                    let (job, from) = (offer.verified.job(), offer.verified.from());
                    let refusal = Refusal::new(Outcome::NotCommitted, given_up(why));
                    self.end(job, from, offer.region, refusal.into());
                }
            }
        }
        self.offers = kept;
    }

    /// A scrub that was asked for.
    pub(super) fn scrub(
        &mut self,
        job: JobId,
        from: ConnectionId,
        index: RegionIndex,
        keep: Option<OwnerTag>,
    ) {
        let allowed = self.fresh(job).and_then(|()| {
            let region = region(&mut self.regions, index)?;
            region.programmable()?;
            region.may_keep(keep)
        });
        let story = match allowed {
            Ok(()) => self.scrub_now(index, keep, &Talk::Scrub(job, from)),
            Err(refusal) => refusal.into(),
        };
        self.end(job, from, index, story);
    }

    /// A scrub that this process owes a region; the owner keeps it.
    pub(super) fn scrub_owed(&mut self, index: RegionIndex) {
        let owner = match region(&mut self.regions, index) {
            Ok(region) => region.state.owner,
            Err(_) => return,
        };
        let story = self.scrub_now(index, owner, &Talk::Alone);
        // Its cost belongs to no job.
        let _syncs = self.bench.ledger.take_syncs();
        tracing::info!(region = index.0, outcome = ?story.outcome, text = %story.text, "scrub");
        self.report(index);
    }

    fn scrub_now(&mut self, index: RegionIndex, owner: Option<OwnerTag>, talk: &Talk) -> Story {
        let region = match region(&mut self.regions, index) {
            Ok(region) => region,
            Err(refusal) => return refusal.into(),
        };
        match scrub::scrub(region, &mut self.bench, owner, talk) {
            Scrubbed::Blank(took) => {
                self.owed.remove(index);
                Story::done(took)
            }
            Scrubbed::Interrupted(failure) => failure.into(),
            Scrubbed::Failed(failure) => {
                self.owed.add(region);
                self.note(&failure);
                let outcome = match failure.outcome {
                    // These say more than "the scrub failed".
                    Outcome::DeviceGone | Outcome::DecoupleFailed | Outcome::Journal => {
                        failure.outcome
                    }
                    _ => Outcome::ScrubFailed,
                };
                Story {
                    outcome,
                    ..failure.into()
                }
            }
        }
    }

    /// A guest's reset of its own function.
    pub(super) fn reset(
        &mut self,
        job: JobId,
        from: ConnectionId,
        index: RegionIndex,
        tag: OwnerTag,
    ) {
        let story = match self.fresh(job).and_then(|()| self.pulse(index, tag)) {
            Ok(Ok(())) => Story::done(Duration::ZERO),
            Ok(Err(failure)) => self.condemned(index, failure),
            Err(refusal) => refusal.into(),
        };
        self.end(job, from, index, story);
    }

    fn pulse(&mut self, index: RegionIndex, tag: OwnerTag) -> Result<Result<(), Failure>, Refusal> {
        let region = region(&mut self.regions, index)?;
        region.programmable()?;
        let active = matches!(region.state.content, Content::Active { .. });
        if !active || region.gate != Gate::Guest {
            let text = format!("region {} has no function in use", region.name);
            return Err(Refusal::new(Outcome::WrongState, text));
        }
        if region.state.owner != Some(tag) {
            let text = format!("region {} is another owner's", region.name);
            return Err(Refusal::new(Outcome::NotScrubbed, text));
        }
        match self.bench.engine.pulse_reset(region.id) {
            Ok(()) => Ok(Ok(())),
            // Nothing was tried: the function runs on.
            Err(error) if matches!(error.cause, EngineCause::NoReset) => {
                Err(Refusal::new(Outcome::NotOffered, error.cause.to_string()))
            }
            Err(error) => Ok(Err(Failure::engine(CardStage::Isolating, &error))),
        }
    }

    /// After a restart: what was committed may be reached again.
    pub(super) fn reopen(
        &mut self,
        job: JobId,
        from: ConnectionId,
        index: RegionIndex,
        tag: OwnerTag,
        digest: Sha256,
    ) {
        let considered = self
            .fresh(job)
            .and_then(|()| reopen::consider(region(&mut self.regions, index)?, tag, digest));
        let story = match considered {
            Err(refusal) => refusal.into(),
            Ok(Reopening::AlreadyOpen) => Story::done(Duration::ZERO),
            Ok(Reopening::Waits(function)) => {
                let opened = region(&mut self.regions, index)
                    .map(|region| reopen::reopen(region, &mut self.bench, function));
                match opened {
                    Ok(Ok(())) => Story::done(Duration::ZERO),
                    Ok(Err(failure)) => self.condemned(index, failure),
                    Err(refusal) => refusal.into(),
                }
            }
        };
        self.end(job, from, index, story);
    }

    /// Takes the region of a failed job out of trust, and owes it a scrub.
    fn condemned(&mut self, index: RegionIndex, failure: Failure) -> Story {
        self.note(&failure);
        if let Ok(region) = region(&mut self.regions, index) {
            let owner = region.state.owner;
            if let Err(failure) = self.bench.condemn(region, owner, 0) {
                tracing::error!(region = %region.name, story = %failure.text, "while condemning");
            }
            self.owed.add(region);
        }
        failure.into()
    }
}

fn region(regions: &mut [Region], index: RegionIndex) -> Result<&mut Region, Refusal> {
    regions
        .iter_mut()
        .find(|region| region.index == index)
        .ok_or_else(|| Refusal::new(Outcome::Refused, "the card has no such region"))
}
