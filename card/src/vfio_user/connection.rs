//! One connection to a server: exactly one answer for each request that wants
//! one, and never a second try when they are out of step.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::device::DeviceError;

use super::Deadlines;
use super::describe;
use super::stream::Stream;
use super::wire::{self, ACCESS_SIZE, Answer, Answered, Command, HEADER_SIZE, Outcome};

/// Bytes of posted stores that are sent at once.
const POST_STEP: usize = 64 << 10;
/// Bytes of one posted store.
const POST_SIZE: usize = HEADER_SIZE + ACCESS_SIZE + 8;

/// A connection. Once it is out of step it is never used again.
#[derive(Debug)]
pub(super) struct Connection {
    stream: Stream,
    answer: Duration,
    next_id: u16,
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
        let stream = Stream::connect(path, deadlines.connect)?;
        Ok(Self {
            stream,
            answer: deadlines.connect,
            next_id: 0,
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
            super::stream::INBOX,
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

    pub(super) fn negotiate(&mut self) -> Result<describe::Limits, DeviceError> {
        let most = describe::VERSION_MOST;
        let body = self.call_up_to(Command::Version, &[&describe::version()], None, most)?;
        describe::parse_version(body)
    }

    pub(super) fn device_info(&mut self) -> Result<describe::DeviceInfo, DeviceError> {
        let request = describe::device_info();
        let body = self.call(
            Command::DeviceInfo,
            &[&request],
            None,
            describe::DEVICE_INFO_SIZE,
        )?;
        describe::parse_device_info(body)
    }

    /// A region's description, and the file that maps it if one came.
    pub(super) fn region_info(
        &mut self,
        index: u32,
    ) -> Result<(describe::RegionInfo, Option<OwnedFd>), DeviceError> {
        let request = describe::region_info(index);
        let most = describe::REGION_INFO_MOST;
        let body = self.call_up_to(Command::RegionInfo, &[&request], None, most)?;
        let info = describe::parse_region_info(body, index)?;
        let mut files = std::mem::take(&mut self.stream.files);
        let file = files.pop();
        // Two files for one region: which of them would it be?
        if files.is_empty() {
            Ok((info, file))
        } else {
            Err(DeviceError::Protocol("several files for one region"))
        }
    }

    pub(super) fn interrupt_count(&mut self, index: u32) -> Result<u32, DeviceError> {
        let request = describe::interrupt_info(index);
        let size = describe::INTERRUPT_INFO_SIZE;
        let body = self.call(Command::InterruptInfo, &[&request], None, size)?;
        describe::parse_interrupt_info(body, index)
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

    /// Stores `values` of N bytes to one register, without an answer to any.
    pub(super) fn post_stores<const N: usize>(
        &mut self,
        region: u32,
        offset: u64,
        mut values: impl ExactSizeIterator<Item = [u8; N]>,
    ) -> Result<(), DeviceError> {
        self.in_step()?;
        let access = wire::access(region, offset, N);
        let body = ACCESS_SIZE.saturating_add(N);
        let most = POST_STEP.checked_div(POST_SIZE).unwrap_or(1);
        while values.len() > 0 {
            let mut outbox = std::mem::take(&mut self.outbox);
            outbox.clear();
            let mut step = 0_usize;
            for value in values.by_ref().take(most) {
                let id = self.id();
                outbox.extend_from_slice(&wire::request(
                    id,
                    Command::RegionWrite,
                    body,
                    Answered::No,
                ));
                outbox.extend_from_slice(&access);
                outbox.extend_from_slice(&value);
                step = step.saturating_add(1);
            }
            let sent = self.stream.send(&[&outbox], None, self.until());
            self.outbox = outbox;
            sent.map_err(|error| self.give_up(error))?;
            self.posted = self.posted.saturating_add(step);
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
        self.stream.files.clear();
        match request {
            [] => self.stream.send(&[&header], file, until)?,
            [one] => self.stream.send(&[&header, one], file, until)?,
            [one, two] => self.stream.send(&[&header, one, two], file, until)?,
            _ => return Err(DeviceError::Protocol("a request of too many parts")),
        }
        let mut refused = None;
        loop {
            let mut header = [0; HEADER_SIZE];
            self.stream.receive(&mut header, until)?;
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
        let received = self.stream.receive(&mut body, until);
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
}
