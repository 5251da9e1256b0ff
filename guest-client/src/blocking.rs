//! The same client for programs without an asynchronous runtime.
//!
//! Knows [`crate::Client`] and a runtime of its own. Adds nothing but blocking.
//! Not to be called from within an asynchronous task: tokio refuses to block
//! there.

use std::time::Duration;

use protocol::message::{Clear, Event, ImageEntry, JobInfo, JobKey, Load, Slot, SlotInfo};
use tokio::runtime::{Builder, Runtime};

use crate::channel::Places;
use crate::config::Config;
use crate::error::{Error, Result};

/// A connection to the host. Every method blocks until its end or its deadline.
#[derive(Debug)]
pub struct Client {
    // The order matters: the client's task lives in the runtime.
    inner: crate::Client,
    runtime: Runtime,
}

impl Client {
    /// As [`crate::Client::connect`].
    ///
    /// # Errors
    /// As there.
    pub fn connect(config: Config) -> Result<Self> {
        Self::connect_to(Places::usual(), config)
    }

    /// As [`crate::Client::connect_to`].
    ///
    /// # Errors
    /// As there, and [`Error::Runtime`].
    pub fn connect_to(places: Places, config: Config) -> Result<Self> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(Error::Runtime)?;
        let inner = runtime.block_on(crate::Client::connect_to(places, config))?;
        Ok(Self { inner, runtime })
    }

    /// As [`crate::Client::slots`].
    ///
    /// # Errors
    /// As there.
    pub fn slots(&self) -> Result<Vec<Slot>> {
        self.runtime.block_on(self.inner.slots())
    }

    /// As [`crate::Client::list`].
    ///
    /// # Errors
    /// As there.
    pub fn list(&self, slot: Option<Slot>) -> Result<Vec<ImageEntry>> {
        self.runtime.block_on(self.inner.list(slot))
    }

    /// As [`crate::Client::describe`].
    ///
    /// # Errors
    /// As there.
    pub fn describe(&self, slot: Option<Slot>) -> Result<Vec<SlotInfo>> {
        self.runtime.block_on(self.inner.describe(slot))
    }

    /// As [`crate::Client::load`].
    ///
    /// # Errors
    /// As there.
    pub fn load(&self, load: Load) -> Result<JobInfo> {
        self.runtime.block_on(self.inner.load(load))
    }

    /// As [`crate::Client::clear`].
    ///
    /// # Errors
    /// As there.
    pub fn clear(&self, clear: Clear) -> Result<JobInfo> {
        self.runtime.block_on(self.inner.clear(clear))
    }

    /// As [`crate::Client::reset`].
    ///
    /// # Errors
    /// As there.
    pub fn reset(&self, slot: Option<Slot>) -> Result<Slot> {
        self.runtime.block_on(self.inner.reset(slot))
    }

    /// As [`crate::Client::job`].
    ///
    /// # Errors
    /// As there.
    pub fn job(&self, key: JobKey) -> Result<JobInfo> {
        self.runtime.block_on(self.inner.job(key))
    }

    /// As [`crate::Client::cancel`].
    ///
    /// # Errors
    /// As there.
    pub fn cancel(&self, key: JobKey) -> Result<JobInfo> {
        self.runtime.block_on(self.inner.cancel(key))
    }

    /// As [`crate::Client::wait`].
    ///
    /// # Errors
    /// As there.
    pub fn wait(&self, key: JobKey, progress: impl FnMut(&JobInfo)) -> Result<JobInfo> {
        self.runtime.block_on(self.inner.wait(key, progress))
    }

    /// As [`crate::Client::ping`].
    ///
    /// # Errors
    /// As there.
    pub fn ping(&self) -> Result<Duration> {
        self.runtime.block_on(self.inner.ping())
    }

    /// As [`crate::Client::watch`]. The session is kept alive only while one of
    /// the client's methods runs.
    ///
    /// # Errors
    /// As there.
    pub fn watch(&self, slot: Option<Slot>) -> Result<Watch<'_>> {
        let inner = self.runtime.block_on(self.inner.watch(slot))?;
        Ok(Watch {
            inner,
            runtime: &self.runtime,
        })
    }
}

/// A watch that runs.
#[derive(Debug)]
pub struct Watch<'a> {
    inner: crate::Watch,
    runtime: &'a Runtime,
}

impl Watch<'_> {
    /// The next event, if one comes within `patience`.
    ///
    /// # Errors
    /// As [`crate::Watch::next`].
    pub fn next(&mut self, patience: Duration) -> Result<Option<Event>> {
        self.runtime.block_on(async {
            match tokio::time::timeout(patience, self.inner.next()).await {
                Ok(event) => event.map(Some),
                Err(_elapsed) => Ok(None),
            }
        })
    }
}
