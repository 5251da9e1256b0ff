//! A repository in TUF format, version 1.0.34 of the specification: why what it
//! says may be believed.
//!
//! Knows documents, keys, versions and time, all of them given: bytes in,
//! verdicts out. Must not know files, networks, or what a target is used for.
//!
//! An update goes one way, and each step needs the value of the one before:
//! a [`Chain`] of roots, an [`Anchor`] (the newest root at a fixed time, with
//! what was seen before), a [`Current`] timestamp, snapshot and targets
//! document, a [`Lookup`] in which a [`Target`] is found, and its [`Checker`].
//! None of them can be made but by the verification that it stands for.
//! `docs/decisions/tuf.md` says why, and lists the limits.

mod anchor;
mod canonical;
mod chain;
mod delegation;
mod der;
mod document;
mod error;
mod fields;
mod hashes;
mod json;
mod key;
mod limits;
mod listing;
mod lookup;
mod name;
mod pattern;
mod root;
mod signature;
mod targets;

pub use anchor::{Anchor, Current, Memory, News, Stored};
pub use chain::Chain;
pub use document::{Document, Trusted, longest};
pub use error::{Attack, Differs, TufError};
pub use limits::{
    EDGES_KEPT_MAX, ROLES_VISITED_MAX, ROOT_HOPS_MAX, ROOT_MAX, SNAPSHOT_MAX, TARGETS_MAX,
    TIMESTAMP_MAX,
};
pub use listing::{Listed, Snapshot, Timestamp};
pub use lookup::{Checker, Lookup, RoleSource, Target};
pub use name::{NotATargetPath, Role, RoleName, TargetPath};
pub use root::{Consistency, Root};
pub use targets::Targets;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
