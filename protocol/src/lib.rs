//! The wire format between a guest and its host. Bytes in, bytes out.
//!
//! Knows frames, messages, codes and the handshake. Must not know sockets,
//! policy, cards, or anything that differs from host to host.
//!
//! A receiver feeds what it reads to a [`Scanner`], shows each frame to its
//! side's handshake, and reads the frames of the session as [`Request`]s (the
//! host) or [`Reply`]s (the guest). `docs/protocol.md` is the specification.

#![forbid(unsafe_code)]

mod codec;
pub mod frame;
#[doc(hidden)]
pub mod fuzz;
pub mod handshake;
pub mod header;
pub mod kind;
pub mod message;
pub mod name;
mod opening;
pub mod reply;
pub mod request;
pub mod scanner;
pub mod status;

pub use codec::{Body, DecodeError, EncodeError};
pub use frame::{Frame, decode, encode};
pub use handshake::{
    Fresh, GuestHandshake, GuestStep, HostHandshake, HostStep, Nonce, SequenceCheck,
    SequenceSource, Session, SessionId,
};
pub use header::{Blame, FrameError, HEADER_LEN, Header};
pub use kind::{Kind, Traffic};
pub use name::{ImageName, NameError};
pub use reply::{Reply, ReplyError};
pub use request::{Request, RequestError};
pub use scanner::{Opening, PendingPart, Scanned, Scanner};
pub use status::{Detail, Status};
