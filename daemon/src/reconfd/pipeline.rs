//! One request, one way:
//!
//! ```text
//! channel -> frame -> session -> queue -> authorize -> verify -> program -> audit -> reply
//! ```
//!
//! Each step consumes the value of the step before and makes a new type, so
//! that leaving one out does not compile: [`Received`], [`Authorized`],
//! [`Accepted`], [`Verified`], [`Programmed`]. The session's inbox is the
//! queue of the line above; between `verify` and `program` lies the card's.
//!
//! Knows the order. Must not know frames, the policy's rules, or registers.

use std::sync::Arc;

use protocol::message::{Digest, FunctionId, ImageRef, JobInfo, JobKey, Stage};
use protocol::status::{Detail, Status};
use tokio::sync::oneshot;
use tracing::warn;
use uuid::Uuid;

use super::attend::Reservation;
use super::audit::{Record, SyncCost};
use super::authorize::{self, Again};
use super::cards::Turn;
use super::chores::new_job;
use super::errand::Errand;
use super::host::Host;
use super::identity::Generation;
use super::jobs::{JobRecord, NoRoom};
use super::judge::{Granted, Question};
use super::outcome::{Failure, success};
use super::plan::RegionKey;
use super::program;
use super::records::{Denied, audit_record, job_record};
use super::regions::{LoadedImage, Reserved};
use super::registry::SlotPlan;
use super::seal::{BytesError, Sealed, VerifiedBytes};
use super::sealing::Loading;
use crate::ipc::OwnerTag;

/// Who asks: what the channel is bound to, never what a message says.
#[derive(Debug, Clone)]
pub struct Who {
    /// The VM.
    pub vm: Uuid,
    /// This start of it.
    pub generation: Generation,
    /// Who owns it.
    pub tenant: String,
    /// How the card's process knows it.
    pub tag: OwnerTag,
}

/// A request that was read and belongs to a slot of the VM.
#[derive(Debug)]
pub struct Received {
    /// The host.
    pub host: Arc<Host>,
    /// Who asks.
    pub who: Who,
    /// Where.
    pub slot: SlotPlan,
    /// Every region that the VM has.
    pub slots: Vec<RegionKey>,
    /// The job's key.
    pub key: JobKey,
    /// SHA-256 of the request but its key.
    pub body: Digest,
    /// What to do.
    pub what: What,
}

/// What a job does.
#[derive(Debug, Clone)]
pub enum What {
    /// Load an image.
    Load(ImageRef, Again),
    /// Empty the slot.
    Clear,
}

/// What is to be done, once it is allowed.
#[derive(Debug)]
pub(super) enum Work {
    /// Write an image.
    Load(Question, Box<Granted>),
    /// It is active already.
    Unchanged(Box<Granted>),
    /// Blank the region.
    Clear,
}

/// What is to be done, begun: bytes are on their way while the job is made durable.
#[derive(Debug)]
enum Task {
    /// Write an image.
    Load(Box<Loading>),
    /// It is active already.
    Unchanged,
    /// Blank the region.
    Clear,
}

impl Task {
    fn begin(host: &Host, region: RegionKey, work: Work) -> Self {
        match work {
            Work::Load(question, granted) => {
                Self::Load(Box::new(Loading::begin(host, region, question, granted)))
            }
            Work::Unchanged(_granted) => Self::Unchanged,
            Work::Clear => Self::Clear,
        }
    }

    /// Waits until nothing of it is under way.
    async fn abandon(self) {
        if let Self::Load(loading) = self {
            loading.abandon().await;
        }
    }
}

/// Allowed under a pinned snapshot of the policy, and the region is reserved.
#[derive(Debug)]
pub struct Authorized {
    received: Received,
    work: Work,
    reservation: Reservation,
}

/// The job is durable and its intent is in the audit: it will be carried out.
#[derive(Debug)]
pub struct Accepted {
    errand: Errand,
    task: Task,
    reservation: Reservation,
    cancelled: oneshot::Receiver<()>,
}

/// The sealed bytes are the signed ones, and it is this job's turn at the card. Not yet written.
#[derive(Debug)]
pub struct Verified {
    pub(super) question: Question,
    pub(super) granted: Box<Granted>,
    pub(super) bytes: Sealing,
    pub(super) turn: Turn,
}

/// Bytes whose verification runs beside the card's own; it is awaited before `Go`.
#[derive(Debug)]
pub(super) struct Sealing {
    pub(super) sealed: Sealed,
    pub(super) proof: tokio::task::JoinHandle<Result<VerifiedBytes, BytesError>>,
}

