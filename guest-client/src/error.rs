//! What can go wrong between a guest and its host, as the guest sees it.
//!
//! Knows causes, sentences and remedies. Must not know exit codes or colours:
//! those belong to the command.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use protocol::message::{ErrorReply, JobInfo, JobKey};
use protocol::status;

use crate::channel::SearchReport;
use crate::{refusal, text};

/// Why the client could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing on this machine looks like a channel to the host.
    #[error("no channel to the host was found: {0}")]
    NoChannel(SearchReport),

    /// The path names something that is neither a socket nor a character device.
    #[error("{} is {found}, not a socket or a character device", path.display())]
    NotAChannel {
        /// The path.
        path: PathBuf,
        /// What it is instead.
        found: &'static str,
    },

    /// A virtio port has one opener at a time, and somebody else is it (`EBUSY`).
    #[error("{} is in use by another process (a port has one opener at a time)", path.display())]
    ChannelInUse {
        /// The port.
        path: PathBuf,
    },

    /// The channel is there and could not be opened.
    #[error("cannot open {}: {source}", path.display())]
    Open {
        /// The path.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },

    /// No answer to `Hello` within the handshake's deadline.
    #[error("the host did not answer within {}", text::seconds(*waited))]
    HostSilent {
        /// How long the client tried.
        waited: Duration,
    },

    /// The request was sent and no reply came within the deadline.
    #[error("no reply to `{request}` within {}", text::seconds(*waited))]
    NoReply {
        /// The name of the request.
        request: &'static str,
        /// How long the client waited.
        waited: Duration,
    },

    /// The channel or the session broke. Whether the request had an effect is unknown.
    #[error("the connection to the host was lost during `{request}`: {why}")]
    Lost {
        /// The name of the request.
        request: &'static str,
        /// What was seen.
        why: String,
    },

    /// The job did not end within the time allowed for the wait. It goes on.
    #[error("job {} did not end within {}", key, text::seconds(*waited))]
    StillRunning {
        /// Finds the job again.
        key: JobKey,
        /// How long the client waited.
        waited: Duration,
        /// What was last heard of it.
        last: Option<Box<JobInfo>>,
    },

    /// The host answered, and not in the way the protocol says.
    #[error("the host broke the protocol: {0}")]
    Protocol(String),

    /// The host refused.
    #[error("{}", refusal::sentence(.0))]
    Refused(ErrorReply),

    /// The kernel gave no random bytes.
    #[error("the kernel gave no random bytes: {0}")]
    Random(io::Error),

    /// The blocking client could not make a runtime for itself.
    #[error("cannot start: {0}")]
    Runtime(io::Error),

    /// The client's own task ended, because its runtime was shut down.
    #[error("the client was shut down")]
    ShutDown,
}

/// The result of every operation here.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// True where the request may or may not have reached the host, so that a
    /// caller has to look before it asks again.
    #[must_use]
    pub fn is_unsure(&self) -> bool {
        matches!(self, Self::Lost { .. } | Self::NoReply { .. })
    }

    /// True where the host was not reached at all and may be reached later.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        matches!(
            self,
            Self::NoChannel(_)
                | Self::ChannelInUse { .. }
                | Self::Open { .. }
                | Self::HostSilent { .. }
        )
    }

    /// A stable name for programs: a status of the protocol where the host
    /// refused, and a name of this library's own otherwise.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoChannel(_) => "no-channel",
            Self::NotAChannel { .. } => "not-a-channel",
            Self::ChannelInUse { .. } => "channel-in-use",
            Self::Open { .. } => "cannot-open",
            Self::HostSilent { .. } => "host-silent",
            Self::NoReply { .. } => "no-reply",
            Self::Lost { .. } => "lost",
            Self::StillRunning { .. } => "still-running",
            Self::Protocol(_) => "broken-protocol",
            Self::Refused(reply) => reply.status.name(),
            Self::Random(_) => "no-randomness",
            Self::Runtime(_) => "no-runtime",
            Self::ShutDown => "shut-down",
        }
    }

    /// The host's refusal, if that is what it is.
    #[must_use]
    pub fn refusal(&self) -> Option<&ErrorReply> {
        match self {
            Self::Refused(reply) => Some(reply),
            _ => None,
        }
    }

    /// What to do next: one sentence.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::NoChannel(_) => "Ask whoever runs the host whether this VM has a reconf channel \
                 (a virtio port named org.reconf.0), or name it with --channel or RECONF_CHANNEL."
                .into(),
            Self::NotAChannel { .. } => {
                "Name a Unix socket or a virtio port, such as /dev/virtio-ports/org.reconf.0."
                    .into()
            }
            Self::ChannelInUse { path } => format!(
                "Find its opener with `fuser {}`; if it is the reconf agent, use the agent's socket.",
                path.display()
            ),
            Self::Open { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                "Join the group that may use the channel (see `ls -l`), or run as root.".into()
            }
            Self::Open { .. } => "Check the path, and that its owner is running.".into(),
            Self::HostSilent { .. } => {
                "The host's service may be down or starting; try again, or with a longer --timeout."
                    .into()
            }
            Self::NoReply { .. } | Self::Lost { .. } => {
                "It is not known whether the request had an effect: look with `reconf describe` \
                 before you ask again."
                    .into()
            }
            Self::StillRunning { key, .. } => {
                format!("The job goes on; find it again with `reconf job {key} --wait`.")
            }
            Self::Protocol(_) => {
                "Guest and host may be of different versions; compare `reconf --version` with the \
                 host's."
                    .into()
            }
            Self::Refused(reply) => status::remedy(reply.status, reply.detail).into(),
            Self::Random(_) => "Try again once the system has started up.".into(),
            Self::Runtime(_) => "Check this process's limits (open files, memory).".into(),
            Self::ShutDown => "Keep the runtime alive as long as the client.".into(),
        }
    }
}
