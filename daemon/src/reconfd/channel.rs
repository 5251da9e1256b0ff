//! A channel in QEMU's chardev style, bound to one VM.
//!
//! Knows paths, connections and the kernel's word about the peer. Must not
//! know messages: what comes through is handed to a session together with the
//! VM that the channel is bound to, and that binding is the guest's identity.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use thiserror::Error;
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::{debug, warn};

use super::identity::ProcessId;
use super::listening::Listening;

/// Waits between attempts to connect.
const RETRY_MIN: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(1);

/// Where a channel is.
#[derive(Debug)]
pub enum Place {
    /// We listen.
    Listen(Listening),
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
    /// The channel was closed for abuse, and is not heard for this time.
    fn penalized(&self, time: Duration);
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

/// Serves the channel until `over` turns true.
pub async fn run(
    place: Place,
    process: Option<ProcessId>,
    server: Arc<impl Serve>,
    mut over: watch::Receiver<bool>,
) {
    let told = over.clone();
    tokio::select! {
        () = async {
            match place {
                Place::Listen(listening) => accept(&listening, process, &server, &told).await,
                Place::Connect(path) => connect(&path, process, &server, &told).await,
            }
        } => {}
        _ended = over.wait_for(|over| *over) => {}
    }
}

/// QEMU connects to us. A newer connection of the right process takes the place of the older:
/// QEMU holds one.
async fn accept(
    listening: &Listening,
    process: Option<ProcessId>,
    server: &Arc<impl Serve>,
    over: &watch::Receiver<bool>,
) {
    let mut session: Option<JoinHandle<End>> = None;
    let mut wait = RETRY_MIN;
    loop {
        tokio::select! {
            // An end first: a penalty is not escaped by a quick new connection.
            biased;
            end = ended(&mut session) => pause(end, server).await,
            accepted = listening.accept() => match accepted {
                Ok(stream) => {
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
                    let began = Instant::now();
                    let mut session = Some(Arc::clone(server).serve(stream, over.clone()));
                    let end = ended(&mut session).await;
                    pause(end, server).await;
                    // Whoever hangs up at once is not called again at once.
                    if began.elapsed() > RETRY_MAX {
                        wait = RETRY_MIN;
                    }
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
    debug!(?end, "a channel's session ended");
    if let End::Penalty(time) = end {
        server.penalized(time);
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

        fn penalized(&self, _time: Duration) {}
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
            let task = tokio::spawn(run(
                Place::Listen(Listening::at(&path).unwrap()),
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

    /// Ends each connection at once, for abuse.
    struct Strict {
        served: AtomicU32,
    }

    impl Serve for Strict {
        fn serve(self: Arc<Self>, _s: UnixStream, _over: watch::Receiver<bool>) -> JoinHandle<End> {
            self.served.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async { End::Penalty(Duration::from_secs(600)) })
        }

        fn refused(&self, _why: &PeerMismatch) {}

        fn penalized(&self, _time: Duration) {}
    }

    #[tokio::test]
    async fn g3_a_new_connection_does_not_end_a_penalty() {
        for _round in 0..20 {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("org.reconf.0");
            let listening = Listening::at(&path).unwrap();
            let server = Arc::new(Strict {
                served: AtomicU32::new(0),
            });
            let (_over, told) = watch::channel(false);
            let _first = UnixStream::connect(&path).await.unwrap();
            let task = tokio::spawn(run(
                Place::Listen(listening),
                None,
                Arc::clone(&server),
                told,
            ));
            while server.served.load(Ordering::SeqCst) == 0 {
                tokio::task::yield_now().await;
            }
            // The session's end and this connection are there at the same time.
            let _second = UnixStream::connect(&path).await.unwrap();
            for _turn in 0..20 {
                tokio::task::yield_now().await;
            }
            assert_eq!(server.served.load(Ordering::SeqCst), 1);
            task.abort();
        }
    }
}
