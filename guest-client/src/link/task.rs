//! Sole owner of the stream and the session.
//!
//! Knows sessions, requests and replies: which reply belongs to which request,
//! and which events to which watch. Must not know what a request is for, nor
//! whether it may be repeated, except one thing: a request that the host
//! answered with `stale` was certainly not done.

use std::collections::HashMap;
use std::{io, result};

use protocol::message::{Event, Ping, Slot, Watch as WatchRequest};
use protocol::status::{Detail, Status};
use protocol::{GuestStep, Reply, ReplyError, Request};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::{Ask, later, unexpected};
use crate::channel::Opener;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::line::{Line, Session};
use crate::random;
use crate::watch::QUEUED_AT_MOST;

pub(super) struct Task {
    opener: Opener,
    config: Config,
    line: Option<Line>,
    session: Option<Session>,
    /// By the sequence number of the request that began it.
    watches: HashMap<u32, mpsc::Sender<Event>>,
    /// When the host was last heard of.
    heard: Instant,
}

/// What wakes the task.
enum Wake {
    Asked(Option<Ask>),
    /// A frame came, or the stream ended.
    Heard(io::Result<Incoming>),
    /// Somebody watches, and nothing was heard for a while.
    Silence,
}

impl Task {
    /// A task that has opened nothing yet.
    pub(super) fn new(opener: Opener, config: Config) -> Self {
        Self {
            opener,
            config,
            line: None,
            session: None,
            watches: HashMap::new(),
            heard: Instant::now(),
        }
    }

    /// Serves until the last handle is gone.
    pub(super) async fn run(mut self, mut inbox: mpsc::Receiver<Ask>) {
        loop {
            let watched = self.session.is_some() && !self.watches.is_empty();
            let silence = sleep_until(later(self.heard, self.config.keepalive));
            let open = self.line.as_mut().zip(self.session.as_mut());
            let wake = tokio::select! {
                ask = inbox.recv() => Wake::Asked(ask),
                heard = hear(open) => Wake::Heard(heard),
                () = silence, if watched => Wake::Silence,
            };
            match wake {
                Wake::Asked(None) => return,
                Wake::Asked(Some(ask)) => self.serve(ask).await,
                Wake::Heard(Ok(incoming)) => self.take_event(incoming),
                Wake::Heard(Err(_ended)) => self.hang_up(),
                Wake::Silence => self.keep_alive().await,
            }
        }
    }

    async fn serve(&mut self, ask: Ask) {
        // Who asked may have gone; then nobody misses the answer.
        match ask {
            Ask::Slots(answer) => {
                let slots = self
                    .session()
                    .await
                    .map(|session| session.ready.slots.clone());
                drop(answer.send(slots));
            }
            Ask::Request(_, answer) if answer.is_closed() => {}
            Ask::Request(request, answer) => {
                let reply = self.exchange(&request).await.map(|(reply, _)| reply);
                drop(answer.send(reply));
            }
            Ask::Watch(request, answer) => drop(answer.send(self.begin_watch(request).await)),
        }
    }

    async fn begin_watch(
        &mut self,
        request: WatchRequest,
    ) -> Result<(Vec<Slot>, mpsc::Receiver<Event>)> {
        let request = Request::Watch(request);
        match self.exchange(&request).await? {
            (Reply::Watch(reply), sequence) => {
                let (sender, events) = mpsc::channel(QUEUED_AT_MOST);
                self.watches.insert(sequence, sender);
                Ok((reply.slots, events))
            }
            (other, _) => Err(unexpected(&other)),
        }
    }

    /// Asks whether the session lives; if it does not, the watches learn it.
    async fn keep_alive(&mut self) {
        self.watches.retain(|_, events| !events.is_closed());
        if self.watches.is_empty() {
            return;
        }
        // The exchange ends the session itself where there is no answer; a
        // refusal is a sign of life too.
        drop(self.exchange(&Request::Ping(Ping { payload: 0 })).await);
    }

    /// Sends a request and waits for its reply; opens a session first, and
    /// another one where the host says that this one is of the past.
    async fn exchange(&mut self, request: &Request) -> Result<(Reply, u32)> {
        let answered = self.exchange_once(request).await?;
        if !is_stale(&answered.0) {
            return refused(answered);
        }
        self.end_session();
        refused(self.exchange_once(request).await?)
    }

    async fn exchange_once(&mut self, request: &Request) -> Result<(Reply, u32)> {
        let name = request.kind().name().unwrap_or("request");
        let session = self.session().await?;
        let id = session
            .handshake
            .session()
            .map_or(0, |session| session.id.get());
        let Some(sequence) = session.sequence.draw() else {
            self.end_session();
            return Err(lost(name, "the session's numbers are used up"));
        };
        let frame = request
            .to_frame(id, sequence)
            .map_err(|error| Error::Protocol(format!("the request does not fit: {error}")))?;
        let waited = self.config.reply_timeout;
        let deadline = later(Instant::now(), waited);
        match timeout_at(deadline, self.converse(&frame, sequence)).await {
            Ok(Ok(Ok(reply))) => Ok((reply, sequence)),
            Ok(Ok(Err(malformed))) => Err(Error::Protocol(malformed.to_string())),
            Ok(Err(broken)) => {
                self.hang_up();
                Err(lost(name, &broken.to_string()))
            }
            Err(_elapsed) => {
                // Nothing tells a guest that its host restarted. The session is
                // taken for lost; the stream may be well.
                self.end_session();
                Err(Error::NoReply {
                    request: name,
                    waited,
                })
            }
        }
    }

