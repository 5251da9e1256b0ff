//! The rules of one update, at one fixed time, under one root.
//!
//! Knows the documents and what was seen before. Must not know where bytes come
//! from or go to. An [`Anchor`] is a root that has not expired; what it lets
//! through is [`Current`]: verified, not older than what was seen, the one that
//! is listed, and not expired.

use std::ops::Deref;
use std::sync::Arc;

use super::chain::Chain;
use super::document::Trusted;
use super::error::TufError;
use super::limits::ISSUED_AHEAD_MAX;
use super::listing::{Snapshot, Timestamp};
use super::name::{Role, RoleName};
use super::root::Root;
use super::targets::Targets;
use crate::time::UnixTime;

/// A document that may be followed now.
#[derive(Debug)]
pub struct Current<T>(Arc<Trusted<T>>);

impl<T> Clone for Current<T> {
    fn clone(&self) -> Current<T> {
        Current(Arc::clone(&self.0))
    }
}

impl<T> Deref for Current<T> {
    type Target = Trusted<T>;

    fn deref(&self) -> &Trusted<T> {
        &self.0
    }
}

/// The bytes that an earlier update left.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stored<'a> {
    /// The timestamp, if there is one.
    pub timestamp: Option<&'a [u8]>,
    /// The snapshot, if there is one.
    pub snapshot: Option<&'a [u8]>,
}

/// What is to become of the stored timestamp and snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// They hold; what comes must not be older.
    Kept,
    /// The root took their keys away: both are to be deleted before anything new
    /// is stored. So a repository recovers from versions that a thief drove up.
    Forgotten,
}

/// What became of a timestamp that was fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// It is newer, and is to be stored.
    Newer,
    /// The stored one is as new, and stays.
    Same,
    /// Another one with the version of the stored one, which stays: somebody
    /// signed two. To be told to people.
    Equivocation,
}

/// A root that has not expired, with the time of the update and what was seen before.
#[derive(Debug)]
pub struct Anchor {
    root: Trusted<Root>,
    wall: UnixTime,
    now: UnixTime,
    timestamp: Option<Arc<Trusted<Timestamp>>>,
    snapshot: Option<Arc<Trusted<Snapshot>>>,
    memory: Memory,
}

impl Anchor {
    /// Fixes the time of the update: the wall clock, never below `floor` (the
    /// highest signed time that the caller has seen) or what the stored timestamp says.
    ///
    /// # Errors
    ///
    /// [`TufError::Expired`]: the newest root has.
    pub fn new(
        chain: Chain,
        wall: UnixTime,
        floor: UnixTime,
        stored: Stored<'_>,
    ) -> Result<Anchor, TufError> {
        let root = chain.into_root();
        let timestamp = recall::<Timestamp>(stored.timestamp, |bytes| {
            root.admit(&Role::Timestamp, bytes)
        });
        let snapshot =
            recall::<Snapshot>(stored.snapshot, |bytes| root.admit(&Role::Snapshot, bytes));
        let (timestamp, snapshot, memory) = match (timestamp, snapshot) {
            (Recalled::Disowned, _) | (_, Recalled::Disowned) => (None, None, Memory::Forgotten),
            (timestamp, snapshot) => (timestamp.known(), snapshot.known(), Memory::Kept),
        };
        let issued = timestamp.as_ref().and_then(|timestamp| timestamp.issued());
        let now = wall.max(floor).max(issued.unwrap_or_default());
        check_fresh(&root, now)?;
        Ok(Anchor {
            root,
            wall,
            now,
            timestamp,
            snapshot,
            memory,
        })
    }

    /// The root.
    #[must_use]
    pub fn root(&self) -> &Trusted<Root> {
        &self.root
    }

    /// The fixed time of the update.
    #[must_use]
    pub fn now(&self) -> UnixTime {
        self.now
    }

    /// What is to become of the stored timestamp and snapshot.
    #[must_use]
    pub fn memory(&self) -> Memory {
        self.memory
    }

    /// Takes the timestamp that was fetched, or stays with the stored one.
    ///
    /// # Errors
    ///
    /// [`TufError`]: not signed, older, listing an older snapshot, from the
    /// future, or expired.
    pub fn timestamp(&self, bytes: &[u8]) -> Result<(Current<Timestamp>, News), TufError> {
        let new: Trusted<Timestamp> = self.root.admit(&Role::Timestamp, bytes)?;
        let back = |role, have, got| Err(TufError::Rollback { role, have, got });
        if let Some(old) = &self.timestamp {
            let (have, got) = (old.version(), new.version());
            if got < have {
                return back(Role::Timestamp, have, got);
            }
            if got == have {
                let same = new.signed_digest() == old.signed_digest();
                let news = if same { News::Same } else { News::Equivocation };
                check_fresh(old, self.now)?;
                return Ok((Current(Arc::clone(old)), news));
            }
            let (have, got) = (old.snapshot().version(), new.snapshot().version());
            if got < have {
                return back(Role::Snapshot, have, got);
            }
        }
        let latest = UnixTime(self.wall.0.saturating_add(ISSUED_AHEAD_MAX));
        if let Some(issued) = new.issued().filter(|issued| *issued > latest) {
            let now = self.wall;
            return Err(TufError::IssuedInFuture { issued, now });
        }
        check_fresh(&new, self.now.max(new.issued().unwrap_or_default()))?;
        Ok((Current(Arc::new(new)), News::Newer))
    }

