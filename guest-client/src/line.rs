//! One open stream, seen as frames: what is sent, what is found, and how a
//! session is opened over it.
//!
//! Knows frames and the handshake. Must not know requests, nor how a stream is
//! opened again.

use std::io;
use std::ops::Range;
use std::time::Duration;

use protocol::handshake::{MINOR, SequenceSource};
use protocol::message::{Confirm, Ready};
use protocol::{Body, Frame, GuestHandshake, GuestStep, Kind, Scanned, Scanner, encode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::channel::Stream;

/// Bytes that are read at a time.
const READ_LEN: usize = 4096;

/// A stream, and the scanner's place in it.
pub(crate) struct Line {
    stream: Stream,
    scanner: Scanner,
    input: Box<[u8; READ_LEN]>,
    /// The part of `input` that the scanner has not seen yet.
    unseen: Range<usize>,
}

/// An open session: what is needed to take part in it.
pub(crate) struct Session {
    /// Tells which frames belong to it.
    pub(crate) handshake: GuestHandshake,
    /// The numbers of its requests.
    pub(crate) sequence: SequenceSource,
    /// What the host said when it opened it.
    pub(crate) ready: Ready,
}

impl Line {
    pub(crate) fn new(stream: Stream) -> Self {
        Self {
            stream,
            scanner: Scanner::guest(),
            input: Box::new([0; READ_LEN]),
            unseen: 0..0,
        }
    }

    /// Sends one frame. The whole of it is given to one write; only what a
    /// socket did not take at once is sent after it.
    pub(crate) async fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        self.stream.write_all(frame).await?;
        self.stream.flush().await
    }

    /// The next thing that `take` makes out of a frame; frames of which it
    /// makes nothing, and bytes that are no frame, are dropped. Nothing is lost
    /// where this future is dropped before it is ready.
    ///
    /// Has no deadline of its own, and yields to the caller's however fast the
    /// host sends junk.
    pub(crate) async fn next<T>(
        &mut self,
        mut take: impl FnMut(&Frame<'_>) -> Option<T>,
    ) -> io::Result<T> {
        loop {
            let mut rest = self.input.get(self.unseen.clone()).unwrap_or_default();
            while let Some(found) = self.scanner.next(&mut rest) {
                let Scanned::Frame(frame) = found else {
                    continue;
                };
                if let Some(taken) = take(&frame) {
                    self.unseen.start = self.unseen.end.saturating_sub(rest.len());
                    return Ok(taken);
                }
            }
            self.unseen = 0..0;
            tokio::task::coop::consume_budget().await;
            let read = self.stream.read(self.input.as_mut_slice()).await?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.unseen = 0..read;
        }
    }

    /// Opens a session: says hello, again and again while nobody answers, for
    /// the host may come later than the guest. All attempts carry one nonce, so
    /// that a late answer to an early one still counts.
    ///
    /// Has no deadline of its own.
    pub(crate) async fn open_session(
        &mut self,
        nonce: [u8; 16],
        hello_interval: Duration,
    ) -> io::Result<Session> {
        let mut handshake = GuestHandshake::new(nonce, MINOR);
        let hello = frame(Kind::HELLO, &handshake.hello())?;
        let interval = hello_interval.max(Duration::from_millis(10));
        loop {
            self.send(&hello).await?;
            if let Ok(ready) = timeout(interval, self.await_ready(&mut handshake)).await {
                let ready = ready?;
                return Ok(Session {
                    handshake,
                    sequence: SequenceSource::default(),
                    ready,
                });
            }
        }
    }

    async fn await_ready(&mut self, handshake: &mut GuestHandshake) -> io::Result<Ready> {
        loop {
            let step = self.next(|frame| match handshake.on_frame(frame) {
                GuestStep::Confirm(confirm) => Some(Met::Welcome(confirm)),
                GuestStep::Opened(_, ready) => Some(Met::Ready(ready)),
                GuestStep::Reply(_) | GuestStep::Discarded => None,
            });
            match step.await? {
                Met::Welcome(confirm) => self.send(&frame(Kind::CONFIRM, &confirm)?).await?,
                Met::Ready(ready) => return Ok(ready),
            }
        }
    }
}

/// What a handshake waits for.
enum Met {
    Welcome(Confirm),
    Ready(Ready),
}

/// A frame of the handshake.
fn frame(kind: Kind, body: &impl Body) -> io::Result<Vec<u8>> {
    encode(kind, 0, 0, body).map_err(io::Error::other)
}
