//! The socket at which `reconfd` is awaited: who may connect, one connection
//! at a time, packets understood strictly.
//!
//! Knows sockets and users. Must not know regions. A packet that makes no
//! sense ends its connection.

use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::net::Shutdown;

use super::inbox::{ConnectionId, Inbox, Said};
use super::outlet::Outlet;
use crate::ipc::socket::{Listener, Socket};
use crate::ipc::{IpcError, Packet, ToCard};

/// Who may connect, beside root and our own user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Peers {
    /// Our own user.
    pub own: u32,
    /// `reconfd`'s, where it is another one.
    pub other: Option<u32>,
}

impl Peers {
    /// Our own user, and `other`.
    pub(super) fn new(other: Option<u32>) -> Self {
        Self {
            own: rustix::process::geteuid().as_raw(),
            other,
        }
    }

    fn may(self, uid: u32) -> bool {
        uid == 0 || uid == self.own || self.other == Some(uid)
    }
}

/// Why the socket is not there.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// Something that is not our own stale socket is in its place.
    #[error("{path}: {what}; it is left alone", path = path.display())]
    UnsafePath {
        /// Where.
        path: PathBuf,
        /// What is there.
        what: &'static str,
    },
    /// The system said no.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// What it said.
        source: std::io::Error,
    },
    /// The socket could not be made.
    #[error("{path}: {source}", path = path.display())]
    Ipc {
        /// Where.
        path: PathBuf,
        /// Why.
        source: IpcError,
    },
}

/// The listening socket; removed when dropped.
#[derive(Debug)]
pub(super) struct Link {
    listener: Arc<Listener>,
    path: PathBuf,
    accepting: Option<JoinHandle<()>>,
}

impl Link {
    /// Listens at `path`. The caller holds the card's lock, so that a socket of our own that is
    /// in the way is stale.
    ///
    /// # Errors
    /// See [`LinkError`].
    pub(super) fn listen(path: &Path) -> Result<Self, LinkError> {
        let io = |source| LinkError::Io {
            path: path.to_path_buf(),
            source,
        };
        let directory = path.parent().unwrap_or(Path::new("."));
        crate::files::create_directories(directory).map_err(io)?;
        check_directory(directory)?;
        remove_stale(path)?;
        let listener = Listener::bind(path).map_err(|source| LinkError::Ipc {
            path: path.to_path_buf(),
            source,
        })?;
        // The peer's user decides, not the mode; but nobody else need even try.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o660)).map_err(io)?;
        Ok(Self {
            listener: Arc::new(listener),
            path: path.to_path_buf(),
            accepting: None,
        })
    }

    /// Accepts connections from now on.
    ///
    /// # Errors
    /// No thread could be made.
    pub(super) fn accept(
        &mut self,
        peers: Peers,
        inbox: Arc<Inbox>,
        outlet: Arc<Outlet>,
    ) -> std::io::Result<()> {
        let listener = Arc::clone(&self.listener);
        let accepting = std::thread::Builder::new()
            .name("accept".to_owned())
            .spawn(move || accept_all(&listener, peers, &inbox, &outlet))?;
        self.accepting = Some(accepting);
        Ok(())
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // Shutting a listening socket ends its accept.
        let _ended = rustix::net::shutdown(self.listener.as_fd(), Shutdown::Both);
        if let Some(accepting) = self.accepting.take() {
            let _panicked = accepting.join();
        }
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::warn!(%error, "our socket was not there to be removed");
        }
    }
}

/// Nobody but root and us may put something in our socket's place.
fn check_directory(path: &Path) -> Result<(), LinkError> {
    let unsafe_path = |what| LinkError::UnsafePath {
        path: path.to_path_buf(),
        what,
    };
    let seen = std::fs::symlink_metadata(path).map_err(|source| LinkError::Io {
        path: path.to_path_buf(),
        source,
    })?;
    let own = rustix::process::geteuid().as_raw();
    if !seen.is_dir() {
        return Err(unsafe_path("not a directory"));
    }
    if seen.uid() != 0 && seen.uid() != own {
        return Err(unsafe_path("the directory is another user's"));
    }
    // A group may share it (reconfd's and ours); the world may not.
    if seen.mode() & 0o002 != 0 {
        return Err(unsafe_path("everybody may write to the directory"));
    }
    Ok(())
}

