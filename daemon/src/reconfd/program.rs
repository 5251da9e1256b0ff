//! The conversation with the card's process that writes a region.
//!
//! Knows packets and the last consent. Must not know registers; what happens
//! there is `reconf-card`'s, which trusts nothing that is said here.

use std::os::fd::AsFd as _;
use std::time::Duration;

use protocol::message::Stage;
use protocol::status::{Detail, Status};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::cards::Conversation;
use super::outcome::Failure;
use super::pipeline::{Common, Programmed, Verified};
use crate::ipc::{CardStage, FromCard, IdentityCheck, JobEnd, Outcome, TargetPath, ToCard};

/// Beyond the load's own deadline: the region is shut, journal records are written.
const MARGIN: Duration = Duration::from_secs(30);

/// Offers the bytes, lets the card's process verify them beside our own verification, says `Go`
/// when ours is done, and `Commit` after the policy and the generation were checked once more.
pub(super) async fn program(common: &Common, verified: Verified) -> Result<Programmed, Failure> {
    let Verified {
        question,
        granted,
        bytes,
        turn,
    } = verified;
    let mut conversation = common.link()?.converse(common.id)?;
    let job = common.id;
    let target = TargetPath::new(granted.path.clone()).map_err(|error| {
        Failure::new(
            Status::Failed,
            Detail::None,
            "target-path",
            error.to_string(),
        )
    })?;
    let offer = ToCard::Offer {
        job,
        region: common.slot.region.region,
        digest: granted.facts.digest,
        tag: common.who.tag,
        target,
    };
    conversation
        .send(&offer, Some(bytes.sealed.memfd().as_fd()))
        .await?;
    let proven = match bytes.proof.await {
        Ok(Ok(proven)) => proven,
        Ok(Err(error)) => {
            give_up(&mut conversation, job).await;
            return Err(error.into());
        }
        Err(error) => {
            give_up(&mut conversation, job).await;
            return Err(Failure::new(
                Status::Failed,
                Detail::None,
                "verify-task",
                error.to_string(),
            ));
        }
    };
    common
        .host
        .sealed
        .keep(&proven, common.slot.region, granted.revision);
    conversation.send(&ToCard::Go { job }, None).await?;

    let rate = common
        .host
        .plan
        .region(common.slot.region)
        .map_or(1, |region| region.rate.max(1));
    let silence = common
        .host
        .limits
        .load_base
        .saturating_add(Duration::from_secs(
            granted.facts.size.checked_div(rate).unwrap_or(0),
        ))
        .saturating_add(MARGIN);
    let identity = loop {
        match conversation.next(silence).await? {
            FromCard::Progress {
                stage, done, total, ..
            } => {
                common.progress(guest_stage(stage), done, total);
            }
            FromCard::Written { identity, .. } => break identity,
            FromCard::Done(end) => return Err(Failure::from(&end)),
            FromCard::Region(_) => {}
        }
    };
    common.stage(Stage::Committing);
    let alive = common
        .host
        .state()
        .registry
        .alive(common.who.vm, &common.who.generation)
        .is_some();
    let consent = if alive {
        common.host.judge.still(&question, &granted)
    } else {
        Err(Failure::new(
            Status::Stale,
            Detail::Withdrawn,
            "vm-gone",
            "the VM's generation ended in the middle",
        ))
    };
    if let Err(mut failure) = consent {
        give_up(&mut conversation, job).await;
        // What was granted is taken back: the guest knows that it had it.
        failure.status = Status::Failed;
        failure.detail = Detail::Withdrawn;
        return Err(failure);
    }
    conversation.send(&ToCard::Commit { job }, None).await?;
    let end = done(&mut conversation, silence).await?;
    drop(turn);
    if end.outcome != Outcome::Done {
        return Err(Failure::from(&end));
    }
    Ok(Programmed {
        function: Some(Uuid::from_u128(granted.facts.function_id.as_u128())),
        story: format!(
            "written and committed; identity {}; device {} us, {} syncs in {} us",
            match identity {
                IdentityCheck::Checked => "checked",
                IdentityCheck::EngineStatus => "by engine status",
                IdentityCheck::None => "not readable",
            },
            end.device_ns / 1000,
            end.syncs,
            end.sync_ns / 1000,
        ),
    })
}

/// Blanks the region and leaves it to its owner.
pub(super) async fn clear(
    common: &Common,
    cancelled: oneshot::Receiver<()>,
) -> Result<(), Failure> {
    common.stage(Stage::Queued);
    let turn = tokio::select! {
        turn = common.link()?.turn(common.slot.region.region) => turn?,
        Ok(()) = cancelled => {
            return Err(Failure::new(Status::Failed, Detail::Cancelled, "cancelled", "cancelled by its owner"));
        }
    };
    common.host.state().cancels.remove(&common.id);
    let mut conversation = common.link()?.converse(common.id)?;
    let owned = common
        .host
        .state()
        .regions
        .get(common.slot.region)
        .and_then(|region| region.report.as_ref()?.tag)
        .is_some();
    let scrub = ToCard::Scrub {
        job: common.id,
        region: common.slot.region.region,
        keep: owned.then_some(common.who.tag),
    };
    common.stage(Stage::Writing);
    conversation.send(&scrub, None).await?;
    let end = loop {
        match conversation.next(Duration::from_secs(120)).await? {
            FromCard::Progress {
                stage, done, total, ..
            } => common.progress(guest_stage(stage), done, total),
            FromCard::Done(end) => break end,
            FromCard::Written { .. } | FromCard::Region(_) => {}
        }
    };
    drop(turn);
    if end.outcome == Outcome::Done {
        Ok(())
    } else {
        Err(Failure::from(&end))
    }
}

async fn done(conversation: &mut Conversation, silence: Duration) -> Result<JobEnd, Failure> {
    loop {
        if let FromCard::Done(end) = conversation.next(silence).await? {
            return Ok(end);
        }
    }
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
