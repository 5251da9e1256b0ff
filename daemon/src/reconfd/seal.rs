//! Sealed bytes by digest, and what was found out about them.
//!
//! Knows memfds, digests, containers and what a region demands. Must not know who asks. A repeat of a
//! load finds its bytes sealed and its verdict still held: no file is read and
//! nothing is hashed again.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use card::{SealError, SealedMemfd};
use policy::trust::Format;
use ring::digest::{SHA256, digest};
use thiserror::Error;
use uuid::Uuid;

use super::plan::RegionKey;
use crate::contents::Contents;
use crate::fence::{Unfit, hold};
use crate::frames::Demand;

/// What the signed metadata and the region say about the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// SHA-256.
    pub digest: [u8; 32],
    /// Bytes.
    pub size: u64,
    /// The interface id of the region, which the container must name.
    pub interface_id: Uuid,
    /// The function that the container must name.
    pub function_id: Uuid,
    /// The container.
    pub format: Format,
    /// What the region demands of the frames that it writes.
    pub demand: Demand,
}

/// A bitstream is not what it should be.
#[derive(Debug, Error)]
pub enum BytesError {
    /// It cannot be read.
    #[error("{path}: {error}")]
    Unreadable {
        /// Its path.
        path: String,
        /// Why.
        error: String,
    },
    /// Its size is not the signed one.
    #[error("{path} has {have} bytes, signed are {want}")]
    Size {
        /// Its path.
        path: String,
        /// The file's.
        have: u64,
        /// The signed one.
        want: u64,
    },
    /// It cannot be sealed.
    #[error("sealing: {0}")]
    Seal(#[from] SealError),
    /// Its bytes are not the signed ones (B1).
    #[error("digest mismatch: the bytes hash to {have}, signed is {want}")]
    Digest {
        /// The bytes'.
        have: String,
        /// The signed one.
        want: String,
    },
    /// It is no container that can be loaded.
    #[error("container: {0}")]
    Container(String),
    /// It is another container than was signed.
    #[error("the container is {have}, signed is {want}")]
    Format {
        /// The bytes'.
        have: &'static str,
        /// The signed one.
        want: &'static str,
    },
    /// It must not be written to the region.
    #[error("{}", .0.story())]
    Unfit(#[from] Unfit),
    /// It was made for another interface.
    #[error("interface mismatch: the container names {have}, the region is {want}")]
    Interface {
        /// The container's.
        have: Uuid,
        /// The region's.
        want: Uuid,
    },
    /// It holds another function than was signed.
    #[error("function mismatch: the container names {have}, signed is {want}")]
    Function {
        /// The container's.
        have: Uuid,
        /// The signed one.
        want: Uuid,
    },
}

/// Bytes that nobody can change any more, with a digest that they claim to have.
#[derive(Debug, Clone)]
pub struct Sealed {
    memfd: Arc<SealedMemfd>,
    facts: Facts,
    verified: bool,
}

/// Proof: these very bytes were hashed, parsed, compared with the facts and held against what
/// the region demands.
#[derive(Debug, Clone)]
pub struct VerifiedBytes {
    memfd: Arc<SealedMemfd>,
    facts: Facts,
}

impl VerifiedBytes {
    /// The facts that hold.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The bytes.
    #[must_use]
    pub fn memfd(&self) -> &SealedMemfd {
        &self.memfd
    }
}

impl Sealed {
    /// Reads the file below `targets` into sealed memory. The file may change while it is read:
    /// what counts from here on is what was sealed.
    ///
    /// # Errors
    /// Unreadable, another size than the signed one, no memory.
    pub fn from_file(targets: &Path, path: &str, facts: Facts) -> Result<Self, BytesError> {
        let unreadable = |error: String| BytesError::Unreadable {
            path: path.to_owned(),
            error,
        };
        let (file, size) = crate::files::open_beneath(targets, Path::new(path))
            .map_err(|error| unreadable(error.to_string()))?;
        if size != facts.size {
            return Err(BytesError::Size {
                path: path.to_owned(),
                have: size,
                want: facts.size,
            });
        }
        let memfd = SealedMemfd::from_file(&file, facts.size)?;
        if memfd.length() != facts.size {
            return Err(BytesError::Size {
                path: path.to_owned(),
                have: memfd.length(),
                want: facts.size,
            });
        }
        Ok(Self {
            memfd: Arc::new(memfd),
            facts,
            verified: false,
        })
    }

    /// The bytes, to hand to the card's process while they are verified here.
    #[must_use]
    pub fn memfd(&self) -> &SealedMemfd {
        &self.memfd
    }

    /// Hashes and parses the sealed bytes, compares them with the facts, and holds them against
    /// what the region demands; at once where that was done before.
    ///
    /// # Errors
    /// See [`BytesError`].
    pub fn verify(self) -> Result<VerifiedBytes, BytesError> {
        if !self.verified {
            let map = self.memfd.map()?;
            let have = digest(&SHA256, &map);
            if have.as_ref() != self.facts.digest {
                return Err(BytesError::Digest {
                    have: crate::hex::encode(have.as_ref()),
                    want: crate::hex::encode(&self.facts.digest),
                });
            }
            let contents =
                Contents::read(&map).map_err(|error| BytesError::Container(error.to_string()))?;
            if contents.format() != self.facts.format {
                return Err(BytesError::Format {
                    have: contents.format().name(),
                    want: self.facts.format.name(),
                });
            }
            // A container that names no ids leaves them to what was signed.
            if let Some(names) = contents.names() {
                if names.interface_id != self.facts.interface_id {
                    return Err(BytesError::Interface {
                        have: names.interface_id,
                        want: self.facts.interface_id,
                    });
                }
                if names.function_id != self.facts.function_id {
                    return Err(BytesError::Function {
                        have: names.function_id,
                        want: self.facts.function_id,
                    });
                }
            }
            let _proof = hold(&contents, &self.facts.demand)?;
        }
        Ok(VerifiedBytes {
            memfd: self.memfd,
            facts: self.facts,
        })
    }
}

/// Sealed bytes of loads that went before, up to a number of bytes in all.
#[derive(Debug)]
pub struct SealedCache {
    limit: u64,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    entries: BTreeMap<[u8; 32], Entry>,
    bytes: u64,
    clock: u64,
}

#[derive(Debug)]
struct Entry {
    memfd: Arc<SealedMemfd>,
    used: u64,
    /// For which region and revision of the host's files which facts held.
    verdicts: BTreeMap<(RegionKey, u64), Facts>,
}

impl SealedCache {
    /// An empty cache of at most `limit` bytes.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self {
            limit,
            inner: Mutex::new(Inner::default()),
        }
    }

