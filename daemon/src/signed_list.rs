//! The signed list as a process reads it: its own look at the repository, its
//! own record of the versions seen (INV4, INV5).
//!
//! Knows files and when they changed. Must not know signature mathematics or
//! how a request is judged: that is `policy`'s. `reconfd` and each
//! `reconf-card` have one of their own, and tell each other nothing of it.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use policy::decide::CatalogueTrouble;
use policy::time::UnixTime;
use policy::trust::{Catalogue, Floor, LIST_MAX, Root, SMALL_MAX, verify};

use crate::files::{Readers, read_bounded, read_trusted, write_atomic};

/// After trouble the files are read again after this time, changed or not.
const RETRY: Duration = Duration::from_secs(10);

/// Where the files of trust lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The enrolled root.
    pub root: PathBuf,
    /// This process' own record of the versions seen.
    pub floor: PathBuf,
    /// The list.
    pub list: PathBuf,
    /// Its signature.
    pub signature: PathBuf,
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
        std::fs::symlink_metadata(path).map_or(Self::Unreadable, |seen| Self::File {
            inode: seen.ino(),
            size: seen.size(),
            // The change time: no file can be given one.
            changed: (seen.ctime(), seen.ctime_nsec()),
        })
    }
}

/// What a look at the files brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    /// Nothing changed since the last look.
    Same,
    /// A list was verified.
    New,
    /// What is there now is not believed.
    Trouble(CatalogueTrouble),
}

/// See the module.
#[derive(Debug)]
pub struct SignedList {
    places: Places,
    seen: Option<[Stamp; 4]>,
    catalogue: Option<Arc<Catalogue>>,
    trouble: Option<CatalogueTrouble>,
    /// The last reading.
    tried: Option<Instant>,
}

impl SignedList {
    /// Nothing is read yet.
    #[must_use]
    pub fn new(places: Places) -> Self {
        Self {
            places,
            seen: None,
            catalogue: None,
            trouble: None,
            tried: None,
        }
    }

    /// The list in force, or why there is none. A list that was verified stays in force when
    /// what replaced it is not believed; it expires all the same.
    ///
    /// # Errors
    /// [`CatalogueTrouble`].
    pub fn catalogue(&self) -> Result<Arc<Catalogue>, CatalogueTrouble> {
        match (&self.catalogue, &self.trouble) {
            (Some(catalogue), _) => Ok(Arc::clone(catalogue)),
            (None, Some(trouble)) => Err(trouble.clone()),
            (None, None) => Err(CatalogueTrouble::Unreadable {
                why: "it was not read yet".to_owned(),
            }),
        }
    }

    /// What is wrong with the files as they are, if anything is; a list may be in force all the same.
    #[must_use]
    pub fn trouble(&self) -> Option<&CatalogueTrouble> {
        self.trouble.as_ref()
    }

    /// Reads and verifies again, changed or not.
    pub fn read_again(&mut self) -> Look {
        self.seen = None;
        match (self.refresh(), &self.trouble) {
            // Whoever asks wants to hear of it, known or not.
            (Look::Same, Some(trouble)) => Look::Trouble(trouble.clone()),
            (look, _) => look,
        }
    }

    /// Reads and verifies if any of the files changed since, and after trouble from time to time:
    /// a full disk or a wrong clock passes without a change of any file.
    pub fn refresh(&mut self) -> Look {
        let stamps = self.stamps();
        let again = self.trouble.is_some() && self.tried.is_none_or(|at| at.elapsed() >= RETRY);
        if self.seen == Some(stamps) && !again {
            return Look::Same;
        }
        self.tried = Some(Instant::now());
        let result = self.read();
        self.take(stamps, result)
    }

