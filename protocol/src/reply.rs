//! What a host sends once a session is open: answers, errors and events.
//!
//! Knows every one of protocol version 1 as one enum, for both sides. Must
//! not know why a host answers what it answers.

use thiserror::Error;

use crate::codec::{DecodeError, EncodeError};
use crate::frame::{Frame, decode, encode};
use crate::kind::Kind;
use crate::message::{
    DescribeReply, ErrorReply, Event, JobInfo, ListReply, Pong, ResetReply, WatchReply,
};
use crate::status::{Detail, Status};

/// What a host sends within a session. Its frame carries the sequence number
/// of the request that it answers, an event that of its watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// A page of images.
    List(ListReply),
    /// The slots.
    Describe(DescribeReply),
    /// The job of a load.
    Load(JobInfo),
    /// The job of a clear.
    Clear(JobInfo),
    /// The reset is done.
    Reset(ResetReply),
    /// A job asked for.
    Job(JobInfo),
    /// The job that was cancelled.
    Cancel(JobInfo),
    /// Events follow.
    Watch(WatchReply),
    /// The answer to a ping.
    Ping(Pong),
    /// The request was not done.
    Error(ErrorReply),
    /// Something that a watch asked for.
    Event(Event),
}

/// Why a frame is nothing that a host sends within a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ReplyError {
    /// This version does not know the kind.
    #[error("{0} is not known here")]
    Unknown(Kind),
    /// The kind is known, the body is not one of it.
    #[error("a {kind} that cannot be read: {cause}")]
    Malformed {
        /// The kind.
        kind: Kind,
        /// What is wrong with the body.
        cause: DecodeError,
    },
}

const LIST: Kind = Kind::LIST.reply();
const DESCRIBE: Kind = Kind::DESCRIBE.reply();
const LOAD: Kind = Kind::LOAD.reply();
const CLEAR: Kind = Kind::CLEAR.reply();
const RESET: Kind = Kind::RESET.reply();
const JOB: Kind = Kind::JOB.reply();
const CANCEL: Kind = Kind::CANCEL.reply();
const WATCH: Kind = Kind::WATCH.reply();
const PING: Kind = Kind::PING.reply();

impl Reply {
    /// The kind of the frame that carries it.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::List(_) => LIST,
            Self::Describe(_) => DESCRIBE,
            Self::Load(_) => LOAD,
            Self::Clear(_) => CLEAR,
            Self::Reset(_) => RESET,
            Self::Job(_) => JOB,
            Self::Cancel(_) => CANCEL,
            Self::Watch(_) => WATCH,
            Self::Ping(_) => PING,
            Self::Error(_) => Kind::ERROR,
            Self::Event(_) => Kind::EVENT,
        }
    }

    /// Reads a frame as what a host sends.
    ///
    /// # Errors
    ///
    /// [`ReplyError`]; a guest drops such a frame.
    pub fn from_frame(frame: &Frame<'_>) -> Result<Self, ReplyError> {
        let kind = frame.header.kind;
        match kind {
            LIST => decode(frame).map(Self::List),
            DESCRIBE => decode(frame).map(Self::Describe),
            LOAD => decode(frame).map(Self::Load),
            CLEAR => decode(frame).map(Self::Clear),
            RESET => decode(frame).map(Self::Reset),
            JOB => decode(frame).map(Self::Job),
            CANCEL => decode(frame).map(Self::Cancel),
            WATCH => decode(frame).map(Self::Watch),
            PING => decode(frame).map(Self::Ping),
            Kind::ERROR => decode(frame).map(Self::Error),
            Kind::EVENT => decode(frame).map(Self::Event),
            other => return Err(ReplyError::Unknown(other)),
        }
        .map_err(|cause| ReplyError::Malformed { kind, cause })
    }

    /// The frame that says it, for one write.
    ///
    /// # Errors
    ///
    /// [`EncodeError`] if a list does not fit: a host answers such a describe
    /// with [`Status::TooLarge`] and the slots to ask for one by one.
    pub fn to_frame(&self, session: u64, sequence: u32) -> Result<Vec<u8>, EncodeError> {
        let kind = self.kind();
        match self {
            Self::List(body) => encode(kind, session, sequence, body),
            Self::Describe(body) => encode(kind, session, sequence, body),
            Self::Load(body) | Self::Clear(body) | Self::Job(body) | Self::Cancel(body) => {
                encode(kind, session, sequence, body)
            }
            Self::Reset(body) => encode(kind, session, sequence, body),
            Self::Watch(body) => encode(kind, session, sequence, body),
            Self::Ping(body) => encode(kind, session, sequence, body),
            Self::Error(body) => encode(kind, session, sequence, body),
            Self::Event(body) => encode(kind, session, sequence, body),
        }
    }
}

impl ErrorReply {
    /// An error that names no job and no slots.
    #[must_use]
    pub const fn new(status: Status, detail: Detail) -> Self {
        Self {
            status,
            detail,
            job: None,
            slots: Vec::new(),
        }
    }

    /// The one and only form of `denied`. Whatever the cause, the bytes are
    /// the same: unknown, forbidden and foreign are never told apart.
    #[must_use]
    pub const fn denied() -> Self {
        Self::new(Status::Denied, Detail::None)
    }
}
