//! Names: of roles, of targets, and of the files that hold them.
//!
//! Knows text. A name that could climb out of a folder or of a base address
//! does not exist as a value of these types.

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::error::Bad;
use super::limits::{PATH_MAX, ROLE_NAME_MAX};

/// Whose document it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// Who says whose keys count for the other three.
    Root,
    /// Says which snapshot is the newest.
    Timestamp,
    /// Lists the version of every targets document.
    Snapshot,
    /// The first of the roles that list targets.
    Targets,
    /// A role that a targets document delegates to.
    Delegated(RoleName),
}

impl Role {
    /// The role's name as it is written in documents.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Role::Root => "root",
            Role::Timestamp => "timestamp",
            Role::Snapshot => "snapshot",
            Role::Targets => "targets",
            Role::Delegated(name) => name.as_str(),
        }
    }

    /// The role's file, without a version: `targets.json`, `a%2Fb.json`.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{}.json", percent_encoded(self.as_str(), Slash::Encoded))
    }

    /// The role's file of one version: `7.targets.json`.
    #[must_use]
    pub fn versioned_file_name(&self, version: u64) -> String {
        format!("{version}.{}", self.file_name())
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Role::Delegated(name) => name.fmt(f),
            other => f.write_str(other.as_str()),
        }
    }
}

impl Serialize for Role {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The name of a delegated role: any text but the four names of the top, of at
/// most 80 bytes.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RoleName(Arc<str>);

impl RoleName {
    pub(super) fn parse(text: &str) -> Result<RoleName, Bad> {
        if text.is_empty() || text.len() > ROLE_NAME_MAX {
            return Err(Bad::new(format!(
                "the name of a role has 1 to {ROLE_NAME_MAX} bytes"
            )));
        }
        if ["root", "timestamp", "snapshot", "targets", "mirrors"].contains(&text) {
            return Err(Bad::new(format!("`{text}` is not a delegated role")));
        }
        Ok(RoleName(text.into()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RoleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Escaped: a publisher must not write into an operator's terminal.
        self.0.escape_debug().fmt(f)
    }
}

impl fmt::Debug for RoleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Where a target lies, below the base of all targets: `acme/fft.gbs`. Parts
/// between single slashes, none of them empty, `.` or `..`; no control
/// characters, no backslash; at most 255 bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TargetPath(Arc<str>);

/// A path that leaves its folder, or is no path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is no path of a target: parts between single slashes, none of them `.` or `..`, at most {PATH_MAX} bytes",
    .0.escape_debug()
)]
pub struct NotATargetPath(String);

impl TargetPath {
    /// Reads a path.
    ///
    /// # Errors
    ///
    /// [`NotATargetPath`], with the text.
    pub fn parse(text: &str) -> Result<TargetPath, NotATargetPath> {
        let part = |part: &str| !matches!(part, "" | "." | "..");
        let odd = |c: char| c.is_control() || c == '\\';
        if text.len() <= PATH_MAX && text.split('/').all(part) && !text.contains(odd) {
            Ok(TargetPath(text.into()))
        } else {
            let start: String = text.chars().take(PATH_MAX).collect();
            Err(NotATargetPath(start))
        }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path as a reference below a base address; `hash` stands before the
    /// last part where the repository keeps consistent snapshots.
    pub(super) fn reference(&self, hash: Option<&str>) -> String {
        let encoded = percent_encoded(&self.0, Slash::Kept);
        match (hash, encoded.rsplit_once('/')) {
            (None, _) => encoded,
            (Some(hash), None) => format!("{hash}.{encoded}"),
            (Some(hash), Some((folder, file))) => format!("{folder}/{hash}.{file}"),
        }
    }
}

impl fmt::Display for TargetPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for TargetPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// Whether a slash is a part of the name or stands between names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slash {
    Encoded,
    Kept,
}

/// RFC 3986: unreserved characters as they are, all else `%XX`.
fn percent_encoded(text: &str, slash: Slash) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        let plain = byte.is_ascii_alphanumeric()
            || b"-._~".contains(&byte)
            || (byte == b'/' && slash == Slash::Kept);
        if plain {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p18_no_name_climbs() {
        let file = |name: &str| Role::Delegated(RoleName::parse(name).unwrap()).file_name();
        assert_eq!(file("../delegated"), "..%2Fdelegated.json");
        assert_eq!(file("/a b"), "%2Fa%20b.json");
        assert_eq!(file(".."), "...json");
        assert_eq!(file("?#\u{e9}"), "%3F%23%C3%A9.json");
        for bad in [
            "",
            "root",
            "timestamp",
            "snapshot",
            "targets",
            &"x".repeat(81),
        ] {
            assert!(RoleName::parse(bad).is_err(), "{bad}");
        }
        for bad in [
            "",
            "/a",
            "a/",
            "a//b",
            "../a",
            "a/../b",
            "./a",
            "..",
            "a\\b",
            "a\0",
            "a\nb",
            &"x".repeat(256),
        ] {
            assert!(TargetPath::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_hash_stands_before_the_last_part() {
        let reference = |path: &str, hash| TargetPath::parse(path).unwrap().reference(hash);
        assert_eq!(reference("a/b c.gbs", Some("12")), "a/12.b%20c.gbs");
        assert_eq!(reference("b.gbs", Some("12")), "12.b.gbs");
        assert_eq!(reference("a/b.gbs", None), "a/b.gbs");
    }
}
