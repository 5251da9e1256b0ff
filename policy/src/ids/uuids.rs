//! UUIDs, one type for each thing that has one.

use std::fmt;

use uuid::Uuid;

use super::{IdError, IdKind, text_form};

/// Reads a UUID: 32 hex digits in either case, as `8-4-4-4-12` or undivided.
/// The one way in which this crate does so.
///
/// # Errors
///
/// [`IdError`] for every other spelling: braces, `urn:`, spaces, other digits.
pub fn parse_uuid(text: &str) -> Result<Uuid, IdError> {
    // `try_parse` tells the spellings apart by length; these two lengths leave
    // only the dashed and the undivided one.
    match text.len() {
        32 | 36 => Uuid::try_parse(text).ok(),
        _ => None,
    }
    .ok_or_else(|| IdError::new(IdKind::Uuid, text))
}

macro_rules! uuid {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub Uuid);

        impl $name {
            /// Reads the id, in the spellings of [`parse_uuid`].
            ///
            /// # Errors
            ///
            /// [`IdError`] for every other spelling.
            pub fn parse(text: &str) -> Result<Self, IdError> {
                parse_uuid(text).map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        text_form!($name);
    };
}

uuid!(
    /// A VM, for as long as it exists.
    VmId
);
uuid!(
    /// Says which partial bitstreams fit a region.
    InterfaceId
);
uuid!(
    /// The function that a bitstream makes appear.
    FunctionId
);
