//! The conversation with the card's process that writes a region.
//!
//! Knows packets and the last consent. Must not know registers; what happens
//! there is `reconf-card`'s, which trusts nothing that is said here.

use std::os::fd::AsFd as _;
use std::time::Duration;

use protocol::message::Stage;
use protocol::status::{Detail, Status};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::cards::{CardError, Conversation};
use super::chores::{LONGEST, SCRUB_SILENCE};
use super::errand::Errand;
use super::judge::{Granted, Question};
use super::outcome::Failure;
use super::pipeline::{Programmed, Sealing, Verified, asked_to_cancel, cancelled_by_owner};
use crate::ipc::{CardStage, FromCard, IdentityCheck, JobEnd, Outcome, TargetPath, ToCard};

/// Beyond the load's own deadline: the region is shut, journal records are written.
const MARGIN: Duration = Duration::from_secs(30);

/// Offers the bytes, lets the card's process verify them beside our own verification, says `Go`
/// when ours is done, and `Commit` after the policy and the generation were checked once more.
pub(super) async fn program(errand: &Errand, verified: Verified) -> Result<Programmed, Failure> {
    let Verified {
        question,
        granted,
        bytes,
        turn,
    } = verified;
    let mut conversation = errand.link()?.converse(errand.id)?;
    offer(errand, &conversation, &granted, &bytes).await?;
    prove(errand, &mut conversation, bytes, &granted).await?;
    conversation
        .send(&ToCard::Go { job: errand.id }, None)
        .await?;
    let silence = silence(errand, granted.facts.size);
    let identity = match in_all(written(errand, &mut conversation, silence)).await {
        Ok(identity) => identity,
        Err(failure) => {
            // Whoever still works on it need not go on: nobody will consent.
            let abort = ToCard::Abort { job: errand.id };
            let _gone_or_told = conversation.send(&abort, None).await;
            return Err(failure);
        }
    };
    errand.stage(Stage::Committing);
    if let Err(failure) = consent(errand, &question, &granted) {
        give_up(&mut conversation, errand.id).await;
        return Err(failure);
    }
    conversation
        .send(&ToCard::Commit { job: errand.id }, None)
        .await?;
    let end = done(&mut conversation, silence).await?;
    drop(turn);
    if end.outcome != Outcome::Done {
        return Err(Failure::from(&end));
    }
    Ok(Programmed {
        function: granted.facts.function_id,
        story: story(identity, &end),
    })
}

async fn offer(
    errand: &Errand,
    conversation: &Conversation,
    granted: &Granted,
    bytes: &Sealing,
) -> Result<(), Failure> {
    let target = TargetPath::new(granted.path.clone()).map_err(|error| {
        Failure::new(
            Status::Failed,
            Detail::None,
            "target-path",
            error.to_string(),
        )
    })?;
    let offer = ToCard::Offer {
        job: errand.id,
        region: errand.slot.region.region,
        digest: granted.facts.digest,
        tag: errand.who.tag,
        target,
    };
    Ok(conversation
        .send(&offer, Some(bytes.sealed.memfd().as_fd()))
        .await?)
}

/// Waits for our own verification; where it fails, the card's process hears of it at once.
async fn prove(
    errand: &Errand,
    conversation: &mut Conversation,
    bytes: Sealing,
    granted: &Granted,
) -> Result<(), Failure> {
    let failure = match bytes.proof.await {
        Ok(Ok(proven)) => {
            errand
                .host
                .sealed
                .keep(&proven, errand.slot.region, granted.revision);
            return Ok(());
        }
        Ok(Err(error)) => error.into(),
        Err(error) => Failure::new(
            Status::Failed,
            Detail::None,
            "verify-task",
            error.to_string(),
        ),
    };
    give_up(conversation, errand.id).await;
    Err(failure)
}

/// How long the card's process may say nothing: the load's own deadline and a margin.
fn silence(errand: &Errand, size: u64) -> Duration {
    let rate = errand
        .host
        .plan
        .region(errand.slot.region)
        .map_or(1, |region| region.rate.max(1));
    let writing = Duration::from_secs(size.checked_div(rate).unwrap_or(0));
    errand
        .host
        .limits
        .load_base
        .saturating_add(writing)
        .saturating_add(MARGIN)
}

