//! The desk at which one VM is served: each request of its session is answered
//! here, for that VM and no other.
//!
//! Knows the VM by what its channel is bound to. No answer depends on where a
//! slot lives (INV3).

mod jobs;

use std::sync::Arc;
use std::time::Duration;

use protocol::message::{
    Describe, DescribeReply, Digest, ErrorReply, FunctionId, ImageEntry, JobQuery, List, ListReply,
    Pong, Ready, Reset, ResetReply, Slot, SlotInfo, SlotState, Watch, WatchReply,
};
use protocol::reply::Reply;
use protocol::request::Request;
use protocol::status::{Detail, Status};
use tokio::net::UnixStream;
use tokio::sync::{broadcast, watch};
use tokio::task::JoinHandle;
use tracing::warn;

use super::abuse::Verdict;
use super::attend::Reservation;
use super::audit::Record;
use super::channel::{End, PeerMismatch, Serve};
use super::chores;
use super::host::Host;
use super::outcome::Failure;
use super::pipeline::Who;
use super::regions::NotNow;
use super::registry::SlotPlan;
use super::session::{self, Guest, Happened};

/// Control bodies are at most 4096 bytes; a page of a list leaves some of them.
const PAGE_BYTES: usize = 3800;
/// Bytes of an image's entry beside its name.
const ENTRY_BYTES: usize = 2 + 8 + 32 + 16 + 8;
/// Requests that a session may have outstanding: answers come in order.
const WINDOW: u16 = 8;

/// One VM's desk.
pub struct Desk {
    host: Arc<Host>,
    who: Who,
}

impl Desk {
    /// For this VM and this start of it.
    #[must_use]
    pub fn new(host: Arc<Host>, who: Who) -> Arc<Self> {
        Arc::new(Self { host, who })
    }

    /// The VM's slots; none, once its generation is over.
    fn slots(&self) -> Vec<SlotPlan> {
        let state = self.host.state();
        if state
            .registry
            .alive(self.who.vm, &self.who.generation)
            .is_none()
        {
            return Vec::new();
        }
        state
            .live
            .get(&self.who.vm)
            .map(|live| live.slots.clone())
            .unwrap_or_default()
    }

    /// The slot that a request means.
    fn slot(&self, asked: Option<Slot>) -> Result<SlotPlan, ErrorReply> {
        let mut slots = self.slots();
        match asked {
            Some(asked) => slots
                .into_iter()
                .find(|slot| slot.slot == asked.0)
                .ok_or_else(|| ErrorReply::new(Status::Denied, Detail::NoSuchSlot)),
            None if slots.len() == 1 => slots
                .pop()
                .ok_or_else(|| ErrorReply::new(Status::Stale, Detail::None)),
            None if slots.is_empty() => Err(ErrorReply::new(Status::Stale, Detail::None)),
            None => Err(ErrorReply {
                slots: slots.iter().map(|slot| Slot(slot.slot)).collect(),
                ..ErrorReply::new(Status::Protocol, Detail::SlotNeeded)
            }),
        }
    }

    /// The slots that a question covers.
    fn covered(&self, asked: Option<Slot>) -> Result<Vec<SlotPlan>, ErrorReply> {
        match asked {
            Some(_) => Ok(vec![self.slot(asked)?]),
            None => Ok(self.slots()),
        }
    }

    fn list(&self, request: &List) -> Result<ListReply, ErrorReply> {
        let mut all = Vec::new();
        for slot in self.covered(request.slot)? {
            let images = self
                .host
                .judge
                .list(self.who.vm, &self.who.tenant, slot.region)
                .map_err(|failure| failure.reply())?;
            all.extend(images.into_iter().map(|image| ImageEntry {
                slot: Slot(slot.slot),
                name: image.name,
                digest: image.digest,
                function_id: image.function_id,
                size: image.size,
            }));
        }
        let (entries, next) = page(all, request.cursor);
        Ok(ListReply { entries, next })
    }

