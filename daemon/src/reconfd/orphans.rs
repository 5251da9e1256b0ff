//! Jobs that a restart left open: what became of them is read from the card.
//!
//! Knows the job's record and the region's report. Must not carry anything out.

use protocol::message::{EventKind, FunctionId, JobKey, JobResult, Stage};
use protocol::status::{Detail, Status};
use tracing::warn;

use super::audit::{Record, SyncCost};
use super::host::Host;
use super::jobs::{Job, JobRecord, stored_result};
use super::outcome::{Failure, success};
use super::plan::RegionKey;
use crate::hex;
use crate::ipc::{Content, OwnerTag, RegionReport};

/// Jobs of before this start that nobody carries out end now, as the card's report tells. Stored
/// and told by a task of their own: the caller reads the card's socket and must not wait.
pub(super) fn settle(host: &Host, key: RegionKey) {
    let ended = end_orphans(host, key);
    if ended.is_empty() {
        return;
    }
    if let (Some(host), Ok(runtime)) = (host.arc(), tokio::runtime::Handle::try_current()) {
        runtime.spawn_blocking(move || {
            for job in &ended {
                tell(&host, key, job);
            }
        });
    }
}

fn tell(host: &Host, key: RegionKey, job: &Job) {
    let record = &job.record;
    let stored = host.store.put(record, &[], &mut SyncCost::default());
    host.troubles.note("the job store", &stored);
    if let Err(error) = stored {
        warn!(%error, "the end of a job of before the restart is not stored");
    }
    let tenant = host
        .state()
        .registry
        .get(record.vm)
        .map(|vm| vm.tenant.clone());
    let event = if record.kind == "clear" {
        "clear"
    } else {
        "load"
    };
    let outcome = job.result.map_or("?", |result| result.status.name());
    host.note(&Record {
        event,
        phase: Some("outcome"),
        vm: Some(record.vm),
        tenant,
        generation: Some(record.generation.short().to_owned()),
        region: Some(host.plan.label(key)),
        slot: Some(record.slot),
        image: record.image.clone(),
        digest: record.bitstream.clone(),
        job: Some(record.id.clone()),
        outcome: Some(outcome.to_owned()),
        reason: Some(
            "reconfd was restarted in the middle; this is what the card's process tells".into(),
        ),
        ..Record::default()
    });
    host.tell(record.vm, record.slot, EventKind::Progress(job.info()));
}

/// Finds the orphans of a region's present holders and gives each its end.
fn end_orphans(host: &Host, key: RegionKey) -> Vec<Job> {
    let mut state = host.state();
    let Some(report) = state
        .regions
        .get(key)
        .and_then(|region| region.report.clone())
    else {
        return Vec::new();
    };
    let holders: Vec<_> = state
        .registry
        .holders(&host.plan, key)
        .filter_map(|vm| {
            let slots = &state.live.get(&vm.vm)?.slots;
            let slot = slots.iter().find(|slot| slot.region == key)?.slot;
            Some((vm.vm, vm.generation.clone(), slot, vm.tag()))
        })
        .collect();
    let orphans: Vec<_> = state
        .jobs
        .all()
        .into_iter()
        .filter(|job| job.orphan && job.result.is_none())
        .filter_map(|job| {
            let record = &job.record;
            let (.., tag) = holders.iter().find(|(vm, generation, slot, _tag)| {
                (*vm, generation, *slot) == (record.vm, &record.generation, record.slot)
            })?;
            Some((record.clone(), *tag))
        })
        .collect();
    let mut ended = Vec::new();
    for (record, tag) in orphans {
        let result = end_of(&record, &report, tag);
        let Some(job_key) = hex::decode(&record.key).map(JobKey) else {
            continue;
        };
        ended.extend(
            state
                .jobs
                .update(record.vm, &record.generation, job_key, |job| {
                    job.stage = Stage::Done;
                    job.orphan = false;
                    job.result = Some(result);
                    let words = "settled after a restart of reconfd".to_owned();
                    job.record.result = Some(stored_result(result, words));
                }),
        );
    }
    ended
}

/// What became of a job of before, by what its region holds now.
fn end_of(record: &JobRecord, report: &RegionReport, tag: OwnerTag) -> JobResult {
    let mine = report.tag == Some(tag) && report.since >= record.asked;
    let loaded = report.content == Content::Active
        && record.bitstream.as_deref() == Some(hex::encode(&report.digest).as_str());
    let cleared = report.content == Content::Blank && record.kind == "clear";
    match (mine, loaded, cleared) {
        (true, true, _) => success(report.function.map(FunctionId), false),
        (true, _, true) => success(None, false),
        _ => Failure::new(Status::Failed, Detail::Interrupted, "interrupted", "").result(),
    }
}
