//! What the books say of a job before it is carried out, or instead.
//!
//! Pure but for the noting of a denial.

use std::sync::Arc;
use std::time::Duration;

use protocol::message::{Digest, ImageRef, JobKey};
use uuid::Uuid;

use super::audit::Record;
use super::host::Host;
use super::identity::unix_now;
use super::jobs::JobRecord;
use super::judge::Granted;
use super::outcome::Failure;
use super::pipeline::{Received, What, Who, Work};
use super::registry::SlotPlan;
use super::repeats::Tell;
use crate::hex;
use crate::ipc::JobId;

/// The job as it is stored.
pub(super) fn job_record(
    who: &Who,
    slot: &SlotPlan,
    key: JobKey,
    body: Digest,
    id: JobId,
    work: &Work,
) -> JobRecord {
    let granted = granted(work);
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

/// The job's intent, but for the word.
pub(super) fn audit_record(
    host: &Host,
    who: &Who,
    slot: &SlotPlan,
    id: JobId,
    work: &Work,
) -> Record {
    let granted = granted(work);
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
pub(super) struct Denied {
    host: Arc<Host>,
    record: Record,
}

impl Denied {
    pub(super) fn of(received: &Received) -> Self {
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

    /// Written soon: the guest's answer does not wait, and every denial takes the same way (G8).
    pub(super) fn record(&self, failure: &Failure) {
        let record = Record {
            outcome: Some(failure.outcome.clone()),
            reason: Some(failure.reason.clone()),
            ..self.record.clone()
        };
        if let Some(vm) = record.vm {
            self.host.note_repeated(vm, &failure.outcome, &record);
        }
    }
}

impl Host {
    /// A record of something that a VM can cause as often as it likes: in full the first times
    /// within a minute, later only counted under `reason` (G11, R5).
    pub(super) fn note_repeated(&self, vm: Uuid, reason: &str, record: &Record) {
        let now = self.uptime();
        let (summary, tell) = {
            let mut state = self.state();
            match state.live.get_mut(&vm) {
                Some(live) => live.refusals.refused(reason, now),
                // It ended a moment ago: there will not be many.
                None => (None, Tell::InFull),
            }
        };
        if let Some(summary) = summary {
            self.note(&summary.record(vm));
        }
        match tell {
            Tell::InFull => self.note(record),
            Tell::Hush => {}
            Tell::Count(after) => {
                if let (Some(me), Ok(runtime)) = (self.arc(), tokio::runtime::Handle::try_current())
                {
                    runtime.spawn(sum_up(me, vm, after));
                }
            }
        }
    }
}

/// Tells what was only counted, once its minute is over.
async fn sum_up(host: Arc<Host>, vm: Uuid, after: Duration) {
    tokio::time::sleep(after).await;
    let now = host.uptime();
    let summary = host
        .state()
        .live
        .get_mut(&vm)
        .and_then(|live| live.refusals.due(now));
    if let Some(summary) = summary {
        host.note(&summary.record(vm));
    }
}

fn granted(work: &Work) -> Option<&Granted> {
    match work {
        Work::Load(_, granted) | Work::Unchanged(granted) => Some(granted),
        Work::Clear => None,
    }
}
