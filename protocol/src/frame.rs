//! A whole frame: made here, or found by the scanner.
//!
//! Knows that a frame is a header and its body in one buffer, for one write.
//! Must not know streams or sessions.

use crate::codec::{self, Body, DecodeError, EncodeError};
use crate::header::{HEADER_LEN, Header};
use crate::kind::{Kind, Traffic};

/// A frame with right checksums, borrowed from the buffer that holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// What is told about the body.
    pub header: Header,
    /// The body; its checksum was found right.
    pub body: &'a [u8],
}

impl Frame<'_> {
    /// Bytes of the frame on the wire.
    #[must_use]
    pub const fn wire_len(&self) -> usize {
        HEADER_LEN.saturating_add(self.body.len())
    }
}

/// Makes a control frame: one buffer, meant for one write.
///
/// # Errors
///
/// [`EncodeError`] if the body exceeds 4096 bytes.
pub fn encode(
    kind: Kind,
    session: u64,
    sequence: u32,
    body: &impl Body,
) -> Result<Vec<u8>, EncodeError> {
    let max = kind.max_body(Traffic::Control);
    let mut frame = vec![0; HEADER_LEN];
    codec::append(&mut frame, max, body)?;
    let too_large = EncodeError { max };
    let (head, body) = frame
        .split_first_chunk_mut::<HEADER_LEN>()
        .ok_or(too_large)?;
    *head = Header::for_body(kind, session, sequence, body)
        .ok_or(too_large)?
        .to_bytes();
    Ok(frame)
}

/// Reads the body of a frame as a message, strictly: every byte must be used.
/// The caller picks the type by the header's kind; see
/// [`Request`](crate::request::Request) and [`Reply`](crate::reply::Reply).
///
/// # Errors
///
/// [`DecodeError`] unless the body is exactly one such message.
pub fn decode<T: Body>(frame: &Frame<'_>) -> Result<T, DecodeError> {
    T::from_body(frame.body)
}
