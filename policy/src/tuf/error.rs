//! Why a document of the repository is not believed, and what that looks like.
//!
//! Knows the reasons only. Every one has a stable code, the attack it looks
//! like, and what to do.

use serde::Serialize;
use thiserror::Error;

use super::name::{Role, TargetPath};
use crate::time::UnixTime;

/// A document is not believed, and changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize)]
#[serde(tag = "code", rename_all = "kebab-case")]
pub enum TufError {
    /// Longer than is ever right.
    #[error("{role}: {len} bytes, above the limit of {max}")]
    TooLarge {
        /// Whose document.
        role: Role,
        /// Its length in bytes.
        len: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// Not in its format.
    #[error("{role}: malformed: {why}")]
    Malformed {
        /// Whose document.
        role: Role,
        /// What is wrong, and where.
        why: String,
    },
    /// It is a document of another kind.
    #[error("{role}: this is a document of the kind `{found}`")]
    WrongType {
        /// Whose document was asked for.
        role: Role,
        /// The kind it says it is.
        found: String,
    },
    /// Not signed by enough of the role's keys.
    #[error("{role}: {got} of its keys signed, and {need} must ({authority} says so)")]
    Threshold {
        /// Whose document.
        role: Role,
        /// Who says which keys count: the role that delegates.
        authority: Role,
        /// Keys that signed, each counted once by its bytes.
        got: usize,
        /// Keys that must.
        need: usize,
    },
    /// A root that does not follow the one before by exactly one.
    #[error("root: version {got} does not follow version {have}")]
    RootSequence {
        /// The trusted one's version.
        have: u64,
        /// The new one's version.
        got: u64,
    },
    /// Older than what was seen.
    #[error("{role}: version {got}, and version {have} was seen")]
    Rollback {
        /// Whose version goes down.
        role: Role,
        /// The version that was seen.
        have: u64,
        /// The version that is here.
        got: u64,
    },
    /// A role that the snapshot listed is not listed any more.
    #[error("{role}: was listed in the snapshot that is trusted, and is not in the new one")]
    Vanished {
        /// The role.
        role: Role,
    },
    /// Not the document that the signed listing means.
    #[error("{role}: its {what} is not the one that {by} lists")]
    Mixed {
        /// Whose document.
        role: Role,
        /// What differs.
        what: Differs,
        /// The role that lists it.
        by: Role,
    },
    /// Its time is over.
    #[error("{role}: expired {since}")]
    Expired {
        /// Whose document.
        role: Role,
        /// When.
        since: UnixTime,
    },
    /// Issued more than a day ahead of the clock.
    #[error("timestamp: issued at {issued}, more than a day after now, {now}")]
    IssuedInFuture {
        /// What it says.
        issued: UnixTime,
        /// The host's time.
        now: UnixTime,
    },
    /// A role that is delegated to and that the snapshot does not list.
    #[error("{role}: delegated to, and not listed in the snapshot")]
    NotInSnapshot {
        /// The role.
        role: Role,
    },
    /// A role that the given role does not delegate to.
    #[error("{role}: {by} does not delegate to it")]
    NotDelegated {
        /// The role.
        role: Role,
        /// Who would have to.
        by: Role,
    },
    /// A search that looks into more roles than is ever right.
    #[error("{path}: more than {max} roles claim to say something about it")]
    TooManyRoles {
        /// What was searched.
        path: TargetPath,
        /// The limit.
        max: usize,
    },
    /// No role that may speak about this target does.
    #[error("{path}: no such target")]
    NoSuchTarget {
        /// What was searched.
        path: TargetPath,
    },
    /// The bytes of a target are not those that were signed.
    #[error("{path}: its {what} is not the signed one")]
    WrongTarget {
        /// The target.
        path: TargetPath,
        /// What differs.
        what: Differs,
    },
}

/// In what bytes differ from what is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Differs {
    /// The number of bytes.
    Length,
    /// A hash; also where the listing has no hash of a kind that is known.
    Hash,
    /// The version.
    Version,
}

impl std::fmt::Display for Differs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Differs::Length => "length",
            Differs::Hash => "hash",
            Differs::Version => "version",
        })
    }
}

