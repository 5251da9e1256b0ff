//! How a session is opened, and what belongs to it.
//!
//! Two pure state machines, one a side. They know nonces, session ids,
//! sequence numbers and the budget of junk before a session. They must not
//! know where bytes come from, and make no random numbers: those are given.
//!
//! ```text
//! guest                                        host
//!   | Hello   {guest nonce, minor}   session 0  |
//!   |------------------------------------------>|
//!   | Welcome {both nonces, minor}   session 0  |
//!   |<------------------------------------------|
//!   | Confirm {host nonce}           session 0  |
//!   |------------------------------------------>|
//!   | Ready   {slots, limits}        session S  |
//!   |<------------------------------------------|
//!   | requests, sequence 1, 2, …     session S  |
//! ```

mod guest;
mod host;
mod sequence;

pub use guest::{GuestHandshake, GuestStep};
pub use host::{Fresh, HostHandshake, HostStep, Why};
pub use sequence::{NotRising, SequenceCheck, SequenceSource};

use std::num::NonZeroU64;

/// The highest minor version that this crate speaks.
pub const MINOR: u16 = 0;

/// Bytes that may be thrown away before they count as one protocol error.
pub const JUNK_BUDGET: u64 = 64 * 1024;

/// 16 random bytes that only the other side can echo.
pub type Nonce = [u8; 16];

/// A session's random number; 0 is what frames carry before there is one.
pub type SessionId = NonZeroU64;

/// An open session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session {
    /// What every frame of it carries.
    pub id: SessionId,
    /// The minor version that both sides speak.
    pub minor: u16,
}
