//! One load, from the offer to the guest's access. Read it from top to bottom:
//!
//! ```text
//! Offered -> SecondVerified -> Intended -> Written -> Consented -> Committed -> opened
//! ```
//!
//! Each step consumes the value of the step before, and only that step makes it, so that leaving
//! one out does not compile. Up to [`SecondVerified::intend`] an error is a [`Refusal`]: nothing
//! was touched. From there on it is a [`Failure`], and the caller must condemn the region.
//!
//! Knows the order. Must not know registers, signatures or sockets.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use card::Identity;
use card::journal::{Entry, Job, OwnerTag, Sha256};
use uuid::Uuid;

use super::bench::Bench;
use super::ending::{Failure, Refusal};
use super::fitted::Fitted;
use super::inbox::{ConnectionId, GivenUp, Heard};
use super::known::Known;
use super::region::{Gate, Region};
use super::steps::Step;
use super::trusted::Trusted;
use super::write::{self, Talk};
use crate::ipc::{CardStage, DigestBytes, FromCard, IdentityCheck, JobId, Outcome, TargetPath};

/// A load as it was offered; nothing of it is believed.
#[derive(Debug)]
pub(super) struct Offered {
    /// The job.
    pub job: JobId,
    /// Who offered it.
    pub from: ConnectionId,
    /// What the bytes should hash to.
    pub digest: DigestBytes,
    /// Who will own the region.
    pub tag: OwnerTag,
    /// Which signed target it should be.
    pub target: TargetPath,
    /// The bytes, or whatever it is.
    pub beside: OwnedFd,
}

impl Offered {
    /// The second verification: sealed bytes, their size and digest, the signed metadata as this
    /// process reads it, the container against both, and all of it against the region: where its
    /// shell file says so, frame by frame.
    ///
    /// # Errors
    /// What does not hold.
    pub(super) fn verify(
        self,
        region: &Region,
        trusted: &mut Trusted,
        known: &mut Known,
    ) -> Result<SecondVerified, Refusal> {
        region.loadable()?;
        let refuse = |text: String| Refusal::new(Outcome::Refused, text);
        let image = known
            .adopt(self.beside, self.digest, region.facts.bitstream_max)
            .map_err(|error| refuse(error.to_string()))?;
        let signed = trusted.check(region, &self.target, self.digest)?;
        if image.size() != signed.size {
            let (size, want) = (image.size(), signed.size);
            return Err(refuse(format!("{size} bytes, and {want} are signed")));
        }
        if image.format() != signed.format {
            let (have, want) = (image.format().name(), signed.format.name());
            return Err(refuse(format!(
                "the container is {have}, and {want} is signed"
            )));
        }
        image
            .check_interface(region.facts.interface_id.0)
            .and_then(|()| image.check_function(signed.function_id))
            .map_err(|mismatch| refuse(mismatch.to_string()))?;
        let fitted = known
            .fit(&image, region.index, &region.demand)
            .map_err(|unfit| Refusal::unfit(&unfit))?;
        Ok(SecondVerified {
            job: self.job,
            from: self.from,
            tag: self.tag,
            target: self.target,
            function_id: signed.function_id,
            fitted,
        })
    }
}

/// What was offered is signed, whole, and fits the region: [`Fitted`] is the proof of the last,
/// and there is no way to the card without it. The card was not touched.
#[derive(Debug)]
pub(super) struct SecondVerified {
    job: JobId,
    from: ConnectionId,
    tag: OwnerTag,
    target: TargetPath,
    function_id: Uuid,
    fitted: Arc<Fitted>,
}

impl SecondVerified {
    /// The job.
    pub(super) fn job(&self) -> JobId {
        self.job
    }

    /// Who offered it.
    pub(super) fn from(&self) -> ConnectionId {
        self.from
    }

    fn digest(&self) -> DigestBytes {
        self.fitted.image().digest()
    }

    /// Writes INTENT, if the region may be given to this owner now, and the verdict still holds
    /// (it may be half a minute old).
    ///
    /// # Errors
    /// The owner rule, the verdict of now, or the journal; nothing was touched.
    pub(super) fn intend(
        self,
        region: &mut Region,
        trusted: &mut Trusted,
        bench: &mut Bench,
    ) -> Result<Intended, Refusal> {
        region.loadable()?;
        region.may_load(self.tag)?;
        trusted.check(region, &self.target, self.digest())?;
        let entry = Entry::Intent {
            owner: Some(self.tag),
            job: Job(self.job.0),
            digest: Sha256(self.digest()),
        };
        bench
            .ledger
            .write(region, &entry)
            .map_err(|error| Refusal::new(Outcome::Journal, format!("journal: {error}")))?;
        bench.steps.reached(Step::IntentDurable);
        Ok(Intended { verified: self })
    }
}

