//! What the books say of a job before it is carried out, or instead.
//!
//! Pure but for the writing of a denial.

use std::sync::Arc;

use protocol::message::{Digest, ImageRef, JobKey};

use super::audit::Record;
use super::host::Host;
use super::identity::unix_now;
use super::jobs::JobRecord;
use super::judge::Granted;
use super::outcome::Failure;
use super::pipeline::{Received, What, Who, Work};
use super::registry::SlotPlan;
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

    pub(super) fn record(&self, failure: &Failure) {
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

fn granted(work: &Work) -> Option<&Granted> {
    match work {
        Work::Load(_, granted) | Work::Unchanged(granted) => Some(granted),
        Work::Clear => None,
    }
}
