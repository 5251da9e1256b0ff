//! A small host behind a real socket, in a thread of its own, for the command
//! and for programs that block.

use std::path::PathBuf;
use std::thread::JoinHandle;

use protocol::message::{
    DescribeReply, ErrorReply, Event, EventKind, ImageEntry, JobInfo, JobResult, ListReply, Pong,
    ResetReply, SlotInfo, SlotState, WatchReply,
};
use protocol::status::{Detail, Status};
use protocol::{Reply, Request};
use reconf_client::{Digest, FunctionId, JobKey, JobKind, Slot, Stage};
use tokio::sync::oneshot;

use crate::peer::{Got, Peer};

/// A host that answers as a function says: the first reply is the answer, and
/// after that of a watch the others are its events.
pub(crate) struct Model {
    pub(crate) socket: PathBuf,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    _directory: tempfile::TempDir,
}

impl Model {
    pub(crate) fn start(behave: impl FnMut(Request) -> Vec<Reply> + Send + 'static) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("guest.sock");
        let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        listener.set_nonblocking(true).unwrap();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let listener = tokio::net::UnixListener::from_std(listener).unwrap();
                tokio::select! {
                    _ = stopped => {}
                    () = serve(listener, behave) => {}
                }
            });
        });
        Self {
            socket,
            stop: Some(stop),
            thread: Some(thread),
            _directory: directory,
        }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(
                ended.is_ok() || std::thread::panicking(),
                "the model host panicked"
            );
        }
    }
}

async fn serve(listener: tokio::net::UnixListener, mut behave: impl FnMut(Request) -> Vec<Reply>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let mut peer = Peer::new(stream);
        peer.slots = vec![Slot(0), Slot(1)];
        while let Some(got) = peer.next().await {
            let Got::Request(sequence, request) = got else {
                continue;
            };
            for reply in behave(request) {
                // A guest that has seen enough may be gone.
                let frame = reply.to_frame(peer.session, sequence).unwrap();
                drop(tokio::io::AsyncWriteExt::write_all(&mut peer.stream, &frame).await);
            }
        }
    }
}

pub(crate) const FUNCTION: FunctionId =
    FunctionId(*b"\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff\x00");
pub(crate) const FUNCTION_TEXT: &str = "11223344-5566-7788-99aa-bbccddeeff00";
pub(crate) const PCI: &str = "0000:00:05.0";

/// How the honest host's loads end.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ending {
    Loaded,
    Unchanged,
    Never,
    With(Status, Detail),
}

/// A host with two slots and two images. A load takes three looks.
pub(crate) fn honest(ending: Ending) -> impl FnMut(Request) -> Vec<Reply> + Send + 'static {
    let mut jobs: Vec<(JobInfo, u32)> = Vec::new();
    move |request| match request {
        Request::List(list) => vec![Reply::List(images(list.slot))],
        Request::Describe(ask) => vec![Reply::Describe(describe(ask.slot))],
        Request::Reset(reset) => vec![match reset.slot {
            Some(slot) => Reply::Reset(ResetReply { slot }),
            None => slot_needed(),
        }],
        Request::Ping(ping) => vec![Reply::Ping(Pong {
            payload: ping.payload,
        })],
        Request::Load(load) => vec![match load.slot {
            None => slot_needed(),
            Some(slot) => {
                let info = accepted(load.key, JobKind::Load, slot);
                jobs.push((info.clone(), 0));
                Reply::Load(info)
            }
        }],
        Request::Clear(clear) => vec![match clear.slot {
            None => slot_needed(),
            Some(slot) => {
                let info = accepted(clear.key, JobKind::Clear, slot);
                jobs.push((info.clone(), 0));
                Reply::Clear(info)
            }
        }],
        Request::Job(query) => {
            let Some((info, looks)) = jobs.iter_mut().find(|(info, _)| info.key == query.key)
            else {
                let error = ErrorReply::new(Status::Failed, Detail::NoSuchJob);
                return vec![Reply::Error(error)];
            };
            *looks += 1;
            advance(info, *looks, ending);
            vec![Reply::Job(info.clone())]
        }
        Request::Cancel(_) => {
            vec![Reply::Error(ErrorReply::new(
                Status::Failed,
                Detail::TooLate,
            ))]
        }
        Request::Watch(_) => events(),
    }
}

