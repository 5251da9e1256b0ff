//! The signed list as this process reads it itself: its own look at the
//! repository, its own record of the versions seen (INV4, INV5).
//!
//! Knows files and when they changed. Must not know signature mathematics or
//! how a target is judged: that is `policy`'s. Nothing here comes from
//! `reconfd`.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use policy::decide::check_target;
use policy::ids::{Digest, RolePattern};
use policy::time::UnixTime;
use policy::trust::{Catalogue, Floor, LIST_MAX, Root, SMALL_MAX, TrustError, verify};
use uuid::Uuid;

use super::ending::Refusal;
use super::ledger::unix_millis;
use super::region::Region;
use crate::files::{FileError, Readers, read_bounded, read_trusted, write_atomic};
use crate::ipc::{DigestBytes, Outcome, TargetPath};

/// Where the files of trust lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Places {
    /// The enrolled root.
    pub root: PathBuf,
    /// This process' own record of the versions seen.
    pub floor: PathBuf,
    /// The list.
    pub list: PathBuf,
    /// Its signature.
    pub signature: PathBuf,
}

/// What the signed list says of a target that may be loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Signed {
    /// The function that appears.
    pub function_id: Uuid,
    /// Bytes of the container.
    pub size: u64,
}

/// Why there is no list to believe.
#[derive(Debug, thiserror::Error)]
enum Untrusted {
    /// No root, no record of versions, or one that belongs to another root.
    #[error("this host is not enrolled ({0}); run: reconfctl trust enrol ROOT")]
    NotEnrolled(String),
    /// A file of the repository could not be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// It is not what was signed.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The raised floor could not be stored.
    #[error("the record of versions seen could not be stored: {0}")]
    Floor(std::io::Error),
}

/// See the module.
#[derive(Debug)]
pub(super) struct Trusted {
    places: Places,
    roles: Vec<RolePattern>,
    seen: Option<[Stamp; 4]>,
    catalogue: Option<Catalogue>,
    /// The last try's story, if it failed.
    trouble: Option<String>,
}

/// What tells that a file is another one than before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stamp {
    File {
        inode: u64,
        size: u64,
        changed: (i64, i64),
    },
    Unreadable,
}

impl Stamp {
    fn of(path: &Path) -> Self {
        match std::fs::symlink_metadata(path) {
            Ok(seen) => Self::File {
                inode: seen.ino(),
                size: seen.size(),
                changed: (seen.mtime(), seen.mtime_nsec()),
            },
            Err(_) => Self::Unreadable,
        }
    }
}

impl Trusted {
    /// Reads the files for the first time. Where that fails nothing can be loaded, but every
    /// region can be scrubbed.
    pub(super) fn new(places: Places, roles: Vec<RolePattern>) -> Self {
        let mut trusted = Self {
            places,
            roles,
            seen: None,
            catalogue: None,
            trouble: None,
        };
        trusted.refresh();
        trusted
    }

    /// Reads the files again, changed or not.
    pub(super) fn read_again(&mut self) {
        self.seen = None;
        self.refresh();
    }

    /// Judges a target by the files as they are now and the time that it is now.
    ///
    /// # Errors
    /// [`Outcome::Refused`], with the story.
    pub(super) fn check(
        &mut self,
        region: &Region,
        target: &TargetPath,
        digest: DigestBytes,
    ) -> Result<Signed, Refusal> {
        self.refresh();
        let refuse = |text: String| Refusal::new(Outcome::Refused, text);
        let Some(catalogue) = &self.catalogue else {
            let why = self.trouble.as_deref().unwrap_or("nothing is known");
            return Err(refuse(why.to_owned()));
        };
        let path = policy::ids::TargetPath::parse(target.as_str())
            .map_err(|error| refuse(error.to_string()))?;
        let verdict = check_target(
            catalogue,
            &region.facts,
            &path,
            Digest(digest),
            &self.roles,
            now(),
        )
        .map_err(|denial| refuse(denial.to_string()))?;
        Ok(Signed {
            function_id: verdict.function_id.0,
            size: verdict.size,
        })
    }

    /// Reads and verifies if any of the files changed since.
    fn refresh(&mut self) {
        let stamps = self.stamps();
        if self.seen == Some(stamps) {
            return;
        }
        match self.read() {
            Ok(catalogue) => {
                tracing::info!(
                    version = catalogue.version(),
                    "the signed list was verified"
                );
                self.catalogue = Some(catalogue);
                self.trouble = None;
                // The floor may have been raised by this very reading.
                self.seen = Some(self.stamps());
            }
            Err(error) => {
                if matches!(error, Untrusted::NotEnrolled(_)) {
                    self.catalogue = None;
                }
                let kept = self.catalogue.as_ref().map(Catalogue::version);
                tracing::error!(%error, ?kept, "the signed list cannot be used");
                self.trouble = Some(error.to_string());
                self.seen = Some(stamps);
            }
        }
    }

    fn read(&self) -> Result<Catalogue, Untrusted> {
        let (root, floor) = self.enrolled()?;
        let list = read_bounded(&self.places.list, bound(LIST_MAX))?;
        let signature = read_bounded(&self.places.signature, bound(SMALL_MAX))?;
        let catalogue = verify(&root, &floor, &list, &signature, now())?;
        if *catalogue.floor() != floor {
            // Durable before it is used, so that nothing older is ever believed after a crash.
            let bytes = catalogue.floor().to_bytes();
            write_atomic(&self.places.floor, &bytes, Readers::Group).map_err(Untrusted::Floor)?;
        }
        Ok(catalogue)
    }

    fn enrolled(&self) -> Result<(Root, Floor), Untrusted> {
        let lost = |error: &dyn std::fmt::Display| Untrusted::NotEnrolled(error.to_string());
        let read = |path: &Path| read_trusted(path, bound(SMALL_MAX)).map_err(|e| lost(&e));
        let root = Root::parse(&read(&self.places.root)?).map_err(|e| lost(&e))?;
        let floor = Floor::parse(&read(&self.places.floor)?).map_err(|e| lost(&e))?;
        if floor.root() != root.digest() {
            return Err(lost(&"the record of versions seen belongs to another root"));
        }
        Ok((root, floor))
    }

    fn stamps(&self) -> [Stamp; 4] {
        let Places {
            root,
            floor,
            list,
            signature,
        } = &self.places;
        [root, floor, list, signature].map(|path| Stamp::of(path))
    }
}

/// The wall clock.
fn now() -> UnixTime {
    UnixTime(unix_millis() / 1000)
}

fn bound(max: usize) -> u64 {
    u64::try_from(max).unwrap_or(u64::MAX)
}
