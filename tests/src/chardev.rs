//! A long-lived stand-in for QEMU's character device behind a virtio-serial
//! port: a host side, where `reconfd` is, and a guest side, where one guest
//! process at a time opens the port.
//!
//! Knows bytes and openers. Must not know frames. What it imitates, as measured
//! on QEMU 7.2 and 11.1:
//!
//! - a guest that opens or closes the port is not visible on the host's socket;
//! - what the host writes while no guest has the port open stays unread, and
//!   goes to the next opener; if the host closes first, it vanishes;
//! - what a guest that closes had been handed and did not read is lost; what
//!   follows goes to the next opener, from the middle of a message if need be;
//! - a second opener is turned away at once (EBUSY);
//! - a host that does not read lets the guest write some hundred kilobytes, then
//!   blocks it; the bytes arrive later, also after the guest closed;
//! - when the host leaves, what it had not read is lost; the guest notices nothing;
//! - one host connection at a time, the next waits in the backlog; as a client it
//!   connects again after a while;
//! - its end is the end of file.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// What a guest can write before it blocks, while the host does not read.
const TO_HOST_MAX: usize = 640 * 1024;

/// How long a second opener is kept before it is turned away. A port that was
/// closed may be held a moment longer by a process that is just being forked.
const GRACE: Duration = Duration::from_millis(100);

/// How many openers are kept that long.
const WAITING_MAX: usize = 64;

/// One buffer of the port's queue.
const CHUNK: usize = 4096;

/// As a client: how long after a failed or lost connection the next attempt comes.
const RECONNECT: Duration = Duration::from_millis(100);

/// Where the host's side of the character device is.
#[derive(Debug, Clone)]
pub enum HostEnd {
    /// QEMU listens and the host connects (libvirt's `mode='bind'`).
    Listen(PathBuf),
    /// QEMU connects, again and again (libvirt's `mode='connect'` with reconnect).
    Connect(PathBuf),
}

/// The character device. [`Chardev::run`] serves it until the process ends.
#[derive(Debug)]
pub struct Chardev {
    host_listener: Option<UnixListener>,
    host_path: PathBuf,
    next_attempt: Instant,
    host: Option<UnixStream>,
    openers: UnixListener,
    guest: Option<UnixStream>,
    /// Those who open a port that is in use, and when they are turned away.
    waiting: VecDeque<(UnixStream, Instant)>,
    to_host: Vec<u8>,
    to_guest: Vec<u8>,
    record: Option<File>,
}

/// What to do with a peer after trying to move bytes.
#[derive(Debug, PartialEq, Eq)]
enum Peer {
    Stays,
    Gone,
}

impl Chardev {
    /// Makes the sockets. `record` gets every byte that a guest receives.
    ///
    /// # Errors
    /// A socket or the file cannot be made.
    pub fn new(host: &HostEnd, guest: &Path, record: Option<&Path>) -> io::Result<Self> {
        let (host_listener, host_path) = match host {
            HostEnd::Listen(path) => (Some(listen(path)?), path.clone()),
            HostEnd::Connect(path) => (None, path.clone()),
        };
        Ok(Self {
            host_listener,
            host_path,
            next_attempt: Instant::now(),
            host: None,
            openers: listen(guest)?,
            guest: None,
            waiting: VecDeque::new(),
            to_host: Vec::new(),
            to_guest: Vec::new(),
            record: record.map(File::create).transpose()?,
        })
    }

    /// Serves for ever.
    ///
    /// # Errors
    /// Waiting fails, or the record cannot be written; a peer's errors only end that peer.
    pub fn run(mut self) -> io::Result<()> {
        loop {
            self.attach_host();
            self.wait()?;
            self.attach_guest();
            self.read_guest();
            self.write_host();
            self.write_guest()?;
        }
    }

