//! The connection to each card's process, and whose turn it is there.
//!
//! Knows packets, deadlines and the queue. Must not decide anything: reports
//! are handed on, and each job drives its own conversation.

use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use thiserror::Error;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tracing::{info, warn};

use super::turns::{QueueFull, Ticket, Turns};
use crate::ipc::socket::{AsyncSocket, Socket};
use crate::ipc::{FromCard, IpcError, JobId, Packet, RegionIndex, RegionReport, ToCard};

/// Answers of one job that may wait for its task.
const ROUTE_BOUND: usize = 256;
/// The first wait before another attempt to connect; doubles up to [`RETRY_MAX`].
const RETRY_MIN: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(2);
/// A packet must leave within this time: the card's process reads at once or is stuck.
const SEND_DEADLINE: Duration = Duration::from_secs(10);

/// Why a conversation ended early.
#[derive(Debug, Error)]
pub enum CardError {
    /// The card's process is not connected.
    #[error("the card's process is not connected")]
    NotConnected,
    /// The connection ended in the middle.
    #[error("the card's process went away in the middle")]
    Lost,
    /// Nothing came in time.
    #[error("the card's process said nothing for {0:?}")]
    Silent(Duration),
    /// Too many jobs wait for this card.
    #[error("the card's queue is full")]
    QueueFull,
    /// The socket failed.
    #[error(transparent)]
    Ipc(#[from] IpcError),
}

/// What the link tells its host.
pub trait CardEvents: Send + Sync {
    /// A region's state came.
    fn region(&self, card: usize, report: RegionReport);
    /// The process went away.
    fn lost(&self, card: usize);
}

/// One card.
#[derive(Debug)]
pub struct CardLink {
    /// Which card, in the order of host.toml.
    pub card: usize,
    socket_path: PathBuf,
    socket: Mutex<Option<Arc<AsyncSocket>>>,
    routes: Mutex<HashMap<JobId, mpsc::Sender<FromCard>>>,
    turns: Mutex<Queue>,
}

#[derive(Debug)]
struct Queue {
    turns: Turns<RegionIndex>,
    wake: HashMap<Ticket, oneshot::Sender<()>>,
}

/// The card is this job's until it is dropped.
#[derive(Debug)]
pub struct Turn {
    link: Arc<CardLink>,
    ticket: Ticket,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.link.end_turn(self.ticket);
    }
}

/// The packets of one job.
#[derive(Debug)]
pub struct Conversation {
    link: Arc<CardLink>,
    socket: Arc<AsyncSocket>,
    job: JobId,
    answers: mpsc::Receiver<FromCard>,
}

impl Drop for Conversation {
    fn drop(&mut self) {
        lock(&self.link.routes).remove(&self.job);
    }
}

impl Conversation {
    /// Sends a packet of this job.
    ///
    /// # Errors
    /// [`CardError`]; the card's process then ends the job by itself.
    pub async fn send(
        &self,
        message: &ToCard,
        beside: Option<BorrowedFd<'_>>,
    ) -> Result<(), CardError> {
        let packet = Packet::from(message).to_bytes();
        timeout(SEND_DEADLINE, self.socket.send(&packet, beside))
            .await
            .map_err(|_elapsed| CardError::Silent(SEND_DEADLINE))??;
        Ok(())
    }

    /// The next answer.
    ///
    /// # Errors
    /// [`CardError::Silent`] after `within`; [`CardError::Lost`] if the process is gone.
    pub async fn next(&mut self, within: Duration) -> Result<FromCard, CardError> {
        timeout(within, self.answers.recv())
            .await
            .map_err(|_elapsed| CardError::Silent(within))?
            .ok_or(CardError::Lost)
    }
}

impl CardLink {
    /// A link that is not connected yet; `bound` jobs may wait for a turn.
    #[must_use]
    pub fn new(card: usize, socket_path: PathBuf, bound: usize) -> Arc<Self> {
        Arc::new(Self {
            card,
            socket_path,
            socket: Mutex::new(None),
            routes: Mutex::new(HashMap::new()),
            turns: Mutex::new(Queue {
                turns: Turns::new(bound),
                wake: HashMap::new(),
            }),
        })
    }

    /// Whether the process is connected.
    #[must_use]
    pub fn connected(&self) -> bool {
        lock(&self.socket).is_some()
    }

    /// How many jobs wait for a turn.
    #[must_use]
    pub fn queued(&self) -> usize {
        lock(&self.turns).turns.len()
    }

    /// Waits for a turn at this card. Dropping the future leaves the queue.
    ///
    /// # Errors
    /// [`CardError::QueueFull`].
    pub async fn turn(self: &Arc<Self>, region: RegionIndex) -> Result<Turn, CardError> {
        let (woken, turn) = {
            let mut queue = lock(&self.turns);
            let ticket = queue
                .turns
                .join(region)
                .map_err(|QueueFull| CardError::QueueFull)?;
            let (wake, woken) = oneshot::channel();
            queue.wake.insert(ticket, wake);
            // From here on dropping `turn` leaves the queue, whether or not the turn came.
            (
                woken,
                Turn {
                    link: Arc::clone(self),
                    ticket,
                },
            )
        };
        self.wake_next();
        // The sender lives in the queue until it is used or this turn is dropped.
        woken.await.map_err(|_gone| CardError::Lost)?;
        Ok(turn)
    }

