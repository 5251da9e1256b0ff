//! What the command's exit code means.
//!
//! Knows which failure is which number. The numbers are stable: scripts read them.

use std::process::ExitCode;

use protocol::status::{Detail, Status};

use crate::error::Error;

/// Shown under `--help`.
pub(crate) const EXIT_CODES: &str = "Exit codes:
    0  done
    1  failed: it was tried and did not succeed, or is of the past
    2  usage: the command line is wrong, or a slot has to be named
    3  denied: not allowed, or not known
    4  busy: another job is in the way, or asked too often
    5  unavailable: no channel, no answer, or the host cannot do it now
    6  protocol: the two sides do not understand each other
    7  timeout: a job did not end in time; it goes on, and its key is printed
  130  interrupted; a job that was started goes on, and its key is printed

Environment:
  RECONF_CHANNEL  the channel, as --channel
  NO_COLOR        no colour, if not empty";

/// How the command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    Ok = 0,
    Failed = 1,
    Usage = 2,
    Denied = 3,
    Busy = 4,
    Unavailable = 5,
    Protocol = 6,
    Timeout = 7,
    Interrupted = 130,
}

impl Exit {
    pub(crate) fn code(self) -> u8 {
        self as u8
    }

    /// For an answer of the host, or the result of a job.
    pub(crate) fn of(status: Status, detail: Detail) -> Self {
        match (status, detail) {
            (Status::Ok, _) => Self::Ok,
            // The host found what clap would have refused, had it known the slots.
            (_, Detail::SlotNeeded | Detail::NoSuchSlot | Detail::BadName) => Self::Usage,
            (Status::Denied, _) => Self::Denied,
            (Status::Busy | Status::Rate, _) => Self::Busy,
            (Status::Unavailable, _) => Self::Unavailable,
            (Status::Protocol | Status::Unsupported, _) => Self::Protocol,
            (Status::Failed | Status::Stale | Status::TooLarge, _) => Self::Failed,
        }
    }
}

impl From<&Error> for Exit {
    fn from(error: &Error) -> Self {
        match error {
            Error::Refused(reply) => Self::of(reply.status, reply.detail),
            Error::NoChannel(_)
            | Error::NotAChannel { .. }
            | Error::ChannelInUse { .. }
            | Error::Open { .. }
            | Error::HostSilent { .. }
            | Error::Lost { .. }
            | Error::ShutDown
            | Error::Random(_)
            | Error::Runtime(_) => Self::Unavailable,
            Error::Protocol(_) => Self::Protocol,
            Error::NoReply { .. } | Error::StillRunning { .. } => Self::Timeout,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}
