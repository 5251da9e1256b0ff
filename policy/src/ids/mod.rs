//! The names of things, each parsed once at the edge into a type of its own.
//!
//! Knows grammars. Must not know where a name leads. Text that is not a name
//! is refused with what was found, escaped, and how it should look; spaces are
//! never trimmed away, and no two spellings of one thing are both accepted
//! without being equal.

mod address;
mod digest;
mod error;
mod image;
mod text;
mod uuids;
mod version;

pub use address::{CardAddress, FunctionAddress, PciAddress, SocketPath};
pub use digest::Digest;
pub use error::{IdError, IdKind};
pub use image::{ImageName, ImagePattern, ImageRef, ImageTitle};
pub use text::{
    Family, Publisher, RegionName, RegionType, Role, RoleKind, RolePattern, TargetPath, TenantName,
};
pub use uuids::{FunctionId, InterfaceId, VmId, parse_uuid};
pub use version::Version;

/// `Display`, `FromStr`-based serde and `TryFrom<String>` for a type that has
/// `parse(&str) -> Result<Self, IdError>` and `Display`.
macro_rules! text_form {
    ($name:ident) => {
        impl std::str::FromStr for $name {
            type Err = $crate::ids::IdError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::parse(text)
            }
        }
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                Self::parse(&text).map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use text_form;

#[cfg(test)]
mod tests;
