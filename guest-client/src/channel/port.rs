//! A virtio port (or any character device) as an asynchronous stream.
//!
//! Knows the manners of `virtio_console`: while no host is connected a read
//! gives 0 bytes and a write `EAGAIN`. Before the host was heard of, both mean
//! "not yet"; after that, 0 bytes are the one sign that the host went away.
//! Must not know what the bytes mean.

use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// How long to let a port be whose host is away. It is not a promise of the
/// kernel that the host's arrival wakes a poller, so the port is tried again
/// after this time in any case.
const HOST_AWAY_PAUSE: Duration = Duration::from_millis(50);

/// An open character device.
pub(super) struct Port {
    fd: AsyncFd<OwnedFd>,
    reading: Pause,
    writing: Pause,
    host: Host,
}

/// Whether the host was heard of since it last went away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Host {
    Awaited,
    Heard,
}

impl Port {
    /// Opens the device for reading and writing, without blocking and without
    /// becoming anybody's terminal.
    #[expect(
        deprecated,
        reason = "the successor is unsafe for the sake of types that are not I/O safe; \
                  an OwnedFd is, and this crate forbids unsafe code"
    )]
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Self {
            fd: AsyncFd::new(fd)?,
            reading: Pause::default(),
            writing: Pause::default(),
            host: Host::Awaited,
        })
    }
}

/// A pause that a poll function takes between two tries.
#[derive(Default)]
struct Pause(Option<Pin<Box<Sleep>>>);

impl Pause {
    /// Starts a pause, if none runs.
    fn begin(&mut self) {
        self.0
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(HOST_AWAY_PAUSE)));
    }

    /// Ready when no pause runs (any more).
    fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(sleep) = &mut self.0 {
            ready!(sleep.as_mut().poll(cx));
            self.0 = None;
        }
        Poll::Ready(())
    }
}

impl AsyncRead for Port {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        loop {
            ready!(this.reading.poll_over(cx));
            let mut guard = ready!(this.fd.poll_read_ready(cx))?;
            match guard.try_io(|fd| Ok(rustix::io::read(fd.get_ref(), buf.initialize_unfilled())?))
            {
                // The host went away, and its session with it: the reader is
                // told by an end of file.
                Ok(Ok(0)) if this.host == Host::Heard => {
                    this.host = Host::Awaited;
                    return Poll::Ready(Ok(()));
                }
                // No host yet. The device stays "readable", so only the clock
                // can say when to look again.
                Ok(Ok(0)) => this.reading.begin(),
                Ok(Ok(read)) => {
                    this.host = Host::Heard;
                    buf.advance(read);
                    return Poll::Ready(Ok(()));
                }
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(error)) => return Poll::Ready(Err(error)),
                Err(_would_block) => {}
            }
        }
    }
}

impl AsyncWrite for Port {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        loop {
            // One write of the caller is one write to the device: the host finds
            // a frame's start where a write started (docs/protocol.md).
            match rustix::io::write(this.fd.get_ref(), bytes) {
                Ok(written) => {
                    this.writing = Pause::default();
                    return Poll::Ready(Ok(written));
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => {
                    this.writing.begin();
                    ready!(this.writing.poll_over(cx));
                }
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
