//! The guest's side of the handshake.

use super::{Nonce, Session, SessionId};
use crate::frame::{Frame, decode};
use crate::kind::Kind;
use crate::message::{Confirm, Hello, Ready, Welcome};

/// What a frame from the host means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuestStep {
    /// Send this confirm, as kind `confirm`, session 0, sequence 0.
    Confirm(Confirm),
    /// The session is open.
    Opened(Session, Ready),
    /// The frame belongs to the session: read it as a
    /// [`Reply`](crate::reply::Reply) and match it by its sequence number.
    Reply(Session),
    /// Of another session or process: thrown away.
    Discarded,
}

#[derive(Debug, Clone, Copy)]
enum State {
    AwaitWelcome,
    AwaitReady { minor: u16 },
    Open(Session),
}

/// The guest's side. One for each attempt, with a nonce of its own: a guest
/// that got no answer in time makes a new one and sends its hello.
#[derive(Debug)]
pub struct GuestHandshake {
    nonce: Nonce,
    minor: u16,
    state: State,
}

impl GuestHandshake {
    /// An attempt that sent nothing yet. `nonce` is random; `minor` is the
    /// highest version that the guest speaks, usually [`MINOR`](super::MINOR).
    #[must_use]
    pub const fn new(nonce: Nonce, minor: u16) -> Self {
        Self {
            nonce,
            minor,
            state: State::AwaitWelcome,
        }
    }

    /// What to send first, as kind `hello`, session 0, sequence 0. It may be
    /// sent again while no answer came.
    #[must_use]
    pub const fn hello(&self) -> Hello {
        Hello {
            nonce: self.nonce,
            minor: self.minor,
        }
    }

    /// The open session, if there is one.
    #[must_use]
    pub const fn session(&self) -> Option<Session> {
        match self.state {
            State::Open(session) => Some(session),
            State::AwaitWelcome | State::AwaitReady { .. } => None,
        }
    }

    /// Tells what a frame means.
    pub fn on_frame(&mut self, frame: &Frame<'_>) -> GuestStep {
        match (self.state, frame.header.kind) {
            (State::Open(session), _) if frame.header.session == session.id.get() => {
                GuestStep::Reply(session)
            }
            // Also while waiting for a ready: a hello that was sent twice gets
            // two welcomes, and only the second one's nonce still counts.
            (State::AwaitWelcome | State::AwaitReady { .. }, Kind::WELCOME) => {
                self.on_welcome(frame)
            }
            (State::AwaitReady { minor }, Kind::READY) => self.on_ready(frame, minor),
            (State::Open(_) | State::AwaitWelcome | State::AwaitReady { .. }, _) => {
                GuestStep::Discarded
            }
        }
    }

    fn on_welcome(&mut self, frame: &Frame<'_>) -> GuestStep {
        match decode(frame) {
            Ok(Welcome {
                guest_nonce,
                host_nonce,
                minor,
            }) if frame.header.session == 0 && guest_nonce == self.nonce && minor <= self.minor => {
                self.state = State::AwaitReady { minor };
                GuestStep::Confirm(Confirm { host_nonce })
            }
            _ => GuestStep::Discarded,
        }
    }

    fn on_ready(&mut self, frame: &Frame<'_>, minor: u16) -> GuestStep {
        match (SessionId::new(frame.header.session), decode(frame)) {
            (Some(id), Ok(ready)) => {
                let session = Session { id, minor };
                self.state = State::Open(session);
                GuestStep::Opened(session, ready)
            }
            _ => GuestStep::Discarded,
        }
    }
}
