//! A job on its way: what its owner sees of it, and how it ends in the audit,
//! in the store and for its owner, in this order.
//!
//! Knows the books. Must not know what is done to a card.

use std::sync::Arc;

use protocol::message::{EventKind, FunctionId, JobKey, JobResult, Stage};
use protocol::status::{Detail, Status};
use tracing::{error, info, warn};

use super::audit::{Record, SyncCost};
use super::cards::CardLink;
use super::chores;
use super::host::Host;
use super::jobs::{Job, JobRecord, stored_result};
use super::outcome::Failure;
use super::pipeline::Who;
use super::regions::LoadedImage;
use super::registry::SlotPlan;
use crate::ipc::JobId;

/// A job on its way: whose, where, under which key. One that is dropped before it was settled
/// (its task panicked) ends as failed, in memory; the next start settles it in the store.
#[derive(Debug)]
pub(super) struct Errand {
    pub(super) host: Arc<Host>,
    pub(super) who: Who,
    pub(super) slot: SlotPlan,
    pub(super) key: JobKey,
    pub(super) id: JobId,
    pub(super) image: Option<String>,
    pub(super) costs: SyncCost,
    pub(super) open: bool,
}

impl Drop for Errand {
    fn drop(&mut self) {
        if !self.open {
            return;
        }
        error!(job = self.id.to_hex(), "a job was left behind by its task");
        let lost = Failure::new(Status::Failed, Detail::Interrupted, "left-behind", "");
        self.close(&lost.result(), "its task was lost");
    }
}

impl Errand {
    pub(super) fn link(&self) -> Result<&Arc<CardLink>, Failure> {
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
                job.stage = stage;
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

    pub(super) fn job(&self) -> Option<Job> {
        self.host
            .state()
            .jobs
            .find(self.who.vm, &self.who.generation, self.key)
            .cloned()
    }

    pub(super) fn active_function(&self) -> Option<FunctionId> {
        self.host
            .state()
            .regions
            .get(self.slot.region)?
            .report
            .as_ref()?
            .function
            .map(FunctionId)
    }

    pub(super) fn remember(&self, image: LoadedImage) {
        if let Some(region) = self.host.state().regions.get_mut(self.slot.region) {
            region.image = Some(image);
        }
    }

    pub(super) async fn audit(&mut self, ended: &Result<(JobResult, String), Failure>) {
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
            finding: ended
                .as_ref()
                .err()
                .and_then(|failure| failure.finding.clone()),
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

    /// Takes the cancel back. Whoever has it decides: `true` says that the job can be cancelled
    /// no more, `false` that it was cancelled.
    pub(super) fn past_cancel(&self) -> bool {
        self.host.state().cancels.remove(&self.id).is_some()
    }

    /// The job could not be made durable: its owner is refused, and its key is free again.
    pub(super) async fn withdraw(mut self) {
        self.open = false;
        let record = {
            let mut state = self.host.state();
            state.cancels.remove(&self.id);
            state.running = state.running.saturating_sub(1);
            state
                .jobs
                .withdraw(self.who.vm, &self.who.generation, self.key)
        };
        let host = Arc::clone(&self.host);
        let removed = tokio::task::spawn_blocking(move || host.forget(record.as_slice())).await;
        if let Err(error) = removed {
            warn!(%error, "a job that was refused may stand in the store");
        }
    }

    /// The job's end: for its owner, and in the store.
    pub(super) async fn settle(mut self, result: &JobResult, story: &str) {
        // Stored before it is told: what a guest knows, a restart does not forget.
        let ended = self.job().map(|job| JobRecord {
            result: Some(stored_result(*result, story.to_owned())),
            ..job.record
        });
        if let Some(record) = ended {
            self.store(record, result).await;
        }
        self.open = false;
        self.close(result, story);
        if result.status == Status::Ok && !result.unchanged {
            if self.image.is_some() {
                chores::announce(&self.host, self.slot.region);
            } else {
                self.host
                    .tell(self.who.vm, self.slot.slot, EventKind::Cleared);
            }
        }
    }

    async fn store(&self, record: JobRecord, result: &JobResult) {
        let host = Arc::clone(&self.host);
        let written = tokio::task::spawn_blocking(move || {
            let mut costs = SyncCost::default();
            let stored = host.store.put(&record, &[], &mut costs);
            host.troubles.note("the job store", &stored);
            (stored, costs)
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

    /// The end in memory, told to whoever watches. Where the VM is over meanwhile, nobody will
    /// ask again.
    fn close(&self, result: &JobResult, story: &str) {
        let (vm, generation) = (self.who.vm, &self.who.generation);
        self.host.job_changed(vm, generation, self.key, |job| {
            job.stage = Stage::Done;
            if result.status == Status::Ok && !result.unchanged {
                job.done = job.record.total;
            }
            job.result = Some(*result);
            job.record.result = Some(stored_result(*result, story.to_owned()));
        });
        let forgotten = {
            let mut state = self.host.state();
            state.cancels.remove(&self.id);
            state.running = state.running.saturating_sub(1);
            if state.registry.alive(vm, generation).is_none() {
                state.jobs.forget(vm, generation)
            } else {
                Vec::new()
            }
        };
        if !forgotten.is_empty()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let host = Arc::clone(&self.host);
            runtime.spawn_blocking(move || host.forget(&forgotten));
        }
    }
}
