//! A guest that speaks frames itself: sends any bytes, and keeps every byte
//! that it got. For what the real client would never do.
//!
//! Knows the protocol. Must not know what a test wants.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use protocol::message::{Load, Ready};
use protocol::{
    GuestHandshake, GuestStep, Kind, Nonce, Reply, Request, Scanned, Scanner, Session, encode,
};

use crate::process::READY_WITHIN;

/// After this time without an answer a hello is said again.
const HELLO_AGAIN: Duration = Duration::from_secs(2);
/// How often it is said.
const HELLOS: u32 = 10;

/// A frame from the host, with its bytes as they came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heard {
    /// The kind.
    pub kind: Kind,
    /// The session.
    pub session: u64,
    /// The sequence number.
    pub sequence: u32,
    /// The body.
    pub body: Vec<u8>,
    /// What it says, where it is a reply.
    pub reply: Option<Reply>,
}

/// The guest.
#[derive(Debug)]
pub struct RawGuest {
    stream: UnixStream,
    scanner: Scanner,
    unread: Vec<u8>,
    session: Option<Session>,
    sequence: u32,
    nonce: u128,
}

impl RawGuest {
    /// Opens the port of a VM. While another guest has it open, it is closed again soon.
    ///
    /// # Errors
    /// Nobody serves the port.
    pub fn open(port: &Path) -> Result<Self> {
        let stream = UnixStream::connect(port).context("the port")?;
        stream.set_read_timeout(Some(READY_WITHIN))?;
        stream.set_write_timeout(Some(READY_WITHIN))?;
        Ok(Self {
            stream,
            scanner: Scanner::guest(),
            unread: Vec::new(),
            session: None,
            sequence: 0,
            nonce: 1,
        })
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// They cannot be written in time.
    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes).context("writing to the port")
    }

    /// Changes how long a write may block.
    ///
    /// # Errors
    /// Zero is no time.
    pub fn give_up_after(&mut self, time: Duration) -> Result<()> {
        Ok(self.stream.set_write_timeout(Some(time))?)
    }

    /// Opens a session, whatever is in the way. A hello that is lost, in the moment between two
    /// connections of the host, is said again, as every guest must.
    ///
    /// # Errors
    /// The host does not answer.
    pub fn handshake(&mut self) -> Result<Ready> {
        let patience = self.stream.read_timeout()?;
        self.stream.set_read_timeout(Some(HELLO_AGAIN))?;
        let mut opened = self.say_hello();
        for _again in 1..HELLOS {
            if opened.is_ok() {
                break;
            }
            opened = self.say_hello();
        }
        self.stream.set_read_timeout(patience)?;
        opened
    }

    fn say_hello(&mut self) -> Result<Ready> {
        self.nonce = self.nonce.wrapping_add(1);
        let nonce: Nonce = self.nonce.to_be_bytes();
        let mut handshake = GuestHandshake::new(nonce, protocol::handshake::MINOR);
        self.send(&encode(Kind::HELLO, 0, 0, &handshake.hello())?)?;
        loop {
            let step = self.next_frame(|frame| Some(handshake.on_frame(frame)))?;
            match step {
                GuestStep::Confirm(confirm) => {
                    self.send(&encode(Kind::CONFIRM, 0, 0, &confirm)?)?;
                }
                GuestStep::Opened(session, ready) => {
                    self.session = Some(session);
                    self.sequence = 0;
                    return Ok(ready);
                }
                GuestStep::Reply(_) | GuestStep::Discarded => {}
            }
        }
    }

    /// The number of the open session.
    #[must_use]
    pub fn session(&self) -> Option<u64> {
        self.session.map(|session| session.id.get())
    }

    /// The frame that asks, in this session, with the next sequence number.
    ///
    /// # Errors
    /// There is no session.
    pub fn frame(&mut self, request: &Request) -> Result<Vec<u8>> {
        let session = self.session.context("no session")?;
        self.sequence = self.sequence.saturating_add(1);
        Ok(request.to_frame(session.id.get(), self.sequence)?)
    }

    /// Asks, and gives the answer.
    ///
    /// # Errors
    /// The host does not answer.
    pub fn ask(&mut self, request: &Request) -> Result<Reply> {
        let frame = self.frame(request)?;
        self.send(&frame)?;
        let sequence = self.sequence;
        loop {
            let heard = self.hear()?;
            if heard.sequence == sequence && heard.kind != Kind::EVENT {
                return heard.reply.context("an answer that is none");
            }
        }
    }

    /// The next frame from the host.
    ///
    /// # Errors
    /// None comes in time.
    pub fn hear(&mut self) -> Result<Heard> {
        self.next_frame(|frame| {
            Some(Heard {
                kind: frame.header.kind,
                session: frame.header.session,
                sequence: frame.header.sequence,
                body: frame.body.to_vec(),
                reply: Reply::from_frame(frame).ok(),
            })
        })
    }

    /// Whether the host says nothing for a while.
    ///
    /// # Errors
    /// The port fails.
    pub fn is_quiet(&mut self, for_a_while: Duration) -> Result<Option<Heard>> {
        self.stream.set_read_timeout(Some(for_a_while))?;
        let heard = self.hear();
        self.stream.set_read_timeout(Some(READY_WITHIN))?;
        Ok(heard.ok())
    }

    fn next_frame<T>(
        &mut self,
        mut found: impl FnMut(&protocol::Frame<'_>) -> Option<T>,
    ) -> Result<T> {
        loop {
            let mut input = self.unread.as_slice();
            let mut answer = None;
            while let Some(scanned) = self.scanner.next(&mut input) {
                if let Scanned::Frame(frame) = scanned {
                    answer = found(&frame);
                    if answer.is_some() {
                        break;
                    }
                }
            }
            self.unread = input.to_vec();
            if let Some(answer) = answer {
                return Ok(answer);
            }
            let mut chunk = [0; 4096];
            let got = self
                .stream
                .read(&mut chunk)
                .context("waiting for the host")?;
            if got == 0 {
                bail!("the port was closed");
            }
            self.unread
                .extend_from_slice(chunk.get(..got).unwrap_or_default());
        }
    }
}

/// A load by name into the only slot.
#[must_use]
pub fn load(key: u8, image: &str) -> Request {
    Request::Load(Load {
        key: protocol::message::JobKey([key; 16]),
        slot: None,
        image: protocol::message::ImageRef::Name(image.to_owned()),
        if_not_loaded: false,
        force: false,
    })
}

/// A reply that must be an error.
///
/// # Errors
/// It is none.
pub fn refusal(reply: Reply) -> Result<protocol::message::ErrorReply> {
    match reply {
        Reply::Error(error) => Ok(error),
        other => bail!("not refused: {other:?}"),
    }
}
