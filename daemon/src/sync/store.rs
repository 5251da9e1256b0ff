//! The documents that were verified, as files of one folder.
//!
//! Knows names and bytes: `root.json`, `timestamp.json`, … without versions.
//! Writes only [`Trusted`] documents, whole or not at all.

use std::io;
use std::path::{Path, PathBuf};

use policy::tuf::{Role, Trusted, longest};

use crate::files::{self, FileError, Readers};

/// A folder of verified documents.
#[derive(Debug, Clone)]
pub struct Store(PathBuf);

impl Store {
    /// The folder need not be there yet.
    #[must_use]
    pub fn new(folder: &Path) -> Store {
        Store(folder.to_path_buf())
    }

    fn path(&self, role: &Role) -> PathBuf {
        self.0.join(role.file_name())
    }

    /// The bytes of a role's document, if there are any.
    ///
    /// # Errors
    ///
    /// [`FileError`], that there is none excepted.
    pub fn read(&self, role: &Role) -> Result<Option<Vec<u8>>, FileError> {
        let max = u64::try_from(longest(role)).unwrap_or(u64::MAX);
        match files::read_bounded(&self.path(role), max) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes a document durable in place of the one before.
    ///
    /// # Errors
    ///
    /// The system's; the old one is then still there.
    pub fn keep<T>(&self, document: &Trusted<T>) -> io::Result<()> {
        files::create_directories(&self.0)?;
        files::write_atomic(&self.path(document.role()), document.bytes(), Readers::All)
    }

    /// Deletes a role's document, if there is one.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn forget(&self, role: &Role) -> io::Result<()> {
        match std::fs::remove_file(self.path(role)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => std::fs::File::open(&self.0)?.sync_all(),
        }
    }
}
