//! Moves bytes between a socket and a [`Session`]: takes as many messages per
//! receive as there are, answers them in as few sends as it can.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub(crate) use super::session::{Device, Region};
use super::session::{Next, Session};

/// One receive takes so much: about 1600 posted register writes.
const CHUNK: usize = 64 << 10;
/// How often a quiet connection looks whether it should stop.
const TICK: Duration = Duration::from_millis(200);
/// A message that is begun must be whole, and a reply taken, within this time.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Ended {
    /// The client closed it.
    #[error("the client closed the connection")]
    ByClient,
    /// The server stops.
    #[error("the server stops")]
    Stopping,
    /// What came is not vfio-user.
    #[error("the client does not speak vfio-user")]
    Nonsense,
    /// Half a message, and nothing more for too long.
    #[error("the client left a message unfinished for {} s", PATIENCE.as_secs())]
    Unfinished,
    /// It does not take its replies.
    #[error("the client does not read its replies")]
    NotReading,
    /// The socket failed.
    #[error("the socket failed: {0}")]
    Socket(ErrorKind),
}

/// Serves one client until it goes.
pub(crate) fn serve(mut stream: &UnixStream, device: &dyn Device, stop: &AtomicBool) -> Ended {
    let timeouts = stream
        .set_read_timeout(Some(TICK))
        .and_then(|()| stream.set_write_timeout(Some(PATIENCE)));
    if let Err(error) = timeouts {
        return Ended::Socket(error.kind());
    }
    let mut session = Session::new();
    let mut input = Input::default();
    let mut out = Vec::new();
    loop {
        let next = session.feed(input.waiting(), &mut out, device);
        match next {
            Next::HangUp => {
                return match stream.write_all(&out) {
                    Ok(()) => Ended::Nonsense,
                    Err(error) => Ended::Socket(error.kind()),
                };
            }
            Next::More { used, wanted } => input.make_room(used, wanted),
            Next::Full { used } => input.skip(used),
        }
        if let Err(error) = stream.write_all(&out) {
            return match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => Ended::NotReading,
                kind => Ended::Socket(kind),
            };
        }
        out.clear();
        out.shrink_to(CHUNK);
        if let Next::More { .. } = next
            && let Err(ended) = input.receive(stream, stop)
        {
            return ended;
        }
    }
}

/// What came and is not used yet.
#[derive(Default)]
struct Input {
    bytes: Vec<u8>,
    filled: usize,
    used: usize,
    begun: Option<Instant>,
}

impl Input {
    fn waiting(&self) -> &[u8] {
        self.bytes.get(self.used..self.filled).unwrap_or_default()
    }

    /// Drops what was used.
    fn skip(&mut self, used: usize) {
        self.used = self.used.saturating_add(used).min(self.filled);
        if used > 0 {
            self.begun = None;
        }
    }

    /// Drops what was used and makes room for the next message. Its length
    /// was checked against the command's bound before.
    fn make_room(&mut self, used: usize, wanted: usize) {
        self.skip(used);
        self.bytes.copy_within(self.used..self.filled, 0);
        self.filled = self.filled.saturating_sub(self.used);
        self.used = 0;
        self.bytes.resize(wanted.max(CHUNK), 0);
        self.bytes.shrink_to(wanted.max(CHUNK));
    }

    /// Waits for more bytes; a whole message has no deadline, half a message has.
    fn receive(&mut self, mut stream: &UnixStream, stop: &AtomicBool) -> Result<(), Ended> {
        if self.filled == 0 {
            self.begun = None;
        } else if self.begun.is_none() {
            self.begun = Some(Instant::now());
        }
        loop {
            if stop.load(Ordering::SeqCst) {
                return Err(Ended::Stopping);
            }
            match stream.read(self.bytes.get_mut(self.filled..).unwrap_or_default()) {
                Ok(0) => return Err(Ended::ByClient),
                Ok(count) => {
                    self.filled = self.filled.saturating_add(count);
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    if self.begun.is_some_and(|begun| begun.elapsed() > PATIENCE) {
                        return Err(Ended::Unfinished);
                    }
                }
                Err(error) => return Err(Ended::Socket(error.kind())),
            }
        }
    }
}
