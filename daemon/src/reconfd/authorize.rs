//! May this VM load this, here, now? What the policy says, what the operator
//! stopped, who else holds the region, and what is active already.
//!
//! Knows the judge and the host's state. Must not know how a job is carried out.

use protocol::message::ImageRef;
use protocol::status::{Detail, Status};

use super::judge::{Granted, Question};
use super::outcome::Failure;
use super::pipeline::Received;
use super::regions::NotNow;
use crate::ipc::Content;

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

/// Decides on a load; the region is not reserved yet.
pub(super) fn load(
    received: &Received,
    image: &ImageRef,
) -> Result<(Question, Box<Granted>), Failure> {
    let host = &received.host;
    let (stopped, sole) = {
        let state = host.state();
        let sole = state
            .registry
            .sole_holder(&host.plan, received.slot.region, received.who.vm);
        (state.stopped.clone(), sole)
    };
    let question = Question {
        vm: received.who.vm,
        tenant: received.who.tenant.clone(),
        region: received.slot.region,
        slots: received.slots.clone(),
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
    Ok((question, granted))
}

/// Whether what is active already is what is asked for. Only the card's own report counts, and
/// an image that this process loaded (CYB-08, XRT-01). Asked once the region is reserved.
pub(super) fn stays(received: &Received, granted: &Granted, again: Again) -> bool {
    let host = &received.host;
    let active = {
        let state = host.state();
        state.regions.get(received.slot.region).and_then(|region| {
            let report = region.report.as_ref()?;
            let mine = report.content == Content::Active
                && report.guest_access
                && report.tag == Some(received.who.tag);
            mine.then(|| (report.digest, region.image.clone()))
        })
    };
    match (again, active) {
        (Again::Force, _) | (_, None) => false,
        (Again::Identical, Some((digest, _))) => digest == granted.facts.digest,
        (Again::AnyVersion, Some((digest, image))) => {
            digest == granted.facts.digest
                || image
                    .is_some_and(|image| unversioned(&image.name) == unversioned(&granted.image))
        }
    }
}

/// `publisher/name` of `publisher/name:version`.
fn unversioned(name: &str) -> &str {
    name.split_once(':').map_or(name, |(head, _version)| head)
}

/// Why a region cannot be reserved, for both worlds.
pub(super) fn not_now(why: NotNow) -> Failure {
    match why {
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