    /// Takes in what was read from the files that had these stamps before.
    fn take(&mut self, before: [Stamp; 4], result: Result<Catalogue, CatalogueTrouble>) -> Look {
        match result {
            Ok(catalogue) => {
                tracing::info!(
                    version = catalogue.version(),
                    "the signed list was verified"
                );
                self.catalogue = Some(Arc::new(catalogue));
                self.trouble = None;
                // The floor may have been raised by this very reading. The others count as they
                // were before it: a list that came in the middle is another one.
                let [root, _floor, list, signature] = before;
                let floor = Stamp::of(&self.places.floor);
                self.seen = Some([root, floor, list, signature]);
                Look::New
            }
            Err(trouble) => {
                self.seen = Some(before);
                if self.trouble.as_ref() == Some(&trouble) {
                    return Look::Same;
                }
                // Without a root or a record of versions nothing is believed, not even what was.
                if matches!(trouble, CatalogueTrouble::NotEnrolled { .. }) {
                    self.catalogue = None;
                }
                let kept = self.catalogue.as_ref().map(|catalogue| catalogue.version());
                tracing::error!(%trouble, ?kept, "the signed list cannot be used");
                self.trouble = Some(trouble.clone());
                Look::Trouble(trouble)
            }
        }
    }

    fn read(&self) -> Result<Catalogue, CatalogueTrouble> {
        let (root, floor) = self.enrolled()?;
        let unreadable = |error: &dyn std::fmt::Display| CatalogueTrouble::Unreadable {
            why: error.to_string(),
        };
        let list =
            read_bounded(&self.places.list, bound(LIST_MAX)).map_err(|error| unreadable(&error))?;
        let signature = read_bounded(&self.places.signature, bound(SMALL_MAX))
            .map_err(|error| unreadable(&error))?;
        let catalogue =
            verify(&root, &floor, &list, &signature, now()).map_err(CatalogueTrouble::Refused)?;
        if *catalogue.floor() != floor {
            // Durable before it is used, so that nothing older is ever believed after a crash.
            write_atomic(
                &self.places.floor,
                &catalogue.floor().to_bytes(),
                Readers::Group,
            )
            .map_err(|error| {
                unreadable(&format!(
                    "the record of versions seen cannot be stored: {error}"
                ))
            })?;
        }
        Ok(catalogue)
    }

    fn enrolled(&self) -> Result<(Root, Floor), CatalogueTrouble> {
        let lost = |error: &dyn std::fmt::Display| CatalogueTrouble::NotEnrolled {
            why: error.to_string(),
        };
        let read = |path: &Path| read_trusted(path, bound(SMALL_MAX)).map_err(|error| lost(&error));
        let root = Root::parse(&read(&self.places.root)?).map_err(|error| lost(&error))?;
        let floor = Floor::parse(&read(&self.places.floor)?).map_err(|error| lost(&error))?;
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
#[must_use]
pub fn now() -> UnixTime {
    UnixTime(
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs()),
    )
}

fn bound(max: usize) -> u64 {
    u64::try_from(max).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconfd::tests::site::Site;

    fn list(site: &Site) -> SignedList {
        SignedList::new(Places {
            root: site.path("state/trust/root.json"),
            floor: site.path("state/reconfd/floor.json"),
            list: site.path("repo/images.json"),
            signature: site.path("repo/images.json.sig"),
        })
    }

    fn version(list: &SignedList) -> u64 {
        list.catalogue().unwrap().version()
    }

    #[test]
    fn p14_a_list_that_comes_during_a_reading_is_not_missed() {
        let site = Site::new();
        let mut list = list(&site);
        let before = list.stamps();
        let first = list.read();
        site.publish();
        assert_eq!(list.take(before, first), Look::New);
        assert_eq!(version(&list), 1);
        assert_eq!(list.refresh(), Look::New, "the second one is seen");
        assert_eq!(version(&list), 2);
        assert_eq!(list.refresh(), Look::Same);
    }

    #[test]
    fn p16_trouble_that_passes_by_itself_is_looked_at_again() {
        let site = Site::new();
        let mut list = list(&site);
        assert_eq!(list.refresh(), Look::New);
        site.publish();
        // A disk that is full: the record of versions cannot be replaced, the list is not used.
        let stamps = list.stamps();
        let full = CatalogueTrouble::Unreadable {
            why: "the record of versions seen cannot be stored: no space".to_owned(),
        };
        let trouble = list.take(stamps, Err(full));
        assert!(matches!(trouble, Look::Trouble(_)));
        list.tried = Some(Instant::now());
        assert_eq!(list.refresh(), Look::Same, "not on every request");
        assert_eq!(version(&list), 1, "the one of before stays in force");
        // No file changed since; but time went by.
        list.tried = None;
        assert_eq!(list.refresh(), Look::New);
        assert_eq!(version(&list), 2);
    }
}