/// Written, identified, consented to, committed: the guest reaches its function.
#[derive(Debug)]
pub struct Programmed {
    pub(super) function: Uuid,
    pub(super) story: String,
}

/// Carries a request to the point where it is answered; the rest goes on in the background.
///
/// # Errors
/// The answer to give instead; the audit has the reason.
pub async fn start(received: Received) -> Result<JobInfo, Failure> {
    let denied = Denied::of(&received);
    let authorized = received
        .authorize()
        .inspect_err(|failure| denied.record(failure))?;
    let (tell, told) = oneshot::channel();
    // A task of its own from here on: a connection that ends does not take the job with it.
    tokio::spawn(async move {
        let accepted = authorized.accept().await;
        // Nobody may be there any more to hear it; the key finds the job.
        let _heard = tell.send(match &accepted {
            Ok(accepted) => Ok(accepted.info()),
            Err(failure) => Err(failure.clone()),
        });
        match accepted {
            Ok(accepted) => accepted.carry_out().await,
            Err(failure) => denied.record(&failure),
        }
    });
    told.await.unwrap_or_else(|_lost| {
        Err(Failure::new(
            Status::Failed,
            Detail::None,
            "left-behind",
            "the task of the request was lost",
        ))
    })
}

impl Received {
    /// May this VM do this? Pins the policy's snapshot and reserves the region.
    fn authorize(self) -> Result<Authorized, Failure> {
        let host = Arc::clone(&self.host);
        let region = self.slot.region;
        if host.state().leaving {
            return Err(leaving());
        }
        let granted = match &self.what {
            What::Clear => None,
            What::Load(image, again) => Some((authorize::load(&self, image)?, *again)),
        };
        let reserved = Reserved {
            by: Some((self.who.vm, self.key)),
            what: format!("a job of VM {}", self.who.vm),
        };
        host.state()
            .regions
            .reserve(region, self.who.tag, reserved)
            .map_err(authorize::not_now)?;
        let reservation = Reservation::of(host, region);
        // Only now does what is active stay as it is.
        let work = match granted {
            None => Work::Clear,
            Some(((_, granted), again)) if authorize::stays(&self, &granted, again) => {
                Work::Unchanged(granted)
            }
            Some(((question, granted), _again)) => Work::Load(question, granted),
        };
        Ok(Authorized {
            received: self,
            work,
            reservation,
        })
    }
}

impl Authorized {
    /// Makes the job and its intent durable: only then is the guest told that it has one.
    async fn accept(self) -> Result<Accepted, Failure> {
        let Self {
            received,
            work,
            reservation,
        } = self;
        let Received {
            host,
            who,
            slot,
            key,
            body,
            ..
        } = received;
        let id = new_job();
        let mut record = job_record(&who, &slot, key, body, id, &work);
        let intent = Record {
            phase: Some("intent"),
            ..audit_record(&host, &who, &slot, id, &work)
        };
        let (cancel, cancelled) = oneshot::channel();
        let gone = {
            let mut state = host.state();
            if state.leaving {
                return Err(leaving());
            }
            let (ordered, gone) = state.jobs.insert(record).map_err(|NoRoom| {
                Failure::new(
                    Status::TooLarge,
                    Detail::Limit,
                    "too-many-jobs",
                    "all jobs kept for this VM are open",
                )
            })?;
            record = ordered;
            state.cancels.insert(id, cancel);
            state.running = state.running.saturating_add(1);
            gone
        };
        let mut errand = Errand {
            host,
            who,
            slot,
            key,
            id,
            image: record.image.clone(),
            costs: SyncCost::default(),
            open: true,
        };
        let task = Task::begin(&errand.host, errand.slot.region, work);
        let (result, costs) = write_down(&errand.host, &record, gone, intent, &task).await;
        errand.costs = costs;
        if let Err(why) = result {
            task.abandon().await;
            errand.withdraw().await;
            return Err(Failure::new(
                Status::Unavailable,
                Detail::None,
                "not-durable",
                why,
            ));
        }
        Ok(Accepted {
            errand,
            task,
            reservation,
            cancelled,
        })
    }
}

