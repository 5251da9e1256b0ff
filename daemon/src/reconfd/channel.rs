//! A channel in QEMU's chardev style, bound to one VM.
//!
//! Knows paths, connections and the kernel's word about the peer. Must not
//! know messages: what comes through is handed to a session together with the
//! VM that the channel is bound to, and that binding is the guest's identity.

use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::{debug, info, warn};

use super::identity::ProcessId;

/// Waits between attempts to connect.
const RETRY_MIN: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(1);

/// Where a channel is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// We listen.
    Listen(PathBuf),
    /// We connect.
    Connect(PathBuf),
}

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The other side closed, or the transport failed.
    Closed,
    /// The guest does not read its answers.
    NotReading,
    /// Too much broken framing: nothing is heard for this time.
    Penalty(Duration),
    /// The VM's generation is over, or the daemon stops.
    Over,
}

/// Serves one connection. Implemented by the daemon, and by tests.
pub trait Serve: Send + Sync + 'static {
    /// Runs until the connection ends.
    fn serve(self: Arc<Self>, stream: UnixStream, over: watch::Receiver<bool>) -> JoinHandle<End>;
    /// A peer was refused (I6).
    fn refused(&self, why: &PeerMismatch);
    /// The channel was closed for abuse.
    fn penalized(&self, end: End);
}

/// The peer is not the process that was registered.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the peer is process {pid} of uid {uid}, registered is {want:?}")]
pub struct PeerMismatch {
    /// Its process.
    pub pid: i32,
    /// Its user.
    pub uid: u32,
    /// Who was registered.
    pub want: Option<ProcessId>,
}

/// Why a channel cannot be opened.
#[derive(Debug, Error)]
pub enum ChannelError {
    /// Something that is not our socket lies at its path (H1).
    #[error("{path} is there and is not a socket of ours: it is left alone")]
    Occupied {
        /// The path.
        path: PathBuf,
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

/// Makes the listening socket for a VM: its directory, mode 0750, and in it the socket, 0660.
///
/// # Errors
/// See [`ChannelError`]. A stale socket of our own is replaced; anything else is left alone.
pub fn listen(path: &Path) -> Result<UnixListener, ChannelError> {
    let io = |error| ChannelError::Io {
        path: path.to_owned(),
        error,
    };
    if let Some(parent) = path.parent() {
        crate::files::create_directories(parent).map_err(io)?;
    }
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(io(error)),
        Ok(there)
            if there.file_type().is_socket()
                && there.uid() == rustix::process::geteuid().as_raw() =>
        {
            std::fs::remove_file(path).map_err(io)?;
        }
        Ok(_other) => {
            return Err(ChannelError::Occupied {
                path: path.to_owned(),
            });
        }
    }
    let listener = UnixListener::bind(path).map_err(io)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o660)).map_err(io)?;
    Ok(listener)
}

/// Serves the channel until `over` turns true.
pub async fn run(
    place: Place,
    listener: Option<UnixListener>,
    process: Option<ProcessId>,
    server: Arc<impl Serve>,
    mut over: watch::Receiver<bool>,
) {
    let told = over.clone();
    tokio::select! {
        () = async {
            match (&place, listener) {
                (Place::Listen(_), Some(listener)) => accept(listener, process, &server, &told).await,
                (Place::Connect(path), _) => connect(path, process, &server, &told).await,
                (Place::Listen(_), None) => {}
            }
        } => {}
        _ended = over.wait_for(|over| *over) => {}
    }
    if let Place::Listen(path) = &place
        && let Err(error) = std::fs::remove_file(path)
    {
        debug!(path = %path.display(), %error, "the channel's socket could not be removed");
    }
}

/// QEMU connects to us. A newer connection of the right process takes the place of the older:
/// QEMU holds one.
async fn accept(
    listener: UnixListener,
    process: Option<ProcessId>,
    server: &Arc<impl Serve>,
    over: &watch::Receiver<bool>,
) {
    let mut session: Option<JoinHandle<End>> = None;
    let mut wait = RETRY_MIN;
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _address)) => {
                    wait = RETRY_MIN;
                    if let Err(mismatch) = check_peer(&stream, process) {
                        server.refused(&mismatch);
                        continue;
                    }
                    if let Some(old) = session.take() {
                        old.abort();
                    }
                    session = Some(Arc::clone(server).serve(stream, over.clone()));
                }
                Err(error) => {
                    // Out of descriptors, usually: no busy loop (R2).
                    warn!(%error, "a channel cannot accept");
                    tokio::time::sleep(wait).await;
                    wait = wait.saturating_mul(2).min(RETRY_MAX);
                }
            },
            end = ended(&mut session) => pause(end, server).await,
        }
    }
}

