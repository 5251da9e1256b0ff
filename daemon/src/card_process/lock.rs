//! The lock that says who holds the card.
//!
//! Knows one file. The kernel takes the lock away with the process, however
//! that ends, so a stale one does not exist.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};

/// Held as long as this lives.
#[derive(Debug)]
#[must_use = "the card is held as long as the lock lives"]
pub(super) struct CardLock {
    _file: File,
}

/// Why the card is not ours.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process has it.
    #[error("{path}: another process holds this card", path = .0.display())]
    Held(PathBuf),
    /// The system said no.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The lock's file.
        path: PathBuf,
        /// What it said.
        source: std::io::Error,
    },
}

impl CardLock {
    /// Takes the lock, or tells at once that it is held.
    ///
    /// # Errors
    /// See [`LockError`].
    pub(super) fn take(path: &Path) -> Result<Self, LockError> {
        let io = |source| LockError::Io {
            path: path.to_path_buf(),
            source,
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o640)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(path)
            .map_err(io)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(LockError::Held(path.to_path_buf())),
            Err(errno) => return Err(io(errno.into())),
        }
        // For people only: nobody decides by it.
        file.set_len(0).map_err(io)?;
        writeln!(file, "{}", std::process::id()).map_err(io)?;
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_a_card() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let first = CardLock::take(&path).unwrap();
        assert!(matches!(CardLock::take(&path), Err(LockError::Held(_))));
        drop(first);
        CardLock::take(&path).map(drop).unwrap();
    }

    #[test]
    fn h1_a_link_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("target");
        std::fs::write(&target, "precious").unwrap();
        let path = dir.path().join("lock");
        std::os::unix::fs::symlink(&target, &path).unwrap();
        assert!(matches!(CardLock::take(&path), Err(LockError::Io { .. })));
        assert_eq!(std::fs::read_to_string(target).unwrap(), "precious");
    }
}
