//! The lock that says which `reconfd` has this host's state.
//!
//! Knows one file. The kernel takes the lock away with the process, however
//! that ends, so a stale one does not exist.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::{FlockOperation, OFlags, flock};

/// Held as long as this lives.
#[derive(Debug)]
#[must_use = "the state is held as long as the lock lives"]
pub(super) struct ProcessLock {
    _file: File,
}

impl ProcessLock {
    /// Takes the lock, or tells at once that it is held.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if another process has it; what the system says otherwise.
    pub(super) fn take(path: &Path) -> io::Result<Self> {
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o640)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { _file: file }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "another reconfd runs with this state; stop it first",
            )),
            Err(errno) => Err(errno.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_reconfd_a_state() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let first = ProcessLock::take(&path).unwrap();
        let second = ProcessLock::take(&path).unwrap_err();
        assert_eq!(second.kind(), io::ErrorKind::AlreadyExists);
        drop(first);
        ProcessLock::take(&path).map(drop).unwrap();
    }
}
