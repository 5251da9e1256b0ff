//! One connection of one VM's channel: bytes in, requests answered, events out.
//!
//! Knows frames, the handshake, time limits and the outbox's bound. Must not
//! know who the VM is: it speaks to a [`Guest`], which the channel's binding
//! has chosen.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use protocol::frame::Frame;
use protocol::handshake::{Fresh, HostHandshake, HostStep, MINOR, Nonce, Session};
use protocol::header::Blame;
use protocol::kind::Kind;
use protocol::message::{ErrorReply, Event, EventKind, Ready, Slot, Watch, WatchReply};
use protocol::reply::Reply;
use protocol::request::Request;
use protocol::scanner::{PendingPart, Scanned, Scanner};
use protocol::status::{Detail, Status};
use tokio::net::UnixStream;
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;
use tracing::{debug, warn};

use super::abuse::Verdict;
use super::channel::End;

/// Answers that a guest has not read yet, in bytes, beyond what the socket holds (G12).
const OUTBOX_MAX: usize = 16 * 1024;
/// A header must be whole within this time (G2).
const HEADER_TIME: Duration = Duration::from_secs(5);
/// A body must be whole within this time (G2).
const BODY_TIME: Duration = Duration::from_secs(10);
/// Bytes read at once.
const CHUNK: usize = 8 * 1024;

/// Something that happened to a slot of the VM.
#[derive(Debug, Clone)]
pub struct Happened {
    /// The slot.
    pub slot: Slot,
    /// What.
    pub what: EventKind,
}

/// The VM that a session serves, as the session may know it.
pub trait Guest: Send + Sync + 'static {
    /// What a new session is told.
    fn ready(&self) -> Ready;
    /// Answers a request; never longer than a few seconds.
    fn answer(&self, request: Request) -> impl Future<Output = Reply> + Send;
    /// Which slots a watch covers, and where its events come from.
    ///
    /// # Errors
    /// The answer to give instead.
    fn watch(
        &self,
        watch: &Watch,
    ) -> Result<(WatchReply, broadcast::Receiver<Happened>), ErrorReply>;
    /// Broken framing: go on, or close?
    fn framing_error(&self) -> Verdict;
    /// A connection opened its first session (`true`), or that connection ended (`false`), by
    /// itself or because a newer one took its place.
    fn session(&self, open: bool);
}

/// Serves a connection until it ends or `over` turns true.
pub async fn run(
    guest: Arc<impl Guest>,
    stream: UnixStream,
    mut over: watch::Receiver<bool>,
) -> End {
    let mut session = Connection::new(guest, stream);
    tokio::select! {
        end = session.serve() => end,
        _ended = over.wait_for(|over| *over) => End::Over,
    }
}

/// What a watch of this session covers.
#[derive(Debug)]
struct Watching {
    sequence: u32,
    slots: Vec<Slot>,
    events: broadcast::Receiver<Happened>,
    number: u64,
}

struct Connection<G: Guest> {
    guest: Arc<G>,
    /// A session was opened, and the guest's side was told.
    opened: bool,
    stream: UnixStream,
    scanner: Scanner,
    handshake: HostHandshake,
    watching: Option<Watching>,
    outbox: VecDeque<u8>,
    /// Broken framing whose blame the next frame decides: a hello acquits, for then the bytes
    /// before it are what a dead process left behind.
    suspect: Option<Status>,
    /// Which part of which frame is awaited, and since when.
    partial_since: Option<(Partial, Instant)>,
}

/// A frame that has begun: its part, and where in the stream it stands.
type Partial = (PendingPart, u64);

/// The kernel's random numbers.
struct Random;

impl Fresh for Random {
    fn nonce(&mut self) -> Nonce {
        uuid::Uuid::new_v4().into_bytes()
    }

    fn session_id(&mut self) -> u64 {
        uuid::Uuid::new_v4().as_u64_pair().1
    }
}

/// What a frame asks for, once the scanner's borrow is over.
enum Todo {
    Send(Vec<u8>),
    Open(Session),
    Answer(Session, u32, Request),
    Refuse(u64, u32, ErrorReply),
    Error(Option<Status>),
    Nothing,
}

impl<G: Guest> Drop for Connection<G> {
    fn drop(&mut self) {
        if self.opened {
            self.guest.session(false);
        }
    }
}

impl<G: Guest> Connection<G> {
    fn new(guest: Arc<G>, stream: UnixStream) -> Self {
        Self {
            guest,
            opened: false,
            stream,
            scanner: Scanner::host(),
            handshake: HostHandshake::new(MINOR),
            watching: None,
            outbox: VecDeque::new(),
            suspect: None,
            partial_since: None,
        }
    }

