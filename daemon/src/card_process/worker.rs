//! The serial loop that owns the card: one packet, one job, one scrub at a
//! time, for a card has one configuration engine.
//!
//! Knows who asked for what and in which order it is done. Must not know how:
//! that is the pipeline's, the scrub's and the reopening's business.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use card::journal::{OwnerTag, Sha256};

use super::bench::Bench;
use super::inbox::{ConnectionId, Event, GivenUp, Said};
use super::known::Known;
use super::pipeline::{Offered, SecondVerified};
use super::reconcile::reconcile;
use super::region::Region;
use super::scrub::Owed;
use super::trusted::Trusted;
use crate::ipc::{JobId, RegionIndex, ToCard};

/// How often it is looked whether the system wants the card back: it waits for us.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The card is gone: nothing more can be done by this process. The next one opens it anew.
#[derive(Debug, thiserror::Error)]
#[error("the card is gone: {0}")]
pub struct CardGone(pub String);

/// See the module.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) bench: Bench,
    pub(super) regions: Vec<Region>,
    pub(super) trusted: Trusted,
    pub(super) known: Known,
    pub(super) owed: Owed,
    /// Verified, and waiting for `Go`: at most one a region.
    pub(super) offers: Vec<Waiting>,
    /// Jobs that ended lately.
    pub(super) ended: VecDeque<JobId>,
    /// The connection that said `Hello`.
    pub(super) greeted: Option<ConnectionId>,
    pub(super) gone: Option<CardGone>,
}

/// A verified offer.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) region: RegionIndex,
    pub(super) until: Instant,
    pub(super) verified: SecondVerified,
}

impl Worker {
    /// A worker whose regions are reconciled.
    ///
    /// # Errors
    /// The card is gone.
    pub(super) fn start(
        bench: Bench,
        regions: Vec<Region>,
        trusted: Trusted,
        known: Known,
        owed: Owed,
    ) -> Result<Self, CardGone> {
        let mut worker = Self {
            bench,
            regions,
            trusted,
            known,
            owed,
            offers: Vec::new(),
            ended: VecDeque::new(),
            greeted: None,
            gone: None,
        };
        for region in &mut worker.regions {
            reconcile(region, &mut worker.bench, &mut worker.owed)
                .map_err(|failure| CardGone(failure.text))?;
        }
        Ok(worker)
    }

    /// Works until the process is told to stop. Active regions are left as they are.
    ///
    /// # Errors
    /// The card is gone.
    pub(super) fn run(mut self) -> Result<(), CardGone> {
        loop {
            let offers = self.offers.iter().map(|offer| offer.until).min();
            let look = Instant::now().checked_add(LOOK_EVERY);
            let until = offers.into_iter().chain(self.owed.next()).chain(look).min();
            match self.bench.inbox.next(until) {
                Event::Said(said) => self.obey(said),
                Event::Connection => self.drop_offers(|worker, offer| {
                    let from = offer.verified.from();
                    (!worker.bench.inbox.counts(from)).then_some(GivenUp::ConnectionEnded)
                }),
                Event::Reload => self.trusted.read_again(),
                Event::TimeUp => {}
                Event::Stop => break,
            }
            let now = Instant::now();
            self.drop_offers(|_, offer| (offer.until <= now).then_some(GivenUp::Silence));
            if let Some(region) = self.owed.take(now) {
                self.scrub_owed(region);
            }
            if let Some(gone) = self.gone.take() {
                return Err(gone);
            }
            if self.bench.engine.leaving() {
                return Err(CardGone(
                    "the system wants it back, or has lost it".to_owned(),
                ));
            }
        }
        self.drop_offers(|_, _| Some(GivenUp::Stopping));
        Ok(())
    }

    fn obey(&mut self, said: Said) {
        let from = said.from;
        if matches!(said.message, ToCard::Hello) {
            self.greeted = Some(from);
            self.report_all(from);
            return;
        }
        if self.greeted != Some(from) {
            tracing::warn!("IpcViolation: the first packet was no hello");
            self.bench.outlet.close(from);
            return;
        }
        match (said.message, said.beside) {
            (
                ToCard::Offer {
                    job,
                    region,
                    digest,
                    tag,
                    target,
                },
                Some(beside),
            ) => self.offer(
                region,
                Offered {
                    job,
                    from,
                    digest,
                    tag: OwnerTag(tag.0),
                    target,
                    beside,
                },
            ),
            (ToCard::Go { job }, None) => self.go(job, from),
            (ToCard::Commit { job }, None) => self.unheard_of(job, from, "nothing waits for it"),
            (ToCard::Abort { job }, None) => self.abort(job, from),
            (ToCard::Scrub { job, region, keep }, None) => {
                self.scrub(job, from, region, keep.map(|tag| OwnerTag(tag.0)));
            }
            (ToCard::Reset { job, region, tag }, None) => {
                self.reset(job, from, region, OwnerTag(tag.0));
            }
            (
                ToCard::Reopen {
                    job,
                    region,
                    tag,
                    digest,
                },
                None,
            ) => self.reopen(job, from, region, OwnerTag(tag.0), Sha256(digest)),
            // The reader pairs packets and descriptors; nothing else gets here.
            (_, _) => self.bench.outlet.close(from),
        }
    }
}
