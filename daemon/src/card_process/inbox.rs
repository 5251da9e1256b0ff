//! What the worker has been told and not yet done: a bounded queue, the one
//! connection that counts, and the wish to stop.
//!
//! Knows packets and connections by number. Must not know regions, engines or
//! sockets. All waits of the worker happen here, and each has a deadline or an
//! end of the connection to end it.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::ipc::{JobId, ToCard};

/// How many packets may wait. An honest `reconfd` has a job a region and a few answers.
pub(super) const BOUND: usize = 32;

/// Number of a connection in the life of this process; never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ConnectionId(u64);

/// One packet, understood.
#[derive(Debug)]
pub(super) struct Said {
    /// By whom.
    pub from: ConnectionId,
    /// What.
    pub message: ToCard,
    /// The descriptor beside it.
    pub beside: Option<OwnedFd>,
}

/// What the worker's loop meets next.
#[derive(Debug)]
pub(super) enum Event {
    /// A packet of the connection that counts.
    Said(Said),
    /// Another connection counts now, or none.
    Connection,
    /// The operator asked to read the files again.
    Reload,
    /// The time given is over.
    TimeUp,
    /// The process shall end.
    Stop,
}

/// What a job that waits for its consent hears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    /// `Commit` of this job, by the connection that offered it.
    Commit,
    /// It does not go on.
    Ended(GivenUp),
}

/// Why a running job does not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GivenUp {
    /// `Abort` of this job.
    Aborted,
    /// The connection that offered it is gone or was replaced.
    ConnectionEnded,
    /// Nothing came in time.
    Silence,
    /// The process shall end.
    Stopping,
}

/// The queue is full: its writer does not keep to the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Full;

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Said>,
    counts: Option<ConnectionId>,
    made: u64,
    connection_changed: bool,
    reload: bool,
    stop: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    state: Mutex<State>,
    changed: Condvar,
}

impl Inbox {
    /// An empty one, without a connection.
    #[must_use]
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// A new connection replaces the one before; what that one still had queued is dropped.
    pub(super) fn connected(&self) -> ConnectionId {
        let mut state = self.lock();
        state.made = state.made.saturating_add(1);
        let id = ConnectionId(state.made);
        state.counts = Some(id);
        state.connection_changed = true;
        state.queue.clear();
        self.changed.notify_all();
        id
    }

    /// A connection ended. Nothing happens if it was replaced before.
    pub(super) fn ended(&self, id: ConnectionId) {
        let mut state = self.lock();
        if state.counts == Some(id) {
            state.counts = None;
            state.connection_changed = true;
            state.queue.clear();
            self.changed.notify_all();
        }
    }

    /// Whether `id` is the connection that counts.
    pub(super) fn counts(&self, id: ConnectionId) -> bool {
        self.lock().counts == Some(id)
    }

    /// Adds a packet. One of a connection that no longer counts is dropped.
    ///
    /// # Errors
    /// [`Full`] at the bound.
    pub(super) fn push(&self, said: Said) -> Result<(), Full> {
        let mut state = self.lock();
        if state.counts != Some(said.from) {
            return Ok(());
        }
        if state.queue.len() >= BOUND {
            return Err(Full);
        }
        state.queue.push_back(said);
        self.changed.notify_all();
        Ok(())
    }

    /// The process shall end; every wait ends at once.
    pub(super) fn stop(&self) {
        self.lock().stop = true;
        self.changed.notify_all();
    }

    /// Whether the process shall end.
    pub(super) fn stopping(&self) -> bool {
        self.lock().stop
    }

    /// The files shall be read again.
    pub(super) fn reload(&self) {
        self.lock().reload = true;
        self.changed.notify_all();
    }

    /// The next event for the worker's loop; without `until` it waits for one as long as it takes.
    pub(super) fn next(&self, until: Option<Instant>) -> Event {
        let mut state = self.lock();
        loop {
            if state.stop {
                return Event::Stop;
            }
            if std::mem::take(&mut state.connection_changed) {
                return Event::Connection;
            }
            if std::mem::take(&mut state.reload) {
                return Event::Reload;
            }
            if let Some(said) = state.queue.pop_front() {
                return Event::Said(said);
            }
            state = match self.wait(state, until) {
                Ok(state) => state,
                Err(TimeUp) => return Event::TimeUp,
            };
        }
    }

    /// Waits for the consent to `job`. Packets about other jobs stay where they are.
    pub(super) fn consent(&self, job: JobId, from: ConnectionId, until: Instant) -> Heard {
        let mut state = self.lock();
        loop {
            if let Some(why) = over(&mut state, job, from) {
                return Heard::Ended(why);
            }
            if take(&mut state, &ToCard::Commit { job }) {
                return Heard::Commit;
            }
            state = match self.wait(state, Some(until)) {
                Ok(state) => state,
                Err(TimeUp) => return Heard::Ended(GivenUp::Silence),
            };
        }
    }

