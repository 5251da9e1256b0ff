//! Finds frames in a stream that may hold anything.
//!
//! Knows how a receiver keeps its place, loses it and finds it again. Must not
//! know sessions, and takes no message apart.
//!
//! A channel outlives the processes behind it, and no end-of-file tells of a
//! guest that rebooted: half a frame of a dead process may stand before the
//! first byte of a live one. So
//!
//! - after every false start the search goes on at the byte after its magic,
//!   also inside what was already swallowed as a body;
//! - a body in which a whole opening frame stands (a hello at the host, a
//!   welcome at the guest) is cut off there at once. Otherwise the receiver
//!   would wait for the rest of a dead process's body while the live one waits
//!   for the answer to its hello.
//!
//! What is found never depends on how the bytes were cut when they arrived.
//! At most one frame is buffered, and nothing is allocated for a length that
//! was not checked.

use crate::frame::Frame;
use crate::header::{FrameError, HEADER_LEN, Header};
use crate::kind::{MAX_CONTROL_BODY, Traffic};
pub use crate::opening::Opening;
use crate::opening::find_magic;

/// What the scanner came upon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scanned<'a> {
    /// A frame with right checksums.
    Frame(Frame<'a>),
    /// Something that is no frame. While the place is lost, missing magic and
    /// wrong header checksums are expected and not reported again.
    Broken(FrameError),
    /// The place was found again; the frame follows.
    Resynced {
        /// Bytes thrown away since the place was lost.
        discarded: u64,
    },
}

/// Which part of a frame has begun to arrive and not yet arrived whole. A
/// caller that sees the same part at the same [`Scanner::position`] for too
/// long calls [`Scanner::abandon_partial`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PendingPart {
    /// The header.
    Header,
    /// The body.
    Body,
}

/// Whether the last byte belongs to a frame, or to junk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Kept,
    Lost,
}

/// One step of the search.
enum Step {
    Need(usize),
    Frame(Header),
    Broken(FrameError),
    Quiet,
    Resynced(u64),
}

/// Takes a stream apart into frames. One for each direction of a channel.
#[derive(Debug)]
pub struct Scanner {
    opening: Opening,
    traffic: Traffic,
    /// What was taken in and is not done with; `buf[start..]` is the part that
    /// is not yet dismissed.
    buf: Vec<u8>,
    start: usize,
    /// The header at `start`, once it was found good.
    header: Option<Header>,
    /// How far behind `start` the search for an opening frame got.
    searched: usize,
    /// Bytes of the frame that was given out last; dismissed at the next call.
    given: usize,
    place: Place,
    /// Bytes thrown away since the place was lost.
    lost: u64,
    /// Bytes thrown away since somebody asked.
    discarded: u64,
    /// Bytes done with since the beginning, for better or worse.
    position: u64,
}

impl Scanner {
    /// A scanner at the beginning of a stream. It holds no memory yet.
    #[must_use]
    pub const fn new(opening: Opening, traffic: Traffic) -> Self {
        Self {
            opening,
            traffic,
            buf: Vec::new(),
            start: 0,
            header: None,
            searched: HEADER_LEN,
            given: 0,
            place: Place::Kept,
            lost: 0,
            discarded: 0,
            position: 0,
        }
    }

    /// What the host uses to read control frames from a guest.
    #[must_use]
    pub const fn host() -> Self {
        Self::new(Opening::Hello, Traffic::Control)
    }

    /// What a guest uses to read from its host.
    #[must_use]
    pub const fn guest() -> Self {
        Self::new(Opening::Welcome, Traffic::Control)
    }

