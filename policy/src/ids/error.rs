//! Text that is not a name.

use std::fmt;

use serde::Serialize;
use thiserror::Error;

/// What the text was meant to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdKind {
    /// SHA-256.
    Digest,
    /// `publisher/name:version`.
    Image,
    /// An image, or `publisher/*`.
    ImagePattern,
    /// The version of an image.
    Version,
    /// The first half of an image's name.
    Publisher,
    /// `pci:…` or `vfio-user:…`.
    Address,
    /// UUID.
    Uuid,
    /// The name of a region.
    RegionName,
    /// What operators call regions that serve alike.
    RegionType,
    /// The name of a tenant.
    TenantName,
    /// `publisher:NAME` or `tested:NAME`.
    Role,
    /// A family of images.
    Family,
    /// Where a bitstream lies in the repository.
    TargetPath,
}

impl IdKind {
    fn name(self) -> &'static str {
        match self {
            IdKind::Digest => "a digest",
            IdKind::Image => "an image",
            IdKind::ImagePattern => "an image or a pattern of images",
            IdKind::Version => "a version",
            IdKind::Publisher => "a publisher",
            IdKind::Address => "an address",
            IdKind::Uuid => "a UUID",
            IdKind::RegionName => "a region's name",
            IdKind::RegionType => "a region type",
            IdKind::TenantName => "a tenant's name",
            IdKind::Role => "a role",
            IdKind::Family => "a family",
            IdKind::TargetPath => "a target path",
        }
    }

    /// How it should look.
    #[must_use]
    pub fn grammar(self) -> &'static str {
        match self {
            IdKind::Digest => "sha256: and 64 lower-case hexadecimal digits",
            IdKind::Image => "publisher/name:version, publisher/name, or sha256: and 64 digits",
            IdKind::ImagePattern => {
                "publisher/*, publisher/name, publisher/name:version, or sha256: and 64 digits"
            }
            IdKind::Version => "1 to 64 of A-Z a-z 0-9 . _ -",
            IdKind::Publisher | IdKind::RegionName => {
                "1 to 64 of a-z 0-9 . _ -, first a letter or digit"
            }
            IdKind::Address => {
                "pci:0000:3b:00.0 (with the domain, in lower case) or vfio-user:/absolute/path"
            }
            IdKind::Uuid => "32 hexadecimal digits, with the four dashes or without any",
            IdKind::RegionType | IdKind::Family => {
                "1 to 128 of a-z 0-9 . _ / -, first a letter or digit"
            }
            IdKind::TenantName => "1 to 64 of A-Z a-z 0-9 . _ -, first a letter or digit",
            IdKind::Role => "publisher:NAME or tested:NAME",
            IdKind::TargetPath => {
                "at most 255 of A-Z a-z 0-9 . _ + / -, relative, no part that begins with a dot"
            }
        }
    }
}

/// Longest piece of refused text that a message repeats, in characters.
const SHOWN: usize = 80;

/// The text is not what it was meant to be.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize)]
#[error("`{found}` is not {}: {}", .kind.name(), .kind.grammar())]
pub struct IdError {
    /// What it was meant to be.
    pub kind: IdKind,
    /// The text, escaped and cut.
    pub found: Escaped,
}

impl IdError {
    pub(crate) fn new(kind: IdKind, found: &str) -> IdError {
        IdError {
            kind,
            found: Escaped::new(found),
        }
    }
}

/// Text from outside, fit for a line of a log: no control character, no line
/// break, bounded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Escaped(String);

impl Escaped {
    fn new(text: &str) -> Escaped {
        let mut shown: String = text
            .chars()
            .take(SHOWN)
            .flat_map(char::escape_debug)
            .collect();
        if text.chars().nth(SHOWN).is_some() {
            shown.push('…');
        }
        Escaped(shown)
    }
}

impl fmt::Display for Escaped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