    async fn serve(&mut self) -> End {
        let mut chunk = vec![0u8; CHUNK];
        loop {
            if self.outbox.len() > OUTBOX_MAX {
                return End::NotReading;
            }
            let partial_until = self.partial_since.map(|((part, _position), since)| {
                let limit = match part {
                    PendingPart::Header => HEADER_TIME,
                    PendingPart::Body => BODY_TIME,
                };
                since.checked_add(limit).unwrap_or(since)
            });
            tokio::select! {
                ready = self.stream.readable() => {
                    if ready.is_err() {
                        return End::Closed;
                    }
                    match self.stream.try_read(&mut chunk) {
                        Ok(0) => return End::Closed,
                        Ok(len) => if let Some(end) = self.take(chunk.get(..len).unwrap_or_default()).await {
                            return end;
                        },
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                        Err(_gone) => return End::Closed,
                    }
                }
                ready = self.stream.writable(), if !self.outbox.is_empty() => {
                    if ready.is_err() || self.flush().is_err() {
                        return End::Closed;
                    }
                }
                happened = next_event(&mut self.watching) => self.tell(happened),
                () = sleep_until(partial_until) => {
                    debug!("half a frame was given up");
                    self.scanner.abandon_partial();
                    self.partial_since = None;
                    let counted = self.handshake.session().is_some();
                    if let Some(end) = counted.then(|| self.framing_error(Some(Status::Protocol))).flatten() {
                        return end;
                    }
                    if let Some(end) = self.take(&[]).await {
                        return end;
                    }
                }
            }
        }
    }

    /// Takes bytes apart and answers what is in them.
    async fn take(&mut self, bytes: &[u8]) -> Option<End> {
        let mut input = bytes;
        loop {
            let mut convict = None;
            let todo = match self.scanner.next(&mut input) {
                None => break,
                Some(Scanned::Frame(frame)) => {
                    // A hello acquits what stands before it.
                    let hello = frame.header.kind == Kind::HELLO;
                    convict = self.suspect.take().filter(|_status| !hello);
                    todo_of(&mut self.handshake, &frame)
                }
                // Before a session a false start is what a dead process left behind; the budget
                // counts it. Within one it is abuse.
                Some(Scanned::Broken(error)) => {
                    debug!(%error, "broken framing");
                    // A hello in the middle of a body is a process that died and another that
                    // began: nobody's abuse.
                    let abuse = self.handshake.session().is_some() && error.blame() == Blame::Peer;
                    match abuse
                        .then(|| self.suspect.replace(error.status()))
                        .flatten()
                    {
                        Some(earlier) => Todo::Error(Some(earlier)),
                        None => Todo::Nothing,
                    }
                }
                Some(Scanned::Resynced { discarded }) => {
                    debug!(discarded, "found the place again");
                    Todo::Nothing
                }
            };
            if let Some(status) = convict
                && let Some(end) = self.framing_error(Some(status))
            {
                return Some(end);
            }
            if let Some(end) = self.act(todo).await {
                return Some(end);
            }
        }
        let discarded = self.scanner.take_discarded();
        if discarded > 0
            && self.handshake.on_discarded(discarded) == HostStep::Overrun
            && let Some(end) = self.framing_error(Some(Status::Protocol))
        {
            return Some(end);
        }
        let pending = self.scanner.pending();
        let pending = pending.map(|part| (part, self.scanner.position()));
        if self.partial_since.map(|(partial, _since)| partial) != pending {
            self.partial_since = pending.map(|partial| (partial, Instant::now()));
        }
        None
    }

    async fn act(&mut self, todo: Todo) -> Option<End> {
        match todo {
            Todo::Nothing => None,
            Todo::Send(bytes) => {
                self.send(&bytes);
                None
            }
            Todo::Error(status) => self.framing_error(status),
            Todo::Open(session) => {
                // What an earlier session of this connection asked for is over with it.
                self.watching = None;
                if !self.opened {
                    self.opened = true;
                    self.guest.session(true);
                }
                match protocol::frame::encode(Kind::READY, session.id.get(), 0, &self.guest.ready())
                {
                    Ok(bytes) => self.send(&bytes),
                    Err(error) => warn!(%error, "a ready that cannot be encoded"),
                }
                None
            }
            Todo::Refuse(session, sequence, reply) => {
                self.reply(session, sequence, &Reply::Error(reply));
                None
            }
            Todo::Answer(session, sequence, Request::Watch(watch)) => {
                let reply = match self.guest.watch(&watch) {
                    Ok((reply, events)) => {
                        self.watching = Some(Watching {
                            sequence,
                            slots: reply.slots.clone(),
                            events,
                            number: 0,
                        });
                        Reply::Watch(reply)
                    }
                    Err(error) => Reply::Error(error),
                };
                self.reply(session.id.get(), sequence, &reply);
                None
            }
            Todo::Answer(session, sequence, request) => {
                let reply = self.guest.answer(request).await;
                self.reply(session.id.get(), sequence, &reply);
                (self.outbox.len() > OUTBOX_MAX).then_some(End::NotReading)
            }
        }
    }

