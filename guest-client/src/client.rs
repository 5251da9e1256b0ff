//! The asynchronous client: one handle, one method an operation.
//!
//! Knows what may be repeated and what may not. Must not know streams or
//! frames: those belong to the client's own task ([`crate::link`]).

use std::time::Duration;

use protocol::message::{
    Cancel, Clear, Describe, ErrorReply, ImageEntry, JobInfo, JobKey, JobQuery, List, Load, Ping,
    Reset, Slot, SlotInfo, Stage, Watch as WatchRequest,
};
use protocol::status::Status;
use protocol::{Reply, Request};
use tokio::time::{Instant, sleep};

use crate::backoff::Backoff;
use crate::channel::{Duplex, Opener, Places};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::link::{Link, later, unexpected};
use crate::watch::Watch;

/// Pages of one list that are followed at most. The host says where the next
/// page is, and must not be able to keep the client turning for ever.
const PAGES_AT_MOST: usize = 1024;

/// A connection to the host. Cheap to clone; all clones share one session, in
/// which requests go one after the other and watches run beside them.
///
/// Where a session is lost (the host restarted, the channel broke), the next
/// request opens another. What may have been done already is never asked a
/// second time blindly: see [`Client::load`] and [`Client::reset`].
#[derive(Debug, Clone)]
pub struct Client {
    link: Link,
    config: Config,
}

impl Client {
    /// Finds the channel ([`Places::usual`]), opens it and a session.
    ///
    /// # Errors
    /// [`Error::NoChannel`], [`Error::ChannelInUse`], [`Error::Open`] where there
    /// is no way to the host; [`Error::HostSilent`] where the host does not answer.
    pub async fn connect(config: Config) -> Result<Self> {
        Self::connect_to(Places::usual(), config).await
    }

    /// Opens a channel among `places`, and a session.
    ///
    /// # Errors
    /// As [`Client::connect`].
    pub async fn connect_to(places: Places, config: Config) -> Result<Self> {
        Self::start(Opener::Places(places), config).await
    }

    /// Opens a session over a stream of the caller's own. When that stream
    /// ends, so does the client.
    ///
    /// # Errors
    /// As [`Client::connect`], and [`Error::Lost`] once the stream has ended.
    pub async fn over(stream: impl Duplex + 'static, config: Config) -> Result<Self> {
        Self::start(Opener::Once(Some(Box::new(stream))), config).await
    }

    async fn start(opener: Opener, config: Config) -> Result<Self> {
        let client = Self {
            link: Link::spawn(opener, config.clone()),
            config,
        };
        client.link.slots().await?;
        Ok(client)
    }

    /// What the host said when it opened the session: the slots this VM has.
    ///
    /// # Errors
    /// As [`Client::connect`], where the session has to be opened anew.
    pub async fn slots(&self) -> Result<Vec<Slot>> {
        self.link.slots().await
    }

    /// The images that may be loaded, by slot and name. Follows the pages.
    ///
    /// # Errors
    /// [`Error::Refused`], or that of a lost or silent host.
    pub async fn list(&self, slot: Option<Slot>) -> Result<Vec<ImageEntry>> {
        let mut entries = Vec::new();
        let mut cursor = 0;
        for _page in 0..PAGES_AT_MOST {
            let page = match self.look(Request::List(List { slot, cursor })).await? {
                Reply::List(page) => page,
                other => return Err(unexpected(&other)),
            };
            entries.extend(page.entries);
            match page.next {
                None => return Ok(entries),
                Some(next) if next > cursor => cursor = next,
                Some(_) => return Err(Error::Protocol("the list's pages go in a circle".into())),
            }
        }
        Err(Error::Protocol(format!(
            "the list has more than {PAGES_AT_MOST} pages"
        )))
    }

    /// What the slots hold.
    ///
    /// # Errors
    /// [`Error::Refused`], or that of a lost or silent host.
    pub async fn describe(&self, slot: Option<Slot>) -> Result<Vec<SlotInfo>> {
        match self.look(Request::Describe(Describe { slot })).await? {
            Reply::Describe(reply) => Ok(reply.slots),
            other => Err(unexpected(&other)),
        }
    }

    /// Asks for a load, and returns as soon as the host has accepted it;
    /// [`Client::wait`] waits for its end.
    ///
    /// Where it is not known whether the host got the request, the very same
    /// request is sent again with the same key: the host keeps the key before it
    /// answers, and the same key attaches to the same job. So a load that was
    /// accepted is never written twice.
    ///
    /// # Errors
    /// [`Error::Refused`], or that of a lost or silent host.
    pub async fn load(&self, load: Load) -> Result<JobInfo> {
        self.submit(Request::Load(load)).await
    }

    /// Asks for a slot to be emptied. Repeats as [`Client::load`] does.
    ///
    /// # Errors
    /// [`Error::Refused`], or that of a lost or silent host.
    pub async fn clear(&self, clear: Clear) -> Result<JobInfo> {
        self.submit(Request::Clear(clear)).await
    }

    /// Resets the function in a slot, without loading anything.
    ///
    /// A reset has no key, and a second one could hit work that began after the
    /// first. So it is never repeated: where the reply is lost, the error says
    /// that the outcome is unknown ([`Error::is_unsure`]).
    ///
    /// # Errors
    /// [`Error::Refused`], or that of a lost or silent host.
    pub async fn reset(&self, slot: Option<Slot>) -> Result<Slot> {
        match self.link.request(Request::Reset(Reset { slot })).await? {
            Reply::Reset(reply) => Ok(reply.slot),
            other => Err(unexpected(&other)),
        }
    }

