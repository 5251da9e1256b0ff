//! The JSON that the command prints. The shapes are documented in
//! docs/guest.md and stable; the wire's types may change without them.
//!
//! Knows both. Must not know where JSON goes.

use protocol::message::{Event, EventKind, ImageEntry, JobInfo, JobResult, SlotInfo};
use serde::Serialize;

use crate::text;

/// A result that went well: `{"ok":true, …}`.
#[derive(Debug, Serialize)]
pub(crate) struct Fine<T> {
    ok: bool,
    #[serde(flatten)]
    rest: T,
}

impl<T> Fine<T> {
    pub(crate) fn new(rest: T) -> Self {
        Self { ok: true, rest }
    }
}

/// A result that went badly: `{"ok":false, "error":…}`, with the job if one is known.
#[derive(Debug, Serialize)]
pub(crate) struct Bad {
    ok: bool,
    pub(crate) error: Fault,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) job: Option<Job>,
}

impl Bad {
    pub(crate) fn new(error: Fault, job: Option<Job>) -> Self {
        Self {
            ok: false,
            error,
            job,
        }
    }
}

/// What went wrong.
#[derive(Debug, Serialize)]
pub(crate) struct Fault {
    /// A status of the protocol, or a name for what failed on this side.
    pub(crate) code: &'static str,
    /// The protocol's detail; `none` where there is none.
    pub(crate) detail: &'static str,
    pub(crate) message: String,
    pub(crate) remedy: String,
    /// The command's exit code.
    pub(crate) exit: u8,
    /// For `busy`: the job in the way. For a timeout or an interruption: the
    /// job that goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) job_key: Option<String>,
    /// The slots to choose from, where one has to be named.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) slots: Vec<u16>,
    /// Of a file: the byte that is to blame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) offset: Option<usize>,
    /// Of a file: the frame that it is about, in the device's terms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) frame: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Images {
    pub(crate) images: Vec<Image>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Image {
    slot: u16,
    name: String,
    digest: String,
    function_id: String,
    size: u64,
    loaded: bool,
}

impl Image {
    pub(crate) fn new(entry: &ImageEntry, loaded: bool) -> Self {
        Self {
            slot: entry.slot.0,
            name: text::foreign(&entry.name),
            digest: entry.digest.to_string(),
            function_id: entry.function_id.to_string(),
            size: entry.size,
            loaded,
        }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct Slots {
    pub(crate) slots: Vec<SlotView>,
}

#[derive(Debug, Serialize)]
pub(crate) struct SlotView {
    slot: u16,
    state: &'static str,
    image: Option<String>,
    digest: Option<String>,
    function_id: Option<String>,
    since: Option<u64>,
    guest_pci: Option<String>,
    development: bool,
    job: Option<String>,
}

impl From<&SlotInfo> for SlotView {
    fn from(info: &SlotInfo) -> Self {
        Self {
            slot: info.slot.0,
            state: text::state(info.state),
            image: info.image.as_deref().map(text::foreign),
            digest: info.digest.map(|digest| digest.to_string()),
            function_id: info.function_id.map(|id| id.to_string()),
            since: info.since,
            guest_pci: info.guest_pci.as_deref().map(text::foreign),
            development: info.development,
            job: info.job.map(|key| key.to_string()),
        }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct Job {
    key: String,
    kind: &'static str,
    slot: u16,
    image: Option<String>,
    stage: &'static str,
    done: u64,
    total: u64,
    result: Option<Outcome>,
}

impl From<&JobInfo> for Job {
    fn from(info: &JobInfo) -> Self {
        Self {
            key: info.key.to_string(),
            kind: text::kind(info.kind),
            slot: info.slot.0,
            image: info.image.as_deref().map(text::foreign),
            stage: text::stage(info.stage),
            done: info.done,
            total: info.total,
            result: info.result.map(Outcome::from),
        }
    }
}

#[derive(Debug, Serialize)]
struct Outcome {
    status: &'static str,
    detail: &'static str,
    function_id: Option<String>,
    unchanged: bool,
}

impl From<JobResult> for Outcome {
    fn from(result: JobResult) -> Self {
        Self {
            status: result.status.name(),
            detail: result.detail.name(),
            function_id: result.function_id.map(|id| id.to_string()),
            unchanged: result.unchanged,
        }
    }
}

/// A line of progress.
#[derive(Debug, Serialize)]
pub(crate) struct Progress {
    pub(crate) progress: Job,
}

/// The end of a job, or a look at it.
#[derive(Debug, Serialize)]
pub(crate) struct JobView {
    pub(crate) job: Job,
    /// Where the function is, as this VM sees it, if the host was told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) guest_pci: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ResetView {
    pub(crate) slot: u16,
}

#[derive(Debug, Serialize)]
pub(crate) struct PingView {
    pub(crate) milliseconds: f64,
}

/// A line of a watch.
#[derive(Debug, Serialize)]
pub(crate) struct EventLine {
    event: EventView,
}

#[derive(Debug, Serialize)]
struct EventView {
    number: u64,
    slot: u16,
    #[serde(flatten)]
    what: WhatView,
}

#[derive(Debug, Serialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
enum WhatView {
    Progress {
        job: Job,
    },
    Loaded {
        function_id: String,
        guest_pci: Option<String>,
    },
    Cleared,
    Leaving {
        notice_ms: u32,
    },
    Revoked,
    Lost,
}

impl From<&Event> for EventLine {
    fn from(event: &Event) -> Self {
        let what = match &event.what {
            EventKind::Progress(info) => WhatView::Progress { job: info.into() },
            EventKind::Loaded {
                function_id,
                guest_pci,
            } => WhatView::Loaded {
                function_id: function_id.to_string(),
                guest_pci: guest_pci.as_deref().map(text::foreign),
            },
            EventKind::Cleared => WhatView::Cleared,
            EventKind::Leaving { notice_ms } => WhatView::Leaving {
                notice_ms: *notice_ms,
            },
            EventKind::Revoked => WhatView::Revoked,
            EventKind::Lost => WhatView::Lost,
        };
        Self {
            event: EventView {
                number: event.number,
                slot: event.slot.0,
                what,
            },
        }
    }
}

/// What a bitstream file is. What a container does not say is left out.
#[derive(Debug, Default, Serialize)]
pub(crate) struct CheckView {
    pub(crate) format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) interface_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) function_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// The part that the configuration words name, and its IDCODE.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) device: Option<String>,
    /// What is written, in the device's terms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) writes: Option<Vec<String>>,
    pub(crate) payload_offset: usize,
    pub(crate) payload_size: usize,
}
