//! A Unix socket at which we listen, and its path in the file system (H1).
//!
//! Knows paths, owners and modes. Must not know who connects or what is said.

use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use thiserror::Error;
use tokio::net::{UnixListener, UnixStream};
use tracing::debug;

/// Making and removing sockets is done one at a time: else the end of an old channel could
/// remove the socket that a new one has just made in its place.
static PATHS: Mutex<()> = Mutex::new(());

/// Why a socket cannot be made.
#[derive(Debug, Error)]
pub enum ListenError {
    /// Something that is not our socket lies at its path.
    #[error("{path} is there and is not a socket of ours: it is left alone")]
    Occupied {
        /// The path.
        path: PathBuf,
    },
    /// Others could put something in its place.
    #[error("{path}: {what}: no socket is made there")]
    UnsafeDirectory {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The system refuses.
    #[error("{path}: {error}")]
    Io {
        /// The path.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// A listening socket. Its path is removed with it, if it is still its own.
#[derive(Debug)]
pub struct Listening {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode of the socket's file.
    file: (u64, u64),
}

impl Listening {
    /// Makes the socket, 0660, and where it is missing its directory, 0750.
    ///
    /// # Errors
    /// See [`ListenError`]. A stale socket of our own is replaced; anything else is left alone.
    pub fn at(path: &Path) -> Result<Self, ListenError> {
        let io = |error| ListenError::Io {
            path: path.to_owned(),
            error,
        };
        let directory = path.parent().unwrap_or(Path::new("/"));
        crate::files::create_directories(directory).map_err(io)?;
        check_directory(directory)?;
        let _one_at_a_time = PATHS.lock().unwrap_or_else(PoisonError::into_inner);
        match std::fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(io(error)),
            Ok(there) if there.file_type().is_socket() && there.uid() == own() => {
                std::fs::remove_file(path).map_err(io)?;
            }
            Ok(_other) => {
                return Err(ListenError::Occupied {
                    path: path.to_owned(),
                });
            }
        }
        let listener = UnixListener::bind(path).map_err(io)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o660)).map_err(io)?;
        let made = std::fs::symlink_metadata(path).map_err(io)?;
        Ok(Self {
            listener,
            path: path.to_owned(),
            file: (made.dev(), made.ino()),
        })
    }

    /// The next connection.
    ///
    /// # Errors
    /// What the system says.
    pub async fn accept(&self) -> io::Result<UnixStream> {
        self.listener.accept().await.map(|(stream, _peer)| stream)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _one_at_a_time = PATHS.lock().unwrap_or_else(PoisonError::into_inner);
        let still_ours = std::fs::symlink_metadata(&self.path)
            .is_ok_and(|there| (there.dev(), there.ino()) == self.file);
        if still_ours && let Err(error) = std::fs::remove_file(&self.path) {
            debug!(path = %self.path.display(), %error, "a socket could not be removed");
        }
    }
}

/// Nobody but root and us may put something in our socket's place.
fn check_directory(path: &Path) -> Result<(), ListenError> {
    let seen = std::fs::symlink_metadata(path).map_err(|error| ListenError::Io {
        path: path.to_owned(),
        error,
    })?;
    let what = if !seen.is_dir() {
        "a link, not a directory"
    } else if seen.uid() != 0 && seen.uid() != own() {
        "the directory is another user's"
    } else if seen.mode() & 0o002 != 0 {
        "everybody may write to the directory"
    } else {
        return Ok(());
    };
    Err(ListenError::UnsafeDirectory {
        path: path.to_owned(),
        what,
    })
}

fn own() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn h1_what_is_not_ours_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("target");
        std::fs::write(&target, b"precious").unwrap();
        for plant in ["file", "link", "directory"] {
            let path = dir.path().join(plant);
            match plant {
                "file" => std::fs::write(&path, b"x").unwrap(),
                "link" => std::os::unix::fs::symlink(&target, &path).unwrap(),
                _ => std::fs::create_dir(&path).unwrap(),
            }
            assert!(matches!(
                Listening::at(&path),
                Err(ListenError::Occupied { .. })
            ));
            assert!(std::fs::symlink_metadata(&path).is_ok());
        }
        assert_eq!(std::fs::read(&target).unwrap(), b"precious");
    }

    #[tokio::test]
    async fn h1_a_directory_that_others_rule_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().join("real");
        std::fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, dir.path().join("link")).unwrap();
        let open = dir.path().join("open");
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o1777)).unwrap();
        for directory in ["link", "open"] {
            let refused = Listening::at(&dir.path().join(directory).join("socket"));
            assert!(matches!(refused, Err(ListenError::UnsafeDirectory { .. })));
        }
        Listening::at(&real.join("socket")).unwrap();
        assert!(!real.join("socket").exists(), "removed with its listener");
    }

    #[tokio::test]
    async fn the_end_of_an_old_channel_leaves_the_new_ones_socket() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("org.reconf.0");
        let old = Listening::at(&path).unwrap();
        let new = Listening::at(&path).unwrap();
        drop(old);
        UnixStream::connect(&path).await.unwrap();
        new.accept().await.unwrap();
    }
}