/// QEMU listens and we connect, again and again.
async fn connect(
    path: &Path,
    process: Option<ProcessId>,
    server: &Arc<impl Serve>,
    over: &watch::Receiver<bool>,
) {
    let mut wait = RETRY_MIN;
    loop {
        match UnixStream::connect(path).await {
            Ok(stream) => match check_peer(&stream, process) {
                Ok(()) => {
                    wait = RETRY_MIN;
                    let mut session = Some(Arc::clone(server).serve(stream, over.clone()));
                    let end = ended(&mut session).await;
                    pause(end, server).await;
                }
                Err(mismatch) => server.refused(&mismatch),
            },
            Err(error) => debug!(path = %path.display(), %error, "the channel is not there yet"),
        }
        tokio::time::sleep(wait).await;
        wait = wait.saturating_mul(2).min(RETRY_MAX);
    }
}

/// The end of the session, if there is one.
async fn ended(session: &mut Option<JoinHandle<End>>) -> End {
    match session {
        None => std::future::pending().await,
        Some(running) => {
            let end = running.await.unwrap_or(End::Closed);
            *session = None;
            end
        }
    }
}

async fn pause(end: End, server: &Arc<impl Serve>) {
    info!(?end, "a channel's session ended");
    if let End::Penalty(time) = end {
        server.penalized(end);
        tokio::time::sleep(time).await;
    }
}

/// The kernel says who is at the other end; where a process was registered it must be that one.
fn check_peer(stream: &UnixStream, want: Option<ProcessId>) -> Result<(), PeerMismatch> {
    let Some(registered) = want else {
        return Ok(());
    };
    match rustix::net::sockopt::socket_peercred(stream) {
        Ok(peer) => {
            let pid = peer.pid.as_raw_nonzero().get();
            let same =
                u32::try_from(pid).is_ok_and(|pid| pid == registered.pid) && registered.is_alive();
            if same {
                Ok(())
            } else {
                Err(PeerMismatch {
                    pid,
                    uid: peer.uid.as_raw(),
                    want,
                })
            }
        }
        Err(_unknown) => Err(PeerMismatch {
            pid: 0,
            uid: u32::MAX,
            want,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    #[derive(Default)]
    struct Echo {
        refused: AtomicU32,
    }

    impl Serve for Echo {
        fn serve(
            self: Arc<Self>,
            mut stream: UnixStream,
            _over: watch::Receiver<bool>,
        ) -> JoinHandle<End> {
            tokio::spawn(async move {
                let mut byte = [0u8; 1];
                while let Ok(1) = stream.read(&mut byte).await {
                    if stream.write_all(&byte).await.is_err() {
                        break;
                    }
                }
                End::Closed
            })
        }

        fn refused(&self, _why: &PeerMismatch) {
            self.refused.fetch_add(1, Ordering::SeqCst);
        }

        fn penalized(&self, _end: End) {}
    }

    async fn echoes(path: &Path) -> bool {
        let Ok(mut stream) = UnixStream::connect(path).await else {
            return false;
        };
        let mut byte = [0u8; 1];
        stream.write_all(b"x").await.is_ok()
            && stream.read_exact(&mut byte).await.is_ok()
            && byte == *b"x"
    }

    #[tokio::test]
    async fn i6_only_the_registered_process_is_heard() {
        let dir = tempfile::tempdir().unwrap();
        let me = ProcessId::of(std::process::id()).unwrap();
        for (process, heard) in [
            (Some(me), true),
            (Some(ProcessId { started: 1, ..me }), false),
            (None, true),
        ] {
            let path = dir.path().join("org.reconf.0");
            let server = Arc::new(Echo::default());
            let (over, ended) = watch::channel(false);
            let listener = listen(&path).unwrap();
            let task = tokio::spawn(run(
                Place::Listen(path.clone()),
                Some(listener),
                process,
                Arc::clone(&server),
                ended,
            ));
            assert_eq!(echoes(&path).await, heard);
            assert_eq!(server.refused.load(Ordering::SeqCst) > 0, !heard);
            over.send(true).unwrap();
            task.await.unwrap();
            assert!(!path.exists());
        }
    }

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
            assert!(matches!(listen(&path), Err(ChannelError::Occupied { .. })));
            assert!(std::fs::symlink_metadata(&path).is_ok());
        }
        assert_eq!(std::fs::read(&target).unwrap(), b"precious");
    }
}
