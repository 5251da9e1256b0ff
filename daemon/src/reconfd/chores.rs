//! What the host does of itself: scrubs, consent after a restart, and a guest's
//! reset, which is no job.
//!
//! Knows regions and the card's packets. Must not need fresh metadata, a cache
//! or room for audit: a scrub goes on without all of them. Each is given the
//! region's reservation, and frees the region whatever becomes of it.

use std::sync::Arc;
use std::time::Duration;

use protocol::message::{EventKind, FunctionId};
use protocol::status::{Detail, Status};
use tokio::time::timeout;
use tracing::{info, warn};
use uuid::Uuid;

use super::attend::Reservation;
use super::audit::Record;
use super::cards::CardError;
use super::host::Host;
use super::outcome::Failure;
use super::plan::RegionKey;
use crate::hex;
use crate::ipc::{FromCard, JobId, Outcome, OwnerTag, ToCard};

/// How long the card's process may be silent within a scrub: its own deadlines are shorter.
pub(super) const SCRUB_SILENCE: Duration = Duration::from_secs(120);
/// The same for a consent or a reset.
const SHORT_SILENCE: Duration = Duration::from_secs(30);
/// A reset is answered within a few seconds: it does not wait longer than this for its turn.
const RESET_TURN: Duration = Duration::from_secs(3);
/// Nothing waits for ever, for its turn or for an end, although everyone before it and each word
/// between has a deadline of its own.
pub(super) const LONGEST: Duration = Duration::from_secs(3600);

/// A fresh number for a job between our processes.
#[must_use]
pub fn new_job() -> JobId {
    JobId(Uuid::new_v4().into_bytes())
}

/// Scrubs a region; its owner keeps it where `keep` names it, else the ownership ends.
///
/// # Errors
/// The story, told and written.
pub(super) async fn scrub(
    reservation: Reservation,
    why: &str,
    keep: Option<OwnerTag>,
) -> Result<(), Failure> {
    let key = reservation.key();
    let host = Arc::clone(reservation.host());
    let region = host.plan.label(key);
    info!(region, why, "scrubbing");
    let job = new_job();
    let packet = ToCard::Scrub {
        job,
        region: key.region,
        keep,
    };
    let chore = Chore {
        job,
        packet,
        turn: LONGEST,
        silence: SCRUB_SILENCE,
    };
    let result = chore.run(&host, key, || Ok(())).await;
    let record = Record {
        event: "scrub",
        region: Some(region.clone()),
        job: Some(job.to_hex()),
        ..ended(&result, Some(why))
    };
    if finish(&host, key, &result, &record)
        && let Err(failure) = &result
    {
        warn!(region, failure.reason, "a scrub failed");
    }
    result
}

/// Consents again to what was committed before a restart.
pub(super) async fn reopen(reservation: Reservation, tag: OwnerTag, digest: [u8; 32]) {
    let key = reservation.key();
    let host = Arc::clone(reservation.host());
    let job = new_job();
    let packet = ToCard::Reopen {
        job,
        region: key.region,
        tag,
        digest,
    };
    let chore = Chore {
        job,
        packet,
        turn: LONGEST,
        silence: SHORT_SILENCE,
    };
    // The owner may have gone while others had their turn (INV1).
    let result = chore.run(&host, key, || still_holds(&host, key, tag)).await;
    let record = Record {
        event: "reopen",
        region: Some(host.plan.label(key)),
        digest: Some(hex::encode(&digest)),
        job: Some(job.to_hex()),
        ..ended(&result, None)
    };
    let news = finish(&host, key, &result, &record);
    match result {
        Ok(()) => announce(&host, key),
        Err(failure) if news => warn!(
            region = host.plan.label(key),
            failure.reason, "a region could not be opened again"
        ),
        Err(_told_before) => {}
    }
}

/// Resets the function of an active region.
///
/// # Errors
/// The story.
pub(super) async fn reset(reservation: Reservation, tag: OwnerTag) -> Result<(), Failure> {
    let key = reservation.key();
    let host = Arc::clone(reservation.host());
    let job = new_job();
    let packet = ToCard::Reset {
        job,
        region: key.region,
        tag,
    };
    let chore = Chore {
        job,
        packet,
        turn: RESET_TURN,
        silence: SHORT_SILENCE,
    };
    chore.run(&host, key, || still_holds(&host, key, tag)).await
}