    /// Whether `job` was given up, without waiting: asked between two pieces of work.
    pub(super) fn given_up(&self, job: JobId, from: ConnectionId) -> Option<GivenUp> {
        over(&mut self.lock(), job, from)
    }

    /// Whether a consent to `job` is here already. Before "written" was told there can be none
    /// that was given with knowledge.
    pub(super) fn take_early_consent(&self, job: JobId) -> bool {
        take(&mut self.lock(), &ToCard::Commit { job })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves the queue whole: each change of it is one assignment.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(
        &self,
        state: MutexGuard<'a, State>,
        until: Option<Instant>,
    ) -> Result<MutexGuard<'a, State>, TimeUp> {
        let Some(until) = until else {
            return Ok(self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner));
        };
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(TimeUp);
        }
        let (state, _timed_out) = self
            .changed
            .wait_timeout(state, left)
            .unwrap_or_else(PoisonError::into_inner);
        Ok(state)
    }
}

struct TimeUp;

fn over(state: &mut State, job: JobId, from: ConnectionId) -> Option<GivenUp> {
    if state.stop {
        Some(GivenUp::Stopping)
    } else if state.counts != Some(from) {
        Some(GivenUp::ConnectionEnded)
    } else if take(state, &ToCard::Abort { job }) {
        Some(GivenUp::Aborted)
    } else {
        None
    }
}

/// Takes one packet that says exactly `message` out of the queue.
fn take(state: &mut State, message: &ToCard) -> bool {
    let at = state.queue.iter().position(|said| said.message == *message);
    at.and_then(|at| state.queue.remove(at)).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::time::Duration;

    const JOB: JobId = JobId([1; 16]);
    const OTHER: JobId = JobId([2; 16]);

    fn said(from: ConnectionId, message: ToCard) -> Said {
        Said {
            from,
            message,
            beside: None,
        }
    }

    fn within(time: Duration) -> Instant {
        Instant::now().checked_add(time).unwrap()
    }

    fn soon() -> Instant {
        within(Duration::from_millis(20))
    }

    fn late() -> Instant {
        within(Duration::from_secs(60))
    }

    #[test]
    fn consent_of_another_job_is_none_and_stays() {
        let inbox = Inbox::new();
        let from = inbox.connected();
        inbox
            .push(said(from, ToCard::Commit { job: OTHER }))
            .unwrap();
        assert_eq!(
            inbox.consent(JOB, from, soon()),
            Heard::Ended(GivenUp::Silence)
        );
        inbox.push(said(from, ToCard::Commit { job: JOB })).unwrap();
        assert_eq!(inbox.consent(JOB, from, soon()), Heard::Commit);
        assert!(matches!(inbox.next(Some(soon())), Event::Connection));
        assert!(matches!(
            inbox.next(Some(soon())),
            Event::Said(Said {
                message: ToCard::Commit { job: OTHER },
                ..
            })
        ));
    }

    #[test]
    fn d2_the_end_of_the_connection_ends_a_wait_at_once() {
        let inbox = Arc::new(Inbox::new());
        let from = inbox.connected();
        let waiting = {
            let inbox = Arc::clone(&inbox);
            std::thread::spawn(move || inbox.consent(JOB, from, late()))
        };
        inbox.ended(from);
        assert_eq!(
            waiting.join().unwrap(),
            Heard::Ended(GivenUp::ConnectionEnded)
        );
    }

    #[test]
    fn a_newer_connection_replaces_the_older_and_drops_what_it_said() {
        let inbox = Inbox::new();
        let old = inbox.connected();
        inbox.push(said(old, ToCard::Commit { job: JOB })).unwrap();
        let new = inbox.connected();
        assert_eq!(
            inbox.given_up(JOB, old),
            Some(GivenUp::ConnectionEnded),
            "its job is over"
        );
        assert_eq!(
            inbox.consent(JOB, new, soon()),
            Heard::Ended(GivenUp::Silence),
            "its consent is not the newer one's"
        );
        inbox.ended(old);
        assert!(inbox.counts(new));
        assert_eq!(
            inbox.push(said(old, ToCard::Hello)),
            Ok(()),
            "dropped, not queued"
        );
        assert!(matches!(inbox.next(Some(soon())), Event::Connection));
        assert!(matches!(inbox.next(Some(soon())), Event::TimeUp));
    }

    #[test]
    fn h6_the_queue_is_bounded() {
        let inbox = Inbox::new();
        let from = inbox.connected();
        for _packet in 0..BOUND {
            assert_eq!(inbox.push(said(from, ToCard::Hello)), Ok(()));
        }
        assert_eq!(inbox.push(said(from, ToCard::Hello)), Err(Full));
    }

    #[test]
    fn stop_ends_every_wait() {
        let inbox = Inbox::new();
        let from = inbox.connected();
        inbox.push(said(from, ToCard::Commit { job: JOB })).unwrap();
        inbox.stop();
        assert_eq!(
            inbox.consent(JOB, from, late()),
            Heard::Ended(GivenUp::Stopping)
        );
        assert!(matches!(inbox.next(None), Event::Stop));
    }
}
