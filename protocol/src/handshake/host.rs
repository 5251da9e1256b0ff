//! The host's side of the handshake.

use super::sequence::{NotRising, SequenceCheck};
use super::{JUNK_BUDGET, Nonce, Session, SessionId};
use crate::frame::{Frame, decode};
use crate::kind::Kind;
use crate::message::{Confirm, Hello, Welcome};

/// Random numbers, from whoever may make them.
pub trait Fresh {
    /// A nonce that nobody can guess.
    fn nonce(&mut self) -> Nonce;
    /// A session id that nobody can guess.
    fn session_id(&mut self) -> u64;
}

/// What a frame from the guest means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostStep {
    /// Send this welcome, as kind `welcome`, session 0, with the sequence
    /// number of the hello.
    Welcome(Welcome),
    /// The session is open and takes the place of any before it: end what was
    /// tied to that one and send a ready with this id.
    Opened(Session),
    /// The frame belongs to the session: read it as a
    /// [`Request`](crate::request::Request) and answer it.
    Request(Session),
    /// Answer with [`Status::Stale`](crate::status::Status::Stale), in the
    /// session and with the sequence number of the frame.
    Stale(Why),
    /// Thrown away; not answered.
    Discarded,
    /// Thrown away, and the budget is used up: one protocol error.
    Overrun,
    /// A frame of the kinds that only a host sends: one protocol error, and
    /// never an answer, for the channel may be an echo.
    Misdirected,
}

/// Why a request is stale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It carries another session than the open one.
    OtherSession,
    /// Its sequence number does not rise.
    NotRising(NotRising),
}

#[derive(Debug, Clone, Copy)]
struct Offer {
    host_nonce: Nonce,
    minor: u16,
}

/// The host's side, one for each channel.
#[derive(Debug)]
pub struct HostHandshake {
    minor: u16,
    /// The last hello's welcome, until it is confirmed.
    offer: Option<Offer>,
    /// The open session. It lives on while another one is being offered.
    open: Option<(Session, SequenceCheck)>,
    junk: u64,
}

impl HostHandshake {
    /// A channel on which nobody has spoken yet. `minor` is the highest
    /// version that the host speaks, usually [`MINOR`](super::MINOR).
    #[must_use]
    pub const fn new(minor: u16) -> Self {
        Self {
            minor,
            offer: None,
            open: None,
            junk: 0,
        }
    }

    /// The open session, if there is one.
    #[must_use]
    pub fn session(&self) -> Option<Session> {
        self.open.map(|(session, _)| session)
    }

    /// Tells what a frame means. `fresh` is asked for a nonce at a hello and
    /// for an id at its confirmation, and never else.
    pub fn on_frame(&mut self, frame: &Frame<'_>, fresh: &mut impl Fresh) -> HostStep {
        let header = &frame.header;
        match header.kind {
            Kind::HELLO if header.session == 0 => match decode(frame) {
                Ok(hello) => self.on_hello(&hello, fresh.nonce()),
                Err(_) => self.throw_away(frame),
            },
            Kind::CONFIRM if header.session == 0 => match (decode(frame), self.offer) {
                (Ok(Confirm { host_nonce }), Some(offer)) if host_nonce == offer.host_nonce => {
                    self.on_confirm(offer, fresh.session_id())
                }
                _ => self.throw_away(frame),
            },
            kind if kind.is_from_host() && self.open.is_some() => HostStep::Misdirected,
            _ => self.on_request(frame),
        }
    }

    /// Charges the budget with bytes that the scanner threw away
    /// ([`Scanner::take_discarded`](crate::scanner::Scanner::take_discarded)).
    /// Also counts within a session: junk without end is reported by the
    /// scanner only where it begins.
    pub fn on_discarded(&mut self, bytes: u64) -> HostStep {
        self.junk = self.junk.saturating_add(bytes);
        if self.junk <= JUNK_BUDGET {
            return HostStep::Discarded;
        }
        self.junk = 0;
        HostStep::Overrun
    }

    fn on_hello(&mut self, hello: &Hello, host_nonce: Nonce) -> HostStep {
        let minor = self.minor.min(hello.minor);
        self.offer = Some(Offer { host_nonce, minor });
        HostStep::Welcome(Welcome {
            guest_nonce: hello.nonce,
            host_nonce,
            minor,
        })
    }

    fn on_confirm(&mut self, offer: Offer, random: u64) -> HostStep {
        let mut id = SessionId::new(random).unwrap_or(SessionId::MIN);
        if self.session().is_some_and(|old| old.id == id) {
            // Whatever the generator does: no session is taken for the one
            // before it.
            id = SessionId::new(id.get().wrapping_add(1)).unwrap_or(SessionId::MIN);
        }
        let session = Session {
            id,
            minor: offer.minor,
        };
        self.offer = None;
        self.open = Some((session, SequenceCheck::default()));
        self.junk = 0;
        HostStep::Opened(session)
    }

    fn on_request(&mut self, frame: &Frame<'_>) -> HostStep {
        let Some((session, check)) = &mut self.open else {
            return self.throw_away(frame);
        };
        if frame.header.session != session.id.get() {
            return HostStep::Stale(Why::OtherSession);
        }
        match check.accept(frame.header.sequence) {
            Ok(()) => HostStep::Request(*session),
            Err(not_rising) => HostStep::Stale(Why::NotRising(not_rising)),
        }
    }

    fn throw_away(&mut self, frame: &Frame<'_>) -> HostStep {
        self.on_discarded(u64::try_from(frame.wire_len()).unwrap_or(u64::MAX))
    }
}
