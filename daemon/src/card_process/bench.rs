//! What every job of the worker works with: the engine, the ledger, the ears
//! and the mouth.
//!
//! Knows how a region is taken out of trust, which any job may have to do.
//! Must not know the jobs.

use std::sync::Arc;
use std::time::Duration;

use card::Engine;
use card::journal::{Content, Entry, OwnerTag};

use super::ending::Failure;
use super::inbox::Inbox;
use super::ledger::{Ledger, unix_millis};
use super::outlet::Outlet;
use super::region::{Gate, Region};
use super::steps::{Step, Steps};
use crate::ipc::CardStage;

/// See the module.
pub(super) struct Bench {
    /// The card.
    pub engine: Box<dyn Engine>,
    /// The journal.
    pub ledger: Ledger,
    /// What was said to us.
    pub inbox: Arc<Inbox>,
    /// Where we answer.
    pub outlet: Arc<Outlet>,
    /// Who watches.
    pub steps: Box<dyn Steps>,
    /// How long `Commit` may take.
    pub commit_wait: Duration,
}

/// Proof that the journal says quarantined, and that only the host reaches the region: what a
/// scrub begins with.
#[must_use]
#[derive(Debug)]
pub(super) struct Condemned(());

impl Bench {
    /// Takes the region from the guest and into reset, proven by the card.
    ///
    /// # Errors
    /// The guest may still reach it.
    pub(super) fn shut(&mut self, region: &mut Region, stage: CardStage) -> Result<(), Failure> {
        self.engine
            .shut(region.id)
            .map_err(|error| Failure::engine(stage, &error))?;
        region.gate = Gate::Shut;
        Ok(())
    }

    /// Takes the region out of trust: shut, and quarantined in the journal for `owner`.
    ///
    /// Both are tried whatever becomes of the other. A region that this process could not write
    /// down as quarantined is so for itself at least.
    ///
    /// # Errors
    /// What did not work; the region must not be written to then.
    pub(super) fn condemn(
        &mut self,
        region: &mut Region,
        owner: Option<OwnerTag>,
        failures: u8,
    ) -> Result<Condemned, Failure> {
        let shut = self.shut(region, CardStage::Isolating);
        let entry = Entry::Quarantined { owner, failures };
        let already = region.recorded.owner == owner
            && region.recorded.content == Content::Quarantined { failures };
        let written = if already {
            Ok(())
        } else {
            self.ledger.write(region, &entry)
        };
        if let Err(error) = written {
            tracing::error!(region = %region.name, %error, "a quarantine is not in the journal");
            region.state = entry.state(unix_millis());
            shut?;
            return Err(Failure::journal(CardStage::Isolating, &error));
        }
        self.steps.reached(Step::QuarantineDurable);
        shut?;
        Ok(Condemned(()))
    }
}

impl std::fmt::Debug for Bench {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bench").finish_non_exhaustive()
    }
}
