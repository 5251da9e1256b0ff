//! One request, one way:
//!
//!     channel -> frame -> session -> queue -> authorize -> verify -> program -> audit -> reply
//!
//! Each step consumes the value of the step before and makes a new type, so
//! that leaving one out does not compile: [`Received`], [`Authorized`],
//! [`Accepted`], [`Verified`], [`Programmed`]. The session's inbox is the
//! queue of the line above; between `verify` and `program` lies the card's.
//!
//! Knows the order. Must not know frames, the policy's rules, or registers.

use std::sync::Arc;

use protocol::message::{Digest, FunctionId, ImageRef, JobInfo, JobKey, JobResult, Stage};
use protocol::status::{Detail, Status};
use tokio::sync::oneshot;
use tracing::{info, warn};
use uuid::Uuid;

use super::audit::{Record, SyncCost};
use super::cards::Turn;
use super::chores::{self, new_job};
use super::host::Host;
use super::identity::{Generation, unix_now};
use super::jobs::{Job, JobRecord, NoRoom, stored_result};
use super::judge::{Granted, Question};
use super::outcome::{Failure, success};
use super::plan::RegionKey;
use super::program;
use super::regions::{LoadedImage, NotNow, Reserved};
use super::registry::SlotPlan;
use super::seal::{Sealed, VerifiedBytes};
use crate::hex;
use crate::ipc::{Content, JobId, OwnerTag};

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

/// What a load wants of an image that is active already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// Leave the very same image alone.
    Identical,
    /// Leave any version of it alone.
    AnyVersion,
    /// Load it again.
    Force,
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
enum Work {
    Load(Question, Box<Granted>),
    Unchanged(Box<Granted>),
    Clear,
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
    common: Common,
    work: Work,
    reservation: Reservation,
    cancelled: oneshot::Receiver<()>,
}

/// What every later step needs.
#[derive(Debug)]
pub(super) struct Common {
    pub(super) host: Arc<Host>,
    pub(super) who: Who,
    pub(super) slot: SlotPlan,
    pub(super) key: JobKey,
    pub(super) id: JobId,
    image: Option<String>,
    costs: SyncCost,
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
    pub(super) proof: tokio::task::JoinHandle<Result<VerifiedBytes, super::seal::BytesError>>,
}

/// Written, identified, consented to, committed: the guest reaches its function.
#[derive(Debug)]
pub struct Programmed {
    pub(super) function: Option<Uuid>,
    pub(super) story: String,
}

/// A region that is ours until this is dropped.
#[derive(Debug)]
struct Reservation {
    host: Arc<Host>,
    slot: SlotPlan,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.host.state().regions.release(self.slot.region);
        self.host.attend(self.slot.region);
    }
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
    let accepted = authorized
        .accept()
        .await
        .inspect_err(|failure| denied.record(failure))?;
    let info = accepted.info();
    tokio::spawn(accepted.carry_out());
    Ok(info)
}

impl Received {
    /// May this VM do this? Pins the policy's snapshot and reserves the region.
    fn authorize(self) -> Result<Authorized, Failure> {
        let host = Arc::clone(&self.host);
        let region = self.slot.region;
        if host.state().leaving {
            return Err(Failure::new(
                Status::Unavailable,
                Detail::None,
                "leaving",
                "reconfd stops",
            ));
        }
        let work = match &self.what {
            What::Clear => Work::Clear,
            What::Load(image, again) => self.authorize_load(image, *again)?,
        };
        let reserved = Reserved {
            by: Some((self.who.vm, self.key)),
            what: format!("a job of VM {}", self.who.vm),
        };
        host.state()
            .regions
            .reserve(region, self.who.tag, reserved)
            .map_err(|not_now| self.not_now(not_now))?;
        let reservation = Reservation {
            host,
            slot: self.slot.clone(),
        };
        Ok(Authorized {
            received: self,
            work,
            reservation,
        })
    }