/// One packet of the host's own, in a turn of its own.
struct Chore {
    job: JobId,
    packet: ToCard,
    /// How long it waits for its turn.
    turn: Duration,
    /// How long the card's process may say nothing.
    silence: Duration,
}

impl Chore {
    /// Waits for the turn, asks `still` once more, sends the packet, and waits for its end.
    async fn run(
        self,
        host: &Host,
        key: RegionKey,
        still: impl FnOnce() -> Result<(), Failure> + Send,
    ) -> Result<(), Failure> {
        let Some(link) = host.cards.get(key.card) else {
            return Err(Failure::new(
                Status::Unavailable,
                Detail::None,
                "no-such-card",
                "no such card",
            ));
        };
        let _turn = timeout(self.turn, link.turn(key.region))
            .await
            .map_err(|_elapsed| {
                Failure::new(
                    Status::Busy,
                    Detail::None,
                    "card-busy",
                    format!("the card had other work for {:?}", self.turn),
                )
            })??;
        still()?;
        let mut conversation = link.converse(self.job)?;
        conversation.send(&self.packet, None).await?;
        let end = async {
            loop {
                if let FromCard::Done(end) = conversation.next(self.silence).await? {
                    return Ok::<_, CardError>(end);
                }
            }
        };
        // Who speaks for ever must end as well.
        let end = timeout(LONGEST, end)
            .await
            .map_err(|_elapsed| CardError::Silent(LONGEST))??;
        if end.outcome == Outcome::Done {
            Ok(())
        } else {
            Err(Failure::from(&end))
        }
    }
}

/// Whether the VM with this tag still holds the region.
fn still_holds(host: &Host, key: RegionKey, tag: OwnerTag) -> Result<(), Failure> {
    let holds = host
        .state()
        .registry
        .holders(&host.plan, key)
        .any(|vm| vm.tag() == tag);
    if holds {
        Ok(())
    } else {
        Err(Failure::new(
            Status::Stale,
            Detail::Withdrawn,
            "vm-gone",
            "the VM's generation ended meanwhile",
        ))
    }
}

/// How a deed of the host ended, for the audit.
fn ended(result: &Result<(), Failure>, why: Option<&str>) -> Record {
    let failure = result.as_ref().err();
    Record {
        outcome: Some(failure.map_or_else(|| "done".to_owned(), |failure| failure.outcome.clone())),
        reason: failure
            .map(|failure| failure.reason.clone())
            .or_else(|| why.map(str::to_owned)),
        words: failure.and_then(|failure| failure.words).map(words),
        ..Record::default()
    }
}

/// Remembers a failure, so that it is not repeated at once, and writes down what is news.
fn finish(host: &Host, key: RegionKey, result: &Result<(), Failure>, record: &Record) -> bool {
    let now = host.uptime();
    let story = result.as_ref().err().map(|failure| failure.reason.as_str());
    let news = host.state().regions.duty_ended(key, story, now);
    if news {
        host.note(record);
    }
    news
}

/// Tells the owner of a region that its function is there.
pub(super) fn announce(host: &Host, key: RegionKey) {
    let told = {
        let state = host.state();
        let report = state
            .regions
            .get(key)
            .and_then(|region| region.report.clone());
        report.and_then(|report| {
            let vm = state
                .registry
                .holders(&host.plan, key)
                .find(|vm| report.tag == Some(vm.tag()))?
                .vm;
            let slot = state
                .live
                .get(&vm)?
                .slots
                .iter()
                .find(|slot| slot.region == key)?;
            let function_id = FunctionId(report.function?);
            Some((
                vm,
                slot.slot,
                EventKind::Loaded {
                    function_id,
                    guest_pci: slot.guest_pci.clone(),
                },
            ))
        })
    };
    if let Some((vm, slot, what)) = told {
        host.tell(vm, slot, what);
    }
}

/// The card's words, as the audit shows them.
#[must_use]
pub fn words(words: crate::ipc::HardwareWords) -> [String; 3] {
    [
        format!("{:#x}", words.control),
        format!("{:#x}", words.status),
        format!("{:#x}", words.error),
    ]
}
