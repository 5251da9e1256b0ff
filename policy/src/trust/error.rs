//! Why a signed document is not believed.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::ids::{Digest, ImageName, Role};
use crate::time::UnixTime;

/// Which document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Document {
    /// The enrolled keys.
    Root,
    /// The signed list.
    List,
    /// Its signature.
    Signature,
    /// What was seen before.
    Floor,
}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Document::Root => "the root of trust",
            Document::List => "the list of images",
            Document::Signature => "the signature of the list",
            Document::Floor => "the record of versions seen",
        })
    }
}

/// A document is not believed, and changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize)]
#[serde(tag = "code", rename_all = "kebab-case")]
pub enum TrustError {
    /// Longer than is ever right.
    #[error("{document} has {len} bytes, above the limit of {max}")]
    TooLarge {
        /// Which one.
        document: Document,
        /// Its length.
        len: usize,
        /// The limit.
        max: usize,
    },
    /// Not in its format: unknown and doubled fields, wrong kinds, contradictions.
    #[error("{document} is malformed: {why}")]
    Malformed {
        /// Which one.
        document: Document,
        /// What is wrong, with line and column where there is one.
        why: String,
    },
    /// Not signed by enough of the enrolled keys.
    #[error("{got} of the enrolled keys signed the list, and {need} must")]
    BadSignature {
        /// Signatures that count, one a key.
        got: usize,
        /// Signatures needed.
        need: usize,
    },
    /// Older than one that was seen.
    #[error("the list has version {got}, and version {have} was seen")]
    Rollback {
        /// Highest version seen.
        have: u64,
        /// Version of this list.
        got: u64,
    },
    /// Another list with a version that was seen: someone signed two.
    #[error("two different lists have version {version}: {have} was seen, {got} is here")]
    Equivocation {
        /// The version.
        version: u64,
        /// The list that was seen.
        have: Digest,
        /// The list that is here.
        got: Digest,
    },
    /// Signed more than a day ahead of the clock.
    #[error("the list was issued at {issued}, more than a day after now, {now}")]
    IssuedInFuture {
        /// What the list says.
        issued: UnixTime,
        /// The host's time.
        now: UnixTime,
    },
    /// A role vouches for what is not its own.
    #[error("the role {role} vouches for {image}, which is another publisher's")]
    RoleScope {
        /// The image.
        image: ImageName,
        /// The role.
        role: Role,
    },
    /// The floor belongs to another root: this one was not enrolled.
    #[error(
        "the record of versions seen belongs to the root {enrolled}, and the root here is {root}"
    )]
    NotThisRoot {
        /// The root of the floor.
        enrolled: Digest,
        /// The root given.
        root: Digest,
    },
}

impl TrustError {
    /// A stable name.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "too-large",
            Self::Malformed { .. } => "malformed",
            Self::BadSignature { .. } => "bad-signature",
            Self::Rollback { .. } => "rollback",
            Self::Equivocation { .. } => "equivocation",
            Self::IssuedInFuture { .. } => "issued-in-future",
            Self::RoleScope { .. } => "role-scope",
            Self::NotThisRoot { .. } => "not-this-root",
        }
    }

    /// What to do about it, in one sentence.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "Publish a shorter one.",
            Self::Malformed {
                document: Document::Floor,
                ..
            }
            | Self::NotThisRoot { .. } => {
                "Check that this root is the right one, then run `reconfctl trust enrol` with it."
            }
            Self::Malformed { .. } => "Publish it again with `reconfctl repo`.",
            Self::BadSignature { .. } => {
                "Sign the list, as it is, with the enrolled keys; if none of them did, find out who changed it."
            }
            Self::Rollback { .. } => "Fetch the current list; if there is none newer, publish one.",
            Self::Equivocation { .. } => {
                "Find out who signed twice; then publish the right list with a higher version."
            }
            Self::IssuedInFuture { .. } => "Correct the clock of this host or of the publisher.",
            Self::RoleScope { .. } => "Publish the image under its own publisher's name.",
        }
    }

    pub(super) fn malformed(document: Document, why: impl fmt::Display) -> TrustError {
        TrustError::Malformed {
            document,
            why: why.to_string(),
        }
    }
}

/// Reads JSON of a bounded length. The types refuse unknown and doubled keys.
pub(super) fn read<T: DeserializeOwned>(
    document: Document,
    bytes: &[u8],
    max: usize,
) -> Result<T, TrustError> {
    if bytes.len() > max {
        return Err(TrustError::TooLarge {
            document,
            len: bytes.len(),
            max,
        });
    }
    serde_json::from_slice(bytes).map_err(|error| TrustError::malformed(document, error))
}
