//! What publishers signed: the list of images, and why it may be believed.
//!
//! Knows keys, signatures, versions and expiry. Must not know who asks, or
//! where the bytes came from.
//!
//! A [`Catalogue`] exists only as the result of [`verify()`]: there is no other
//! way to make one, so that code which holds one need not ask again whether it
//! was checked. What has to be asked again is the time: whoever uses a
//! catalogue passes `now`, and an expired one allows nothing.
//!
//! This is the simple form: one list, `images.json`, with a detached signature,
//! `images.json.sig`, checked against an enrolled [`Root`] and never older than
//! the [`Floor`] remembers. A repository in TUF format will fill the same
//! [`Catalogue`]. The formats are written down in `docs/images.md`.

mod catalogue;
mod error;
mod floor;
mod image;
pub mod list;
mod root;
mod signature;
mod verify;

pub use catalogue::{Catalogue, Freshness, Revocation};
pub use error::{Document, TrustError};
pub use floor::Floor;
pub use image::{Format, Image, Variant, image_digest};
pub(crate) use root::RootFile;
pub use root::{PublicKey, Root};
pub use signature::{
    BadSignature, SelfTestFailed, Signature, SignatureEntry, SignatureFile, self_test,
};
pub use verify::verify;

/// The signed list, in the repository's folder.
pub const LIST_FILE: &str = "images.json";
/// Its signature, beside it.
pub const SIGNATURE_FILE: &str = "images.json.sig";
/// The folder beside it, under which the list's paths lie.
pub const TARGETS_DIR: &str = "targets";
/// Longest list that is read, in bytes.
pub const LIST_MAX: usize = 8 * 1024 * 1024;
/// Longest root, signature file and floor that is read, in bytes.
pub const SMALL_MAX: usize = 64 * 1024;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_age;
