//! At the start: what the journal says was meant, and what the card says is.
//!
//! A region whose guest has it and whose content was committed is read and
//! left alone (INV6). Everything else is shut, and what is out of trust is
//! owed a scrub. Nobody is asked. Must not know connections.

use card::Access;
use card::journal::Content;

use super::bench::Bench;
use super::ending::Failure;
use super::region::{Fit, Gate, Region};
use super::scrub::Owed;
use crate::ipc::CardStage;

/// Brings one region to where its journal and the card agree.
///
/// # Errors
/// The card is gone. What goes wrong with this region alone is said, counted, and no error.
pub(super) fn reconcile(
    region: &mut Region,
    bench: &mut Bench,
    owed: &mut Owed,
) -> Result<(), Failure> {
    if let Fit::Not(why) = &region.fit {
        tracing::error!(
            region = %region.name,
            why,
            "the region is not programmable; the other regions go on",
        );
    }
    let access = bench
        .engine
        .access(region.id)
        .map_err(|error| Failure::engine(CardStage::Isolating, &error));
    region.gate = match access {
        Ok(Access::Host) => Gate::Shut,
        // What cannot be read is taken for open.
        Ok(Access::Guest) | Err(_) => Gate::Guest,
    };
    let access = tolerate(region, access)?;
    // Where the card has no such port there is nothing to shut.
    if access.is_none() && region.programmable().is_err() {
        return Ok(());
    }
    match (region.state.content, access) {
        (Content::Active { .. }, Some(Access::Guest)) => {
            tracing::info!(region = %region.name, "in use, left alone");
        }
        (Content::Unknown, Some(Access::Guest)) => {
            tracing::error!(
                region = %region.name,
                "the journal knows nothing of it and its guest has it: held until it is scrubbed",
            );
        }
        // A power cycle may have released the reset, so it is asserted first.
        (Content::Active { .. }, _) => {
            shut(region, bench)?;
            tracing::info!(region = %region.name, "committed, waits to be reopened");
        }
        (Content::Unknown | Content::Blank, _) => shut(region, bench)?,
        (Content::Writing { .. } | Content::Quarantined { .. }, _) => condemn(region, bench, owed)?,
    }
    Ok(())
}

fn shut(region: &mut Region, bench: &mut Bench) -> Result<(), Failure> {
    let shut = bench.shut(region, CardStage::Isolating);
    tolerate(region, shut).map(|_done| ())
}

fn condemn(region: &mut Region, bench: &mut Bench, owed: &mut Owed) -> Result<(), Failure> {
    let owner = region.state.owner;
    let failures = region.scrub_failures();
    let condemned = bench.condemn(region, owner, failures);
    owed.add(region);
    tolerate(region, condemned).map(|_done| ())
}

/// The failure of one region does not stop the others; a card that is gone stops all.
fn tolerate<T>(region: &Region, result: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match result {
        Ok(done) => Ok(Some(done)),
        Err(failure) if failure.is_card_gone() => Err(failure),
        Err(failure) => {
            tracing::error!(region = %region.name, story = %failure.text, "at the start");
            Ok(None)
        }
    }
}
