//! What the host does of itself: scrubs, consent after a restart, and jobs that
//! a restart left open.
//!
//! Knows regions and the card's packets. Must not need fresh metadata, a cache
//! or room for audit: a scrub goes on without all of them.

use std::sync::Arc;
use std::time::Duration;

use protocol::message::{EventKind, FunctionId};
use protocol::status::{Detail, Status};
use tokio::sync::oneshot;
use tracing::{info, warn};
use uuid::Uuid;

use super::audit::Record;
use super::host::Host;
use super::outcome::Failure;
use super::plan::RegionKey;
use super::regions::NotNow;
use crate::hex;
use crate::ipc::{FromCard, JobId, Outcome, OwnerTag, ToCard};

/// How long the card's process may be silent within a scrub: its own deadlines are shorter.
const SCRUB_SILENCE: Duration = Duration::from_secs(120);
/// The same for a consent.
const REOPEN_SILENCE: Duration = Duration::from_secs(30);

/// A fresh number for a job between our processes.
#[must_use]
pub fn new_job() -> JobId {
    JobId(Uuid::new_v4().into_bytes())
}

/// Scrubs a region in the background and ends its ownership. For an operator's request `told`
/// gets the end.
pub fn scrub(
    host: Arc<Host>,
    key: RegionKey,
    why: String,
    told: Option<oneshot::Sender<Result<(), Failure>>>,
) {
    tokio::spawn(async move {
        let result = scrub_now(&host, key, &why, None).await;
        if let Some(told) = told {
            let _nobody_waits = told.send(result);
        }
    });
}

/// Scrubs a region; its owner keeps it where `keep` names it.
///
/// # Errors
/// The story, told and written.
pub async fn scrub_now(
    host: &Arc<Host>,
    key: RegionKey,
    why: &str,
    keep: Option<OwnerTag>,
) -> Result<(), Failure> {
    let label = host.plan.label(key);
    host.state()
        .regions
        .reserve_for_host(key, why)
        .map_err(|not_now| match not_now {
            NotNow::Busy(by) => Failure::new(
                Status::Busy,
                Detail::None,
                "busy",
                format!("{label} is reserved: {}", by.what),
            ),
            NotNow::Recovering | NotNow::Unavailable(_) => Failure::new(
                Status::Unavailable,
                Detail::None,
                "no-such-region",
                label.clone(),
            ),
        })?;
    info!(region = label, why, "scrubbing");
    let job = new_job();
    let result = converse(
        host,
        key,
        job,
        ToCard::Scrub {
            job,
            region: key.region,
            keep,
        },
        SCRUB_SILENCE,
    )
    .await;
    host.state().regions.release(key);
    host.note(&Record {
        event: "scrub",
        region: Some(label.clone()),
        job: Some(job.to_hex()),
        outcome: Some(
            result
                .as_ref()
                .err()
                .map_or_else(|| "done".to_owned(), |failure| failure.outcome.clone()),
        ),
        reason: Some(
            result
                .as_ref()
                .err()
                .map_or_else(|| why.to_owned(), |failure| failure.reason.clone()),
        ),
        words: result
            .as_ref()
            .err()
            .and_then(|failure| failure.words)
            .map(words),
        ..Record::default()
    });
    if let Err(failure) = &result {
        warn!(region = label, failure.reason, "a scrub failed");
    }
    host.attend(key);
    result
}

/// Consents again to what was committed before a restart.
pub fn reopen(host: Arc<Host>, key: RegionKey, tag: OwnerTag, digest: [u8; 32]) {
    tokio::spawn(async move {
        if host
            .state()
            .regions
            .reserve_for_host(key, "consent after a restart")
            .is_err()
        {
            return;
        }
        let job = new_job();
        let message = ToCard::Reopen {
            job,
            region: key.region,
            tag,
            digest,
        };
        let result = converse(&host, key, job, message, REOPEN_SILENCE).await;
        host.state().regions.release(key);
        host.note(&Record {
            event: "reopen",
            region: Some(host.plan.label(key)),
            digest: Some(hex::encode(&digest)),
            job: Some(job.to_hex()),
            outcome: Some(
                result
                    .as_ref()
                    .err()
                    .map_or_else(|| "done".to_owned(), |failure| failure.outcome.clone()),
            ),
            reason: result.as_ref().err().map(|failure| failure.reason.clone()),
            ..Record::default()
        });
        match result {
            Ok(()) => announce(&host, key),
            Err(failure) => warn!(
                region = host.plan.label(key),
                failure.reason, "a region could not be opened again"
            ),
        }
        // After a failure the card's report leads on; a blind repeat would not help.
    });
}

/// Tells the owner of a region that its function is there.
pub fn announce(host: &Host, key: RegionKey) {
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

/// Sends one packet in a turn of its own and waits for the end of that job.
async fn converse(
    host: &Arc<Host>,
    key: RegionKey,
    job: JobId,
    message: ToCard,
    silence: Duration,
) -> Result<(), Failure> {
    let Some(link) = host.cards.get(key.card) else {
        return Err(Failure::new(
            Status::Unavailable,
            Detail::None,
            "no-such-card",
            "no such card",
        ));
    };
    let _turn = link.turn(key.region).await?;
    let mut conversation = link.converse(job)?;
    conversation.send(&message, None).await?;
    loop {
        if let FromCard::Done(end) = conversation.next(silence).await? {
            return if end.outcome == Outcome::Done {
                Ok(())
            } else {
                Err(Failure::from(&end))
            };
        }
    }
}

/// Resets the function of an active region.
///
/// # Errors
/// The story.
pub async fn reset(host: &Arc<Host>, key: RegionKey, tag: OwnerTag) -> Result<(), Failure> {
    let job = new_job();
    converse(
        host,
        key,
        job,
        ToCard::Reset {
            job,
            region: key.region,
            tag,
        },
        REOPEN_SILENCE,
    )
    .await
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
