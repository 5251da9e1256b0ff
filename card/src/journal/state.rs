//! What the journal tells of a region, and the entries that change it.

use std::fmt;

use uuid::Uuid;

/// Who owns a region: 32 bytes that mean something to the caller only.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct OwnerTag(pub [u8; 32]);

/// The job that changes a region.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Job(pub [u8; 16]);

/// SHA-256 of a bitstream.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sha256(pub [u8; 32]);

/// The identifier of the function in a region; nil where none is known.
pub type FunctionId = Uuid;

/// Milliseconds since 1970, as the host's wall clock has it.
pub type UnixMillis = u64;

/// What is known of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegionState {
    /// Who owns it.
    pub owner: Option<OwnerTag>,
    /// What it holds.
    pub content: Content,
    /// When that was written down; 0 for [`Content::Unknown`].
    pub since: UnixMillis,
}

impl RegionState {
    /// A region of which nothing is known.
    pub const UNKNOWN: Self = Self {
        owner: None,
        content: Content::Unknown,
        since: 0,
    };
}

/// What a region holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Nothing is known.
    Unknown,
    /// No tenant's logic.
    Blank,
    /// A load began and did not end.
    Writing {
        /// The job that began it.
        job: Job,
        /// The bitstream.
        digest: Sha256,
    },
    /// A load was committed.
    Active {
        /// The job that did it.
        job: Job,
        /// The bitstream.
        digest: Sha256,
        /// The function in the region.
        function: FunctionId,
    },
    /// Something that is not trusted; only a scrub gets out of here.
    Quarantined {
        /// Scrubs that failed since.
        failures: u8,
    },
}

/// One step of a region, to be written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// A load is about to begin.
    Intent {
        /// Whose region it is.
        owner: Option<OwnerTag>,
        /// The job.
        job: Job,
        /// The bitstream.
        digest: Sha256,
    },
    /// The load ended well, and may be given to the guest.
    Commit {
        /// Whose region it is.
        owner: Option<OwnerTag>,
        /// The job.
        job: Job,
        /// The bitstream.
        digest: Sha256,
        /// The function in the region.
        function: FunctionId,
    },
    /// A scrub ended well.
    Blank {
        /// Whose region it is.
        owner: Option<OwnerTag>,
    },
    /// The content is not trusted any more.
    Quarantined {
        /// Whose region it is.
        owner: Option<OwnerTag>,
        /// Scrubs that failed so far.
        failures: u8,
    },
    /// The owner has gone; what it left is not trusted until it is scrubbed.
    Released,
}

impl Entry {
    /// The state of a region after this step at `now`.
    #[must_use]
    pub fn state(&self, now: UnixMillis) -> RegionState {
        let (owner, content) = match *self {
            Self::Intent { owner, job, digest } => (owner, Content::Writing { job, digest }),
            Self::Commit {
                owner,
                job,
                digest,
                function,
            } => (
                owner,
                Content::Active {
                    job,
                    digest,
                    function,
                },
            ),
            Self::Blank { owner } => (owner, Content::Blank),
            Self::Quarantined { owner, failures } => (owner, Content::Quarantined { failures }),
            Self::Released => (None, Content::Quarantined { failures: 0 }),
        };
        RegionState {
            owner,
            content,
            since: now,
        }
    }
}

/// Hexadecimal digits, for the fixed byte strings above.
macro_rules! hex_forms {
    ($($name:ident),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({self})", stringify!($name))
            }
        }
    )*};
}

hex_forms!(OwnerTag, Job, Sha256);