    /// Counts a protocol error and, within a session, tells the guest of it.
    fn framing_error(&mut self, told: Option<Status>) -> Option<End> {
        if let Some(status) = told.filter(|_status| self.handshake.session().is_some()) {
            self.reply(0, 0, &Reply::Error(ErrorReply::new(status, Detail::None)));
        }
        match self.guest.framing_error() {
            Verdict::Forgive => None,
            Verdict::Close(time) => Some(End::Penalty(time)),
        }
    }

    fn reply(&mut self, session: u64, sequence: u32, reply: &Reply) {
        let frame = reply.to_frame(session, sequence).or_else(|error| {
            // An answer that does not fit is a mistake of ours; the guest still gets one.
            warn!(%error, "an answer that cannot be encoded");
            Reply::Error(ErrorReply::new(Status::Failed, Detail::None)).to_frame(session, sequence)
        });
        match frame {
            Ok(bytes) => self.send(&bytes),
            Err(error) => warn!(%error, "not even an error can be encoded"),
        }
    }

    fn send(&mut self, bytes: &[u8]) {
        self.outbox.extend(bytes);
        // The usual case needs no second round through the loop; an error shows there.
        let _later = self.flush();
    }

    fn flush(&mut self) -> io::Result<()> {
        while !self.outbox.is_empty() {
            let (front, _back) = self.outbox.as_slices();
            match self.stream.try_write(front) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(len) => drop(self.outbox.drain(..len.min(self.outbox.len()))),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn tell(&mut self, happened: Happened) {
        let Some(session) = self.handshake.session() else {
            return;
        };
        let Some(watching) = &mut self.watching else {
            return;
        };
        let number = watching.number;
        watching.number = number.wrapping_add(1);
        let sequence = watching.sequence;
        // Progress is the first to go when the guest does not keep up; the gap in the numbers tells.
        if self.outbox.len() > OUTBOX_MAX / 2 && matches!(happened.what, EventKind::Progress(_)) {
            return;
        }
        let event = Event {
            number,
            slot: happened.slot,
            what: happened.what,
        };
        self.reply(session.id.get(), sequence, &Reply::Event(event));
    }
}

/// What a frame asks for, by the handshake's word.
fn todo_of(handshake: &mut HostHandshake, frame: &Frame<'_>) -> Todo {
    let header = frame.header;
    match handshake.on_frame(frame, &mut Random) {
        HostStep::Welcome(welcome) => {
            protocol::frame::encode(Kind::WELCOME, 0, header.sequence, &welcome)
                .map_or(Todo::Nothing, Todo::Send)
        }
        HostStep::Opened(session) => Todo::Open(session),
        HostStep::Request(session) => match Request::from_frame(frame) {
            Ok(request) => Todo::Answer(session, header.sequence, request),
            Err(error) => Todo::Refuse(session.id.get(), header.sequence, error.to_reply()),
        },
        HostStep::Stale(_why) => Todo::Refuse(
            header.session,
            header.sequence,
            ErrorReply::new(Status::Stale, Detail::None),
        ),
        HostStep::Discarded => Todo::Nothing,
        HostStep::Overrun => Todo::Error(Some(Status::Protocol)),
        // Never answered: a channel that echoes would talk to itself.
        HostStep::Misdirected => Todo::Error(None),
    }
}

/// The next event of the watch; never, where there is none.
async fn next_event(watching: &mut Option<Watching>) -> Happened {
    loop {
        let Some(watch) = watching else {
            return std::future::pending().await;
        };
        match watch.events.recv().await {
            Ok(happened) if watch.slots.contains(&happened.slot) => return happened,
            Ok(_other_slot) => {}
            Err(broadcast::error::RecvError::Lagged(missed)) => {
                watch.number = watch.number.wrapping_add(missed);
            }
            Err(broadcast::error::RecvError::Closed) => *watching = None,
        }
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
