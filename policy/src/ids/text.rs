//! Names that are plain words: regions, tenants, roles, families, paths.

use std::fmt;
use std::sync::Arc;

use super::{IdError, IdKind, text_form};

/// Letters or digits first, then also `extra`; bounded.
pub(super) fn is_word(text: &str, max: usize, upper: Case, extra: &[u8]) -> bool {
    let letter = |byte: &u8| {
        byte.is_ascii_lowercase()
            || byte.is_ascii_digit()
            || (upper == Case::Both && byte.is_ascii_uppercase())
    };
    let bytes = text.as_bytes();
    bytes.len() <= max
        && bytes.first().is_some_and(letter)
        && bytes
            .iter()
            .all(|byte| letter(byte) || extra.contains(byte))
}

/// Which letters a word may hold.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    Lower,
    Both,
}

macro_rules! word {
    ($(#[$doc:meta])* $name:ident, $kind:expr, $max:expr, $case:expr, $extra:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Reads the name.
            ///
            /// # Errors
            ///
            /// [`IdError`] where the text does not follow the grammar.
            pub fn parse(text: &str) -> Result<Self, IdError> {
                if is_word(text, $max, $case, $extra) {
                    Ok(Self(text.into()))
                } else {
                    Err(IdError::new($kind, text))
                }
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        text_form!($name);
    };
}

word!(
    /// Who signs images: the first half of their names.
    Publisher, IdKind::Publisher, 64, Case::Lower, b"._-"
);
word!(
    /// The operator's name for a region of a card.
    RegionName, IdKind::RegionName, 64, Case::Lower, b"._-"
);
word!(
    /// What operators call regions that serve alike, e.g. `intel.com/fpga-dcp`.
    RegionType, IdKind::RegionType, 128, Case::Lower, b"._/-"
);
word!(
    /// Images that replace one another; epochs are counted within a family.
    Family, IdKind::Family, 128, Case::Lower, b"._/-"
);
word!(
    /// Who owns a VM; with Nova, the id of the project.
    TenantName, IdKind::TenantName, 64, Case::Both, b"._-"
);

/// What a role vouches for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RoleKind {
    /// The publisher signed it.
    Publisher,
    /// The publisher signed it, and a test service did.
    Tested,
}

impl RoleKind {
    fn name(self) -> &'static str {
        match self {
            RoleKind::Publisher => "publisher",
            RoleKind::Tested => "tested",
        }
    }

    fn split(text: &str) -> Option<(RoleKind, &str)> {
        let (kind, rest) = text.split_once(':')?;
        let kind = [RoleKind::Publisher, RoleKind::Tested]
            .into_iter()
            .find(|k| k.name() == kind)?;
        Some((kind, rest))
    }
}

/// Who vouches for an image: `publisher:acme` or `tested:acme`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Role {
    /// What for.
    pub kind: RoleKind,
    /// Whose images.
    pub publisher: Publisher,
}

impl Role {
    /// Reads a role.
    ///
    /// # Errors
    ///
    /// [`IdError`] where the text does not follow the grammar.
    pub fn parse(text: &str) -> Result<Role, IdError> {
        let error = || IdError::new(IdKind::Role, text);
        let (kind, publisher) = RoleKind::split(text).ok_or_else(error)?;
        Ok(Role {
            kind,
            publisher: Publisher::parse(publisher).ok().ok_or_else(error)?,
        })
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.name(), self.publisher)
    }
}

text_form!(Role);

/// Roles that a host accepts: one role, or `tested:*` for every publisher's.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RolePattern {
    /// This role.
    Exact(Role),
    /// This kind of role, of any publisher.
    Any(RoleKind),
}

impl RolePattern {
    /// Reads a pattern.
    ///
    /// # Errors
    ///
    /// [`IdError`] where the text is neither a role nor a kind and `:*`.
    pub fn parse(text: &str) -> Result<RolePattern, IdError> {
        match RoleKind::split(text) {
            Some((kind, "*")) => Ok(RolePattern::Any(kind)),
            _ => Role::parse(text).map(RolePattern::Exact),
        }
    }

    /// Is `role` one of these?
    #[must_use]
    pub fn accepts(&self, role: &Role) -> bool {
        match self {
            RolePattern::Exact(exact) => exact == role,
            RolePattern::Any(kind) => *kind == role.kind,
        }
    }
}

impl fmt::Display for RolePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RolePattern::Exact(role) => role.fmt(f),
            RolePattern::Any(kind) => write!(f, "{}:*", kind.name()),
        }
    }
}

text_form!(RolePattern);

/// Where a bitstream lies in the repository: relative, below its `targets` folder.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TargetPath(Arc<str>);

impl TargetPath {
    /// Longest path, in bytes.
    pub const MAX: usize = 255;

    /// Reads a path. No part may begin with a dot, so that no path leads out
    /// of the folder and none names a hidden or temporary file.
    ///
    /// # Errors
    ///
    /// [`IdError`] where the text does not follow the grammar.
    pub fn parse(text: &str) -> Result<TargetPath, IdError> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._+/-".contains(&byte);
        let part = |part: &str| !part.is_empty() && !part.starts_with('.');
        if text.len() <= TargetPath::MAX && text.bytes().all(allowed) && text.split('/').all(part) {
            Ok(TargetPath(text.into()))
        } else {
            Err(IdError::new(IdKind::TargetPath, text))
        }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TargetPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

text_form!(TargetPath);