/// Follows the writing until the card's process waits for the last consent.
async fn written(
    errand: &Errand,
    conversation: &mut Conversation,
    silence: Duration,
) -> Result<IdentityCheck, Failure> {
    loop {
        match conversation.next(silence).await? {
            FromCard::Progress {
                stage, done, total, ..
            } => {
                errand.progress(guest_stage(stage), done, total);
            }
            FromCard::Written { identity, .. } => return Ok(identity),
            FromCard::Done(end) => return Err(Failure::from(&end)),
            FromCard::Region(_) => {}
        }
    }
}

/// Each word has its deadline; but who speaks for ever must end as well.
async fn in_all<T, E>(wait: impl Future<Output = Result<T, E>>) -> Result<T, Failure>
where
    Failure: From<E>,
{
    timeout(LONGEST, wait)
        .await
        .map_err(|_elapsed| CardError::Silent(LONGEST))?
        .map_err(Failure::from)
}

/// The last look: is the generation alive, and is what was granted still granted?
fn consent(errand: &Errand, question: &Question, granted: &Granted) -> Result<(), Failure> {
    let alive = errand
        .host
        .state()
        .registry
        .alive(errand.who.vm, &errand.who.generation)
        .is_some();
    let looked = if alive {
        errand.host.judge.still(question, granted)
    } else {
        Err(Failure::new(
            Status::Stale,
            Detail::Withdrawn,
            "vm-gone",
            "the VM's generation ended in the middle",
        ))
    };
    // What was granted is taken back: the guest knows that it had it.
    looked.map_err(|failure| Failure {
        status: Status::Failed,
        detail: Detail::Withdrawn,
        ..failure
    })
}

fn story(identity: IdentityCheck, end: &JobEnd) -> String {
    let identity = match identity {
        IdentityCheck::Checked => "checked",
        IdentityCheck::EngineStatus => "by engine status",
        IdentityCheck::None => "not readable",
    };
    format!(
        "written and committed; identity {identity}; device {} us, {} syncs in {} us",
        end.device_ns / 1000,
        end.syncs,
        end.sync_ns / 1000,
    )
}

/// Blanks the region and leaves it to its owner.
pub(super) async fn clear(
    errand: &Errand,
    cancelled: oneshot::Receiver<()>,
) -> Result<(), Failure> {
    errand.stage(Stage::Queued);
    let turn = tokio::select! {
        turn = errand.link()?.turn(errand.slot.region.region) => turn?,
        () = asked_to_cancel(cancelled) => return Err(cancelled_by_owner()),
    };
    if !errand.past_cancel() {
        return Err(cancelled_by_owner());
    }
    let mut conversation = errand.link()?.converse(errand.id)?;
    let owned = errand
        .host
        .state()
        .regions
        .get(errand.slot.region)
        .and_then(|region| region.report.as_ref()?.tag)
        .is_some();
    let scrub = ToCard::Scrub {
        job: errand.id,
        region: errand.slot.region.region,
        keep: owned.then_some(errand.who.tag),
    };
    errand.stage(Stage::Writing);
    conversation.send(&scrub, None).await?;
    let ended = async {
        loop {
            match conversation.next(SCRUB_SILENCE).await? {
                FromCard::Progress {
                    stage, done, total, ..
                } => errand.progress(guest_stage(stage), done, total),
                FromCard::Done(end) => return Ok::<_, CardError>(end),
                FromCard::Written { .. } | FromCard::Region(_) => {}
            }
        }
    };
    let end = in_all(ended).await?;
    drop(turn);
    if end.outcome == Outcome::Done {
        Ok(())
    } else {
        Err(Failure::from(&end))
    }
}

async fn done(conversation: &mut Conversation, silence: Duration) -> Result<JobEnd, Failure> {
    in_all(async {
        loop {
            if let FromCard::Done(end) = conversation.next(silence).await? {
                return Ok::<_, CardError>(end);
            }
        }
    })
    .await
}

/// Aborts, and waits until the card's process has made the region safe or is gone.
async fn give_up(conversation: &mut Conversation, job: crate::ipc::JobId) {
    if conversation
        .send(&ToCard::Abort { job }, None)
        .await
        .is_ok()
    {
        let _whatever_it_says = done(conversation, MARGIN).await;
    }
}

fn guest_stage(stage: CardStage) -> Stage {
    match stage {
        CardStage::Verifying => Stage::Verifying,
        CardStage::Isolating => Stage::Isolating,
        CardStage::Writing => Stage::Writing,
        CardStage::Checking => Stage::Checking,
        CardStage::Committing => Stage::Committing,
    }
}