    fn authorize_load(&self, image: &ImageRef, again: Again) -> Result<Work, Failure> {
        let host = &self.host;
        let (stopped, sole) = {
            let state = host.state();
            let sole = state
                .registry
                .sole_holder(&host.plan, self.slot.region, self.who.vm);
            (state.stopped.clone(), sole)
        };
        let question = Question {
            vm: self.who.vm,
            tenant: self.who.tenant.clone(),
            region: self.slot.region,
            slots: self.slots.clone(),
            image: image.clone(),
        };
        // The decision first: a stop tells a guest nothing about images that it may not have.
        let granted = Box::new(host.judge.decide(&question)?);
        if let Some(reason) = stopped {
            return Err(Failure::new(
                Status::Unavailable,
                Detail::Stopped,
                "stopped",
                format!("new loads are stopped: {reason}"),
            ));
        }
        if !sole {
            return Err(Failure::new(
                Status::Denied,
                Detail::None,
                "shared-region",
                "another VM holds a user function that ends in this region",
            ));
        }
        let active = {
            let state = host.state();
            state.regions.get(self.slot.region).and_then(|region| {
                let report = region.report.as_ref()?;
                let mine = report.content == Content::Active
                    && report.guest_access
                    && report.tag == Some(self.who.tag);
                mine.then(|| (report.digest, region.image.clone()))
            })
        };
        let leave = match (again, active) {
            (Again::Force, _) | (_, None) => false,
            (Again::Identical, Some((digest, _))) => digest == granted.facts.digest,
            (Again::AnyVersion, Some((digest, image))) => {
                digest == granted.facts.digest
                    || image.is_some_and(|image| {
                        unversioned(&image.name) == unversioned(&granted.image)
                    })
            }
        };
        Ok(if leave {
            Work::Unchanged(granted)
        } else {
            Work::Load(question, granted)
        })
    }

    fn not_now(&self, not_now: NotNow) -> Failure {
        match not_now {
            NotNow::Busy(by) => Failure::new(
                Status::Busy,
                Detail::None,
                "busy",
                format!("reserved: {}", by.what),
            ),
            NotNow::Recovering => Failure::new(
                Status::Busy,
                Detail::Scrubbing,
                "recovering",
                "the region is being made safe",
            ),
            NotNow::Unavailable(why) => {
                Failure::new(Status::Unavailable, Detail::None, "region-unavailable", why)
            }
        }
    }
}

/// `publisher/name` of `publisher/name:version`.
fn unversioned(name: &str) -> &str {
    name.split_once(':').map_or(name, |(head, _version)| head)
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
        let clearing = matches!(work, Work::Clear);
        let durable = tokio::task::spawn_blocking({
            let (host, record) = (Arc::clone(&host), record.clone());
            move || {
                let mut costs = SyncCost::default();
                let stored = host
                    .store
                    .put(&record, &gone, &mut costs)
                    .map_err(|error| error.to_string());
                let noted = host
                    .audit
                    .write(&intent, &mut costs)
                    .map_err(|error| format!("the audit: {error}"));
                // Clear goes on without either; a load needs both.
                let result = if clearing { Ok(()) } else { stored.and(noted) };
                (result, costs)
            }
        })
        .await;
        let (result, costs) = durable.unwrap_or_else(|error| {
            (
                Err(format!("the task that writes: {error}")),
                SyncCost::default(),
            )
        });
        let image = record.image.clone();
        let common = Common {
            host,
            who,
            slot,
            key,
            id,
            image,
            costs,
        };
        if let Err(why) = result {
            let failure = Failure::new(Status::Unavailable, Detail::None, "not-durable", why);
            common.settle(&failure.result(), &failure.reason).await;
            return Err(failure);
        }
        Ok(Accepted {
            common,
            work,
            reservation,
            cancelled,
        })
    }
}

