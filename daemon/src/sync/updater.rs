//! One update, in the order of the specification: root, timestamp, snapshot,
//! targets, and then one target after the other.
//!
//! Knows the order, and stores each document as soon as it is believed. The
//! rules are `policy::tuf`'s.

use std::io::{self, Read};
use std::path::Path;

use policy::time::UnixTime;
use policy::tuf::{
    Anchor, Chain, Consistency, Current, Listed, Lookup, Memory, News, Role, RoleSource, Stored,
    Target, TargetPath, Targets, TufError, longest,
};

use super::source::{Fetched, Place, Source, SourceError};
use super::store::Store;
use crate::files::{self, FileError, Readers};

/// Largest target that is fetched, in bytes.
const TARGET_MAX: u64 = 256 * 1024 * 1024;

/// Why an update, or a target, failed. What was stored before stays in use.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// A document or a target is not believed.
    #[error(transparent)]
    Tuf(#[from] TufError),
    /// The repository could not be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A stored document could not be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The repository does not have what it lists.
    #[error("{0}: not in the repository")]
    Missing(String),
    /// No root was enrolled.
    #[error("no root of trust: enrol one first")]
    NoRoot,
    /// A target larger than is ever fetched.
    #[error("{path}: {length} bytes, above the limit of {TARGET_MAX}")]
    TargetTooLarge {
        /// Which target.
        path: TargetPath,
        /// Its signed length in bytes.
        length: u64,
    },
    /// Reading or writing broke off.
    #[error("{what}: {error}")]
    Io {
        /// What was read or written.
        what: String,
        /// Why.
        error: io::Error,
    },
}

fn io_error(what: impl Into<String>) -> impl FnOnce(io::Error) -> SyncError {
    let what = what.into();
    |error| SyncError::Io { what, error }
}

/// Stores the root that an operator vouches for.
///
/// # Errors
///
/// [`SyncError`]: it is not a root that signed itself, or could not be stored.
pub fn enrol(store: &Store, root: &[u8]) -> Result<(), SyncError> {
    let chain = Chain::begin(root)?;
    store.keep(chain.root()).map_err(io_error("root.json"))
}

/// A repository at one state and one time, with the folder that remembers it.
pub struct Updater<S> {
    lookup: Lookup,
    roles: Roles<S>,
    news: News,
}

impl<S: Source> Updater<S> {
    /// Brings the documents of the top up to date. `now` stays the time of all
    /// that follows.
    ///
    /// # Errors
    ///
    /// [`SyncError`]; documents that were believed before it are stored.
    pub fn refresh(store: Store, source: S, now: UnixTime) -> Result<Updater<S>, SyncError> {
        let mut roles = Roles {
            store,
            source,
            consistency: Consistency::Plain,
        };
        let anchor = roles.anchor(now)?;
        roles.consistency = anchor.root().consistency();

        let role = Role::Timestamp;
        let name = role.file_name();
        let bytes = roles.fetch_metadata(&name, longest(&role))?;
        let (timestamp, news) = anchor.timestamp(&bytes.ok_or(SyncError::Missing(name))?)?;
        if news == News::Newer {
            roles.keep_file(&timestamp)?;
        }

        let snapshot = if let Some(snapshot) = anchor.stored_snapshot(&timestamp) {
            snapshot
        } else {
            let bytes = roles.fetch(&Role::Snapshot, timestamp.snapshot())?;
            let snapshot = anchor.snapshot(&timestamp, &bytes)?;
            roles.keep_file(&snapshot)?;
            snapshot
        };

        let role = Role::Targets;
        let stored = roles.stored(&role);
        let stored = stored.and_then(|bytes| anchor.targets(&snapshot, &bytes).ok());
        let top = if let Some(top) = stored {
            top
        } else {
            let bytes = roles.fetch(&role, snapshot.listed(&role)?)?;
            let top = anchor.targets(&snapshot, &bytes)?;
            roles.keep_file(&top)?;
            top
        };
        Ok(Updater {
            lookup: Lookup::new(anchor, snapshot, top),
            roles,
            news,
        })
    }

    /// What became of the timestamp; [`News::Equivocation`] is to be told to people.
    pub fn news(&self) -> News {
        self.news
    }

    /// Finds what is signed about a target.
    ///
    /// # Errors
    ///
    /// [`SyncError`]: there is none, or a role on the way is not to be had or believed.
    pub fn find(&mut self, path: &TargetPath) -> Result<Target, SyncError> {
        self.lookup.find(path, &mut self.roles)
    }

