//! The bytes of a connection: out and in, each with a deadline, and the
//! descriptors that travel with them. What the bytes mean is not known here.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recvmsg,
    sendmsg, socket_with,
};

use crate::device::DeviceError;

/// Bytes received at once, small answers and all.
pub(super) const INBOX: usize = 4096;
/// Descriptors that may come with one answer.
const MOST_FDS: usize = 8;
/// Pause before another try when the server has no room for a connection.
const CONNECT_PAUSE: Duration = Duration::from_millis(5);

/// A connected socket.
#[derive(Debug)]
pub(super) struct Stream {
    socket: OwnedFd,
    /// Bytes that came and were not used yet: `inbox[used..filled]`.
    inbox: Box<[u8]>,
    used: usize,
    filled: usize,
    /// Descriptors that came with them.
    pub(super) files: Vec<OwnedFd>,
}

impl Stream {
    /// Connects to the socket at `path`.
    pub(super) fn connect(path: &Path, within: Duration) -> Result<Self, DeviceError> {
        let doing = "connecting to a device's socket";
        let until = Instant::now().checked_add(within);
        let address = SocketAddrUnix::new(path).map_err(DeviceError::io(doing))?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
            .map_err(DeviceError::io(doing))?;
        loop {
            match connect(&socket, &address) {
                Ok(()) => break,
                Err(Errno::INTR) => {}
                // All its places are taken; there may be one in a moment.
                Err(Errno::AGAIN) if until.is_some_and(|until| Instant::now() < until) => {
                    std::thread::sleep(CONNECT_PAUSE);
                }
                Err(Errno::AGAIN) => return Err(DeviceError::Timeout("accepting a connection")),
                Err(errno) => return Err(DeviceError::io(doing)(errno)),
            }
        }
        Ok(Self {
            socket,
            inbox: vec![0; INBOX].into_boxed_slice(),
            used: 0,
            filled: 0,
            files: Vec::new(),
        })
    }

    /// Sends all of `parts`; the descriptor goes with the first byte.
    pub(super) fn send(
        &self,
        parts: &[&[u8]],
        mut file: Option<BorrowedFd<'_>>,
        until: Instant,
    ) -> Result<(), DeviceError> {
        let mut slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
        let mut rest = slices.as_mut_slice();
        // Empty parts would look like a finished send.
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            let files = file.as_slice();
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            if !files.is_empty() && !control.push(SendAncillaryMessage::ScmRights(files)) {
                return Err(DeviceError::Protocol("no room for a descriptor"));
            }
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            match sendmsg(&self.socket, rest, &mut control, flags) {
                Ok(sent) => {
                    file = None;
                    IoSlice::advance_slices(&mut rest, sent);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait(PollFlags::OUT, until)?,
                Err(errno) => return Err(lost(errno, "sending to a device's server")),
            }
        }
        Ok(())
    }

    /// Fills `data`.
    pub(super) fn receive(
        &mut self,
        mut data: &mut [u8],
        until: Instant,
    ) -> Result<(), DeviceError> {
        loop {
            let waiting = self.inbox.get(self.used..self.filled).unwrap_or_default();
            let count = waiting.len().min(data.len());
            let (here, rest) = data.split_at_mut(count);
            here.copy_from_slice(waiting.get(..count).unwrap_or_default());
            self.used = self.used.saturating_add(count);
            if rest.is_empty() {
                return Ok(());
            }
            data = rest;
            self.wait(PollFlags::IN, until)?;
            // Now the inbox is empty. Much goes straight to where it belongs.
            if data.len() >= INBOX {
                let got = receive_some(&self.socket, data, &mut self.files)?;
                data = data.get_mut(got..).unwrap_or_default();
            } else {
                (self.used, self.filled) = (0, 0);
                self.filled = receive_some(&self.socket, &mut self.inbox, &mut self.files)?;
            }
        }
    }

    /// Waits until the socket is ready, or the time is over.
    fn wait(&self, what: PollFlags, until: Instant) -> Result<(), DeviceError> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(DeviceError::Timeout("a vfio-user server"));
            }
            // A duration of centuries is no deadline that anyone needs kept.
            let left = Timespec::try_from(left).ok();
            let mut sockets = [PollFd::new(&self.socket, what)];
            match poll(&mut sockets, left.as_ref()) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(errno) => return Err(lost(errno, "waiting for a device's server")),
            }
        }
    }
}

/// Receives what is there, and any descriptors that come with it. Returns 0
/// where another wait is needed.
fn receive_some(
    socket: &OwnedFd,
    data: &mut [u8],
    files: &mut Vec<OwnedFd>,
) -> Result<usize, DeviceError> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let received = recvmsg(socket, &mut [IoSliceMut::new(data)], &mut control, flags);
    match received {
        Ok(message) if message.bytes == 0 => {
            Err(DeviceError::Gone("its server closed the connection"))
        }
        Ok(message) => {
            for item in control.drain() {
                if let RecvAncillaryMessage::ScmRights(more) = item {
                    files.extend(more);
                }
            }
            // Only few are kept; the rest is closed here.
            files.truncate(MOST_FDS);
            Ok(message.bytes)
        }
        Err(Errno::AGAIN | Errno::INTR) => Ok(0),
        Err(errno) => Err(lost(errno, "receiving from a device's server")),
    }
}

/// A server that went away is a device that is gone.
fn lost(errno: Errno, doing: &'static str) -> DeviceError {
    match errno {
        Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN => {
            DeviceError::Gone("its server closed the connection")
        }
        _ => DeviceError::io(doing)(errno),
    }
}