/// The job into the store, its intent into the audit: a load needs both, a clear goes on without.
async fn write_down(
    host: &Arc<Host>,
    record: &JobRecord,
    gone: Vec<JobRecord>,
    intent: Record,
    task: &Task,
) -> (Result<(), String>, SyncCost) {
    let needed = !matches!(task, Task::Clear);
    let (host, record) = (Arc::clone(host), record.clone());
    let written = tokio::task::spawn_blocking(move || {
        let mut costs = SyncCost::default();
        let stored = host.store.put(&record, &gone, &mut costs);
        host.troubles.note("the job store", &stored);
        let noted = host.audit.write(&intent, &mut costs);
        let result = match (stored, noted) {
            (Err(error), _) if needed => Err(error.to_string()),
            (_, Err(error)) if needed => Err(format!("the audit: {error}")),
            _ => Ok(()),
        };
        (result, costs)
    });
    written.await.unwrap_or_else(|error| {
        (
            Err(format!("the task that writes: {error}")),
            SyncCost::default(),
        )
    })
}

impl Accepted {
    /// The job, as its owner is told at once.
    fn info(&self) -> JobInfo {
        self.errand.job().map_or_else(
            || JobInfo {
                key: self.errand.key,
                kind: protocol::message::JobKind::Load,
                slot: protocol::message::Slot(self.errand.slot.slot),
                image: None,
                stage: Stage::Accepted,
                done: 0,
                total: 0,
                result: None,
            },
            |job| job.info(),
        )
    }

    /// verify -> program -> audit -> reply
    async fn carry_out(self) {
        let Self {
            mut errand,
            task,
            reservation,
            cancelled,
        } = self;
        let ended = match task {
            Task::Unchanged if !errand.past_cancel() => Err(cancelled_by_owner()),
            Task::Unchanged => Ok((
                success(errand.active_function(), true),
                "active already".to_owned(),
            )),
            Task::Clear => program::clear(&errand, cancelled)
                .await
                .map(|()| (success(None, false), "blank".to_owned())),
            Task::Load(loading) => match verify(&errand, *loading, cancelled).await {
                Err(failure) => Err(failure),
                Ok(verified) => {
                    let image = LoadedImage {
                        name: verified.granted.image.clone(),
                        image_digest: verified.granted.image_digest,
                        bitstream: verified.granted.facts.digest,
                    };
                    program::program(&errand, verified).await.map(|programmed| {
                        errand.remember(image);
                        let function = FunctionId(*programmed.function.as_bytes());
                        (success(Some(function), false), programmed.story)
                    })
                }
            },
        };
        errand.audit(&ended).await;
        let (result, story) = match ended {
            Ok((result, story)) => (result, story),
            Err(failure) => {
                warn!(
                    job = errand.id.to_hex(),
                    failure.outcome, failure.reason, "a job failed"
                );
                (failure.result(), failure.reason)
            }
        };
        // The region first, so that who hears of the end can ask for the next job.
        drop(reservation);
        errand.settle(&result, &story).await;
    }
}

/// Awaits the sealed bytes, starts to verify them, and waits for the card's turn. Until the turn
/// comes the job can be cancelled.
async fn verify(
    errand: &Errand,
    loading: Loading,
    cancelled: oneshot::Receiver<()>,
) -> Result<Verified, Failure> {
    errand.stage(Stage::Verifying);
    let Loading {
        question,
        granted,
        coming,
    } = loading;
    let waiting = async {
        let sealed = coming.sealed().await?;
        let proof = tokio::task::spawn_blocking({
            let sealed = sealed.clone();
            move || sealed.verify()
        });
        errand.stage(Stage::Queued);
        let link = errand.link()?;
        let turn = link.turn(errand.slot.region.region).await?;
        Ok(Verified {
            question,
            granted,
            bytes: Sealing { sealed, proof },
            turn,
        })
    };
    let verified = tokio::select! {
        verified = waiting => verified,
        () = asked_to_cancel(cancelled) => Err(cancelled_by_owner()),
    };
    // From here on it is too late, unless somebody has just been told that it is not.
    let verified = verified?;
    if errand.past_cancel() {
        Ok(verified)
    } else {
        Err(cancelled_by_owner())
    }
}

fn leaving() -> Failure {
    Failure::new(
        Status::Unavailable,
        Detail::None,
        "leaving",
        "reconfd stops",
    )
}

/// How a job that still waited ends when its owner cancels it.
pub(super) fn cancelled_by_owner() -> Failure {
    Failure::new(
        Status::Failed,
        Detail::Cancelled,
        "cancelled",
        "cancelled by its owner, or because reconfd stops",
    )
}

/// Resolves when the owner cancels; never, if nobody can any more.
pub(super) async fn asked_to_cancel(cancelled: oneshot::Receiver<()>) {
    if cancelled.await.is_err() {
        std::future::pending::<()>().await;
    }
}
