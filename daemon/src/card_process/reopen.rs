//! After a restart: a committed region that only the host reaches is given
//! back to its guest, once `reconfd` says that the guest still is who it was,
//! and the region shows what was committed.
//!
//! Knows the journal's COMMIT and the card's word. Must not write to the region.

use card::Identity;
use card::journal::{Content, OwnerTag, Sha256};
use uuid::Uuid;

use super::bench::Bench;
use super::ending::{Failure, Refusal};
use super::pipeline::Committed;
use super::region::{Gate, Region};
use crate::ipc::{CardStage, Outcome};

/// What a reopening has to do.
#[derive(Debug)]
pub(super) enum Reopening {
    /// Nothing: the guest has it.
    AlreadyOpen,
    /// To make sure that this function is in it, and to open it.
    Waits(Uuid),
}

/// Proof that the region shows the function that was committed.
#[derive(Debug)]
pub(super) struct Recognised(());

/// Whether the region is the owner's, with this very content.
///
/// # Errors
/// It is another owner's, or holds something else; nothing was touched.
pub(super) fn consider(
    region: &Region,
    tag: OwnerTag,
    digest: Sha256,
) -> Result<Reopening, Refusal> {
    region.programmable()?;
    if region.state.owner.is_some_and(|owner| owner != tag) {
        let text = format!("region {} is another owner's", region.name);
        return Err(Refusal::new(Outcome::NotScrubbed, text));
    }
    match region.state.content {
        Content::Active {
            digest: held,
            function,
            ..
        } if held == digest && region.state.owner == Some(tag) => Ok(match region.gate {
            Gate::Guest => Reopening::AlreadyOpen,
            Gate::Shut => Reopening::Waits(function),
        }),
        Content::Active { .. }
        | Content::Unknown
        | Content::Blank
        | Content::Writing { .. }
        | Content::Quarantined { .. } => Err(Refusal::new(
            Outcome::WrongState,
            format!("region {} does not hold this image", region.name),
        )),
    }
}

/// Recognises the function in the region, and opens it.
///
/// A power cycle may have emptied the region since, so an engine that cannot tell does not open.
///
/// # Errors
/// The region must be condemned.
pub(super) fn reopen(
    region: &mut Region,
    bench: &mut Bench,
    function: Uuid,
) -> Result<(), Failure> {
    let stage = CardStage::Checking;
    let identity = bench
        .engine
        .identity(region.id)
        .map_err(|error| Failure::engine(stage, &error))?;
    let proof = match identity {
        Identity::Function(found) if found == function => Recognised(()),
        Identity::Function(_) | Identity::EngineStatus | Identity::Unknown => {
            let text = format!("the region does not show {function} any more");
            return Err(Failure::new(Outcome::Identity, stage, text));
        }
    };
    Committed::earlier(&proof).open(region, bench)
}
