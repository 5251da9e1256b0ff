//! The test vectors: every message, every way to break one, and some streams.

use reconf_protocol::message::{
    Cancel, Clear, Confirm, Describe, DescribeReply, Digest, ErrorReply, Event, EventKind,
    FunctionId, Hello, ImageEntry, ImageRef, JobInfo, JobKey, JobKind, JobQuery, JobResult, List,
    ListReply, Load, Ping, Pong, Ready, Reset, ResetReply, Slot, SlotInfo, SlotState, Stage, Watch,
    WatchReply, Welcome,
};
use reconf_protocol::{Body, Detail, Header, Kind, Reply, Request, Status, encode};

pub(crate) const SESSION: u64 = 0x1122_3344_5566;
pub(crate) const GUEST_NONCE: [u8; 16] = *b"guest nonce 0123";
pub(crate) const HOST_NONCE: [u8; 16] = *b"host nonce 45678";
const KEY: JobKey = JobKey(*b"a key for a job!");
const FUNCTION: FunctionId = FunctionId([
    0x5a, 0x7e, 0x2c, 0x10, 0x3d, 0x4b, 0x4f, 0x68, 0x92, 0xa1, 0xc0, 0xd9, 0xe8, 0xb7, 0xa6, 0xf5,
]);
const DIGEST: Digest = Digest([0xAB; 32]);

