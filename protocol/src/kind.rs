//! Frame kinds: the number in the header that says what the body is.
//!
//! Knows numbers, names and the largest body of each. Must not know what a
//! body holds.

use std::fmt;

/// Set in the kind of every reply: a reply is its request's kind with this bit.
const REPLY: u16 = 0x8000;

/// Longest control body, in bytes.
pub const MAX_CONTROL_BODY: usize = 4096;

/// Longest frame of all, header included: an upload chunk, sent in one write.
///
/// Larger writes are split by guest kernels on virtio-serial and lost on some
/// versions of vsock.
pub const MAX_UPLOAD_FRAME: usize = 32_768;

/// What a frame is. Unknown numbers are kept, so that they can be answered
/// with [`Status::Unsupported`](crate::status::Status::Unsupported).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind(pub u16);

impl Kind {
    /// The guest opens a session.
    pub const HELLO: Self = Self(1);
    /// The host answers a hello.
    pub const WELCOME: Self = Self(2);
    /// The guest echoes the host's nonce.
    pub const CONFIRM: Self = Self(3);
    /// The host opens the session.
    pub const READY: Self = Self(4);
    /// Which images may I load?
    pub const LIST: Self = Self(0x10);
    /// What is in my slots?
    pub const DESCRIBE: Self = Self(0x11);
    /// Load an image.
    pub const LOAD: Self = Self(0x12);
    /// Empty a slot.
    pub const CLEAR: Self = Self(0x13);
    /// Reset a slot's function.
    pub const RESET: Self = Self(0x14);
    /// How is that job?
    pub const JOB: Self = Self(0x15);
    /// Cancel a job that waits.
    pub const CANCEL: Self = Self(0x16);
    /// Send me events.
    pub const WATCH: Self = Self(0x17);
    /// Are you there?
    pub const PING: Self = Self(0x18);
    /// Past jobs; reserved, answered `unsupported` by this version.
    pub const HISTORY: Self = Self(0x19);
    /// First of the eight kinds reserved for uploads.
    pub const UPLOAD_FIRST: Self = Self(0x20);
    /// Last of the eight kinds reserved for uploads.
    pub const UPLOAD_LAST: Self = Self(0x27);
    /// Something happened that a watch asked for.
    pub const EVENT: Self = Self(0x4000);
    /// A request was not done.
    pub const ERROR: Self = Self(0xFFFF);

    /// Every kind with a name of its own, replies left out.
    pub const NAMED: [(Self, &'static str); 16] = [
        (Self::HELLO, "hello"),
        (Self::WELCOME, "welcome"),
        (Self::CONFIRM, "confirm"),
        (Self::READY, "ready"),
        (Self::LIST, "list"),
        (Self::DESCRIBE, "describe"),
        (Self::LOAD, "load"),
        (Self::CLEAR, "clear"),
        (Self::RESET, "reset"),
        (Self::JOB, "job"),
        (Self::CANCEL, "cancel"),
        (Self::WATCH, "watch"),
        (Self::PING, "ping"),
        (Self::HISTORY, "history"),
        (Self::EVENT, "event"),
        (Self::ERROR, "error"),
    ];

    /// The kind of the reply to a request of this kind.
    #[must_use]
    pub const fn reply(self) -> Self {
        Self(self.0 | REPLY)
    }

    /// Whether only a host sends this kind. A host that meets it never
    /// answers: a channel that echoes would otherwise keep it talking to
    /// itself for ever.
    #[must_use]
    pub const fn is_from_host(self) -> bool {
        self.0 & REPLY != 0
            || self.0 == Self::WELCOME.0
            || self.0 == Self::READY.0
            || self.0 == Self::EVENT.0
    }

    /// Whether this kind is reserved for uploads, whose frames may be longer.
    #[must_use]
    pub const fn is_upload(self) -> bool {
        self.0 >= Self::UPLOAD_FIRST.0 && self.0 <= Self::UPLOAD_LAST.0
    }

    /// The longest body of this kind, in bytes, on a channel with this traffic.
    #[must_use]
    pub const fn max_body(self, traffic: Traffic) -> usize {
        match traffic {
            Traffic::Uploads if self.is_upload() => MAX_UPLOAD_FRAME - crate::header::HEADER_LEN,
            Traffic::Uploads | Traffic::Control => MAX_CONTROL_BODY,
        }
    }

    /// The name of a request, an answer of the handshake, `event` or `error`.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        Self::NAMED
            .iter()
            .find(|(kind, _)| *kind == self)
            .map(|(_, name)| *name)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = self.name() {
            return f.write_str(name);
        }
        match Self(self.0 & !REPLY).name() {
            Some(name) if self.0 & REPLY != 0 => write!(f, "{name} reply"),
            _ => write!(f, "kind {:#06x}", self.0),
        }
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kind({self})")
    }
}

/// What a channel is open for; decides how long a frame may be, and so how
/// much memory a peer can make us hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Traffic {
    /// Control frames only: at most 4128 bytes each.
    Control,
    /// Upload chunks too: at most 32 768 bytes each.
    Uploads,
}
