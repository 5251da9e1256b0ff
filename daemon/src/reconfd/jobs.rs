//! The jobs that guests asked for: found again by key, kept within bounds.
//!
//! Pure: knows keys, VMs, generations and stages. Must not know how a job is
//! carried out, or where it is stored.

use std::collections::BTreeMap;

use protocol::message::{Digest, FunctionId, JobInfo, JobKey, JobKind, JobResult, Slot, Stage};
use protocol::status::{Detail, Status};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::identity::Generation;
use crate::hex;
use crate::ipc::JobId;

/// A job, as it is stored: hex and words, so that a person can read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobRecord {
    /// The guest's key, hex.
    pub key: String,
    /// Our own number for it, hex.
    pub id: String,
    /// Whose it is.
    pub vm: Uuid,
    /// Of which start.
    pub generation: Generation,
    /// Rises with each job of this host.
    pub order: u64,
    /// `load` or `clear`.
    pub kind: String,
    /// The guest's slot.
    pub slot: u16,
    /// SHA-256 of the request but its key, hex: the same key with another body is an error.
    pub body: String,
    /// `publisher/name:version` as resolved.
    pub image: Option<String>,
    /// The image's digest, hex.
    pub image_digest: Option<String>,
    /// The digest of the bitstream, hex: tells after a restart whether it became active.
    pub bitstream: Option<String>,
    /// The function that is to appear.
    pub function: Option<Uuid>,
    /// Bytes to write.
    pub total: u64,
    /// When it was asked for, seconds of Unix time.
    pub asked: u64,
    /// How it ended; nothing while it waits or runs.
    pub result: Option<StoredResult>,
}

/// [`JobResult`] in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredResult {
    /// Number of the [`Status`].
    pub status: u8,
    /// Number of the [`Detail`].
    pub detail: u8,
    /// Whether nothing had to be written.
    pub unchanged: bool,
    /// For people.
    pub words: String,
}

/// A job in memory: the record, and what changes too fast to be stored.
#[derive(Debug, Clone)]
pub struct Job {
    /// What is stored.
    pub record: JobRecord,
    /// How far it is.
    pub stage: Stage,
    /// Bytes written.
    pub done: u64,
    /// The result, decoded.
    pub result: Option<JobResult>,
    /// It comes from before this start and nobody carries it out.
    pub orphan: bool,
}

impl Job {
    /// As its owner sees it.
    #[must_use]
    pub fn info(&self) -> JobInfo {
        JobInfo {
            key: JobKey(hex::decode(&self.record.key).unwrap_or_default()),
            kind: if self.record.kind == "clear" {
                JobKind::Clear
            } else {
                JobKind::Load
            },
            slot: Slot(self.record.slot),
            image: self.record.image.clone(),
            stage: self.stage,
            done: self.done,
            total: self.record.total,
            result: self.result,
        }
    }

    /// Our number for it.
    #[must_use]
    pub fn id(&self) -> JobId {
        JobId(hex::decode(&self.record.id).unwrap_or_default())
    }

    fn from_record(record: JobRecord) -> Self {
        let result = record.result.as_ref().map(|stored| JobResult {
            status: status_of(stored.status),
            detail: detail_of(stored.detail),
            function_id: record
                .function
                .filter(|_| stored.status == Status::Ok.code())
                .map(|id| FunctionId(*id.as_bytes())),
            unchanged: stored.unchanged,
        });
        let stage = if result.is_some() {
            Stage::Done
        } else {
            Stage::Accepted
        };
        let done = if result.is_some_and(|result| result.status == Status::Ok && !result.unchanged)
        {
            record.total
        } else {
            0
        };
        Self {
            stage,
            done,
            orphan: result.is_none(),
            result,
            record,
        }
    }
}

/// What a key is, when a request comes with it.
#[derive(Debug)]
pub enum Known<'a> {
    /// Not seen in this generation.
    New,
    /// The same request was made: this is its job.
    Same(&'a Job),
    /// The key was used for another request.
    Reused,
}

/// No room for another job: all that are kept still wait or run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoRoom;

type Owner = (Uuid, Generation);

/// All jobs of the host.
#[derive(Debug)]
pub struct JobBook {
    jobs: BTreeMap<Owner, BTreeMap<JobKey, Job>>,
    per_vm: usize,
    next_order: u64,
}

impl JobBook {
    /// A book that keeps `per_vm` jobs for each VM and generation, filled from what was stored.
    #[must_use]
    pub fn new(per_vm: usize, stored: Vec<JobRecord>) -> Self {
        let mut book = Self {
            jobs: BTreeMap::new(),
            per_vm,
            next_order: 0,
        };
        for record in stored {
            book.next_order = book.next_order.max(record.order.saturating_add(1));
            if let Some(key) = hex::decode(&record.key) {
                let owner = (record.vm, record.generation.clone());
                book.jobs
                    .entry(owner)
                    .or_default()
                    .insert(JobKey(key), Job::from_record(record));
            }
        }
        book
    }

