//! Requests that make a job, find it, or cancel it.
//!
//! Knows keys and what a request says. Must not know how a job is carried out.

use std::sync::Arc;

use protocol::message::{Cancel, Clear, Digest, ErrorReply, ImageRef, JobInfo, JobKey, Load, Slot};
use protocol::status::{Detail, Status};
use ring::digest::{Context, SHA256};

use super::Desk;
use crate::reconfd::authorize::Again;
use crate::reconfd::jobs::{Job, Known};
use crate::reconfd::outcome::Failure;
use crate::reconfd::pipeline::{self, Received, What};
use crate::reconfd::plan::RegionKey;

impl Desk {
    pub(super) async fn load(&self, request: Load) -> Result<JobInfo, ErrorReply> {
        let body = body_of(&[
            b"load",
            &slot_bytes(request.slot),
            &image_bytes(&request.image),
            &[u8::from(request.if_not_loaded), u8::from(request.force)],
        ]);
        let again = match (request.if_not_loaded, request.force) {
            (_, true) => Again::Force,
            (true, false) => Again::AnyVersion,
            (false, false) => Again::Identical,
        };
        self.job(
            request.key,
            request.slot,
            body,
            What::Load(request.image, again),
        )
        .await
    }

    pub(super) async fn clear(&self, request: Clear) -> Result<JobInfo, ErrorReply> {
        let body = body_of(&[b"clear", &slot_bytes(request.slot)]);
        self.job(request.key, request.slot, body, What::Clear).await
    }

    pub(super) async fn job(
        &self,
        key: JobKey,
        slot: Option<Slot>,
        body: Digest,
        what: What,
    ) -> Result<JobInfo, ErrorReply> {
        if let Some(known) = self.known(key, &body) {
            return known;
        }
        let slot = self.slot(slot)?;
        let region = slot.region;
        let received = Received {
            host: Arc::clone(&self.host),
            who: self.who.clone(),
            slots: self.slots().iter().map(|slot| slot.region).collect(),
            slot,
            key,
            body,
            what,
        };
        match pipeline::start(received).await {
            Ok(info) => Ok(info),
            // The connection before may have asked the same a moment ago: what stands in the way
            // is then the very job that is meant.
            Err(failure) => self
                .known(key, &body)
                .unwrap_or_else(|| Err(self.refusal(&failure, region))),
        }
    }

    /// The job that this key means already.
    pub(super) fn known(&self, key: JobKey, body: &Digest) -> Option<Result<JobInfo, ErrorReply>> {
        let state = self.host.state();
        match state
            .jobs
            .known(self.who.vm, &self.who.generation, key, body)
        {
            Known::New => None,
            Known::Same(job) => Some(Ok(job.info())),
            Known::Reused => Some(Err(ErrorReply::new(Status::Protocol, Detail::KeyReused))),
        }
    }

    /// A busy answer names the job in the way, if it is one of this VM.
    pub(super) fn refusal(&self, failure: &Failure, region: RegionKey) -> ErrorReply {
        let mut reply = failure.reply();
        if reply.status == Status::Busy {
            let state = self.host.state();
            reply.job = state
                .regions
                .get(region)
                .and_then(|region| region.reserved.as_ref()?.by)
                .filter(|(vm, _key)| *vm == self.who.vm)
                .map(|(_vm, key)| key);
        }
        reply
    }

    pub(super) fn find(&self, key: JobKey) -> Result<JobInfo, ErrorReply> {
        self.host
            .state()
            .jobs
            .find(self.who.vm, &self.who.generation, key)
            .map(Job::info)
            .ok_or_else(|| ErrorReply::new(Status::Denied, Detail::NoSuchJob))
    }

    pub(super) fn cancel(&self, request: &Cancel) -> Result<JobInfo, ErrorReply> {
        let info = self.find(request.key)?;
        let cancel = {
            let mut state = self.host.state();
            let id = state
                .jobs
                .find(self.who.vm, &self.who.generation, request.key)
                .map(Job::id);
            id.and_then(|id| state.cancels.remove(&id))
        };
        if cancel.is_some_and(|cancel| cancel.send(()).is_ok()) {
            Ok(info)
        } else {
            Err(ErrorReply::new(Status::Failed, Detail::TooLate))
        }
    }
}

fn slot_bytes(slot: Option<Slot>) -> Vec<u8> {
    slot.map_or_else(
        || vec![0],
        |slot| [&[1][..], &slot.0.to_le_bytes()].concat(),
    )
}

fn image_bytes(image: &ImageRef) -> Vec<u8> {
    match image {
        ImageRef::Name(name) => [b"n", name.as_bytes()].concat(),
        ImageRef::Digest(digest) => [&b"d"[..], &digest.0].concat(),
    }
}

/// SHA-256 over the parts of a request, each with its length: no two requests look the same.
fn body_of(parts: &[&[u8]]) -> Digest {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
        context.update(part);
    }
    let mut digest = [0u8; 32];
    for (to, from) in digest.iter_mut().zip(context.finish().as_ref()) {
        *to = *from;
    }
    Digest(digest)
}
