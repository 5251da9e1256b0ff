//! Names, digests and keys as people write them.
//!
//! Knows their one spelling each. Whatever else looks like an id (upper-case
//! digits, UUIDs, control bytes, another system's ids) is refused here, at the
//! edge, and never becomes a look-up that finds nothing.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::message::{Digest, FunctionId, ImageRef, JobKey};

const PREFIX: &str = "sha256:";
const MAX_PART: usize = 64;

/// A text is no image name, digest or key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NameError {
    /// Not `publisher/name` or `publisher/name:version` in the letters allowed.
    #[error(
        "not an image: expected publisher/name, publisher/name:version, or sha256: and 64 lower-case hex digits"
    )]
    Image,
    /// Not the hex digits expected.
    #[error("expected {digits} lower-case hex digits")]
    Hex {
        /// Digits expected.
        digits: usize,
    },
}

/// `publisher/name` or `publisher/name:version`.
///
/// Publisher and name: `[a-z0-9][a-z0-9._-]{0,63}`; version:
/// `[A-Za-z0-9._-]{1,64}`. At most 194 bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ImageName(String);

impl ImageName {
    /// Reads a name.
    ///
    /// # Errors
    ///
    /// [`NameError::Image`] if it does not follow the grammar.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        match split(text) {
            Some((publisher, name, version))
                if is_part(publisher) && is_part(name) && version.is_none_or(is_version) =>
            {
                Ok(Self(text.to_owned()))
            }
            _ => Err(NameError::Image),
        }
    }

    /// The whole name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What stands before the slash.
    #[must_use]
    pub fn publisher(&self) -> &str {
        split(&self.0).map_or("", |(publisher, _, _)| publisher)
    }

    /// What stands between the slash and the colon.
    #[must_use]
    pub fn name(&self) -> &str {
        split(&self.0).map_or("", |(_, name, _)| name)
    }

    /// What stands after the colon, if there is one.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        split(&self.0).and_then(|(_, _, version)| version)
    }
}

fn split(text: &str) -> Option<(&str, &str, Option<&str>)> {
    let (publisher, rest) = text.split_once('/')?;
    Some(match rest.split_once(':') {
        Some((name, version)) => (publisher, name, Some(version)),
        None => (publisher, rest, None),
    })
}

fn is_part(part: &str) -> bool {
    let low = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    part.len() <= MAX_PART
        && part.bytes().next().is_some_and(low)
        && part.bytes().all(|b| low(b) || b"._-".contains(&b))
}

fn is_version(version: &str) -> bool {
    (1..=MAX_PART).contains(&version.len())
        && version
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

impl FromStr for ImageName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::parse(text)
    }
}

impl fmt::Display for ImageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl ImageRef {
    /// Reads `sha256:` and 64 lower-case hex digits, or an [`ImageName`].
    ///
    /// # Errors
    ///
    /// [`NameError::Image`] if it is neither.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        match text.strip_prefix(PREFIX) {
            Some(hex) => from_hex(hex).map(|bytes| Self::Digest(Digest(bytes))),
            None => ImageName::parse(text).ok().map(|name| Self::Name(name.0)),
        }
        .ok_or(NameError::Image)
    }

    /// Checks a reference that came over the wire.
    ///
    /// # Errors
    ///
    /// [`NameError::Image`] if it holds a name that does not follow the grammar.
    pub fn check(&self) -> Result<(), NameError> {
        match self {
            Self::Name(name) => ImageName::parse(name).map(drop),
            Self::Digest(_) => Ok(()),
        }
    }
}

impl FromStr for ImageRef {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::parse(text)
    }
}

impl fmt::Display for ImageRef {
    /// For text that came over the wire unchecked, control bytes are escaped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "{}", name.escape_debug()),
            Self::Digest(digest) => digest.fmt(f),
        }
    }
}

impl Digest {
    /// Reads `sha256:` and 64 lower-case hex digits.
    ///
    /// # Errors
    ///
    /// [`NameError::Hex`] for anything else.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        text.strip_prefix(PREFIX)
            .and_then(from_hex)
            .map(Self)
            .ok_or(NameError::Hex { digits: 64 })
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        write_hex(f, &self.0)
    }
}

impl JobKey {
    /// Reads 32 lower-case hex digits.
    ///
    /// # Errors
    ///
    /// [`NameError::Hex`] for anything else.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        from_hex(text)
            .map(Self)
            .ok_or(NameError::Hex { digits: 32 })
    }
}

impl fmt::Display for JobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

impl fmt::Display for FunctionId {
    /// As UUIDs are written: 8-4-4-4-12 lower-case hex digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Display for crate::message::Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn write_hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = (digit(*high)? << 4) | digit(*low)?;
    }
    Some(bytes)
}

fn digit(b: u8) -> Option<u8> {
    match b {
        b'0'..=b'9' => b.checked_sub(b'0'),
        b'a'..=b'f' => b.checked_sub(b'a').and_then(|d| d.checked_add(10)),
        _ => None,
    }
}