    /// The stored snapshot, where it is the one that the timestamp lists.
    #[must_use]
    pub fn stored_snapshot(&self, timestamp: &Current<Timestamp>) -> Option<Current<Snapshot>> {
        let stored = self.snapshot.as_ref()?;
        let listed = timestamp.snapshot();
        let fits = || {
            listed.check_bytes(&Role::Snapshot, &Role::Timestamp, stored.bytes())?;
            listed.check_version(&Role::Snapshot, &Role::Timestamp, stored.version())?;
            check_fresh(stored, self.now)
        };
        fits().is_ok().then(|| Current(Arc::clone(stored)))
    }

    /// Takes the snapshot that was fetched.
    ///
    /// # Errors
    ///
    /// [`TufError`]: not the listed one, not signed, listing older versions or
    /// fewer roles than the stored one, or expired.
    pub fn snapshot(
        &self,
        timestamp: &Current<Timestamp>,
        bytes: &[u8],
    ) -> Result<Current<Snapshot>, TufError> {
        let listed = timestamp.snapshot();
        listed.check_bytes(&Role::Snapshot, &Role::Timestamp, bytes)?;
        let new: Trusted<Snapshot> = self.root.admit(&Role::Snapshot, bytes)?;
        listed.check_version(&Role::Snapshot, &Role::Timestamp, new.version())?;
        if let Some(old) = &self.snapshot {
            new.check_not_behind(old)?;
        }
        check_fresh(&new, self.now)?;
        Ok(Current(Arc::new(new)))
    }

    /// Takes the targets document of the top.
    ///
    /// # Errors
    ///
    /// [`TufError`]: not the listed one, not signed, or expired.
    pub fn targets(
        &self,
        snapshot: &Current<Snapshot>,
        bytes: &[u8],
    ) -> Result<Current<Targets>, TufError> {
        self.listed_targets(snapshot, &Role::Targets, bytes, || {
            self.root.admit(&Role::Targets, bytes)
        })
    }

    /// Takes the document of a delegated role, with the keys that this delegator gives.
    ///
    /// # Errors
    ///
    /// As [`Anchor::targets`], and [`TufError::NotDelegated`].
    pub fn delegated(
        &self,
        snapshot: &Current<Snapshot>,
        delegator: &Current<Targets>,
        name: &RoleName,
        bytes: &[u8],
    ) -> Result<Current<Targets>, TufError> {
        let role = Role::Delegated(name.clone());
        self.listed_targets(snapshot, &role, bytes, || delegator.admit(name, bytes))
    }

    fn listed_targets(
        &self,
        snapshot: &Current<Snapshot>,
        role: &Role,
        bytes: &[u8],
        admit: impl FnOnce() -> Result<Trusted<Targets>, TufError>,
    ) -> Result<Current<Targets>, TufError> {
        let listed = snapshot.listed(role)?;
        listed.check_bytes(role, &Role::Snapshot, bytes)?;
        let new = admit()?;
        listed.check_version(role, &Role::Snapshot, new.version())?;
        check_fresh(&new, self.now)?;
        Ok(Current(Arc::new(new)))
    }
}

/// What a stored document still is under the root of today.
enum Recalled<T> {
    /// Not there, or unreadable.
    Nothing,
    /// The keys that signed it do not count any more. Only verified documents
    /// are ever stored, so it is the keys that changed.
    Disowned,
    Known(Arc<Trusted<T>>),
}

impl<T> Recalled<T> {
    fn known(self) -> Option<Arc<Trusted<T>>> {
        match self {
            Recalled::Known(document) => Some(document),
            Recalled::Nothing | Recalled::Disowned => None,
        }
    }
}

fn recall<T>(
    bytes: Option<&[u8]>,
    admit: impl FnOnce(&[u8]) -> Result<Trusted<T>, TufError>,
) -> Recalled<T> {
    match bytes.map(admit) {
        Some(Ok(document)) => Recalled::Known(Arc::new(document)),
        Some(Err(TufError::Threshold { .. })) => Recalled::Disowned,
        None | Some(Err(_)) => Recalled::Nothing,
    }
}

fn check_fresh<T>(document: &Trusted<T>, now: UnixTime) -> Result<(), TufError> {
    if now < document.expires() {
        return Ok(());
    }
    Err(TufError::Expired {
        role: document.role().clone(),
        since: document.expires(),
    })
}