    /// Waits until there is something to do.
    fn wait(&self) -> io::Result<()> {
        let mut fds = vec![PollFd::new(&self.openers, PollFlags::IN)];
        if let Some(host) = &self.host {
            // Bytes of the host are only taken while a guest is there to get them.
            let mut flags = PollFlags::RDHUP;
            flags.set(
                PollFlags::IN,
                self.guest.is_some() && self.to_guest.is_empty(),
            );
            flags.set(PollFlags::OUT, !self.to_host.is_empty());
            fds.push(PollFd::new(host, flags));
        } else if let Some(listener) = &self.host_listener {
            fds.push(PollFd::new(listener, PollFlags::IN));
        }
        if let Some(guest) = &self.guest {
            let mut flags = PollFlags::empty();
            let room = self.host.is_some() && self.to_host.len() < TO_HOST_MAX;
            flags.set(PollFlags::IN, room);
            flags.set(PollFlags::OUT, !self.to_guest.is_empty());
            fds.push(PollFd::new(guest, flags));
        }
        let reconnect = self.host.is_none() && self.host_listener.is_none();
        let reconnect = reconnect.then_some(self.next_attempt);
        let grace = self.waiting.front().map(|(_, until)| *until);
        let timeout = reconnect.into_iter().chain(grace).min().map(|next| {
            let left = next.saturating_duration_since(Instant::now());
            Timespec {
                tv_sec: 0,
                tv_nsec: i64::from(left.subsec_nanos()),
            }
        });
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn attach_host(&mut self) {
        if self.host.as_ref().is_some_and(hung_up) {
            self.lose_host();
        }
        if self.host.is_some() {
            return;
        }
        let found = if let Some(listener) = &self.host_listener {
            listener.accept().map(|(stream, _)| stream)
        } else if Instant::now() >= self.next_attempt {
            self.next_attempt = soon(RECONNECT);
            UnixStream::connect(&self.host_path)
        } else {
            return;
        };
        self.host = found.and_then(nonblocking).ok();
    }

    fn lose_host(&mut self) {
        self.host = None;
        self.to_host.clear();
        self.next_attempt = soon(RECONNECT);
    }

    fn attach_guest(&mut self) {
        while let Ok((stream, _)) = self.openers.accept() {
            if self.waiting.len() < WAITING_MAX {
                self.waiting.push_back((stream, soon(GRACE)));
            }
        }
        loop {
            // The opener before may just have closed: its last bytes still count.
            if self.guest.as_ref().is_some_and(hung_up) {
                self.drain_closed_guest();
            }
            match self.waiting.pop_front() {
                None => return,
                Some((stream, _)) if self.guest.is_none() => {
                    self.guest = nonblocking(stream).ok();
                }
                Some((stream, until)) if Instant::now() < until => {
                    self.waiting.push_front((stream, until));
                    return;
                }
                Some(_turned_away) => {}
            }
        }
    }

    /// Takes what a guest that closed had written before.
    fn drain_closed_guest(&mut self) {
        if let Some(mut guest) = self.guest.take() {
            let mut rest = Vec::new();
            // Nonblocking, and the other end is closed: this ends.
            if let Err(error) = guest.read_to_end(&mut rest) {
                eprintln!("reconf-chardev: {error}");
            }
            if self.host.is_some() {
                self.to_host.append(&mut rest);
            }
        }
    }

    fn read_guest(&mut self) {
        let mut chunk = [0; CHUNK];
        while self.host.is_some() && self.to_host.len() < TO_HOST_MAX {
            let Some(guest) = &mut self.guest else { return };
            match guest.read(&mut chunk) {
                Ok(0) => {
                    self.guest = None;
                    return;
                }
                Ok(n) => self
                    .to_host
                    .extend_from_slice(chunk.get(..n).unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => {
                    self.guest = None;
                    return;
                }
            }
        }
        // Also where its bytes are not wanted now: a hang-up must not be polled for ever.
        if self.guest.as_ref().is_some_and(hung_up) {
            self.drain_closed_guest();
        }
    }

    fn write_host(&mut self) {
        let Some(host) = &mut self.host else { return };
        if pump(&mut self.to_host, host) == Peer::Gone {
            self.lose_host();
        }
    }

    fn write_guest(&mut self) -> io::Result<()> {
        let Some(guest) = &mut self.guest else {
            return Ok(());
        };
        if pump(&mut self.to_guest, guest) == Peer::Gone {
            self.guest = None;
            return Ok(());
        }
        let Some(host) = &mut self.host else {
            return Ok(());
        };
        if !self.to_guest.is_empty() {
            return Ok(());
        }
        let mut chunk = [0; CHUNK];
        match host.read(&mut chunk) {
            Ok(0) => self.lose_host(),
            Ok(n) => {
                let bytes = chunk.get(..n).unwrap_or_default();
                if let Some(record) = &mut self.record {
                    record.write_all(bytes)?;
                }
                self.to_guest.extend_from_slice(bytes);
                if pump(&mut self.to_guest, guest) == Peer::Gone {
                    self.guest = None;
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => self.lose_host(),
        }
        Ok(())
    }
}

/// Writes as much as the peer takes.
fn pump(bytes: &mut Vec<u8>, peer: &mut UnixStream) -> Peer {
    while !bytes.is_empty() {
        match peer.write(bytes) {
            Ok(0) => return Peer::Gone,
            Ok(n) => drop(bytes.drain(..n)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Peer::Stays,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return Peer::Gone,
        }
    }
    Peer::Stays
}

/// A moment that is that far away.
fn soon(time: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(time).unwrap_or(now)
}

fn listen(path: &Path) -> io::Result<UnixListener> {
    let listener = UnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn nonblocking(stream: UnixStream) -> io::Result<UnixStream> {
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// Whether the other end has closed.
fn hung_up(stream: &impl AsFd) -> bool {
    let mut fds = [PollFd::new(stream, PollFlags::RDHUP)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut fds, Some(&now)).is_ok()
        && fds
            .iter()
            .any(|fd| fd.revents().intersects(PollFlags::HUP | PollFlags::RDHUP))
}
