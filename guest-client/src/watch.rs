//! The events of one watch.
//!
//! Knows a queue. Must not know how events get into it ([`crate::link`]).

use protocol::message::{Event, Slot};
use tokio::sync::mpsc;

use crate::error::{Error, Result};
use crate::link::Link;

/// Events that wait for a slow reader at most. More are dropped, which the gap
/// in [`Event::number`] tells.
pub(crate) const QUEUED_AT_MOST: usize = 256;

/// A watch that runs. Dropping it ends it.
#[derive(Debug)]
pub struct Watch {
    slots: Vec<Slot>,
    events: mpsc::Receiver<Event>,
    /// Keeps the client's task alive where the watch outlives the client.
    _link: Link,
}

impl Watch {
    pub(crate) fn new(slots: Vec<Slot>, events: mpsc::Receiver<Event>, link: Link) -> Self {
        Self {
            slots,
            events,
            _link: link,
        }
    }

    /// The slots that are watched.
    #[must_use]
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// The next event. Waits as long as the session lives: what a watch waits
    /// for may come tomorrow. That the session lives is checked every
    /// [`Config::keepalive`](crate::Config::keepalive).
    ///
    /// # Errors
    /// [`Error::Lost`] once the session has ended; events may have been missed
    /// then. Describe the slots and watch anew.
    pub async fn next(&mut self) -> Result<Event> {
        self.events.recv().await.ok_or_else(|| Error::Lost {
            request: "watch",
            why: "the session ended".into(),
        })
    }
}
