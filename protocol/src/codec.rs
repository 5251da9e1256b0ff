//! Bodies to bytes and back; the only place that runs bincode.
//!
//! Knows the encoding (docs/protocol.md spells it out in bytes) and its
//! limits. Must not know what a message means.
//!
//! The encoding has exactly one form for each value, and decoding is strict:
//! a body that decodes also encodes to the very same bytes.

use bincode::config::{Configuration, Fixint, Limit, LittleEndian};
use bincode::enc::write::Writer;
use bincode::{Decode, Encode};
use thiserror::Error;

use crate::message;

/// What a decoder of requests may claim, in bytes. The longest request that
/// makes sense has 227; so a guest cannot make a host hold more than this
/// beside the frame itself.
const REQUEST_LIMIT: usize = 1024;

/// What a decoder of replies may claim, in bytes **of memory**: bincode counts
/// the items of a list at their size in memory, up to a dozen times their
/// size on the wire. The wire itself is bounded by the frame.
const REPLY_LIMIT: usize = 64 * 1024;

type Config<const LIMIT: usize> = Configuration<LittleEndian, Fixint, Limit<LIMIT>>;

const fn config<const LIMIT: usize>() -> Config<LIMIT> {
    bincode::config::standard()
        .with_little_endian()
        .with_fixed_int_encoding()
        .with_limit()
}

/// A body does not fit into a frame of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the body exceeds the {max} bytes that its kind allows")]
pub struct EncodeError {
    /// Bytes allowed.
    pub max: usize,
}

/// A body is not what its kind says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// It ends too early, names an unknown variant, holds a byte that is no
    /// bool, text that is no UTF-8, or a list longer than the frame allows.
    #[error("the body does not follow its message's layout")]
    Malformed,
    /// Bytes follow the message.
    #[error("{0} bytes follow the message")]
    Trailing(usize),
}

mod sealed {
    pub trait Sealed {}
}

/// A type that can be a frame's body: the messages of [`message`].
pub trait Body: Encode + Decode<()> + sealed::Sealed {
    /// Reads a whole body.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] unless the bytes are exactly one such message.
    fn from_body(body: &[u8]) -> Result<Self, DecodeError>;
}

macro_rules! bodies {
    ($limit:ident: $($message:ident),+ $(,)?) => {$(
        impl sealed::Sealed for message::$message {}
        impl Body for message::$message {
            fn from_body(body: &[u8]) -> Result<Self, DecodeError> {
                read::<Self, $limit>(body)
            }
        }
    )+};
}

bodies!(REQUEST_LIMIT: Hello, Confirm, List, Describe, Load, Clear, Reset, JobQuery, Cancel, Watch, Ping);
bodies!(REPLY_LIMIT: Welcome, Ready, ListReply, DescribeReply, ResetReply, JobInfo, WatchReply, Event, Pong, ErrorReply);

fn read<T: Decode<()>, const LIMIT: usize>(body: &[u8]) -> Result<T, DecodeError> {
    // bincode's own error tells more, but only about the sender's mistake, and
    // it may hold text of the sender's: it stays here.
    #[expect(
        clippy::map_err_ignore,
        reason = "the closed set of errors is the point"
    )]
    let (message, used) =
        bincode::decode_from_slice(body, config::<LIMIT>()).map_err(|_| DecodeError::Malformed)?;
    match body.len().saturating_sub(used) {
        0 => Ok(message),
        more => Err(DecodeError::Trailing(more)),
    }
}

/// Appends the body to `frame`, which may grow by `max` bytes.
pub(crate) fn append(frame: &mut Vec<u8>, max: usize, body: &impl Body) -> Result<(), EncodeError> {
    // The messages are plain data: running out of room is all that can fail.
    #[expect(clippy::map_err_ignore, reason = "there is one cause only")]
    bincode::encode_into_writer(body, Bounded { frame, left: max }, config::<REPLY_LIMIT>())
        .map_err(|_| EncodeError { max })
}

struct Bounded<'a> {
    frame: &'a mut Vec<u8>,
    left: usize,
}

impl Writer for Bounded<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), bincode::error::EncodeError> {
        self.left = self
            .left
            .checked_sub(bytes.len())
            .ok_or(bincode::error::EncodeError::UnexpectedEnd)?;
        self.frame.extend_from_slice(bytes);
        Ok(())
    }
}
