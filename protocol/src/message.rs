//! The messages of protocol version 1: one type a frame kind.
//!
//! Knows shapes and bounds. Must not know sockets, policy, or where a slot
//! lives on the host.

use bincode::{Decode, Encode};

use crate::status::{Detail, Status};

/// 16 random bytes that a guest gives a job; the same key finds the same job again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Encode, Decode)]
pub struct JobKey(pub [u8; 16]);

/// The guest's own number for a region it has: 0, 1, …
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Encode, Decode)]
pub struct Slot(pub u16);

/// SHA-256.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Encode, Decode)]
pub struct Digest(pub [u8; 32]);

/// The UUID of the function in a bitstream, in the order in which it is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Encode, Decode)]
pub struct FunctionId(pub [u8; 16]);

/// Which image a load asks for.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ImageRef {
    /// `publisher/name:version`, or `publisher/name` for the newest allowed.
    Name(String),
    /// The digest of an image as `list` shows it.
    Digest(Digest),
}

/// First message of a session, from the guest.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Hello {
    /// The guest's nonce.
    pub nonce: [u8; 16],
    /// Highest minor version that the guest speaks.
    pub minor: u16,
}

/// The host's answer to [`Hello`].
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Welcome {
    /// The guest's nonce, echoed.
    pub guest_nonce: [u8; 16],
    /// The host's nonce.
    pub host_nonce: [u8; 16],
    /// The minor version of this session.
    pub minor: u16,
}

/// The guest's echo, which opens the session.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Confirm {
    /// The host's nonce, echoed.
    pub host_nonce: [u8; 16],
}

/// The session is open.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Ready {
    /// The slots that the VM has, ascending.
    pub slots: Vec<Slot>,
    /// Longest control body, in bytes.
    pub max_control: u32,
    /// How many requests may be outstanding.
    pub window: u16,
}

/// Which images may I load?
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct List {
    /// Only for this slot.
    pub slot: Option<Slot>,
    /// Where to go on: 0, or `next` of the page before.
    pub cursor: u32,
}

/// One image that may be loaded into one slot.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ImageEntry {
    /// The slot it fits.
    pub slot: Slot,
    /// `publisher/name:version`.
    pub name: String,
    /// The image's digest, over its set of variants.
    pub digest: Digest,
    /// The function that appears.
    pub function_id: FunctionId,
    /// Bytes of the bitstream that this host would load.
    pub size: u64,
}

/// A page of the list, ordered by slot and name.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ListReply {
    /// The entries of this page.
    pub entries: Vec<ImageEntry>,
    /// The cursor of the next page, if there is one.
    pub next: Option<u32>,
}

/// What is in my slots?
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Describe {
    /// Only this slot.
    pub slot: Option<Slot>,
}

/// What a slot holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Encode, Decode)]
#[repr(u8)]
pub enum SlotState {
    /// No function.
    Empty,
    /// A job changes it now.
    Changing,
    /// A function runs.
    Active,
    /// The host makes it safe after a failure; loads wait for that.
    Recovering,
    /// The host cannot say or cannot serve it now.
    Unavailable,
}

/// One slot.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SlotInfo {
    /// Its number.
    pub slot: Slot,
    /// Its state.
    pub state: SlotState,
    /// The image in it, if it was loaded by name.
    pub image: Option<String>,
    /// The digest of that image.
    pub digest: Option<Digest>,
    /// The function in it.
    pub function_id: Option<FunctionId>,
    /// Since when, seconds of Unix time.
    pub since: Option<u64>,
    /// The PCI address under which the guest sees the function, if the host was told.
    pub guest_pci: Option<String>,
    /// Loaded with a development key.
    pub development: bool,
    /// The job that changes it now, if it is one of this VM.
    pub job: Option<JobKey>,
}

/// Every slot asked for.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct DescribeReply {
    /// The slots, ascending.
    pub slots: Vec<SlotInfo>,
}

/// Load an image.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Load {
    /// Finds the job again.
    pub key: JobKey,
    /// The slot; may be left out where the VM has one.
    pub slot: Option<Slot>,
    /// What to load.
    pub image: ImageRef,
    /// Do nothing where the very image is active already (the answer is the same `ok`).
    pub if_not_loaded: bool,
    /// Load although the very image is active already.
    pub force: bool,
}

