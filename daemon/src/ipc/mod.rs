//! What `reconfd` and a `reconf-card` say to each other: fixed packets of 512
//! bytes over one SEQPACKET Unix socket, a dozen kinds, one memfd beside an
//! [`ToCard::Offer`].
//!
//! Knows layout and bounds. Must not know sessions, grants or registers.
//! `reconf-card` trusts none of what it receives: decoding is strict, and each
//! value is checked again where it is used.

mod packet;
pub mod socket;

use thiserror::Error;

pub use packet::{PACKET_LEN, Packet};

/// The version of this protocol; both ends must say the same.
pub const VERSION: u16 = 1;

/// Longest target path, in bytes.
pub const MAX_TARGET: usize = 255;

/// Longest explanation for the operator, in bytes. Longer ones are cut.
pub const MAX_TEXT: usize = 96;

/// A job's number between the two processes. Chosen by `reconfd`, never by a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobId(pub [u8; 16]);

impl JobId {
    /// As 32 hex digits.
    #[must_use]
    pub fn to_hex(self) -> String {
        crate::hex::encode(&self.0)
    }
}

/// Number of a region within its card, as the shell file orders them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RegionIndex(pub u16);

/// The owner of a region as `reconf-card` knows it: opaque, compared for equality.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OwnerTag(pub [u8; 32]);

/// SHA-256 of a bitstream.
pub type DigestBytes = [u8; 32];

/// A relative path of a target in the repository, already checked for length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetPath(String);

impl TargetPath {
    /// Checks the length only; the meaning is the verifier's business.
    ///
    /// # Errors
    /// [`IpcError::Field`] if it is empty or longer than [`MAX_TARGET`] bytes.
    pub fn new(path: impl Into<String>) -> Result<Self, IpcError> {
        let path = path.into();
        if path.is_empty() || path.len() > MAX_TARGET {
            return Err(IpcError::Field {
                field: "target path",
            });
        }
        Ok(Self(path))
    }

    /// The path.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// From `reconfd` to `reconf-card`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToCard {
    /// First packet of a connection. The answer is one [`FromCard::Region`] a region.
    Hello,
    /// A job whose sealed bytes come beside this packet. Verified at once, written after `Go`.
    Offer {
        /// The job.
        job: JobId,
        /// Where to.
        region: RegionIndex,
        /// What the bytes must hash to.
        digest: DigestBytes,
        /// Who will own the region.
        tag: OwnerTag,
        /// Which target of the signed metadata it claims to be.
        target: TargetPath,
    },
    /// `reconfd` has verified its side: write.
    Go {
        /// The job.
        job: JobId,
    },
    /// The last consent, after [`FromCard::Written`].
    Commit {
        /// The job.
        job: JobId,
    },
    /// Give the job up. What was begun ends in a quarantine and a scrub.
    Abort {
        /// The job.
        job: JobId,
    },
    /// Load the blank image. Needs no metadata.
    Scrub {
        /// The job.
        job: JobId,
        /// Where.
        region: RegionIndex,
        /// The owner that keeps the region (a guest's `clear`); `None` ends the ownership.
        keep: Option<OwnerTag>,
    },
    /// Reset the function of an active region.
    Reset {
        /// The job.
        job: JobId,
        /// Where.
        region: RegionIndex,
        /// Who owns it.
        tag: OwnerTag,
    },
    /// After a restart: what was committed may be reached again.
    Reopen {
        /// The job.
        job: JobId,
        /// Where.
        region: RegionIndex,
        /// Who owns it.
        tag: OwnerTag,
        /// What must be active in it.
        digest: DigestBytes,
    },
}

/// What a region holds, as its card's process knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Nobody knows (no journal, or a damaged one).
    Unknown,
    /// No tenant logic.
    Blank,
    /// A job was begun and not committed.
    Writing,
    /// Committed.
    Active,
    /// Not trusted; only a scrub leads out.
    Quarantined,
}

/// One region, told after `Hello` and after every change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegionReport {
    /// Its number.
    pub region: RegionIndex,
    /// How many regions the card has.
    pub of: u16,
    /// What it holds.
    pub content: Content,
    /// The digest that is active (or being written); zeros otherwise.
    pub digest: DigestBytes,
    /// Its owner.
    pub tag: Option<OwnerTag>,
    /// The function in it, if active.
    pub function: Option<[u8; 16]>,
    /// Whether the guest reaches it now.
    pub guest_access: bool,
    /// Scrubs that failed since the last that succeeded.
    pub scrub_failures: u16,
    /// Seconds of Unix time of the last change.
    pub since: u64,
}