/// INTENT is durable: from here on whatever goes wrong ends in a quarantine.
#[derive(Debug)]
#[must_use = "a region with an INTENT must be written or condemned"]
pub(super) struct Intended {
    verified: SecondVerified,
}

impl Intended {
    /// Shuts the region, writes the payload, asks the card for its verdict, and the region for
    /// what it is now.
    ///
    /// # Errors
    /// The region must be condemned.
    pub(super) fn write(self, region: &mut Region, bench: &mut Bench) -> Result<Written, Failure> {
        let SecondVerified {
            job,
            from,
            ref fitted,
            function_id,
            ..
        } = self.verified;
        let talk = Talk::Load(job, from);
        write::shut(region, bench, &talk)?;
        let took = write::payload(region, bench, fitted, &talk)?;
        let identity = write::identity(region, bench, Some(function_id))?;
        Ok(Written {
            intended: self,
            identity,
            took,
        })
    }
}

/// The card took the payload, and the region shows the signed function, as far as can be told.
#[derive(Debug)]
#[must_use = "a region that was written must be committed or condemned"]
pub(super) struct Written {
    intended: Intended,
    identity: Identity,
    took: Duration,
}

impl Written {
    /// From the first data store to the card's verdict.
    pub(super) fn took(&self) -> Duration {
        self.took
    }

    /// Tells `reconfd`, and waits for its consent.
    ///
    /// # Errors
    /// No consent: the region must be condemned.
    pub(super) fn ask(self, bench: &Bench) -> Result<Consented, Failure> {
        let SecondVerified { job, from, .. } = self.intended.verified;
        // What came before "written" was given without knowledge: no consent.
        if bench.inbox.take_early_consent(job) {
            let text = "a consent came before the card's word";
            return Err(Failure::new(
                Outcome::Violation,
                CardStage::Committing,
                text,
            ));
        }
        let identity = match self.identity {
            Identity::Function(_) => IdentityCheck::Checked,
            Identity::EngineStatus => IdentityCheck::EngineStatus,
            Identity::Unknown => IdentityCheck::None,
        };
        bench.outlet.say(from, &FromCard::Written { job, identity });
        bench.steps.reached(Step::WrittenTold);
        let until = Instant::now()
            .checked_add(bench.commit_wait)
            .unwrap_or_else(Instant::now);
        match bench.inbox.consent(job, from, until) {
            Heard::Commit => {
                bench.steps.reached(Step::Consented);
                Ok(Consented { written: self })
            }
            Heard::Ended(why) => Err(Failure::given_up(CardStage::Committing, why)),
        }
    }
}

/// `reconfd` checked policy and generation once more, and consents.
#[derive(Debug)]
#[must_use = "a region that was written must be committed or condemned"]
pub(super) struct Consented {
    written: Written,
}

impl Consented {
    /// Writes COMMIT, if the verdict still holds.
    ///
    /// # Errors
    /// The region must be condemned.
    pub(super) fn commit(
        self,
        region: &mut Region,
        trusted: &mut Trusted,
        bench: &mut Bench,
    ) -> Result<Committed, Failure> {
        let verified = self.written.intended.verified;
        let stage = CardStage::Committing;
        let digest = verified.digest();
        trusted
            .check(region, &verified.target, digest)
            .map_err(|refusal| Failure::new(refusal.outcome, stage, refusal.text))?;
        if bench.inbox.stopping() {
            return Err(Failure::given_up(stage, GivenUp::Stopping));
        }
        let entry = Entry::Commit {
            owner: Some(verified.tag),
            job: Job(verified.job.0),
            digest: Sha256(digest),
            function: verified.function_id,
        };
        bench
            .ledger
            .write(region, &entry)
            .map_err(|error| Failure::journal(stage, &error))?;
        bench.steps.reached(Step::CommitDurable);
        Ok(Committed(()))
    }
}

/// COMMIT is durable: the guest may have the region (INV1). A reopening after a restart makes one
/// too, out of the COMMIT that the journal holds.
#[derive(Debug)]
#[must_use = "a committed region is to be opened"]
pub(super) struct Committed(());

impl Committed {
    /// The COMMIT of an earlier run of this process, for a region that was just shown to hold
    /// what was committed.
    pub(super) fn earlier(_proof: &super::reopen::Recognised) -> Self {
        Self(())
    }

    /// Gives the region to the guest: the very last store.
    ///
    /// # Errors
    /// The region must be condemned.
    pub(super) fn open(self, region: &mut Region, bench: &mut Bench) -> Result<(), Failure> {
        let Self(()) = self;
        bench
            .engine
            .open(region.id)
            .map_err(|error| Failure::engine(CardStage::Committing, &error))?;
        region.gate = Gate::Guest;
        bench.steps.reached(Step::Opened);
        Ok(())
    }
}