    /// How a job is.
    ///
    /// # Errors
    /// [`Error::Refused`] with `NoSuchJob` for a key of nobody or of another VM.
    pub async fn job(&self, key: JobKey) -> Result<JobInfo> {
        as_job(key, self.look(Request::Job(JobQuery { key })).await?)
    }

    /// Cancels a job that still waits. One that runs already cannot be stopped.
    ///
    /// # Errors
    /// [`Error::Refused`] with `TooLate` or `NoSuchJob`.
    pub async fn cancel(&self, key: JobKey) -> Result<JobInfo> {
        as_job(key, self.look(Request::Cancel(Cancel { key })).await?)
    }

    /// Begins to watch one slot, or all. Requests may go on beside it.
    ///
    /// # Errors
    /// [`Error::Refused`], or that of a lost or silent host.
    pub async fn watch(&self, slot: Option<Slot>) -> Result<Watch> {
        self.link.watch(WatchRequest { slot }).await
    }

    /// Asks whether the host is there; the time until it answered.
    ///
    /// # Errors
    /// That of a lost or silent host.
    pub async fn ping(&self) -> Result<Duration> {
        let payload = u64::from_le_bytes(crate::random::bytes()?);
        let asked = Instant::now();
        match self.look(Request::Ping(Ping { payload })).await? {
            Reply::Ping(pong) if pong.payload == payload => Ok(asked.elapsed()),
            Reply::Ping(_) => Err(Error::Protocol("the pong is not of this ping".into())),
            other => Err(unexpected(&other)),
        }
    }

    /// Waits for a job to end. `progress` is called for every news of it, the
    /// last included. How the job ended is in [`JobInfo::result`]; a job that
    /// ended badly is an `Ok` here, for the wait succeeded.
    ///
    /// A lost session does not end the wait: it reconnects and finds the job by
    /// its key. The job itself is only ever looked at, never asked for again.
    ///
    /// # Errors
    /// [`Error::StillRunning`] after [`Config::wait_timeout`]; the job goes on.
    /// [`Error::Refused`] with `NoSuchJob` where the host does not know the job.
    pub async fn wait(&self, key: JobKey, mut progress: impl FnMut(&JobInfo)) -> Result<JobInfo> {
        let deadline = later(Instant::now(), self.config.wait_timeout);
        let mut pause = Backoff::new(self.config.poll_interval);
        let mut last: Option<JobInfo> = None;
        loop {
            // No bound on the look itself would let a silent host stretch the wait.
            match tokio::time::timeout_at(deadline, self.job(key)).await {
                Ok(Ok(info)) => {
                    if last.as_ref() != Some(&info) {
                        progress(&info);
                    }
                    if info.stage == Stage::Done {
                        return Ok(info);
                    }
                    last = Some(info);
                }
                Ok(Err(error)) if !may_pass(&error) => return Err(error),
                Ok(Err(_)) | Err(_) => {}
            }
            let now = Instant::now();
            if now >= deadline {
                let waited = self.config.wait_timeout;
                return Err(Error::StillRunning {
                    key,
                    waited,
                    last: last.map(Box::new),
                });
            }
            sleep(pause.next().min(deadline.saturating_duration_since(now))).await;
        }
    }

    /// Sends a request with a key until the host has certainly got it.
    async fn submit(&self, request: Request) -> Result<JobInfo> {
        let key = match &request {
            Request::Load(Load { key, .. }) | Request::Clear(Clear { key, .. }) => *key,
            _ => return Err(Error::Protocol("only loads and clears have a key".into())),
        };
        let patience = self
            .config
            .handshake_timeout
            .saturating_add(self.config.reply_timeout);
        let deadline = later(Instant::now(), patience.saturating_mul(2));
        let mut pause = Backoff::new(self.config.hello_interval);
        let mut unsure = None;
        loop {
            let error = match self.link.request(request.clone()).await {
                Ok(reply) => return as_job(key, reply),
                Err(error) => error,
            };
            if error.is_unsure() {
                unsure = Some(error);
            } else if unsure.is_none() || !error.is_unreachable() {
                return Err(error);
            }
            if Instant::now() >= deadline {
                return Err(unsure.unwrap_or(Error::ShutDown));
            }
            sleep(pause.next()).await;
        }
    }

    /// A request without effect: where the session broke under it, it is asked
    /// once more.
    async fn look(&self, request: Request) -> Result<Reply> {
        match self.link.request(request.clone()).await {
            Err(Error::Lost { .. }) => self.link.request(request).await,
            other => other,
        }
    }
}

/// Whether a failure to look at a job may pass while the wait goes on.
fn may_pass(error: &Error) -> bool {
    match error {
        Error::Refused(ErrorReply { status, .. }) => {
            matches!(status, Status::Rate | Status::Busy | Status::Unavailable)
        }
        other => other.is_unsure() || other.is_unreachable(),
    }
}

/// A job's state, if the reply is one and is about the job that was asked for.
fn as_job(key: JobKey, reply: Reply) -> Result<JobInfo> {
    match reply {
        Reply::Load(info) | Reply::Clear(info) | Reply::Job(info) | Reply::Cancel(info) => {
            if info.key == key {
                Ok(info)
            } else {
                Err(Error::Protocol("the reply is about another job".into()))
            }
        }
        other => Err(unexpected(&other)),
    }
}