fn advance(info: &mut JobInfo, looks: u32, ending: Ending) {
    let result = |status, detail, unchanged| JobResult {
        status,
        detail,
        function_id: (status == Status::Ok && info.kind == JobKind::Load).then_some(FUNCTION),
        unchanged,
    };
    (info.stage, info.done, info.result) = match (looks, ending) {
        (1, _) => (Stage::Verifying, 0, None),
        (2, _) | (_, Ending::Never) => (Stage::Writing, 2 << 20, None),
        (_, Ending::Loaded) => (
            Stage::Done,
            4 << 20,
            Some(result(Status::Ok, Detail::None, false)),
        ),
        (_, Ending::Unchanged) => (Stage::Done, 0, Some(result(Status::Ok, Detail::None, true))),
        (_, Ending::With(status, detail)) => {
            (Stage::Done, 2 << 20, Some(result(status, detail, false)))
        }
    };
}

fn accepted(key: JobKey, kind: JobKind, slot: Slot) -> JobInfo {
    JobInfo {
        key,
        kind,
        slot,
        image: (kind == JobKind::Load).then(|| "acme/aes:1.0".into()),
        stage: Stage::Accepted,
        done: 0,
        total: 4 << 20,
        result: None,
    }
}

fn images(slot: Option<Slot>) -> ListReply {
    let all = [
        (0, "acme/aes:1.0", 0xaa),
        (0, "acme/fir:2.0", 0xbb),
        (1, "acme/aes:1.0", 0xaa),
    ];
    let entries = all
        .into_iter()
        .filter(|(at, ..)| slot.is_none_or(|slot| slot.0 == *at))
        .map(|(at, name, byte)| ImageEntry {
            slot: Slot(at),
            name: name.into(),
            digest: Digest([byte; 32]),
            function_id: FUNCTION,
            size: 4 << 20,
        })
        .collect();
    ListReply {
        entries,
        next: None,
    }
}

fn describe(slot: Option<Slot>) -> DescribeReply {
    let active = SlotInfo {
        slot: Slot(0),
        state: SlotState::Active,
        image: Some("acme/aes:1.0".into()),
        digest: Some(Digest([0xaa; 32])),
        function_id: Some(FUNCTION),
        since: Some(1_700_000_000),
        guest_pci: Some(PCI.into()),
        development: false,
        job: None,
    };
    let empty = SlotInfo {
        slot: Slot(1),
        state: SlotState::Empty,
        image: None,
        digest: None,
        function_id: None,
        since: None,
        guest_pci: None,
        development: false,
        job: None,
    };
    let slots = [active, empty]
        .into_iter()
        .filter(|info| slot.is_none_or(|s| s == info.slot))
        .collect();
    DescribeReply { slots }
}

fn slot_needed() -> Reply {
    Reply::Error(ErrorReply {
        status: Status::Protocol,
        detail: Detail::SlotNeeded,
        job: None,
        slots: vec![Slot(0), Slot(1)],
    })
}

fn events() -> Vec<Reply> {
    let what = [
        EventKind::Progress(accepted(JobKey([1; 16]), JobKind::Load, Slot(0))),
        EventKind::Loaded {
            function_id: FUNCTION,
            guest_pci: Some(PCI.into()),
        },
        EventKind::Leaving { notice_ms: 2000 },
        EventKind::Cleared,
        EventKind::Revoked,
        EventKind::Lost,
    ];
    let events = (0..).zip(what).map(|(number, what)| {
        Reply::Event(Event {
            number,
            slot: Slot(0),
            what,
        })
    });
    std::iter::once(Reply::Watch(WatchReply {
        slots: vec![Slot(0), Slot(1)],
    }))
    .chain(events)
    .collect()
}
