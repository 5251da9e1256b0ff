//! From bytes to a catalogue, in the one order that is safe.

use std::time::Duration;

use super::error::{Document, TrustError};
use super::{Catalogue, Floor, LIST_MAX, Root, list, signature};
use crate::ids::Digest;
use crate::time::UnixTime;

/// How far ahead of the clock a list may have been issued.
const AHEAD: Duration = Duration::from_secs(24 * 60 * 60);

/// Checks a list against root and floor, and only then reads what it says.
///
/// The order: length, the floor's root, signature over the very bytes, shape,
/// version, time of issue. An expired list is not refused here, since its
/// revocations still count and its version still tells of a rollback; it
/// allows nothing, for every use asks [`Catalogue::freshness`].
///
/// Before the catalogue is used, [`Catalogue::floor`] has to be durable.
///
/// # Errors
///
/// [`TrustError`]; the catalogue before stays the one that counts.
pub fn verify(
    root: &Root,
    floor: &Floor,
    list_bytes: &[u8],
    signature_bytes: &[u8],
    now: UnixTime,
) -> Result<Catalogue, TrustError> {
    let len = list_bytes.len();
    if len > LIST_MAX {
        return Err(TrustError::TooLarge {
            document: Document::List,
            len,
            max: LIST_MAX,
        });
    }
    if floor.root() != root.digest() {
        return Err(TrustError::NotThisRoot {
            enrolled: floor.root(),
            root: root.digest(),
        });
    }
    signature::check(root, list_bytes, signature_bytes)?;
    let list = list::parse(list_bytes)?;
    let digest = Digest::of(list_bytes);
    floor.admits(list.version, digest)?;
    let now = floor.now(now);
    if let Some(issued) = list.issued.filter(|issued| *issued > now.after(AHEAD)) {
        return Err(TrustError::IssuedInFuture { issued, now });
    }
    let floor = floor.raised(&list, digest)?;
    Ok(Catalogue::new(list, digest, floor))
}