    /// Sends the frame and waits for the reply of this number. What else comes
    /// is an event of a watch, or of the past and dropped.
    async fn converse(
        &mut self,
        frame: &[u8],
        sequence: u32,
    ) -> io::Result<result::Result<Reply, ReplyError>> {
        match &mut self.line {
            Some(line) => line.send(frame).await?,
            None => return Err(io::ErrorKind::NotConnected.into()),
        }
        loop {
            let incoming = hear(self.line.as_mut().zip(self.session.as_mut())).await?;
            match incoming.reply {
                Ok(Reply::Event(_)) => self.take_event(incoming),
                reply if incoming.sequence == sequence => {
                    self.heard = Instant::now();
                    return Ok(reply);
                }
                Ok(_) | Err(_) => self.heard = Instant::now(),
            }
        }
    }

    /// Gives an event to its watch. A slow watcher loses events rather than
    /// stopping everybody; the numbers in them tell.
    fn take_event(&mut self, incoming: Incoming) {
        self.heard = Instant::now();
        let Ok(Reply::Event(event)) = incoming.reply else {
            return;
        };
        let Some(watch) = self.watches.get(&incoming.sequence) else {
            return;
        };
        if let Err(mpsc::error::TrySendError::Closed(_)) = watch.try_send(event) {
            self.watches.remove(&incoming.sequence);
        }
    }

    /// The open session, or a new one.
    async fn session(&mut self) -> Result<&mut Session> {
        if self.session.is_none() {
            let opened = self.open_session().await?;
            self.heard = Instant::now();
            self.session = Some(opened);
        }
        self.session.as_mut().ok_or(Error::ShutDown)
    }

    async fn open_session(&mut self) -> Result<Session> {
        let waited = self.config.handshake_timeout;
        let deadline = later(Instant::now(), waited);
        loop {
            let line = match &mut self.line {
                Some(line) => line,
                none => none.insert(Line::new(self.opener.open().await?)),
            };
            let opening = line.open_session(random::bytes()?, self.config.hello_interval);
            match timeout_at(deadline, opening).await {
                Ok(Ok(session)) => return Ok(session),
                Ok(Err(error)) => {
                    // The host's side of the channel may be about to come back.
                    self.hang_up();
                    let pause = self.config.hello_interval;
                    if !self.opener.can_reopen() || later(Instant::now(), pause) >= deadline {
                        return Err(lost("hello", &error.to_string()));
                    }
                    sleep(pause).await;
                }
                Err(_elapsed) => {
                    // A frame may be half sent: where there can be another
                    // stream, the next attempt begins with a clean one.
                    if self.opener.can_reopen() {
                        self.hang_up();
                    }
                    return Err(Error::HostSilent { waited });
                }
            }
        }
    }

    /// The session is of the past. Its watches end.
    fn end_session(&mut self) {
        self.session = None;
        self.watches.clear();
    }

    /// The stream is of the past, and the session with it.
    fn hang_up(&mut self) {
        self.end_session();
        self.line = None;
    }
}

/// A frame of the session.
struct Incoming {
    sequence: u32,
    reply: result::Result<Reply, ReplyError>,
}

/// The next frame of the session; waits for ever where there is none. Frames of
/// other sessions and processes are dropped.
async fn hear(open: Option<(&mut Line, &mut Session)>) -> io::Result<Incoming> {
    let Some((line, session)) = open else {
        return std::future::pending().await;
    };
    let handshake = &mut session.handshake;
    line.next(|frame| match handshake.on_frame(frame) {
        GuestStep::Reply(_) => Some(Incoming {
            sequence: frame.header.sequence,
            reply: Reply::from_frame(frame),
        }),
        GuestStep::Confirm(_) | GuestStep::Opened(..) | GuestStep::Discarded => None,
    })
    .await
}

/// The host does not know this session (any more). With a detail it would be
/// about something else, such as a job key.
fn is_stale(reply: &Reply) -> bool {
    matches!(reply, Reply::Error(error)
        if error.status == Status::Stale && error.detail == Detail::None)
}

fn refused((reply, sequence): (Reply, u32)) -> Result<(Reply, u32)> {
    match reply {
        Reply::Error(error) => Err(Error::Refused(error)),
        reply => Ok((reply, sequence)),
    }
}

fn lost(request: &'static str, why: &str) -> Error {
    Error::Lost {
        request,
        why: why.to_owned(),
    }
}