    fn wake_next(&self) {
        let mut queue = lock(&self.turns);
        while let Some(ticket) = queue.turns.grant() {
            if queue
                .wake
                .remove(&ticket)
                .is_some_and(|wake| wake.send(()).is_ok())
            {
                return;
            }
            // Whoever waited has gone.
            queue.turns.leave(ticket);
        }
    }

    fn end_turn(&self, ticket: Ticket) {
        {
            let mut queue = lock(&self.turns);
            queue.wake.remove(&ticket);
            queue.turns.leave(ticket);
        }
        self.wake_next();
    }

    /// Opens the conversation of a job.
    ///
    /// # Errors
    /// [`CardError::NotConnected`].
    pub fn converse(self: &Arc<Self>, job: JobId) -> Result<Conversation, CardError> {
        let (sender, answers) = mpsc::channel(ROUTE_BOUND);
        // Both locks, in this order: a route never outlives its connection.
        let connected = lock(&self.socket);
        let socket = connected.clone().ok_or(CardError::NotConnected)?;
        lock(&self.routes).insert(job, sender);
        drop(connected);
        Ok(Conversation {
            link: Arc::clone(self),
            socket,
            job,
            answers,
        })
    }

    /// Connects, and connects again, for ever. `spawn` is called when nobody listens.
    pub async fn run(self: Arc<Self>, events: Arc<dyn CardEvents>, mut spawn: impl FnMut() + Send) {
        let mut wait = RETRY_MIN;
        loop {
            match Socket::connect(&self.socket_path).and_then(AsyncSocket::new) {
                Ok(socket) => {
                    let began = Instant::now();
                    let result = self.serve(Arc::new(socket), events.as_ref()).await;
                    self.disconnected();
                    events.lost(self.card);
                    if let Err(error) = result {
                        warn!(card = self.card, %error, "the card's process is gone");
                    }
                    // A process that takes us and ends at once is not asked twenty times a second.
                    if began.elapsed() > RETRY_MAX {
                        wait = RETRY_MIN;
                    }
                }
                Err(_nobody) => spawn(),
            }
            tokio::time::sleep(wait).await;
            wait = wait.saturating_mul(2).min(RETRY_MAX);
        }
    }

    fn disconnected(&self) {
        let mut connected = lock(&self.socket);
        *connected = None;
        lock(&self.routes).clear();
    }

    async fn serve(
        &self,
        socket: Arc<AsyncSocket>,
        events: &dyn CardEvents,
    ) -> Result<(), CardError> {
        socket
            .send(&Packet::from(&ToCard::Hello).to_bytes(), None)
            .await?;
        info!(card = self.card, "connected to the card's process");
        *lock(&self.socket) = Some(Arc::clone(&socket));
        loop {
            let (bytes, beside) = socket.receive().await?;
            if beside.is_some() {
                return Err(IpcError::Descriptors { got: 1, want: 0 }.into());
            }
            let message = FromCard::try_from(&Packet::from_bytes(&bytes)?)?;
            let job = match &message {
                FromCard::Region(report) => {
                    events.region(self.card, report.clone());
                    continue;
                }
                FromCard::Progress { job, .. } | FromCard::Written { job, .. } => *job,
                FromCard::Done(end) => end.job,
            };
            let route = lock(&self.routes).get(&job).cloned();
            let Some(route) = route else { continue };
            // Progress may be lost where its task is slow; what ends a job may not.
            let progress = matches!(message, FromCard::Progress { .. });
            if route.try_send(message).is_err() && !progress {
                warn!(
                    card = self.card,
                    job = job.to_hex(),
                    "a job does not take its answers"
                );
                lock(&self.routes).remove(&job);
            }
        }
    }
}

/// A lock is never held while something can panic; if it was all the same, its data is whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn turns_come_one_by_one_and_dropped_waiters_leave() {
        let link = CardLink::new(0, PathBuf::from("/nowhere"), 2);
        let first = link.turn(RegionIndex(0)).await.unwrap();
        let waiting = tokio::spawn({
            let link = Arc::clone(&link);
            async move { link.turn(RegionIndex(1)).await.map(drop) }
        });
        tokio::task::yield_now().await;
        assert_eq!(link.queued(), 1);
        waiting.abort();
        assert!(waiting.await.is_err());
        assert_eq!(link.queued(), 0);
        let second = tokio::spawn({
            let link = Arc::clone(&link);
            async move { link.turn(RegionIndex(1)).await.map(drop) }
        });
        tokio::task::yield_now().await;
        drop(first);
        second.await.unwrap().unwrap();
        assert!(link.turn(RegionIndex(0)).await.is_ok());
    }

    #[tokio::test]
    async fn the_queue_is_bounded() {
        let link = CardLink::new(0, PathBuf::from("/nowhere"), 1);
        let _first = link.turn(RegionIndex(0)).await.unwrap();
        let waiting = tokio::spawn({
            let link = Arc::clone(&link);
            async move { link.turn(RegionIndex(1)).await.map(drop) }
        });
        tokio::task::yield_now().await;
        assert!(matches!(
            link.turn(RegionIndex(1)).await,
            Err(CardError::QueueFull)
        ));
        waiting.abort();
    }

    #[tokio::test]
    async fn no_conversation_without_a_connection() {
        let link = CardLink::new(0, PathBuf::from("/nowhere"), 1);
        assert!(matches!(
            link.converse(JobId([0; 16])),
            Err(CardError::NotConnected)
        ));
    }
}