    fn describe(&self, request: &Describe) -> Result<DescribeReply, ErrorReply> {
        let covered = self.covered(request.slot)?;
        let state = self.host.state();
        let slots = covered
            .iter()
            .map(|slot| {
                let region = state.regions.get(slot.region);
                let slot_state = state.regions.slot_state(slot.region, self.who.tag);
                let active = slot_state == SlotState::Active;
                let report = region
                    .and_then(|region| region.report.as_ref())
                    .filter(|_| active);
                let image = region
                    .and_then(|region| region.image.as_ref())
                    .filter(|_| active);
                SlotInfo {
                    slot: Slot(slot.slot),
                    state: slot_state,
                    image: image.map(|image| image.name.clone()),
                    digest: image.map(|image| Digest(image.image_digest)),
                    function_id: report.and_then(|report| report.function).map(FunctionId),
                    since: report.map(|report| report.since),
                    guest_pci: slot.guest_pci.clone(),
                    development: false,
                    job: region
                        .and_then(|region| region.reserved.as_ref())
                        .and_then(|reserved| reserved.by)
                        .filter(|(vm, _key)| *vm == self.who.vm)
                        .map(|(_vm, key)| key),
                }
            })
            .collect();
        Ok(DescribeReply { slots })
    }

    async fn reset(&self, request: &Reset) -> Result<ResetReply, ErrorReply> {
        let slot = self.slot(request.slot)?;
        let number = Slot(slot.slot);
        let active = self
            .host
            .state()
            .regions
            .slot_state(slot.region, self.who.tag);
        match active {
            SlotState::Active => {}
            SlotState::Empty => return Err(ErrorReply::new(Status::Failed, Detail::Empty)),
            SlotState::Changing => {
                let busy = Failure::new(Status::Busy, Detail::None, "busy", "");
                return Err(self.refusal(&busy, slot.region));
            }
            SlotState::Recovering => return Err(ErrorReply::new(Status::Busy, Detail::Scrubbing)),
            SlotState::Unavailable => {
                return Err(ErrorReply::new(Status::Unavailable, Detail::None));
            }
        }
        let reserved = self
            .host
            .state()
            .regions
            .reserve_for_host(slot.region, "a reset by its owner");
        reserved.map_err(|not_now| match not_now {
            NotNow::Busy(_) | NotNow::Recovering => ErrorReply::new(Status::Busy, Detail::None),
            NotNow::Unavailable(_) => ErrorReply::new(Status::Unavailable, Detail::None),
        })?;
        // A task of its own: a connection that ends must not leave the region reserved.
        let reservation = Reservation::of(Arc::clone(&self.host), slot.region);
        let done = tokio::spawn(chores::reset(reservation, self.who.tag)).await;
        let result = done.unwrap_or_else(|lost| {
            let story = lost.to_string();
            Err(Failure::new(
                Status::Failed,
                Detail::None,
                "left-behind",
                story,
            ))
        });
        self.note_reset(&slot, result.as_ref().err());
        result.map_err(|failure| self.refusal(&failure, slot.region))?;
        Ok(ResetReply { slot: number })
    }

    fn note_reset(&self, slot: &SlotPlan, failure: Option<&Failure>) {
        let outcome = failure.map_or("done", |failure| failure.outcome.as_str());
        let record = Record {
            event: "reset",
            vm: Some(self.who.vm),
            tenant: Some(self.who.tenant.clone()),
            generation: Some(self.who.generation.short().to_owned()),
            region: Some(self.host.plan.label(slot.region)),
            slot: Some(slot.slot),
            outcome: Some(outcome.to_owned()),
            reason: failure.map(|failure| failure.reason.clone()),
            words: failure.and_then(|failure| failure.words).map(chores::words),
            ..Record::default()
        };
        let reason = format!("reset: {outcome}");
        self.host.note_repeated(self.who.vm, &reason, &record);
    }
}

impl Guest for Desk {
    fn ready(&self) -> Ready {
        Ready {
            slots: self.slots().iter().map(|slot| Slot(slot.slot)).collect(),
            max_control: 4096,
            window: WINDOW,
        }
    }

