//! Messages as the JSON of the test vectors. Written by hand, field by field,
//! so that it is a second statement of what a message holds.

use reconf_protocol::message::{
    Confirm, ErrorReply, Event, EventKind, Hello, ImageRef, JobInfo, JobKind, JobResult, Load,
    Ready, Slot, SlotInfo, SlotState, Stage, Welcome,
};
use reconf_protocol::{Frame, Kind, Reply, Request, decode};
use serde_json::{Value, json};

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn unhex(text: &str) -> Vec<u8> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    assert!(rest.is_empty());
    pairs
        .iter()
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// The body of a frame, read by its kind.
pub(crate) fn body(frame: &Frame<'_>) -> Value {
    match frame.header.kind {
        Kind::HELLO => {
            let Hello { nonce, minor } = decode(frame).unwrap();
            json!({ "nonce": hex(&nonce), "minor": minor })
        }
        Kind::WELCOME => {
            let Welcome {
                guest_nonce,
                host_nonce,
                minor,
            } = decode(frame).unwrap();
            json!({ "guest_nonce": hex(&guest_nonce), "host_nonce": hex(&host_nonce), "minor": minor })
        }
        Kind::CONFIRM => {
            let Confirm { host_nonce } = decode(frame).unwrap();
            json!({ "host_nonce": hex(&host_nonce) })
        }
        Kind::READY => {
            let Ready {
                slots,
                max_control,
                window,
            } = decode(frame).unwrap();
            json!({ "slots": numbers(&slots), "max_control": max_control, "window": window })
        }
        kind if kind.is_from_host() => reply(&Reply::from_frame(frame).unwrap()),
        _ => request(&Request::from_frame(frame).unwrap()),
    }
}

fn request(request: &Request) -> Value {
    match request {
        Request::List(list) => json!({ "slot": slot(list.slot), "cursor": list.cursor }),
        Request::Describe(describe) => json!({ "slot": slot(describe.slot) }),
        Request::Load(Load {
            key,
            slot: of,
            image,
            if_not_loaded,
            force,
        }) => {
            let image = match image {
                ImageRef::Name(name) => json!({ "name": name }),
                ImageRef::Digest(digest) => json!({ "digest": hex(&digest.0) }),
            };
            json!({
                "key": hex(&key.0), "slot": slot(*of), "image": image,
                "if_not_loaded": if_not_loaded, "force": force,
            })
        }
        Request::Clear(clear) => json!({ "key": hex(&clear.key.0), "slot": slot(clear.slot) }),
        Request::Reset(reset) => json!({ "slot": slot(reset.slot) }),
        Request::Job(query) => json!({ "key": hex(&query.key.0) }),
        Request::Cancel(cancel) => json!({ "key": hex(&cancel.key.0) }),
        Request::Watch(watch) => json!({ "slot": slot(watch.slot) }),
        Request::Ping(ping) => json!({ "payload": ping.payload }),
    }
}

fn reply(reply: &Reply) -> Value {
    match reply {
        Reply::List(list) => {
            let entry = |entry: &reconf_protocol::message::ImageEntry| {
                json!({
                    "slot": entry.slot.0, "name": entry.name, "digest": hex(&entry.digest.0),
                    "function_id": hex(&entry.function_id.0), "size": entry.size,
                })
            };
            let entries: Vec<Value> = list.entries.iter().map(entry).collect();
            json!({ "entries": entries, "next": list.next })
        }
        Reply::Describe(describe) => {
            json!({ "slots": describe.slots.iter().map(slot_info).collect::<Vec<_>>() })
        }
        Reply::Load(job) | Reply::Clear(job) | Reply::Job(job) | Reply::Cancel(job) => {
            job_info(job)
        }
        Reply::Reset(reset) => json!({ "slot": reset.slot.0 }),
        Reply::Watch(watch) => json!({ "slots": numbers(&watch.slots) }),
        Reply::Ping(pong) => json!({ "payload": pong.payload }),
        Reply::Error(ErrorReply {
            status,
            detail,
            job,
            slots,
        }) => json!({
            "status": status.name(), "detail": detail.name(),
            "job": job.map(|key| hex(&key.0)), "slots": numbers(slots),
        }),
        Reply::Event(Event { number, slot, what }) => {
            json!({ "number": number, "slot": slot.0, "what": event_kind(what) })
        }
    }
}

fn event_kind(what: &EventKind) -> Value {
    match what {
        EventKind::Progress(job) => json!({ "progress": job_info(job) }),
        EventKind::Loaded {
            function_id,
            guest_pci,
        } => {
            json!({ "loaded": { "function_id": hex(&function_id.0), "guest_pci": guest_pci } })
        }
        EventKind::Cleared => json!("cleared"),
        EventKind::Leaving { notice_ms } => json!({ "leaving": { "notice_ms": notice_ms } }),
        EventKind::Revoked => json!("revoked"),
        EventKind::Lost => json!("lost"),
    }
}

fn slot_info(info: &SlotInfo) -> Value {
    let state = match info.state {
        SlotState::Empty => "empty",
        SlotState::Changing => "changing",
        SlotState::Active => "active",
        SlotState::Recovering => "recovering",
        SlotState::Unavailable => "unavailable",
    };
    json!({
        "slot": info.slot.0, "state": state, "image": info.image,
        "digest": info.digest.map(|digest| hex(&digest.0)),
        "function_id": info.function_id.map(|id| hex(&id.0)),
        "since": info.since, "guest_pci": info.guest_pci, "development": info.development,
        "job": info.job.map(|key| hex(&key.0)),
    })
}

fn job_info(job: &JobInfo) -> Value {
    let kind = match job.kind {
        JobKind::Load => "load",
        JobKind::Clear => "clear",
    };
    let stage = match job.stage {
        Stage::Accepted => "accepted",
        Stage::Verifying => "verifying",
        Stage::Queued => "queued",
        Stage::Isolating => "isolating",
        Stage::Writing => "writing",
        Stage::Checking => "checking",
        Stage::Committing => "committing",
        Stage::Done => "done",
    };
    let result = |JobResult {
                      status,
                      detail,
                      function_id,
                      unchanged,
                  }: JobResult| {
        json!({
            "status": status.name(), "detail": detail.name(),
            "function_id": function_id.map(|id| hex(&id.0)), "unchanged": unchanged,
        })
    };
    json!({
        "key": hex(&job.key.0), "kind": kind, "slot": job.slot.0, "image": job.image,
        "stage": stage, "done": job.done, "total": job.total, "result": job.result.map(result),
    })
}

fn slot(slot: Option<Slot>) -> Option<u16> {
    slot.map(|slot| slot.0)
}

fn numbers(slots: &[Slot]) -> Vec<u16> {
    slots.iter().map(|slot| slot.0).collect()
}
