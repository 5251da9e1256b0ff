//! A registration comes to life: its channel, its desk, and the watch over its
//! process.
//!
//! Knows the parts by name. Must not know who registered it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;

use super::channel::{self, Place};
use super::desk::Desk;
use super::host::Host;
use super::listening::{ListenError, Listening};
use super::pipeline::Who;
use super::registry::Registration;
use super::watchdog;
use crate::admin::ChannelSpec;

/// Why a registration does not come to life as it should.
#[derive(Debug, Error)]
pub(super) enum NotAlive {
    /// Its process is gone.
    #[error("its process {0} is gone")]
    Gone(u32),
    /// Its process may end unseen, and its regions would stay with a dead VM.
    #[error("its process cannot be watched: {0}")]
    Unwatched(io::Error),
    /// It was ended at the same time.
    #[error("it was detached meanwhile")]
    Detached,
    /// It cannot ask for anything.
    #[error(transparent)]
    NoChannel(#[from] ListenError),
}

/// Watches the process of a registration that was taken in, and opens its channel. The watch
/// comes first: without a channel a VM gets nothing new, without a watch it never ends.
///
/// # Errors
/// See [`NotAlive`]. What was begun is then the caller's to end.
pub(super) fn enliven(host: &Arc<Host>, registration: &Registration) -> Result<(), NotAlive> {
    let process = registration.process;
    let handle = process.map(watchdog::open).transpose().map_err(|error| {
        let gone = error.kind() == io::ErrorKind::NotFound;
        match process.filter(|_process| gone) {
            Some(process) => NotAlive::Gone(process.pid),
            None => NotAlive::Unwatched(error),
        }
    })?;
    let over = host.enliven(registration).ok_or(NotAlive::Detached)?;
    if let Some(handle) = handle {
        let (vm, generation) = (registration.vm, registration.generation.clone());
        watchdog::watch(Arc::clone(host), vm, generation, handle, over.clone())
            .map_err(NotAlive::Unwatched)?;
    }
    let place = match &registration.channel {
        ChannelSpec::Connect { path } => Place::Connect(PathBuf::from(path)),
        ChannelSpec::Listen { path } => {
            let path = path
                .as_ref()
                .map_or_else(|| host.layout.vm_channel(registration.vm), PathBuf::from);
            Place::Listen(Listening::at(&path)?)
        }
    };
    let who = Who {
        vm: registration.vm,
        generation: registration.generation.clone(),
        tenant: registration.tenant.clone(),
        tag: registration.tag(),
    };
    let desk = Desk::new(Arc::clone(host), who);
    tokio::spawn(channel::run(place, process, desk, over));
    Ok(())
}