    /// Brings a target into `folder`, below which it keeps its path. One that is
    /// there with the signed bytes is not fetched again.
    ///
    /// # Errors
    ///
    /// [`SyncError`]; a file that was there stays as it was.
    pub fn download(&self, target: &Target, folder: &Path) -> Result<(), SyncError> {
        let length = target.length();
        if length > TARGET_MAX {
            let path = target.path().clone();
            return Err(SyncError::TargetTooLarge { path, length });
        }
        let relative: &Path = target.path().as_str().as_ref();
        if let Ok((mut file, _size)) = files::open_beneath(folder, relative)
            && read_target(&mut file, target).is_ok()
        {
            return Ok(());
        }
        let reference = target.reference();
        let Fetched::Here(mut stream) = self.roles.source.open(Place::Target(&reference))? else {
            return Err(SyncError::Missing(reference));
        };
        let bytes = read_target(&mut stream, target)?;
        let path = folder.join(relative);
        let written = path.parent().map_or(Ok(()), files::create_directories);
        written
            .and_then(|()| files::write_atomic(&path, &bytes, Readers::All))
            .map_err(io_error(target.path().as_str()))
    }
}

/// Reads a target to its end, and never beyond its signed length.
fn read_target(stream: &mut dyn Read, target: &Target) -> Result<Vec<u8>, SyncError> {
    let mut checker = target.checker();
    let mut bytes = Vec::new();
    let mut piece = vec![0; 64 * 1024];
    loop {
        let len = stream
            .read(&mut piece)
            .map_err(io_error(target.path().as_str()))?;
        let got = piece.get(..len).unwrap_or_default();
        if got.is_empty() {
            checker.finish()?;
            return Ok(bytes);
        }
        checker.update(got)?;
        bytes.extend_from_slice(got);
    }
}

/// The documents of all roles: the folder, and where new ones come from.
struct Roles<S> {
    store: Store,
    source: S,
    consistency: Consistency,
}

impl<S: Source> Roles<S> {
    /// Follows the roots, and fixes the time.
    fn anchor(&self, now: UnixTime) -> Result<Anchor, SyncError> {
        let stored = self.store.read(&Role::Root)?.ok_or(SyncError::NoRoot)?;
        let mut chain = Chain::begin(&stored)?;
        while let Some(version) = chain.wants() {
            let name = Role::Root.versioned_file_name(version);
            let Some(bytes) = self.fetch_metadata(&name, longest(&Role::Root))? else {
                break;
            };
            chain.extend(&bytes)?;
            self.store
                .keep(chain.root())
                .map_err(io_error("root.json"))?;
        }
        let timestamp = self.stored_bytes(&Role::Timestamp);
        let snapshot = self.stored_bytes(&Role::Snapshot);
        let stored = Stored {
            timestamp: timestamp.as_deref(),
            snapshot: snapshot.as_deref(),
        };
        let anchor = Anchor::new(chain, now, UnixTime::default(), stored)?;
        if anchor.memory() == Memory::Forgotten {
            for role in [Role::Snapshot, Role::Timestamp] {
                self.store
                    .forget(&role)
                    .map_err(io_error(role.file_name()))?;
            }
        }
        Ok(anchor)
    }

    /// What cannot be read is fetched again.
    fn stored_bytes(&self, role: &Role) -> Option<Vec<u8>> {
        self.store.read(role).ok().flatten()
    }

    /// `None`: the repository says that there is no such file.
    fn fetch_metadata(&self, name: &str, max: usize) -> Result<Option<Vec<u8>>, SyncError> {
        let Fetched::Here(stream) = self.source.open(Place::Metadata(name))? else {
            return Ok(None);
        };
        // One more than the limit, so that the verifier sees that it is too long.
        let limit = u64::try_from(max).unwrap_or(u64::MAX).saturating_add(1);
        let mut bytes = Vec::new();
        stream
            .take(limit)
            .read_to_end(&mut bytes)
            .map_err(io_error(name))?;
        Ok(Some(bytes))
    }

    fn keep_file<T>(&self, document: &Current<T>) -> Result<(), SyncError> {
        let kept = self.store.keep(document);
        kept.map_err(io_error(document.role().file_name()))
    }
}

impl<S: Source> RoleSource for Roles<S> {
    type Error = SyncError;

    fn stored(&mut self, role: &Role) -> Option<Vec<u8>> {
        self.stored_bytes(role)
    }

    fn fetch(&mut self, role: &Role, listed: &Listed) -> Result<Vec<u8>, SyncError> {
        let name = match self.consistency {
            Consistency::Consistent => role.versioned_file_name(listed.version()),
            Consistency::Plain => role.file_name(),
        };
        let bytes = self.fetch_metadata(&name, listed.longest(role))?;
        bytes.ok_or(SyncError::Missing(name))
    }

    fn keep(&mut self, document: &Current<Targets>) -> Result<(), SyncError> {
        self.keep_file(document)
    }
}
