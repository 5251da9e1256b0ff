//! What was seen before, so that nothing older is believed again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::error::{Document, TrustError, read};
use super::list::ImageList;
use super::{Root, SMALL_MAX};
use crate::ids::{Digest, Family};
use crate::time::UnixTime;

/// The highest versions seen under one root. They never go down (INV4).
///
/// A host gets its first floor when a root is enrolled. Where there is none,
/// or it is damaged, or it belongs to another root, nothing is granted until
/// an operator enrols the root again. Times in it are signed ones: the wall
/// clock is never stored, so that a clock that once ran ahead does no harm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Floor {
    root: Digest,
    version: u64,
    list: Option<Digest>,
    issued: UnixTime,
    epochs: BTreeMap<Family, u64>,
}

/// Most families whose epochs are remembered; a list that would exceed it is refused.
const FAMILIES_MAX: usize = 256;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    reconf_floor: u32,
    seen: Seen,
    /// SHA-256 of `seen` in compact JSON: damage is noticed, malice is not.
    sum: Digest,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Seen {
    root: Digest,
    version: u64,
    list: Option<Digest>,
    issued: UnixTime,
    epochs: BTreeMap<Family, u64>,
}

impl Seen {
    fn sum(&self) -> Digest {
        Digest::of(serde_json::to_string(self).unwrap_or_default().as_bytes())
    }
}

impl Floor {
    /// The floor of a root that an operator has just enrolled. Where that very
    /// root was enrolled before, `before` stays: enrolling lowers nothing.
    #[must_use]
    pub fn enrol(root: &Root, before: Option<&Floor>) -> Floor {
        match before {
            Some(before) if before.root == root.digest() => before.clone(),
            _ => Floor {
                root: root.digest(),
                version: 0,
                list: None,
                issued: UnixTime::default(),
                epochs: BTreeMap::new(),
            },
        }
    }

    /// Reads what [`Floor::to_bytes`] wrote.
    ///
    /// # Errors
    ///
    /// [`TrustError::Malformed`], [`TrustError::TooLarge`]: the file is damaged,
    /// and counts as lost.
    pub fn parse(bytes: &[u8]) -> Result<Floor, TrustError> {
        let File {
            reconf_floor,
            seen,
            sum,
        } = read(Document::Floor, bytes, SMALL_MAX)?;
        if reconf_floor != 1 {
            return Err(TrustError::malformed(
                Document::Floor,
                "`reconf_floor` is not 1, the format that is known",
            ));
        }
        if seen.sum() != sum {
            return Err(TrustError::malformed(
                Document::Floor,
                "its sum does not fit",
            ));
        }
        let Seen {
            root,
            version,
            list,
            issued,
            epochs,
        } = seen;
        Ok(Floor {
            root,
            version,
            list,
            issued,
            epochs,
        })
    }

    /// The file's bytes, to be stored durably before a catalogue is used.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let Floor {
            root,
            version,
            list,
            issued,
            epochs,
        } = self.clone();
        let seen = Seen {
            root,
            version,
            list,
            issued,
            epochs,
        };
        let file = File {
            reconf_floor: 1,
            sum: seen.sum(),
            seen,
        };
        serde_json::to_vec_pretty(&file).unwrap_or_default()
    }

    /// The root it belongs to, by [`Root::digest`].
    #[must_use]
    pub fn root(&self) -> Digest {
        self.root
    }

    /// Highest version seen; 0 before the first list.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The list that had that version.
    #[must_use]
    pub fn list(&self) -> Option<Digest> {
        self.list
    }

    /// `wall`, but never before the latest signed time seen.
    #[must_use]
    pub fn now(&self, wall: UnixTime) -> UnixTime {
        wall.max(self.issued)
    }

    /// The lowest epoch of this family that is still allowed.
    #[must_use]
    pub fn minimum_epoch(&self, family: &Family) -> u64 {
        self.epochs.get(family).copied().unwrap_or(0)
    }

    /// Is `list` at least as new as what was seen?
    pub(super) fn admits(&self, version: u64, list: Digest) -> Result<(), TrustError> {
        let have = self.version;
        if version < have {
            return Err(TrustError::Rollback { have, got: version });
        }
        match self.list {
            Some(seen) if version == have && seen != list => Err(TrustError::Equivocation {
                version,
                have: seen,
                got: list,
            }),
            _ => Ok(()),
        }
    }

    /// This floor, raised to what a verified list says. Nothing in it goes down.
    pub(super) fn raised(&self, list: &ImageList, digest: Digest) -> Result<Floor, TrustError> {
        let mut floor = self.clone();
        if list.version >= floor.version {
            floor.version = list.version;
            floor.list = Some(digest);
        }
        floor.issued = floor.issued.max(list.issued.unwrap_or_default());
        for entry in &list.revoked {
            if let (Some(family), Some(below)) = (&entry.family, entry.below_epoch) {
                let minimum = floor.epochs.entry(family.clone()).or_default();
                *minimum = below.max(*minimum);
            }
        }
        if floor.epochs.len() > FAMILIES_MAX {
            let why = format!("epochs of more than {FAMILIES_MAX} families");
            return Err(TrustError::malformed(Document::List, why));
        }
        Ok(floor)
    }
}
