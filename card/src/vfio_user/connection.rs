//! One connection to a server: bytes out, bytes in, each with a deadline, and
//! exactly one answer for each request that wants one.

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

use super::Deadlines;
use super::wire::{self, ACCESS_SIZE, Answer, Answered, Command, HEADER_SIZE, Outcome};

/// Bytes received at once, small answers and all.
const INBOX: usize = 4096;
/// Descriptors that may come with one answer.
const MOST_FDS: usize = 8;
/// Bytes of posted stores that are sent at once.
const POST_STEP: usize = 64 << 10;
/// Bytes of one posted store.
const POST_SIZE: usize = HEADER_SIZE + ACCESS_SIZE + 8;
/// Pause before another try when the server has no room for a connection.
const CONNECT_PAUSE: Duration = Duration::from_millis(5);

/// A connection. Once it is out of step it is never used again.
#[derive(Debug)]
pub(super) struct Connection {
    socket: OwnedFd,
    answer: Duration,
    next_id: u16,
    /// Bytes that came and were not used yet: `inbox[used..filled]`.
    inbox: Box<[u8]>,
    used: usize,
    filled: usize,
    /// Descriptors that came with them.
    files: Vec<OwnedFd>,
    /// The answer in hand, without its header.
    body: Vec<u8>,
    /// Posted stores on their way out.
    outbox: Vec<u8>,
    /// Posted stores since the last answer; a server may refuse each.
    posted: usize,
    health: Health,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    InStep,
    GivenUp,
}

