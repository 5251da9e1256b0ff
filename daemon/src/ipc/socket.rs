//! The SEQPACKET socket itself: packets with at most one descriptor, blocking
//! with a deadline for `reconf-card`, and asynchronous for `reconfd`.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};
use tokio::io::unix::AsyncFd;

use super::{IpcError, PACKET_LEN};

/// One end of a connection.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
}

impl Socket {
    /// Connects to the card's process. Never waits: the queue of a process that hangs is full
    /// after a few attempts, and then a blocking connect would not come back.
    ///
    /// # Errors
    /// The path does not exist, is no such socket, nobody listens, or nobody accepts.
    pub fn connect(path: &Path) -> Result<Self, IpcError> {
        let fd = seqpacket()?;
        rustix::io::ioctl_fionbio(&fd, true).map_err(std::io::Error::from)?;
        rustix::net::connect(&fd, &address(path)?).map_err(std::io::Error::from)?;
        rustix::io::ioctl_fionbio(&fd, false).map_err(std::io::Error::from)?;
        Ok(Self { fd })
    }

    /// A connected pair, for tests and for a card started by its own `reconfd`.
    ///
    /// # Errors
    /// The system has no descriptors left.
    pub fn pair() -> Result<(Self, Self), IpcError> {
        let (one, two) = rustix::net::socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .map_err(std::io::Error::from)?;
        Ok((Self { fd: one }, Self { fd: two }))
    }