/// Take the function away and leave the slot empty.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Clear {
    /// Finds the job again.
    pub key: JobKey,
    /// The slot; may be left out where the VM has one.
    pub slot: Option<Slot>,
}

/// Reset the function in a slot, without loading anything.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Reset {
    /// The slot; may be left out where the VM has one.
    pub slot: Option<Slot>,
}

/// The reset is done.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ResetReply {
    /// The slot that was reset.
    pub slot: Slot,
}

/// How is that job?
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct JobQuery {
    /// Its key.
    pub key: JobKey,
}

/// Cancel a job that still waits.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Cancel {
    /// Its key.
    pub key: JobKey,
}

/// What a job does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Encode, Decode)]
#[repr(u8)]
pub enum JobKind {
    /// A load.
    Load,
    /// A clear.
    Clear,
}

/// How far a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Encode, Decode)]
#[repr(u8)]
pub enum Stage {
    /// Accepted.
    Accepted,
    /// Its bytes are being checked.
    Verifying,
    /// Waits for the card.
    Queued,
    /// The region is being shut.
    Isolating,
    /// Words go to the card.
    Writing,
    /// The card's verdict and the function's identity are read.
    Checking,
    /// The host gives its last consent.
    Committing,
    /// Ended; `result` tells how.
    Done,
}

/// A job as its owner sees it. Also the answer to [`Load`], [`Clear`] and [`Cancel`].
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct JobInfo {
    /// Its key.
    pub key: JobKey,
    /// What it does.
    pub kind: JobKind,
    /// Its slot.
    pub slot: Slot,
    /// `publisher/name:version` as resolved, for a load by name.
    pub image: Option<String>,
    /// How far it is.
    pub stage: Stage,
    /// Bytes written so far.
    pub done: u64,
    /// Bytes to write in all; 0 while not known.
    pub total: u64,
    /// How it ended, once `stage` is `Done`.
    pub result: Option<JobResult>,
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Encode, Decode)]
pub struct JobResult {
    /// The code.
    pub status: Status,
    /// What more may be told.
    pub detail: Detail,
    /// The function now in the slot, for a load that ended well.
    pub function_id: Option<FunctionId>,
    /// Nothing was written, since the very image was active already.
    pub unchanged: bool,
}

/// Tell me what happens. The answer is [`WatchReply`], then [`Event`]s.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Watch {
    /// Only this slot.
    pub slot: Option<Slot>,
}

/// Events follow from here on.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct WatchReply {
    /// The slots watched.
    pub slots: Vec<Slot>,
}

/// Something happened. Its frame carries the sequence number of the [`Watch`].
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Event {
    /// Counts the events of this watch from 0; a gap tells of events that were dropped.
    pub number: u64,
    /// The slot it concerns.
    pub slot: Slot,
    /// What happened.
    pub what: EventKind,
}

/// What happened to a slot.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum EventKind {
    /// A job went on, or ended.
    Progress(JobInfo),
    /// A function appeared: the guest should probe its device again.
    Loaded {
        /// The function.
        function_id: FunctionId,
        /// The guest's PCI address of it, if known.
        guest_pci: Option<String>,
    },
    /// The slot is empty now.
    Cleared,
    /// The host takes the function away after the notice.
    Leaving {
        /// Milliseconds left.
        notice_ms: u32,
    },
    /// The image that runs was revoked.
    Revoked,
    /// The function is gone; the host cannot say when it comes back.
    Lost,
}

/// Are you there?
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Ping {
    /// Comes back in the [`Pong`].
    pub payload: u64,
}

/// Yes.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Pong {
    /// What the [`Ping`] carried.
    pub payload: u64,
}

/// The request was not done. Every `denied` is the same, byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ErrorReply {
    /// The code.
    pub status: Status,
    /// What more may be told.
    pub detail: Detail,
    /// The job in the way, for `busy`; only if it is one of this VM.
    pub job: Option<JobKey>,
    /// The slots to choose from, for `SlotNeeded`.
    pub slots: Vec<Slot>,
}
