//! The handle of the client's own task, which owns the stream and the session.
//!
//! Knows what may be asked of the task and how an answer comes back. Must not
//! know sessions: those are the task's ([`task`]).

mod task;

use std::time::Duration;

use protocol::message::{Event, Slot, Watch as WatchRequest};
use protocol::{Reply, Request};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::channel::Opener;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::watch::Watch;
use task::Task;

/// Requests that wait for their turn at most; who comes then waits to ask.
const ASKS_AT_MOST: usize = 32;

/// The handle of the task. It ends with its last handle.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    asks: mpsc::Sender<Ask>,
}

/// What the task can be asked, each with where the answer goes.
enum Ask {
    Slots(oneshot::Sender<Result<Vec<Slot>>>),
    Request(Request, oneshot::Sender<Result<Reply>>),
    Watch(
        WatchRequest,
        oneshot::Sender<Result<(Vec<Slot>, mpsc::Receiver<Event>)>>,
    ),
}

impl Link {
    /// Starts the task on the current runtime. It does nothing until asked.
    pub(crate) fn spawn(opener: Opener, config: Config) -> Self {
        let (asks, inbox) = mpsc::channel(ASKS_AT_MOST);
        drop(tokio::spawn(Task::new(opener, config).run(inbox)));
        Self { asks }
    }

    /// The slots that the host named when it opened the session; opens one if
    /// none is open.
    pub(crate) async fn slots(&self) -> Result<Vec<Slot>> {
        self.ask(Ask::Slots).await
    }

    /// Sends a request and waits for its reply.
    pub(crate) async fn request(&self, request: Request) -> Result<Reply> {
        self.ask(|answer| Ask::Request(request, answer)).await
    }

    /// Begins a watch.
    pub(crate) async fn watch(&self, request: WatchRequest) -> Result<Watch> {
        let (slots, events) = self.ask(|answer| Ask::Watch(request, answer)).await?;
        Ok(Watch::new(slots, events, self.clone()))
    }

    async fn ask<T>(&self, ask: impl FnOnce(oneshot::Sender<Result<T>>) -> Ask) -> Result<T> {
        let (answer, answered) = oneshot::channel();
        self.asks
            .send(ask(answer))
            .await
            .map_err(|_ended| Error::ShutDown)?;
        answered.await.map_err(|_ended| Error::ShutDown)?
    }
}

/// A reply of another kind than the request's.
pub(crate) fn unexpected(reply: &Reply) -> Error {
    Error::Protocol(format!("the reply is a {}", reply.kind()))
}

/// An instant from now on. A duration beyond the clock's range is as good as a
/// very long one.
pub(crate) fn later(from: Instant, after: Duration) -> Instant {
    const A_YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    from.checked_add(after)
        .or_else(|| from.checked_add(A_YEAR))
        .unwrap_or(from)
}