    /// The sealed bytes of this digest, and whether their verdict for the region still stands.
    #[must_use]
    pub fn get(&self, facts: &Facts, region: RegionKey, revision: u64) -> Option<Sealed> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.clock = inner.clock.wrapping_add(1);
        let clock = inner.clock;
        let entry = inner.entries.get_mut(&facts.digest)?;
        entry.used = clock;
        Some(Sealed {
            memfd: Arc::clone(&entry.memfd),
            facts: facts.clone(),
            verified: entry.verdicts.get(&(region, revision)) == Some(facts),
        })
    }

    /// Keeps verified bytes and their verdict; the bytes used longest ago make room.
    pub fn keep(&self, bytes: &VerifiedBytes, region: RegionKey, revision: u64) {
        let size = bytes.memfd.length();
        if size > self.limit {
            return;
        }
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.clock = inner.clock.wrapping_add(1);
        let clock = inner.clock;
        if let Some(entry) = inner.entries.get_mut(&bytes.facts.digest) {
            // Verdicts of older revisions are of no use any more.
            entry
                .verdicts
                .retain(|(_region, of), _facts| *of == revision);
            entry
                .verdicts
                .insert((region, revision), bytes.facts.clone());
            entry.used = clock;
            return;
        }
        while inner.bytes.saturating_add(size) > self.limit {
            let Some(oldest) = inner
                .entries
                .iter()
                .min_by_key(|(_digest, entry)| entry.used)
                .map(|(digest, _entry)| *digest)
            else {
                break;
            };
            if let Some(gone) = inner.entries.remove(&oldest) {
                inner.bytes = inner.bytes.saturating_sub(gone.memfd.length());
            }
        }
        inner.bytes = inner.bytes.saturating_add(size);
        inner.entries.insert(
            bytes.facts.digest,
            Entry {
                memfd: Arc::clone(&bytes.memfd),
                used: clock,
                verdicts: BTreeMap::from([((region, revision), bytes.facts.clone())]),
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A verdict is of the facts that were compared, and of no others.
    #[test]
    fn b1_a_verdict_holds_for_the_very_facts_that_were_compared() {
        let folder = tempfile::tempdir().unwrap();
        let bytes = bitstream::gbs::build(&bitstream::gbs::Draft {
            interface_id: Uuid::from_u128(1),
            accelerator: Uuid::from_u128(2),
            name: "test",
            clocks: bitstream::gbs::Clocks::default(),
            power: 0,
            payload: b"bytes",
        })
        .unwrap();
        std::fs::write(folder.path().join("a.gbs"), &bytes).unwrap();
        let facts = Facts {
            digest: digest(&SHA256, &bytes).as_ref().try_into().unwrap(),
            size: u64::try_from(bytes.len()).unwrap(),
            interface_id: Uuid::from_u128(1),
            function_id: Uuid::from_u128(2),
            format: Format::Gbs,
            demand: Demand::Nothing,
        };
        let cache = SealedCache::new(1 << 20);
        let region = RegionKey {
            card: 0,
            region: crate::ipc::RegionIndex(0),
        };
        let sealed = Sealed::from_file(folder.path(), "a.gbs", facts.clone()).unwrap();
        cache.keep(&sealed.verify().unwrap(), region, 1);
        assert!(cache.get(&facts, region, 1).unwrap().verified);
        assert!(!cache.get(&facts, region, 2).unwrap().verified);
        let other = Facts {
            function_id: Uuid::from_u128(3),
            ..facts
        };
        let again = cache.get(&other, region, 1).unwrap();
        assert!(!again.verified);
        assert!(matches!(again.verify(), Err(BytesError::Function { .. })));
    }
}