    async fn answer(&self, request: Request) -> Reply {
        if self
            .host
            .state()
            .registry
            .alive(self.who.vm, &self.who.generation)
            .is_none()
        {
            return Reply::Error(ErrorReply::new(Status::Stale, Detail::None));
        }
        let reply = match request {
            Request::List(request) => self.list(&request).map(Reply::List),
            Request::Describe(request) => self
                .describe(&request)
                .map(Reply::Describe)
                .map(|reply| self.fitting(reply)),
            Request::Load(request) => self.load(request).await.map(Reply::Load),
            Request::Clear(request) => self.clear(request).await.map(Reply::Clear),
            Request::Reset(request) => self.reset(&request).await.map(Reply::Reset),
            Request::Job(JobQuery { key }) => self.find(key).map(Reply::Job),
            Request::Cancel(request) => self.cancel(&request).map(Reply::Cancel),
            Request::Ping(ping) => Ok(Reply::Ping(Pong {
                payload: ping.payload,
            })),
            // The session answers it itself.
            Request::Watch(_) => Err(ErrorReply::new(Status::Unsupported, Detail::None)),
        };
        reply.unwrap_or_else(Reply::Error)
    }

    fn watch(
        &self,
        request: &Watch,
    ) -> Result<(WatchReply, broadcast::Receiver<Happened>), ErrorReply> {
        let slots = self.covered(request.slot)?;
        let state = self.host.state();
        let live = state
            .live
            .get(&self.who.vm)
            .ok_or_else(|| ErrorReply::new(Status::Stale, Detail::None))?;
        let reply = WatchReply {
            slots: slots.iter().map(|slot| Slot(slot.slot)).collect(),
        };
        Ok((reply, live.events.subscribe()))
    }

    fn framing_error(&self) -> Verdict {
        self.host.framing_error(self.who.vm)
    }

    fn session(&self, open: bool) {
        let mut state = self.host.state();
        let alive = state
            .registry
            .alive(self.who.vm, &self.who.generation)
            .is_some();
        if let Some(live) = state.live.get_mut(&self.who.vm).filter(|_live| alive) {
            live.sessions = if open {
                live.sessions.saturating_add(1)
            } else {
                live.sessions.saturating_sub(1)
            };
        }
    }
}

impl Desk {
    /// An answer about too many slots for one frame becomes the list of them.
    fn fitting(&self, reply: Reply) -> Reply {
        if reply.to_frame(1, 1).is_ok() {
            return reply;
        }
        Reply::Error(ErrorReply {
            slots: self.slots().iter().map(|slot| Slot(slot.slot)).collect(),
            ..ErrorReply::new(Status::TooLarge, Detail::SlotNeeded)
        })
    }
}

impl Serve for Desk {
    fn serve(self: Arc<Self>, stream: UnixStream, over: watch::Receiver<bool>) -> JoinHandle<End> {
        tokio::spawn(session::run(self, stream, over))
    }

    fn refused(&self, why: &PeerMismatch) {
        // Whoever knocks may do so a thousand times a second: the audit counts (G11).
        let record = Record {
            event: "peer-mismatch",
            vm: Some(self.who.vm),
            reason: Some(why.to_string()),
            ..Record::default()
        };
        self.host
            .note_repeated(self.who.vm, "peer-mismatch", &record);
    }

    fn penalized(&self, time: Duration) {
        warn!(vm = %self.who.vm, ?time, "a channel is closed for broken framing");
        self.host.note(&Record {
            event: "penalty",
            vm: Some(self.who.vm),
            tenant: Some(self.who.tenant.clone()),
            reason: Some(format!(
                "too much broken framing: its channel is not heard for {} s",
                time.as_secs()
            )),
            ..Record::default()
        });
    }
}

/// The entries from `cursor` on that fit a frame, and where the next page begins.
pub(super) fn page(all: Vec<ImageEntry>, cursor: u32) -> (Vec<ImageEntry>, Option<u32>) {
    let skip = usize::try_from(cursor).unwrap_or(usize::MAX);
    let total = all.len();
    let mut bytes = 0usize;
    let entries: Vec<ImageEntry> = all
        .into_iter()
        .skip(skip)
        .take_while(|entry| {
            bytes = bytes
                .saturating_add(ENTRY_BYTES)
                .saturating_add(entry.name.len());
            bytes <= PAGE_BYTES
        })
        .collect();
    let reached = skip.saturating_add(entries.len());
    let next = (reached < total && !entries.is_empty())
        .then(|| u32::try_from(reached).ok())
        .flatten();
    (entries, next)
}