impl Accepted {
    /// The job, as its owner is told at once.
    fn info(&self) -> JobInfo {
        self.common.job().map_or_else(
            || JobInfo {
                key: self.common.key,
                kind: protocol::message::JobKind::Load,
                slot: protocol::message::Slot(self.common.slot.slot),
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
            mut common,
            work,
            reservation,
            cancelled,
        } = self;
        let ended = match work {
            Work::Unchanged(_granted) => Ok((
                success(common.active_function(), true),
                "active already".to_owned(),
            )),
            Work::Clear => program::clear(&common, cancelled)
                .await
                .map(|()| (success(None, false), "blank".to_owned())),
            Work::Load(question, granted) => {
                match common.verify(question, granted, cancelled).await {
                    Err(failure) => Err(failure),
                    Ok(verified) => {
                        let image = LoadedImage {
                            name: verified.granted.image.clone(),
                            image_digest: verified.granted.image_digest,
                            bitstream: verified.granted.facts.digest,
                        };
                        program::program(&common, verified).await.map(|programmed| {
                            common.remember(image);
                            let function = programmed.function.map(|id| FunctionId(*id.as_bytes()));
                            (success(function, false), programmed.story)
                        })
                    }
                }
            }
        };
        common.audit(&ended).await;
        let (result, story) = match ended {
            Ok((result, story)) => (result, story),
            Err(failure) => {
                warn!(
                    job = common.id.to_hex(),
                    failure.outcome, failure.reason, "a job failed"
                );
                (failure.result(), failure.reason)
            }
        };
        // The region first, so that who hears of the end can ask for the next job.
        drop(reservation);
        common.settle(&result, &story).await;
    }
}

impl Common {
    /// Seals the bytes, starts to verify them, and waits for the card's turn. Until the turn
    /// comes the job can be cancelled.
    async fn verify(
        &self,
        question: Question,
        granted: Box<Granted>,
        cancelled: oneshot::Receiver<()>,
    ) -> Result<Verified, Failure> {
        self.stage(Stage::Verifying);
        let waiting = async {
            let sealed = self.sealed(&granted).await?;
            let proof = tokio::task::spawn_blocking({
                let sealed = sealed.clone();
                move || sealed.verify()
            });
            self.stage(Stage::Queued);
            let link = self.link()?;
            let turn = link.turn(self.slot.region.region).await?;
            Ok(Verified {
                question,
                granted,
                bytes: Sealing { sealed, proof },
                turn,
            })
        };
        let verified = tokio::select! {
            verified = waiting => verified,
            _asked = asked_to_cancel(cancelled) => {
                Err(Failure::new(Status::Failed, Detail::Cancelled, "cancelled", "cancelled by its owner"))
            }
        };
        // From here on it is too late.
        self.host.state().cancels.remove(&self.id);
        verified
    }

    async fn sealed(&self, granted: &Granted) -> Result<Sealed, Failure> {
        if let Some(sealed) =
            self.host
                .sealed
                .get(&granted.facts, self.slot.region, granted.revision)
        {
            return Ok(sealed);
        }
        let targets = self.host.layout.targets();
        let (path, facts) = (granted.path.clone(), granted.facts.clone());
        let read =
            tokio::task::spawn_blocking(move || Sealed::from_file(&targets, &path, facts)).await;
        read.map_err(|error| {
            Failure::new(Status::Failed, Detail::None, "seal-task", error.to_string())
        })?
        .map_err(Failure::from)
    }

    pub(super) fn link(&self) -> Result<&Arc<super::cards::CardLink>, Failure> {
        self.host.cards.get(self.slot.region.card).ok_or_else(|| {
            Failure::new(
                Status::Unavailable,
                Detail::None,
                "no-such-card",
                "no such card",
            )
        })
    }

    pub(super) fn stage(&self, stage: Stage) {
        self.host
            .job_changed(self.who.vm, &self.who.generation, self.key, |job| {
                job.stage = stage
            });
    }

