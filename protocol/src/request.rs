//! What a guest asks, once a session is open.
//!
//! Knows every request of protocol version 1 as one enum, for both sides.
//! Must not know sessions (`handshake`) or what a host decides.

use thiserror::Error;

use crate::codec::{DecodeError, EncodeError};
use crate::frame::{Frame, decode, encode};
use crate::kind::Kind;
use crate::message::{
    Cancel, Clear, Describe, ErrorReply, JobQuery, List, Load, Ping, Reset, Watch,
};
use crate::status::{Detail, Status};

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Which images may I load?
    List(List),
    /// What is in my slots?
    Describe(Describe),
    /// Load an image.
    Load(Load),
    /// Empty a slot.
    Clear(Clear),
    /// Reset a slot's function.
    Reset(Reset),
    /// How is that job?
    Job(JobQuery),
    /// Cancel a job that waits.
    Cancel(Cancel),
    /// Send me events.
    Watch(Watch),
    /// Are you there?
    Ping(Ping),
}

/// Why a frame is no request that can be served. None of these counts as
/// abuse: the framing was right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RequestError {
    /// This version does not know the kind, or only reserves it.
    #[error("{0} is not known here")]
    Unsupported(Kind),
    /// The kind is known, the body is not one of it.
    #[error("a {kind} that cannot be read: {cause}")]
    Malformed {
        /// The kind.
        kind: Kind,
        /// What is wrong with the body.
        cause: DecodeError,
    },
    /// A load whose text is no image name. The text itself is not kept.
    #[error("a load whose text is no image name")]
    BadName,
    /// A load with both `if_not_loaded` and `force`.
    #[error("a load that asks for both if-not-loaded and force")]
    Contradiction,
}

impl RequestError {
    /// The answer that tells the guest.
    #[must_use]
    pub const fn to_reply(self) -> ErrorReply {
        match self {
            Self::Unsupported(_) => ErrorReply::new(Status::Unsupported, Detail::None),
            Self::Malformed { .. } | Self::Contradiction => {
                ErrorReply::new(Status::Protocol, Detail::None)
            }
            Self::BadName => ErrorReply::new(Status::Protocol, Detail::BadName),
        }
    }
}

impl Request {
    /// The kind of the frame that carries it.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::List(_) => Kind::LIST,
            Self::Describe(_) => Kind::DESCRIBE,
            Self::Load(_) => Kind::LOAD,
            Self::Clear(_) => Kind::CLEAR,
            Self::Reset(_) => Kind::RESET,
            Self::Job(_) => Kind::JOB,
            Self::Cancel(_) => Kind::CANCEL,
            Self::Watch(_) => Kind::WATCH,
            Self::Ping(_) => Kind::PING,
        }
    }

    /// Reads a frame as a request. An image name in it follows the grammar.
    ///
    /// # Errors
    ///
    /// [`RequestError`], whose `to_reply` is the answer to send.
    pub fn from_frame(frame: &Frame<'_>) -> Result<Self, RequestError> {
        let kind = frame.header.kind;
        let request = match kind {
            Kind::LIST => decode(frame).map(Self::List),
            Kind::DESCRIBE => decode(frame).map(Self::Describe),
            Kind::LOAD => decode(frame).map(Self::Load),
            Kind::CLEAR => decode(frame).map(Self::Clear),
            Kind::RESET => decode(frame).map(Self::Reset),
            Kind::JOB => decode(frame).map(Self::Job),
            Kind::CANCEL => decode(frame).map(Self::Cancel),
            Kind::WATCH => decode(frame).map(Self::Watch),
            Kind::PING => decode(frame).map(Self::Ping),
            other => return Err(RequestError::Unsupported(other)),
        }
        .map_err(|cause| RequestError::Malformed { kind, cause })?;
        if let Self::Load(load) = &request {
            if load.image.check().is_err() {
                return Err(RequestError::BadName);
            }
            if load.if_not_loaded && load.force {
                return Err(RequestError::Contradiction);
            }
        }
        Ok(request)
    }

    /// The frame that asks it, for one write.
    ///
    /// # Errors
    ///
    /// [`EncodeError`] if it does not fit: only a load with an overlong name.
    pub fn to_frame(&self, session: u64, sequence: u32) -> Result<Vec<u8>, EncodeError> {
        let kind = self.kind();
        match self {
            Self::List(body) => encode(kind, session, sequence, body),
            Self::Describe(body) => encode(kind, session, sequence, body),
            Self::Load(body) => encode(kind, session, sequence, body),
            Self::Clear(body) => encode(kind, session, sequence, body),
            Self::Reset(body) => encode(kind, session, sequence, body),
            Self::Job(body) => encode(kind, session, sequence, body),
            Self::Cancel(body) => encode(kind, session, sequence, body),
            Self::Watch(body) => encode(kind, session, sequence, body),
            Self::Ping(body) => encode(kind, session, sequence, body),
        }
    }
}