    /// What this key means for a request whose body hashes to `body`.
    #[must_use]
    pub fn known(
        &self,
        vm: Uuid,
        generation: &Generation,
        key: JobKey,
        body: &Digest,
    ) -> Known<'_> {
        match self.find(vm, generation, key) {
            None => Known::New,
            Some(job) if job.record.body == hex::encode(&body.0) => Known::Same(job),
            Some(_) => Known::Reused,
        }
    }

    /// A VM's job. Another VM's key finds nothing (G17, CYB-05).
    #[must_use]
    pub fn find(&self, vm: Uuid, generation: &Generation, key: JobKey) -> Option<&Job> {
        self.jobs.get(&(vm, generation.clone()))?.get(&key)
    }

    /// Puts a new job in, and names those that had to go for it: the oldest that ended.
    ///
    /// # Errors
    /// [`NoRoom`] if every job kept still waits or runs.
    pub fn insert(&mut self, mut record: JobRecord) -> Result<(JobRecord, Vec<JobRecord>), NoRoom> {
        let owner = (record.vm, record.generation.clone());
        let jobs = self.jobs.entry(owner).or_default();
        // Two requests with one new key at once: the second finds the first's job when it asks again.
        if hex::decode(&record.key).is_some_and(|key| jobs.contains_key(&JobKey(key))) {
            return Err(NoRoom);
        }
        let mut gone = Vec::new();
        while jobs.len() >= self.per_vm {
            let oldest = jobs
                .iter()
                .filter(|(_key, job)| job.result.is_some())
                .min_by_key(|(_key, job)| job.record.order)
                .map(|(key, _job)| *key)
                .ok_or(NoRoom)?;
            gone.extend(jobs.remove(&oldest).map(|job| job.record));
        }
        record.order = self.next_order;
        self.next_order = self.next_order.saturating_add(1);
        if let Some(key) = hex::decode(&record.key) {
            let job = Job {
                orphan: false,
                ..Job::from_record(record.clone())
            };
            jobs.insert(JobKey(key), job);
        }
        Ok((record, gone))
    }

    /// Changes a job and returns it as it now is.
    pub fn update(
        &mut self,
        vm: Uuid,
        generation: &Generation,
        key: JobKey,
        change: impl FnOnce(&mut Job),
    ) -> Option<Job> {
        let job = self
            .jobs
            .get_mut(&(vm, generation.clone()))?
            .get_mut(&key)?;
        change(job);
        Some(job.clone())
    }

    /// Forgets the jobs of a generation that is over, but for those that still run, and names
    /// them.
    pub fn forget(&mut self, vm: Uuid, generation: &Generation) -> Vec<JobRecord> {
        let owner = (vm, generation.clone());
        let Some(jobs) = self.jobs.get_mut(&owner) else {
            return Vec::new();
        };
        let mut gone = Vec::new();
        jobs.retain(|_key, job| {
            let over = job.result.is_some() || job.orphan;
            if over {
                gone.push(job.record.clone());
            }
            !over
        });
        if jobs.is_empty() {
            self.jobs.remove(&owner);
        }
        gone
    }

    /// Takes back a job that was never accepted: its key is free again.
    pub fn withdraw(
        &mut self,
        vm: Uuid,
        generation: &Generation,
        key: JobKey,
    ) -> Option<JobRecord> {
        let jobs = self.jobs.get_mut(&(vm, generation.clone()))?;
        jobs.remove(&key).map(|job| job.record)
    }

    /// Forgets what belongs to generations that are over, and names it.
    pub fn retain_generations(
        &mut self,
        alive: impl Fn(Uuid, &Generation) -> bool,
    ) -> Vec<JobRecord> {
        let mut gone = Vec::new();
        self.jobs.retain(|(vm, generation), jobs| {
            let keep = alive(*vm, generation);
            if !keep {
                gone.extend(jobs.values().map(|job| job.record.clone()));
            }
            keep
        });
        gone
    }

    /// Every job, in the order of asking.
    #[must_use]
    pub fn all(&self) -> Vec<&Job> {
        let mut all: Vec<&Job> = self.jobs.values().flat_map(BTreeMap::values).collect();
        all.sort_by_key(|job| job.record.order);
        all
    }
}

fn status_of(code: u8) -> Status {
    Status::ALL
        .into_iter()
        .find(|status| status.code() == code)
        .unwrap_or(Status::Failed)
}

fn detail_of(code: u8) -> Detail {
    Detail::ALL
        .into_iter()
        .find(|detail| detail.code() == code)
        .unwrap_or(Detail::None)
}

/// The result as it is stored.
#[must_use]
pub fn stored_result(result: JobResult, words: String) -> StoredResult {
    StoredResult {
        status: result.status.code(),
        detail: result.detail.code(),
        unchanged: result.unchanged,
        words,
    }
}

#[cfg(test)]
mod tests;
