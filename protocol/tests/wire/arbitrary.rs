//! Arbitrary requests and replies.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use reconf_protocol::message::{
    Cancel, Clear, Describe, DescribeReply, Digest, ErrorReply, Event, EventKind, FunctionId,
    ImageEntry, ImageRef, JobInfo, JobKey, JobKind, JobQuery, JobResult, List, ListReply, Load,
    Ping, Pong, Reset, ResetReply, Slot, SlotInfo, SlotState, Stage, Watch, WatchReply,
};
use reconf_protocol::{Detail, Reply, Request, Status};

pub(crate) fn slot() -> impl Strategy<Value = Slot> {
    any::<u16>().prop_map(Slot)
}

fn key() -> impl Strategy<Value = JobKey> {
    any::<[u8; 16]>().prop_map(JobKey)
}

fn digest() -> impl Strategy<Value = Digest> {
    any::<[u8; 32]>().prop_map(Digest)
}

fn function_id() -> impl Strategy<Value = FunctionId> {
    any::<[u8; 16]>().prop_map(FunctionId)
}

pub(crate) fn name() -> impl Strategy<Value = String> {
    "[a-z0-9][a-z0-9._-]{0,63}/[a-z0-9][a-z0-9._-]{0,63}(:[A-Za-z0-9._-]{1,64})?"
}

fn image() -> impl Strategy<Value = ImageRef> {
    prop_oneof![
        name().prop_map(ImageRef::Name),
        digest().prop_map(ImageRef::Digest)
    ]
}

pub(crate) fn request() -> impl Strategy<Value = Request> {
    prop_oneof![
        (option::of(slot()), any::<u32>())
            .prop_map(|(slot, cursor)| Request::List(List { slot, cursor })),
        option::of(slot()).prop_map(|slot| Request::Describe(Describe { slot })),
        (key(), option::of(slot()), image(), 0..3_u8).prop_map(|(key, slot, image, how)| {
            let (if_not_loaded, force) = (how == 1, how == 2);
            Request::Load(Load {
                key,
                slot,
                image,
                if_not_loaded,
                force,
            })
        }),
        (key(), option::of(slot())).prop_map(|(key, slot)| Request::Clear(Clear { key, slot })),
        option::of(slot()).prop_map(|slot| Request::Reset(Reset { slot })),
        key().prop_map(|key| Request::Job(JobQuery { key })),
        key().prop_map(|key| Request::Cancel(Cancel { key })),
        option::of(slot()).prop_map(|slot| Request::Watch(Watch { slot })),
        any::<u64>().prop_map(|payload| Request::Ping(Ping { payload })),
    ]
}

fn status() -> impl Strategy<Value = Status> {
    proptest::sample::select(Status::ALL.to_vec())
}

fn detail() -> impl Strategy<Value = Detail> {
    proptest::sample::select(Detail::ALL.to_vec())
}

fn result() -> impl Strategy<Value = JobResult> {
    (status(), detail(), option::of(function_id()), any::<bool>()).prop_map(
        |(status, detail, function_id, unchanged)| JobResult {
            status,
            detail,
            function_id,
            unchanged,
        },
    )
}

fn job() -> impl Strategy<Value = JobInfo> {
    let stages = [
        Stage::Accepted,
        Stage::Verifying,
        Stage::Queued,
        Stage::Isolating,
        Stage::Writing,
        Stage::Checking,
        Stage::Committing,
        Stage::Done,
    ];
    (
        (
            key(),
            proptest::sample::select(vec![JobKind::Load, JobKind::Clear]),
            slot(),
        ),
        (
            option::of(name()),
            proptest::sample::select(stages.to_vec()),
        ),
        (any::<u64>(), any::<u64>(), option::of(result())),
    )
        .prop_map(
            |((key, kind, slot), (image, stage), (done, total, result))| JobInfo {
                key,
                kind,
                slot,
                image,
                stage,
                done,
                total,
                result,
            },
        )
}

fn entry() -> impl Strategy<Value = ImageEntry> {
    (slot(), name(), digest(), function_id(), any::<u64>()).prop_map(
        |(slot, name, digest, function_id, size)| ImageEntry {
            slot,
            name,
            digest,
            function_id,
            size,
        },
    )
}

fn info() -> impl Strategy<Value = SlotInfo> {
    let states = [
        SlotState::Empty,
        SlotState::Changing,
        SlotState::Active,
        SlotState::Recovering,
        SlotState::Unavailable,
    ];
    (
        (
            slot(),
            proptest::sample::select(states.to_vec()),
            option::of(name()),
        ),
        (
            option::of(digest()),
            option::of(function_id()),
            option::of(any::<u64>()),
        ),
        (
            option::of("[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\\.[0-7]"),
            any::<bool>(),
        ),
        option::of(key()),
    )
        .prop_map(
            |((slot, state, image), (digest, function_id, since), pci, job)| SlotInfo {
                slot,
                state,
                image,
                digest,
                function_id,
                since,
                guest_pci: pci.0,
                development: pci.1,
                job,
            },
        )
}

fn event() -> impl Strategy<Value = Event> {
    let what = prop_oneof![
        job().prop_map(EventKind::Progress),
        (
            function_id(),
            option::of("[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\\.[0-7]")
        )
            .prop_map(|(function_id, guest_pci)| EventKind::Loaded {
                function_id,
                guest_pci
            }),
        Just(EventKind::Cleared),
        any::<u32>().prop_map(|notice_ms| EventKind::Leaving { notice_ms }),
        Just(EventKind::Revoked),
        Just(EventKind::Lost),
    ];
    (any::<u64>(), slot(), what).prop_map(|(number, slot, what)| Event { number, slot, what })
}

pub(crate) fn reply() -> impl Strategy<Value = Reply> {
    prop_oneof![
        (vec(entry(), 0..12), option::of(any::<u32>()))
            .prop_map(|(entries, next)| Reply::List(ListReply { entries, next })),
        vec(info(), 0..10).prop_map(|slots| Reply::Describe(DescribeReply { slots })),
        job().prop_map(Reply::Load),
        job().prop_map(Reply::Clear),
        slot().prop_map(|slot| Reply::Reset(ResetReply { slot })),
        job().prop_map(Reply::Job),
        job().prop_map(Reply::Cancel),
        vec(slot(), 0..40).prop_map(|slots| Reply::Watch(WatchReply { slots })),
        any::<u64>().prop_map(|payload| Reply::Ping(Pong { payload })),
        (status(), detail(), option::of(key()), vec(slot(), 0..40)).prop_map(
            |(status, detail, job, slots)| {
                Reply::Error(ErrorReply {
                    status,
                    detail,
                    job,
                    slots,
                })
            }
        ),
        event().prop_map(Reply::Event),
    ]
}