    pub(super) fn progress(&self, stage: Stage, done: u64, total: u64) {
        self.host
            .job_changed(self.who.vm, &self.who.generation, self.key, |job| {
                job.stage = stage;
                job.done = done;
                job.record.total = total;
            });
    }

    fn job(&self) -> Option<Job> {
        self.host
            .state()
            .jobs
            .find(self.who.vm, &self.who.generation, self.key)
            .cloned()
    }

    fn active_function(&self) -> Option<FunctionId> {
        self.host
            .state()
            .regions
            .get(self.slot.region)?
            .report
            .as_ref()?
            .function
            .map(FunctionId)
    }

    fn remember(&self, image: LoadedImage) {
        if let Some(region) = self.host.state().regions.get_mut(self.slot.region) {
            region.image = Some(image);
        }
    }

    async fn audit(&mut self, ended: &Result<(JobResult, String), Failure>) {
        let record = Record {
            event: if self.image.is_some() {
                "load"
            } else {
                "clear"
            },
            phase: Some("outcome"),
            vm: Some(self.who.vm),
            tenant: Some(self.who.tenant.clone()),
            generation: Some(self.who.generation.short().to_owned()),
            region: Some(self.host.plan.label(self.slot.region)),
            slot: Some(self.slot.slot),
            image: self.image.clone(),
            job: Some(self.id.to_hex()),
            outcome: Some(match ended {
                Ok((result, _)) if result.unchanged => "unchanged".to_owned(),
                Ok(_) => "done".to_owned(),
                Err(failure) => failure.outcome.clone(),
            }),
            reason: Some(match ended {
                Ok((_, story)) => story.clone(),
                Err(failure) => failure.reason.clone(),
            }),
            words: ended
                .as_ref()
                .err()
                .and_then(|failure| failure.words)
                .map(chores::words),
            ..Record::default()
        };
        let host = Arc::clone(&self.host);
        let written = tokio::task::spawn_blocking(move || {
            let mut costs = SyncCost::default();
            host.audit.write(&record, &mut costs).map(|()| costs)
        })
        .await;
        match written {
            Ok(Ok(costs)) => {
                self.costs.count = self.costs.count.saturating_add(costs.count);
                self.costs.nanos = self.costs.nanos.saturating_add(costs.nanos);
            }
            Ok(Err(error)) => warn!(%error, "the outcome of a job is not in the audit"),
            Err(error) => warn!(%error, "the outcome of a job is not in the audit"),
        }
    }