/// What a refusal looks like, seen from the side of defence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Attack {
    /// Bytes that nobody in charge signed.
    Forgery,
    /// Old documents shown as if they were new.
    Rollback,
    /// No new documents shown at all.
    Freeze,
    /// Documents of different states of the repository shown together.
    MixAndMatch,
    /// Bytes or paths without end.
    EndlessData,
    /// A role speaks about what is not its own.
    Scope,
    /// Nothing: it is just not there.
    None,
}

impl TufError {
    /// A stable name.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "too-large",
            Self::Malformed { .. } => "malformed",
            Self::WrongType { .. } => "wrong-type",
            Self::Threshold { .. } => "threshold",
            Self::RootSequence { .. } => "root-sequence",
            Self::Rollback { .. } => "rollback",
            Self::Vanished { .. } => "vanished",
            Self::Mixed { .. } => "mixed",
            Self::Expired { .. } => "expired",
            Self::IssuedInFuture { .. } => "issued-in-future",
            Self::NotInSnapshot { .. } => "not-in-snapshot",
            Self::NotDelegated { .. } => "not-delegated",
            Self::TooManyRoles { .. } => "too-many-roles",
            Self::NoSuchTarget { .. } => "no-such-target",
            Self::WrongTarget { .. } => "wrong-target",
        }
    }

    /// The attack it looks like; a mistake of the publisher looks the same.
    #[must_use]
    pub fn attack(&self) -> Attack {
        match self {
            Self::Malformed { .. }
            | Self::WrongType { .. }
            | Self::Threshold { .. }
            | Self::WrongTarget { .. } => Attack::Forgery,
            Self::RootSequence { .. } | Self::Rollback { .. } | Self::Vanished { .. } => {
                Attack::Rollback
            }
            Self::Expired { .. } | Self::IssuedInFuture { .. } => Attack::Freeze,
            Self::Mixed { .. } | Self::NotInSnapshot { .. } => Attack::MixAndMatch,
            Self::TooLarge { .. } | Self::TooManyRoles { .. } => Attack::EndlessData,
            Self::NotDelegated { .. } => Attack::Scope,
            Self::NoSuchTarget { .. } => Attack::None,
        }
    }

    /// What to do about it, in one sentence.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "Split the targets over more roles, or publish less of them.",
            Self::Malformed { .. } | Self::WrongType { .. } => {
                "Publish the document again with a tool that follows TUF 1.0."
            }
            Self::Threshold { .. } => {
                "Sign the document with as many of the role's keys as are needed; if nobody made it, find out who did."
            }
            Self::RootSequence { .. } => "Publish every root, each one version above the last.",
            Self::Rollback { .. } | Self::Vanished { .. } => {
                "Look for a mirror that serves an old state; if versions went down on purpose, rotate the timestamp and snapshot keys."
            }
            Self::Mixed { .. } | Self::NotInSnapshot { .. } => {
                "Fetch again; if it stays, the mirror serves a mixture of states: publish it whole."
            }
            Self::Expired { .. } => {
                "Check this host's clock and the mirror; then let the role sign a new version."
            }
            Self::IssuedInFuture { .. } => "Correct the clock of this host or of the publisher.",
            Self::NotDelegated { .. } | Self::NoSuchTarget { .. } => {
                "Check the name, and the roles whose paths cover it."
            }
            Self::TooManyRoles { .. } => "Give the roles paths that overlap less.",
            Self::WrongTarget { .. } => "Fetch again; if it stays, publish the file anew.",
        }
    }
}

/// Why a part of a document cannot be read; becomes [`TufError::Malformed`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bad(pub(super) String);

impl Bad {
    pub(super) fn new(why: impl Into<String>) -> Bad {
        Bad(why.into())
    }

    /// The same, told from one level further out.
    pub(super) fn within(self, place: &str) -> Bad {
        let Bad(why) = self;
        Bad(format!("{place}: {why}"))
    }

    pub(super) fn of(self, role: &Role) -> TufError {
        TufError::Malformed {
            role: role.clone(),
            why: self.0,
        }
    }
}