/// Where a job is, in the card's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CardStage {
    /// Its bytes are being verified a second time.
    Verifying,
    /// The region is being shut.
    Isolating,
    /// Words go to the card.
    Writing,
    /// Verdict and identity are read.
    Checking,
    /// Waits for, or acts on, the last consent.
    Committing,
}

/// How far the function in the region could be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdentityCheck {
    /// Read back and as signed.
    Checked,
    /// Only the engine's own status says so.
    EngineStatus,
    /// Nothing could be read.
    None,
}

/// How a job ended in the card's process. Numbers are stable: they stand in the audit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Done: committed, scrubbed, reset or reopened.
    Done,
    /// The second verification refused it; nothing was touched.
    Refused,
    /// Another owner's region that was not scrubbed since; nothing was touched.
    NotScrubbed,
    /// The region's state does not allow it; nothing was touched.
    WrongState,
    /// The card cannot take it now (another job, or the guest must unbind its driver).
    Busy,
    /// The card does not answer (all-ones, or its transport is closed).
    DeviceGone,
    /// The region could not be shut; nothing was written.
    DecoupleFailed,
    /// The card reported a programming error; the words tell which.
    ProgramError,
    /// The card did not end within its deadline.
    Deadline,
    /// What is in the region is not what was signed.
    Identity,
    /// No `Commit` came in time, or `Abort` did.
    NotCommitted,
    /// The journal could not be written; nothing was started or opened.
    Journal,
    /// The blank image could not be loaded.
    ScrubFailed,
    /// The packet made no sense.
    Violation,
    /// The bitstream is not for the region's device, or leaves its frames; nothing was touched.
    Unfit,
    /// The card's static design cannot do that; nothing was touched.
    NotOffered,
}

/// The card's own words at a failure, for operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HardwareWords {
    /// The control register.
    pub control: u64,
    /// The status register.
    pub status: u64,
    /// The error register.
    pub error: u64,
}

/// The end of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobEnd {
    /// The job.
    pub job: JobId,
    /// Its region.
    pub region: RegionIndex,
    /// How it ended.
    pub outcome: Outcome,
    /// Where it was when it ended.
    pub stage: CardStage,
    /// The card's words.
    pub words: HardwareWords,
    /// The story in one line, at most [`MAX_TEXT`] bytes.
    pub text: String,
    /// Nanoseconds from the first data store to the card's verdict; 0 if there was none.
    pub device_ns: u64,
    /// Nanoseconds spent in this job's durable writes, and their number.
    pub sync_ns: u64,
    /// How many durable writes the job made.
    pub syncs: u32,
}

/// From `reconf-card` to `reconfd`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromCard {
    /// A region's state.
    Region(RegionReport),
    /// A job goes on.
    Progress {
        /// The job.
        job: JobId,
        /// Where it is.
        stage: CardStage,
        /// Bytes written.
        done: u64,
        /// Bytes in all.
        total: u64,
    },
    /// Written and identified; `Commit` is awaited.
    Written {
        /// The job.
        job: JobId,
        /// How its identity was told.
        identity: IdentityCheck,
    },
    /// Ended.
    Done(JobEnd),
}

/// Why a packet was not understood.
#[derive(Debug, Error)]
pub enum IpcError {
    /// Wrong length: packets are 512 bytes.
    #[error("a packet of {len} bytes, not {PACKET_LEN}")]
    Length {
        /// Its length.
        len: usize,
    },
    /// Not this protocol, or another version of it.
    #[error("magic {magic:#010x} version {version}, not ours")]
    Version {
        /// The first four bytes.
        magic: u32,
        /// The version.
        version: u16,
    },
    /// A kind that this end does not take.
    #[error("kind {0} is not for this end")]
    Kind(u16),
    /// A value outside its range.
    #[error("the field `{field}` is out of range")]
    Field {
        /// Its name.
        field: &'static str,
    },
    /// A descriptor came where none belongs, or none where one does, or several.
    #[error("descriptors beside the packet: {got}, expected {want}")]
    Descriptors {
        /// How many came.
        got: usize,
        /// How many belong there.
        want: usize,
    },
    /// The socket failed.
    #[error("the card's socket: {0}")]
    Io(#[from] std::io::Error),
    /// The other end is gone.
    #[error("the other end closed the card's socket")]
    Closed,
}
