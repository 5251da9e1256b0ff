//! The byte channel to the host: how it is found and opened.
//!
//! Knows paths, sockets and character devices. Must not know frames or sessions.

mod port;
mod search;

use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;

pub use search::{AGENT_SOCKET, ENVIRONMENT, PORT, Places, SearchReport, Tried};

use crate::error::{Error, Result};
use port::Port;

/// Any two-way stream of bytes that a client can speak over.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A stream, whatever it is.
pub(crate) type Stream = Box<dyn Duplex>;

/// Connecting to a local socket takes no time, unless its owner's backlog is full.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// How the client comes to a stream, at first and after one broke.
pub(crate) enum Opener {
    /// By path: it can be opened again.
    Places(Places),
    /// A stream that the caller made: it cannot.
    Once(Option<Stream>),
}

impl Opener {
    /// Opens the next stream.
    pub(crate) async fn open(&mut self) -> Result<Stream> {
        match self {
            Self::Places(places) => places.open().await,
            Self::Once(stream) => stream.take().ok_or_else(|| Error::Lost {
                request: "open",
                why: "the stream ended and only its maker can open another".into(),
            }),
        }
    }

    /// Whether another try may find another stream.
    pub(crate) fn can_reopen(&self) -> bool {
        matches!(self, Self::Places(_) | Self::Once(Some(_)))
    }
}

/// Opens one path: a Unix socket is connected to, a character device is opened
/// without blocking.
async fn open(path: &Path) -> Result<Stream> {
    let failed = |source: io::Error| Error::Open {
        path: path.into(),
        source,
    };
    let kind = std::fs::metadata(path).map_err(failed)?.file_type();
    if kind.is_socket() {
        let stream = tokio::time::timeout(CONNECT_TIMEOUT, UnixStream::connect(path))
            .await
            .unwrap_or_else(|_elapsed| Err(io::ErrorKind::TimedOut.into()))
            .map_err(failed)?;
        return Ok(Box::new(stream));
    }
    if kind.is_char_device() {
        return match Port::open(path) {
            Ok(port) => Ok(Box::new(port)),
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                Err(Error::ChannelInUse { path: path.into() })
            }
            Err(error) => Err(failed(error)),
        };
    }
    let found = if kind.is_dir() {
        "a directory"
    } else if kind.is_file() {
        "a regular file"
    } else if kind.is_fifo() {
        "a pipe"
    } else {
        "a block device"
    };
    Err(Error::NotAChannel {
        path: path.into(),
        found,
    })
}

#[cfg(test)]
mod tests;