fn remove_stale(path: &Path) -> Result<(), LinkError> {
    let io = |source| LinkError::Io {
        path: path.to_path_buf(),
        source,
    };
    let seen = match std::fs::symlink_metadata(path) {
        Ok(seen) => seen,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(io(error)),
    };
    let unsafe_path = |what| LinkError::UnsafePath {
        path: path.to_path_buf(),
        what,
    };
    if !seen.file_type().is_socket() {
        return Err(unsafe_path("something that is no socket is there"));
    }
    if seen.uid() != rustix::process::geteuid().as_raw() {
        return Err(unsafe_path("another user's socket is there"));
    }
    if Socket::connect(path).is_ok() {
        return Err(unsafe_path("somebody listens there"));
    }
    std::fs::remove_file(path).map_err(io)
}

fn accept_all(listener: &Listener, peers: Peers, inbox: &Arc<Inbox>, outlet: &Arc<Outlet>) {
    let mut reading: Option<JoinHandle<()>> = None;
    while !inbox.stopping() {
        let socket = match listener.accept() {
            Ok(socket) => socket,
            // The listener was shut: the end of the process.
            Err(IpcError::Io(error)) if error.kind() == std::io::ErrorKind::InvalidInput => break,
            Err(error) => {
                // No descriptors, for one: it may pass, and must not spin.
                tracing::error!(%error, "accepting reconfd");
                std::thread::sleep(Duration::from_millis(200));
                continue;
            }
        };
        match socket.peer() {
            Ok(peer) if peers.may(peer.uid.as_raw()) => {}
            Ok(peer) => {
                tracing::warn!(
                    uid = peer.uid.as_raw(),
                    "this user may not speak to the card"
                );
                continue;
            }
            Err(error) => {
                tracing::warn!(%error, "nobody knows who connected");
                continue;
            }
        }
        let socket = Arc::new(socket);
        let id = inbox.connected();
        // Closes the connection before, so that its reader ends.
        if let Err(error) = outlet.replace(id, Arc::clone(&socket)) {
            tracing::warn!(%error, "a connection could not be used");
            inbox.ended(id);
            continue;
        }
        if let Some(reading) = reading.take() {
            let _panicked = reading.join();
        }
        tracing::info!("reconfd connected");
        let (for_reader, mouth) = (Arc::clone(inbox), Arc::clone(outlet));
        let started = std::thread::Builder::new()
            .name("reader".to_owned())
            .spawn(move || read_all(&socket, id, &for_reader, &mouth));
        match started {
            Ok(handle) => reading = Some(handle),
            Err(error) => {
                tracing::error!(%error, "no thread for a connection");
                outlet.close(id);
                inbox.ended(id);
            }
        }
    }
    outlet.close_all();
    if let Some(reading) = reading.take() {
        let _panicked = reading.join();
    }
}

/// Reads one connection to its end.
fn read_all(socket: &Socket, id: ConnectionId, inbox: &Inbox, outlet: &Outlet) {
    loop {
        match read_one(socket, id) {
            Ok(said) => {
                if inbox.push(said).is_err() {
                    tracing::warn!("IpcViolation: more packets than a queue holds");
                    break;
                }
            }
            Err(IpcError::Closed) => {
                tracing::info!("reconfd's connection ended");
                break;
            }
            Err(error) => {
                tracing::warn!(%error, "IpcViolation: the connection is closed");
                break;
            }
        }
    }
    outlet.close(id);
    inbox.ended(id);
}

/// One packet, with a descriptor where one belongs and only there.
fn read_one(socket: &Socket, from: ConnectionId) -> Result<Said, IpcError> {
    let (bytes, beside) = socket.receive()?;
    let message = ToCard::try_from(&Packet::from_bytes(&bytes)?)?;
    let got = usize::from(beside.is_some());
    let want = usize::from(matches!(message, ToCard::Offer { .. }));
    if got != want {
        return Err(IpcError::Descriptors { got, want });
    }
    Ok(Said {
        from,
        message,
        beside,
    })
}