type Named = (&'static str, Vec<u8>);

pub(crate) fn handshake() -> Vec<Named> {
    fn of(kind: Kind, session: u64, body: &impl Body) -> Vec<u8> {
        encode(kind, session, 0, body).unwrap()
    }
    let welcome = Welcome {
        guest_nonce: GUEST_NONCE,
        host_nonce: HOST_NONCE,
        minor: 0,
    };
    let ready = Ready {
        slots: vec![Slot(0), Slot(1)],
        max_control: 4096,
        window: 8,
    };
    vec![
        (
            "hello",
            of(
                Kind::HELLO,
                0,
                &Hello {
                    nonce: GUEST_NONCE,
                    minor: 0,
                },
            ),
        ),
        ("welcome", of(Kind::WELCOME, 0, &welcome)),
        (
            "confirm",
            of(
                Kind::CONFIRM,
                0,
                &Confirm {
                    host_nonce: HOST_NONCE,
                },
            ),
        ),
        ("ready", of(Kind::READY, SESSION, &ready)),
    ]
}

fn load(image: ImageRef) -> Load {
    Load {
        key: KEY,
        slot: Some(Slot(1)),
        image,
        if_not_loaded: false,
        force: false,
    }
}

pub(crate) fn requests() -> Vec<Named> {
    let name = |text: &str| ImageRef::Name(text.to_owned());
    let any = Load {
        slot: None,
        if_not_loaded: true,
        ..load(name("acme/crypto"))
    };
    let again = Load {
        force: true,
        ..load(name("acme/crypto:1.0"))
    };
    [
        (
            "list",
            Request::List(List {
                slot: None,
                cursor: 0,
            }),
        ),
        (
            "list a slot, second page",
            Request::List(List {
                slot: Some(Slot(1)),
                cursor: 12,
            }),
        ),
        ("describe", Request::Describe(Describe { slot: None })),
        (
            "describe a slot",
            Request::Describe(Describe {
                slot: Some(Slot(258)),
            }),
        ),
        ("load by name", Request::Load(load(name("acme/crypto:1.0")))),
        (
            "load by digest",
            Request::Load(load(ImageRef::Digest(DIGEST))),
        ),
        ("load if not loaded", Request::Load(any)),
        ("load by force", Request::Load(again)),
        (
            "clear",
            Request::Clear(Clear {
                key: KEY,
                slot: None,
            }),
        ),
        (
            "reset",
            Request::Reset(Reset {
                slot: Some(Slot(0)),
            }),
        ),
        ("job", Request::Job(JobQuery { key: KEY })),
        ("cancel", Request::Cancel(Cancel { key: KEY })),
        ("watch", Request::Watch(Watch { slot: None })),
        (
            "ping",
            Request::Ping(Ping {
                payload: 0x0102_0304_0506,
            }),
        ),
    ]
    .into_iter()
    .zip(1..)
    .map(|((name, request), sequence)| (name, request.to_frame(SESSION, sequence).unwrap()))
    .collect()
}

fn job(stage: Stage, result: Option<JobResult>) -> JobInfo {
    JobInfo {
        key: KEY,
        kind: JobKind::Load,
        slot: Slot(1),
        image: Some("acme/crypto:1.0".to_owned()),
        stage,
        done: 1_048_576,
        total: 4_194_304,
        result,
    }
}

fn slots() -> Vec<SlotInfo> {
    let empty = SlotInfo {
        slot: Slot(0),
        state: SlotState::Empty,
        image: None,
        digest: None,
        function_id: None,
        since: None,
        guest_pci: None,
        development: false,
        job: None,
    };
    let active = SlotInfo {
        slot: Slot(1),
        state: SlotState::Active,
        image: Some("acme/crypto:1.0".to_owned()),
        digest: Some(DIGEST),
        function_id: Some(FUNCTION),
        since: Some(1_760_000_000),
        guest_pci: Some("0000:06:00.0".to_owned()),
        development: true,
        job: Some(KEY),
    };
    vec![empty, active]
}

pub(crate) fn replies() -> Vec<Named> {
    let entry = ImageEntry {
        slot: Slot(1),
        name: "acme/crypto:1.0".to_owned(),
        digest: DIGEST,
        function_id: FUNCTION,
        size: 4_194_304,
    };
    let result = |status, detail, function_id| {
        Some(JobResult {
            status,
            detail,
            function_id,
            unchanged: false,
        })
    };
    let well = result(Status::Ok, Detail::None, Some(FUNCTION));
    let cancelled = result(Status::Failed, Detail::Cancelled, None);
    let busy = ErrorReply {
        job: Some(KEY),
        ..ErrorReply::new(Status::Busy, Detail::None)
    };
    let needed = ErrorReply {
        slots: vec![Slot(0), Slot(1)],
        ..ErrorReply::new(Status::Protocol, Detail::SlotNeeded)
    };
    let cleared = JobInfo {
        kind: JobKind::Clear,
        image: None,
        ..job(Stage::Isolating, None)
    };
    [
        (
            "list reply",
            Reply::List(ListReply {
                entries: vec![entry],
                next: Some(12),
            }),
        ),
        (
            "list reply, empty",
            Reply::List(ListReply {
                entries: vec![],
                next: None,
            }),
        ),
        (
            "describe reply",
            Reply::Describe(DescribeReply { slots: slots() }),
        ),
        ("load reply", Reply::Load(job(Stage::Accepted, None))),
        ("clear reply", Reply::Clear(cleared)),
        ("reset reply", Reply::Reset(ResetReply { slot: Slot(0) })),
        ("job reply, ended well", Reply::Job(job(Stage::Done, well))),
        ("cancel reply", Reply::Cancel(job(Stage::Done, cancelled))),
        (
            "watch reply",
            Reply::Watch(WatchReply {
                slots: vec![Slot(0), Slot(1)],
            }),
        ),
        (
            "ping reply",
            Reply::Ping(Pong {
                payload: 0x0102_0304_0506,
            }),
        ),
        ("error: denied", Reply::Error(ErrorReply::denied())),
        ("error: busy, with the job in the way", Reply::Error(busy)),
        ("error: slot needed", Reply::Error(needed)),
    ]
    .into_iter()
    .chain(events())
    .zip(1..)
    .map(|((name, reply), sequence)| (name, reply.to_frame(SESSION, sequence).unwrap()))
    .collect()
}

fn events() -> [(&'static str, Reply); 6] {
    let event = |number, what| {
        Reply::Event(Event {
            number,
            slot: Slot(1),
            what,
        })
    };
    let loaded = EventKind::Loaded {
        function_id: FUNCTION,
        guest_pci: Some("0000:06:00.0".to_owned()),
    };
    [
        (
            "event: progress",
            event(0, EventKind::Progress(job(Stage::Writing, None))),
        ),
        ("event: loaded", event(1, loaded)),
        ("event: cleared", event(2, EventKind::Cleared)),
        (
            "event: leaving",
            event(3, EventKind::Leaving { notice_ms: 2000 }),
        ),
        ("event: revoked", event(4, EventKind::Revoked)),
        ("event: lost", event(5, EventKind::Lost)),
    ]
}

/// A frame with right checksums around any body.
fn around(kind: Kind, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap();
    let body_crc = crc32c::crc32c(body);
    let header = Header {
        kind,
        session: SESSION,
        sequence: 1,
        length,
        body_crc,
    };
    [&header.to_bytes()[..], body].concat()
}

/// A frame with one header byte changed and the header's checksum made right.
fn changed(frame: &[u8], at: usize, value: u8) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[at] = value;
    let crc = crc32c::crc32c(&frame[..28]);
    frame[28..32].copy_from_slice(&crc.to_le_bytes());
    frame
}

fn flipped(frame: &[u8], at: usize) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[at] ^= 1;
    frame
}