    /// The job's end: for its owner, and in the store.
    async fn settle(&self, result: &JobResult, story: &str) {
        let (vm, generation) = (self.who.vm, self.who.generation.clone());
        let stored = stored_result(*result, story.to_owned());
        {
            let mut state = self.host.state();
            state.cancels.remove(&self.id);
            state.running = state.running.saturating_sub(1);
        }
        // Stored before it is told: what a guest knows, a restart does not forget.
        let ended = self
            .host
            .state()
            .jobs
            .find(vm, &generation, self.key)
            .map(|job| JobRecord {
                result: Some(stored.clone()),
                ..job.record.clone()
            });
        if let Some(record) = ended {
            let host = Arc::clone(&self.host);
            let written = tokio::task::spawn_blocking(move || {
                let mut costs = SyncCost::default();
                (host.store.put(&record, &[], &mut costs), costs)
            })
            .await;
            match written {
                Ok((Ok(()), costs)) => info!(
                    job = self.id.to_hex(),
                    status = result.status.name(),
                    syncs = self.costs.count.saturating_add(costs.count),
                    sync_ns = self.costs.nanos.saturating_add(costs.nanos),
                    "a job ended"
                ),
                Ok((Err(error), _)) => warn!(%error, "the end of a job is not stored"),
                Err(error) => warn!(%error, "the end of a job is not stored"),
            }
        }
        self.host.job_changed(vm, &generation, self.key, |job| {
            job.stage = Stage::Done;
            if result.status == Status::Ok && !result.unchanged {
                job.done = job.record.total;
            }
            job.result = Some(*result);
            job.record.result = Some(stored);
        });
        if result.status == Status::Ok && !result.unchanged {
            if self.image.is_some() {
                chores::announce(&self.host, self.slot.region);
            } else {
                self.host
                    .tell(vm, self.slot.slot, protocol::message::EventKind::Cleared);
            }
        }
    }
}

/// Resolves when the owner cancels; never, if nobody can any more.
async fn asked_to_cancel(cancelled: oneshot::Receiver<()>) {
    if cancelled.await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn job_record(
    who: &Who,
    slot: &SlotPlan,
    key: JobKey,
    body: Digest,
    id: JobId,
    work: &Work,
) -> JobRecord {
    let granted = match work {
        Work::Load(_, granted) | Work::Unchanged(granted) => Some(granted),
        Work::Clear => None,
    };
    JobRecord {
        key: hex::encode(&key.0),
        id: id.to_hex(),
        vm: who.vm,
        generation: who.generation.clone(),
        order: 0,
        kind: if granted.is_some() { "load" } else { "clear" }.to_owned(),
        slot: slot.slot,
        body: hex::encode(&body.0),
        image: granted.map(|granted| granted.image.clone()),
        image_digest: granted.map(|granted| hex::encode(&granted.image_digest)),
        bitstream: granted.map(|granted| hex::encode(&granted.facts.digest)),
        function: granted.map(|granted| granted.facts.function_id),
        total: granted.map_or(0, |granted| granted.facts.size),
        asked: unix_now(),
        result: None,
    }
}

fn audit_record(host: &Host, who: &Who, slot: &SlotPlan, id: JobId, work: &Work) -> Record {
    let granted = match work {
        Work::Load(_, granted) | Work::Unchanged(granted) => Some(granted),
        Work::Clear => None,
    };
    Record {
        event: if granted.is_some() { "load" } else { "clear" },
        vm: Some(who.vm),
        tenant: Some(who.tenant.clone()),
        generation: Some(who.generation.short().to_owned()),
        region: Some(host.plan.label(slot.region)),
        slot: Some(slot.slot),
        image: granted.map(|granted| granted.image.clone()),
        digest: granted.map(|granted| hex::encode(&granted.facts.digest)),
        job: Some(id.to_hex()),
        rule: granted.map(|granted| granted.rule.clone()),
        list_version: granted.map(|granted| granted.list_version),
        ..Record::default()
    }
}

/// What the audit says of a request that was not accepted.
struct Denied {
    host: Arc<Host>,
    record: Record,
}

impl Denied {
    fn of(received: &Received) -> Self {
        let (event, image) = match &received.what {
            What::Clear => ("clear", None),
            What::Load(ImageRef::Name(name), _) => ("load", Some(name.clone())),
            What::Load(ImageRef::Digest(digest), _) => {
                ("load", Some(format!("sha256:{}", hex::encode(&digest.0))))
            }
        };
        let record = Record {
            event,
            vm: Some(received.who.vm),
            tenant: Some(received.who.tenant.clone()),
            generation: Some(received.who.generation.short().to_owned()),
            region: Some(received.host.plan.label(received.slot.region)),
            slot: Some(received.slot.slot),
            image,
            ..Record::default()
        };
        Self {
            host: Arc::clone(&received.host),
            record,
        }
    }

    fn record(&self, failure: &Failure) {
        let record = Record {
            outcome: Some(failure.outcome.clone()),
            reason: Some(failure.reason.clone()),
            ..self.record.clone()
        };
        let host = Arc::clone(&self.host);
        // Durable, but the guest's answer does not wait: every denial takes the same way (G8).
        tokio::task::spawn_blocking(move || host.note(&record));
    }
}