    /// Takes from `input` what it needs and returns the next thing found, or
    /// `None` once `input` is empty and more is needed. Call it until then.
    pub fn next(&mut self, input: &mut &[u8]) -> Option<Scanned<'_>> {
        self.release();
        let found = loop {
            match self.step() {
                Step::Need(total) => {
                    if input.is_empty() {
                        return None;
                    }
                    self.fill(total, input);
                }
                Step::Quiet => {}
                found => break found,
            }
        };
        match found {
            Step::Broken(error) => Some(Scanned::Broken(error)),
            Step::Resynced(discarded) => Some(Scanned::Resynced { discarded }),
            Step::Frame(header) => {
                self.given = HEADER_LEN.saturating_add(header.body_len());
                let body = self.window().get(HEADER_LEN..self.given)?;
                Some(Scanned::Frame(Frame { header, body }))
            }
            Step::Need(_) | Step::Quiet => None,
        }
    }

    /// The part of a frame that is awaited, if one has begun.
    #[must_use]
    pub fn pending(&self) -> Option<PendingPart> {
        if self.window().len() <= self.given {
            None
        } else if self.given == 0 && self.header.is_some() {
            Some(PendingPart::Body)
        } else {
            Some(PendingPart::Header)
        }
    }

    /// Where in the stream the awaited frame begins: tells one half frame from
    /// the next, which may be at the same part. Ask it when [`Scanner::next`]
    /// has returned `None`.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// Gives up the frame that is awaited. What was buffered of it is searched
    /// again: call [`Scanner::next`] afterwards, if need be with no input.
    pub fn abandon_partial(&mut self) {
        self.release();
        if !self.window().is_empty() {
            self.place = Place::Lost;
            self.discard(1);
        }
    }

    /// Bytes thrown away since the last call: what a budget is charged with.
    pub const fn take_discarded(&mut self) -> u64 {
        std::mem::replace(&mut self.discarded, 0)
    }

    fn window(&self) -> &[u8] {
        self.buf.get(self.start..).unwrap_or_default()
    }

    fn step(&mut self) -> Step {
        let header = match self.header {
            Some(header) => header,
            None => match self.seek() {
                Ok(header) => header,
                Err(step) => return step,
            },
        };
        let total = HEADER_LEN.saturating_add(header.body_len());
        if let Some(at) = self.find_opening(total) {
            self.place = Place::Lost;
            self.discard(at);
            return Step::Broken(FrameError::Interrupted);
        }
        let Some(body) = self.window().get(HEADER_LEN..total) else {
            return Step::Need(total);
        };
        if !header.matches(body) {
            return self.refuse(FrameError::BodyCrc);
        }
        if self.place == Place::Lost {
            self.place = Place::Kept;
            return Step::Resynced(std::mem::take(&mut self.lost));
        }
        self.header = None;
        Step::Frame(header)
    }

    /// Looks for a header at the beginning of the window.
    fn seek(&mut self) -> Result<Header, Step> {
        let junk = find_magic(self.window(), 0);
        if junk > 0 {
            self.discard(junk);
            return Err(self.lose(FrameError::BadMagic));
        }
        let Some(head) = self.window().first_chunk() else {
            return Err(Step::Need(HEADER_LEN));
        };
        match Header::parse(head, self.traffic) {
            Ok(header) => Ok(*self.header.insert(header)),
            Err(error) => Err(self.refuse(error)),
        }
    }

    /// Looks for a whole opening frame inside the awaited body.
    fn find_opening(&mut self, total: usize) -> Option<usize> {
        let window = self.window();
        let window = window.get(..total).unwrap_or(window);
        let mut at = self.searched;
        loop {
            at = find_magic(window, at);
            let rest = window.get(at..)?;
            if rest.len() < self.opening.frame_len() {
                self.searched = at;
                return None;
            }
            if self.opening.stands_in(rest) {
                return Some(at);
            }
            at = at.saturating_add(1);
        }
    }

    /// Gives up the false start at the beginning of the window.
    fn refuse(&mut self, error: FrameError) -> Step {
        self.discard(1);
        self.lose(error)
    }

    /// Reports what was found in place of a frame, unless it was to be
    /// expected.
    fn lose(&mut self, error: FrameError) -> Step {
        let before = std::mem::replace(&mut self.place, Place::Lost);
        match error {
            FrameError::BadMagic | FrameError::HeaderCrc if before == Place::Lost => Step::Quiet,
            _ => Step::Broken(error),
        }
    }

    fn discard(&mut self, bytes: usize) {
        let count = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.lost = self.lost.saturating_add(count);
        self.discarded = self.discarded.saturating_add(count);
        self.dismiss(bytes);
    }

    /// Dismisses the frame that was given out last.
    fn release(&mut self) {
        let given = std::mem::take(&mut self.given);
        self.dismiss(given);
    }

    /// Moves on, for better or worse.
    fn dismiss(&mut self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.header = None;
        self.searched = HEADER_LEN;
        self.position = self
            .position
            .saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        self.start = self.start.saturating_add(bytes);
        if self.start >= self.buf.len() {
            self.buf.clear();
            self.start = 0;
        }
    }

    /// Takes in what is missing to `total` bytes, a length that was checked.
    fn fill(&mut self, total: usize, input: &mut &[u8]) {
        if self.start > 0 {
            self.buf.drain(..self.start);
            self.start = 0;
        }
        if self.buf.capacity() < total {
            // Exact, so that the bound on memory is the bound on frames.
            let most = match self.traffic {
                Traffic::Control => HEADER_LEN.saturating_add(MAX_CONTROL_BODY),
                Traffic::Uploads => total,
            };
            self.buf
                .reserve_exact(most.max(total).saturating_sub(self.buf.len()));
        }
        let missing = total.saturating_sub(self.buf.len());
        let (taken, rest) = input.split_at_checked(missing).unwrap_or((*input, &[]));
        self.buf.extend_from_slice(taken);
        *input = rest;
    }
}