    /// Sends one packet, and one descriptor beside it. A full queue is an error, not a wait,
    /// where the socket is non-blocking.
    ///
    /// # Errors
    /// [`IpcError::Closed`] if the other end is gone; what the system says otherwise.
    pub fn send(
        &self,
        packet: &[u8; PACKET_LEN],
        beside: Option<BorrowedFd<'_>>,
    ) -> Result<(), IpcError> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let one = beside.as_slice();
        if !one.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(one)) {
            return Err(IpcError::Descriptors {
                got: one.len(),
                want: 1,
            });
        }
        loop {
            let sent = rustix::net::sendmsg(
                &self.fd,
                &[IoSlice::new(packet)],
                &mut ancillary,
                SendFlags::NOSIGNAL,
            );
            match sent {
                Ok(len) if len == PACKET_LEN => return Ok(()),
                Ok(len) => return Err(IpcError::Length { len }),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::PIPE | rustix::io::Errno::CONNRESET) => {
                    return Err(IpcError::Closed);
                }
                Err(errno) => return Err(IpcError::Io(errno.into())),
            }
        }
    }

    /// Receives one packet of any length up to one more than the right one, so that a longer
    /// one is seen as such, and the descriptors that came with it.
    ///
    /// # Errors
    /// [`IpcError::Closed`] at end of file; several descriptors; what the system says otherwise.
    pub fn receive(&self) -> Result<(Vec<u8>, Option<OwnedFd>), IpcError> {
        let mut bytes = vec![0u8; PACKET_LEN.saturating_add(1)];
        // Room for more than one, so that a second descriptor is seen and closed, not lost.
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let got = loop {
            let received = rustix::net::recvmsg(
                &self.fd,
                &mut [IoSliceMut::new(&mut bytes)],
                &mut ancillary,
                RecvFlags::CMSG_CLOEXEC,
            );
            match received {
                Ok(message) => break message.bytes,
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::CONNRESET) => return Err(IpcError::Closed),
                Err(errno) => return Err(IpcError::Io(errno.into())),
            }
        };
        let mut beside: Vec<OwnedFd> = Vec::new();
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(fds) = message {
                beside.extend(fds);
            }
        }
        if got == 0 && beside.is_empty() {
            return Err(IpcError::Closed);
        }
        if beside.len() > 1 {
            return Err(IpcError::Descriptors {
                got: beside.len(),
                want: 1,
            });
        }
        bytes.truncate(got);
        Ok((bytes, beside.pop()))
    }

    /// Waits until a packet or the end is there; `false` when the time is over.
    ///
    /// # Errors
    /// What the system says.
    pub fn wait_readable(&self, time: Duration) -> Result<bool, IpcError> {
        let mut fds = [PollFd::new(&self.fd, PollFlags::IN)];
        let limit = Timespec::try_from(time).map_err(|_range| IpcError::Field { field: "time" })?;
        match poll(&mut fds, Some(&limit)) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(errno) => Err(IpcError::Io(errno.into())),
        }
    }

    /// The user and process at the other end, as the kernel says.
    ///
    /// # Errors
    /// What the system says.
    pub fn peer(&self) -> Result<rustix::net::UCred, IpcError> {
        rustix::net::sockopt::socket_peercred(&self.fd).map_err(|errno| IpcError::Io(errno.into()))
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl From<OwnedFd> for Socket {
    fn from(fd: OwnedFd) -> Self {
        Self { fd }
    }
}

/// Where a card's process waits for its `reconfd`.
#[derive(Debug)]
pub struct Listener {
    fd: OwnedFd,
}

impl Listener {
    /// Listens at `path`, which must not exist.
    ///
    /// # Errors
    /// What the system says.
    pub fn bind(path: &Path) -> Result<Self, IpcError> {
        let fd = seqpacket()?;
        rustix::net::bind(&fd, &address(path)?).map_err(std::io::Error::from)?;
        rustix::net::listen(&fd, 2).map_err(std::io::Error::from)?;
        Ok(Self { fd })
    }

    /// Takes a listener that somebody else made (socket activation).
    #[must_use]
    pub fn from_fd(fd: OwnedFd) -> Self {
        Self { fd }
    }

    /// The next connection, blocking.
    ///
    /// # Errors
    /// What the system says.
    pub fn accept(&self) -> Result<Socket, IpcError> {
        loop {
            match rustix::net::accept_with(&self.fd, SocketFlags::CLOEXEC) {
                Ok(fd) => return Ok(Socket { fd }),
                Err(rustix::io::Errno::INTR | rustix::io::Errno::CONNABORTED) => {}
                Err(errno) => return Err(IpcError::Io(errno.into())),
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The same connection for a tokio runtime.
#[derive(Debug)]
pub struct AsyncSocket {
    inner: AsyncFd<Socket>,
}

impl AsyncSocket {
    /// Registers the socket with the current runtime.
    ///
    /// # Errors
    /// What the system says.
    pub fn new(socket: Socket) -> Result<Self, IpcError> {
        rustix::io::ioctl_fionbio(&socket.fd, true).map_err(std::io::Error::from)?;
        #[expect(
            deprecated,
            reason = "an OwnedFd is one open descriptor for as long as it lives, which is what \
                      its unsafe successor asks a caller to promise; unsafe has one home, in card/"
        )]
        let inner = AsyncFd::new(socket)?;
        Ok(Self { inner })
    }

    /// See [`Socket::send`].
    ///
    /// # Errors
    /// See [`Socket::send`].
    pub async fn send(
        &self,
        packet: &[u8; PACKET_LEN],
        beside: Option<BorrowedFd<'_>>,
    ) -> Result<(), IpcError> {
        loop {
            let mut guard = self.inner.writable().await?;
            match guard.try_io(|socket| flatten(socket.get_ref().send(packet, beside))) {
                Ok(result) => return result.map_err(IpcError::Io).and_then(|inner| inner),
                Err(_would_block) => {}
            }
        }
    }

    /// See [`Socket::receive`].
    ///
    /// # Errors
    /// See [`Socket::receive`].
    pub async fn receive(&self) -> Result<(Vec<u8>, Option<OwnedFd>), IpcError> {
        loop {
            let mut guard = self.inner.readable().await?;
            match guard.try_io(|socket| flatten(socket.get_ref().receive())) {
                Ok(result) => return result.map_err(IpcError::Io).and_then(|inner| inner),
                Err(_would_block) => {}
            }
        }
    }
}

/// Lets tokio see "would block", and carries every other error through.
fn flatten<T>(result: Result<T, IpcError>) -> std::io::Result<Result<T, IpcError>> {
    match result {
        Err(IpcError::Io(error)) if error.kind() == std::io::ErrorKind::WouldBlock => Err(error),
        other => Ok(other),
    }
}

fn seqpacket() -> Result<OwnedFd, IpcError> {
    rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
    .map_err(|errno| IpcError::Io(errno.into()))
}

fn address(path: &Path) -> Result<SocketAddrUnix, IpcError> {
    SocketAddrUnix::new(path).map_err(|errno| IpcError::Io(errno.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_and_a_descriptor_arrive_together() {
        let (one, two) = Socket::pair().unwrap();
        let (reader, _writer) = std::io::pipe().unwrap();
        one.send(&[5; PACKET_LEN], Some(reader.as_fd())).unwrap();
        let (bytes, beside) = two.receive().unwrap();
        assert_eq!(bytes, [5; PACKET_LEN]);
        assert!(beside.is_some());
    }

    #[test]
    fn d5_a_process_that_accepts_nobody_holds_nobody_up() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("card.sock");
        let listener = Listener::bind(&path).unwrap();
        let mut waiting = Vec::new();
        let refused = loop {
            match Socket::connect(&path) {
                Ok(socket) => waiting.push(socket),
                Err(error) => break error,
            }
            assert!(waiting.len() < 100);
        };
        assert!(
            matches!(refused, IpcError::Io(error) if error.kind() == std::io::ErrorKind::WouldBlock)
        );
        // Who is accepted waits for packets as before.
        let served = listener.accept().unwrap();
        served.send(&[7; PACKET_LEN], None).unwrap();
        assert_eq!(waiting[0].receive().unwrap().0, [7; PACKET_LEN]);
    }

    #[test]
    fn the_end_is_told() {
        let (one, two) = Socket::pair().unwrap();
        assert!(!two.wait_readable(Duration::from_millis(1)).unwrap());
        drop(one);
        assert!(two.wait_readable(Duration::from_secs(1)).unwrap());
        assert!(matches!(two.receive(), Err(IpcError::Closed)));
    }

    #[tokio::test]
    async fn the_same_asynchronously() {
        let (one, two) = Socket::pair().unwrap();
        let (one, two) = (
            AsyncSocket::new(one).unwrap(),
            AsyncSocket::new(two).unwrap(),
        );
        one.send(&[6; PACKET_LEN], None).await.unwrap();
        let (bytes, beside) = two.receive().await.unwrap();
        assert_eq!((bytes.len(), beside.is_none()), (PACKET_LEN, true));
        drop(one);
        assert!(matches!(two.receive().await, Err(IpcError::Closed)));
    }
}