/// Bytes that are no frame at all.
pub(crate) fn broken() -> Vec<Named> {
    let ping = Request::Ping(Ping { payload: 1 })
        .to_frame(SESSION, 1)
        .unwrap();
    vec![
        ("no magic", flipped(&ping, 0)),
        ("a header byte changed", flipped(&ping, 9)),
        ("another version", changed(&ping, 4, 2)),
        ("a flag set", changed(&ping, 5, 1)),
        (
            "a control body of 4097 bytes",
            changed(&changed(&ping, 20, 1), 21, 16),
        ),
        ("a body byte changed", flipped(&ping, 32)),
    ]
}

/// Frames whose framing is right and whose body is not to be served.
pub(crate) fn refused() -> Vec<Named> {
    let text = |text: &[u8]| {
        let length = u64::try_from(text.len()).unwrap().to_le_bytes();
        let tail = [0, 0];
        let body = [&KEY.0[..], &[0], &[0, 0, 0, 0], &length, text, &tail].concat();
        around(Kind::LOAD, &body)
    };
    let both = Load {
        if_not_loaded: true,
        force: true,
        ..load(ImageRef::Name("acme/crypto:1.0".to_owned()))
    };
    let huge = [&KEY.0[..], &[0], &[0, 0, 0, 0], &[0xFF; 8]].concat();
    vec![
        ("a byte follows the message", around(Kind::PING, &[0; 9])),
        ("the message is cut", around(Kind::PING, &[0; 7])),
        ("an option's tag is 2", around(Kind::DESCRIBE, &[2, 0, 0])),
        (
            "a variant that is none",
            around(Kind::LOAD, &[&KEY.0[..], &[0, 2, 0, 0, 0]].concat()),
        ),
        (
            "a bool is 2",
            around(
                Kind::LOAD,
                &[&KEY.0[..], &[0, 1, 0, 0, 0], &[0; 32], &[2, 0]].concat(),
            ),
        ),
        ("a text of 2^64 - 1 bytes", around(Kind::LOAD, &huge)),
        ("a text that is no UTF-8", text(b"acme/\xFF")),
        ("an empty name", text(b"")),
        ("an upper-case name", text(b"Acme/crypto")),
        ("a control byte in a name", text(b"acme/crypto\n")),
        (
            "a digest as a name",
            text(&[b"sha256:", &[b'a'; 64][..]].concat()),
        ),
        (
            "if-not-loaded and force",
            Request::Load(both).to_frame(SESSION, 1).unwrap(),
        ),
        ("history, which is reserved", around(Kind::HISTORY, &[])),
        (
            "an upload, which is reserved",
            around(Kind::UPLOAD_FIRST, &[1, 2, 3]),
        ),
        ("a kind that nobody knows", around(Kind(0x0777), &[1, 2, 3])),
    ]
}

/// Streams, and what a host finds in them.
pub(crate) fn streams() -> Vec<Named> {
    let hello = encode(
        Kind::HELLO,
        0,
        0,
        &Hello {
            nonce: GUEST_NONCE,
            minor: 0,
        },
    )
    .unwrap();
    let ping = Request::Ping(Ping { payload: 1 })
        .to_frame(SESSION, 1)
        .unwrap();
    let dead = around(Kind::LOAD, &[0x55; 200]);
    vec![
        ("junk, then a hello", [b"login: RCN", &hello[..]].concat()),
        (
            "half a header, then a hello",
            [&dead[..20], &hello].concat(),
        ),
        (
            "half a body, then a hello, and no more",
            [&dead[..100], &hello].concat(),
        ),
        (
            "a body that lacks ten bytes, then a hello",
            [&dead[..222], &hello].concat(),
        ),
        ("a false magic, then a ping", [b"RCNF", &ping[..]].concat()),
        ("a broken body with a ping inside", {
            let mut outer = around(Kind::LOAD, &[&[1; 50][..], &ping].concat());
            outer[40] ^= 1;
            outer
        }),
    ]
}