impl Connection {
    pub(super) fn open(path: &Path, deadlines: Deadlines) -> Result<Self, DeviceError> {
        let doing = "connecting to a device's socket";
        let until = Instant::now().checked_add(deadlines.connect);
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
            answer: deadlines.connect,
            next_id: 0,
            inbox: vec![0; INBOX].into_boxed_slice(),
            used: 0,
            filled: 0,
            files: Vec::new(),
            body: Vec::new(),
            outbox: Vec::new(),
            posted: 0,
            health: Health::InStep,
        })
    }

    /// Bytes that this connection holds for messages.
    #[cfg(test)]
    pub(super) fn room(&self) -> usize {
        [
            self.inbox.len(),
            self.body.capacity(),
            self.outbox.capacity(),
        ]
        .iter()
        .sum()
    }

    /// From here on each answer may take this long.
    pub(super) fn set_answer_deadline(&mut self, answer: Duration) {
        self.answer = answer;
    }

    pub(super) fn negotiate(&mut self) -> Result<wire::Limits, DeviceError> {
        let most = wire::VERSION_MOST;
        let body = self.call_up_to(Command::Version, &[&wire::version()], None, most)?;
        wire::parse_version(body)
    }

    pub(super) fn device_info(&mut self) -> Result<wire::DeviceInfo, DeviceError> {
        let request = wire::device_info();
        let body = self.call(
            Command::DeviceInfo,
            &[&request],
            None,
            wire::DEVICE_INFO_SIZE,
        )?;
        wire::parse_device_info(body)
    }

    /// A region's description, and the file that maps it if one came.
    pub(super) fn region_info(
        &mut self,
        index: u32,
    ) -> Result<(wire::RegionInfo, Option<OwnedFd>), DeviceError> {
        let request = wire::region_info(index);
        let most = wire::REGION_INFO_MOST;
        let body = self.call_up_to(Command::RegionInfo, &[&request], None, most)?;
        let info = wire::parse_region_info(body, index)?;
        let mut files = std::mem::take(&mut self.files);
        let file = files.pop();
        // Two files for one region: which of them would it be?
        if files.is_empty() {
            Ok((info, file))
        } else {
            Err(DeviceError::Protocol("several files for one region"))
        }
    }

    pub(super) fn interrupt_count(&mut self, index: u32) -> Result<u32, DeviceError> {
        let request = wire::interrupt_info(index);
        let size = wire::INTERRUPT_INFO_SIZE;
        let body = self.call(Command::InterruptInfo, &[&request], None, size)?;
        wire::parse_interrupt_info(body, index)
    }

    pub(super) fn region_read(
        &mut self,
        region: u32,
        offset: u64,
        data: &mut [u8],
    ) -> Result<(), DeviceError> {
        let request = wire::access(region, offset, data.len());
        let size = ACCESS_SIZE.saturating_add(data.len());
        let body = self.call(Command::RegionRead, &[&request], None, size)?;
        match body.split_at_checked(ACCESS_SIZE) {
            Some((echo, read)) if echo == request && read.len() == data.len() => {
                data.copy_from_slice(read);
                Ok(())
            }
            _ => Err(self.give_up(DeviceError::Protocol("the answer to another read"))),
        }
    }

    pub(super) fn region_write(
        &mut self,
        region: u32,
        offset: u64,
        data: &[u8],
    ) -> Result<(), DeviceError> {
        let request = wire::access(region, offset, data.len());
        let echo = self.call(Command::RegionWrite, &[&request, data], None, ACCESS_SIZE)?;
        if echo == request {
            return Ok(());
        }
        Err(self.give_up(DeviceError::Protocol("the answer to another write")))
    }

    /// Stores `values` to one register, without an answer to any.
    pub(super) fn post_stores(
        &mut self,
        region: u32,
        offset: u64,
        values: &[u64],
    ) -> Result<(), DeviceError> {
        self.in_step()?;
        let access = wire::access(region, offset, 8);
        let body = ACCESS_SIZE.saturating_add(8);
        for step in values.chunks(POST_STEP.checked_div(POST_SIZE).unwrap_or(1)) {
            let mut outbox = std::mem::take(&mut self.outbox);
            outbox.clear();
            for value in step {
                let id = self.id();
                outbox.extend_from_slice(&wire::request(
                    id,
                    Command::RegionWrite,
                    body,
                    Answered::No,
                ));
                outbox.extend_from_slice(&access);
                outbox.extend_from_slice(&value.to_le_bytes());
            }
            let sent = self.send(&[&outbox], None, self.until());
            self.outbox = outbox;
            sent.map_err(|error| self.give_up(error))?;
            self.posted = self.posted.saturating_add(step.len());
        }
        Ok(())
    }

    /// Makes a request whose answer has a body of exactly `size` bytes.
    pub(super) fn call(
        &mut self,
        command: Command,
        request: &[&[u8]],
        file: Option<BorrowedFd<'_>>,
        size: usize,
    ) -> Result<&[u8], DeviceError> {
        if self.call_up_to(command, request, file, size)?.len() != size {
            return Err(self.give_up(DeviceError::Protocol("an answer of the wrong size")));
        }
        Ok(&self.body)
    }

    /// Makes a request whose answer has a body of at most `most` bytes.
    fn call_up_to(
        &mut self,
        command: Command,
        request: &[&[u8]],
        file: Option<BorrowedFd<'_>>,
        most: usize,
    ) -> Result<&[u8], DeviceError> {
        self.in_step()?;
        match self.exchange(command, request, file, most) {
            Ok(None) => Ok(&self.body),
            Ok(Some(errno)) => Err(DeviceError::Refused { errno }),
            Err(error) => Err(self.give_up(error)),
        }
    }

    /// Sends a request and takes its answer into `body`. Returns the reason if
    /// the request was refused; after an error the connection is out of step.
    fn exchange(
        &mut self,
        command: Command,
        request: &[&[u8]],
        file: Option<BorrowedFd<'_>>,
        most: usize,
    ) -> Result<Option<u32>, DeviceError> {
        let until = self.until();
        let id = self.id();
        let body = request.iter().map(|part| part.len()).sum();
        let header = wire::request(id, command, body, Answered::Yes);
        self.files.clear();
        match request {
            [] => self.send(&[&header], file, until)?,
            [one] => self.send(&[&header, one], file, until)?,
            [one, two] => self.send(&[&header, one, two], file, until)?,
            _ => return Err(DeviceError::Protocol("a request of too many parts")),
        }
        let mut refused = None;
        loop {
            let mut header = [0; HEADER_SIZE];
            self.receive(&mut header, until)?;
            let answer = Answer::parse(&header, most)?;
            if answer.id == id && answer.is_to(command) {
                self.posted = 0;
                return match answer.outcome {
                    Outcome::Refused(errno) => Ok(Some(errno)),
                    Outcome::Body(size) => {
                        self.receive_body(size, until)?;
                        Ok(refused)
                    }
                };
            }
            // Nobody asked for an answer to a posted store, but a server may
            // all the same say that it refused one.
            match answer.outcome {
                Outcome::Refused(errno)
                    if self.posted > 0 && answer.is_to(Command::RegionWrite) =>
                {
                    self.posted = self.posted.saturating_sub(1);
                    refused = refused.or(Some(errno));
                }
                _ => return Err(DeviceError::Protocol("the answer to another request")),
            }
        }
    }

    fn receive_body(&mut self, size: usize, until: Instant) -> Result<(), DeviceError> {
        // `size` was checked against what this request may be answered with.
        let mut body = std::mem::take(&mut self.body);
        body.clear();
        body.resize(size, 0);
        let received = self.receive(&mut body, until);
        self.body = body;
        received
    }

    fn in_step(&self) -> Result<(), DeviceError> {
        match self.health {
            Health::InStep => Ok(()),
            Health::GivenUp => Err(DeviceError::Gone("the connection was given up")),
        }
    }

    fn give_up(&mut self, error: DeviceError) -> DeviceError {
        self.health = Health::GivenUp;
        error
    }

    fn until(&self) -> Instant {
        let now = Instant::now();
        now.checked_add(self.answer).unwrap_or(now)
    }

    fn id(&mut self) -> u16 {
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        id
    }

    /// Sends all of `parts`; the descriptor goes with the first byte.
    fn send(
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
    fn receive(&mut self, mut data: &mut [u8], until: Instant) -> Result<(), DeviceError> {
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
