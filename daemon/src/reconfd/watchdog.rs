//! Ends a VM's generation when its process ends.
//!
//! Knows pidfds: the kernel's own handle, which a later process with the same
//! number cannot take over (I8).

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;
use uuid::Uuid;

use super::host::Host;
use super::identity::{Generation, ProcessId};

/// Watches the process until it ends or the generation is over for another reason.
///
/// # Errors
/// The runtime cannot watch the descriptor.
pub(super) fn watch(
    host: Arc<Host>,
    vm: Uuid,
    generation: Generation,
    process: OwnedFd,
    mut over: watch::Receiver<bool>,
) -> std::io::Result<()> {
    #[expect(
        deprecated,
        reason = "an OwnedFd is one open descriptor for as long as it lives, which is what its \
                  unsafe successor asks a caller to promise; unsafe has one home, in card/"
    )]
    let readable = AsyncFd::with_interest(process, Interest::READABLE)?;
    tokio::spawn(async move {
        let why = tokio::select! {
            ready = readable.readable() => ready.map_or_else(
                |error| format!("its process cannot be watched any more: {error}"),
                |_readable| "its process ended".to_owned(),
            ),
            _over = over.wait_for(|over| *over) => return,
        };
        // This generation, and no later one of the same VM; it waits for the disk.
        let end = move || host.end_generation(vm, Some(&generation), &why, None);
        let _ended = tokio::task::spawn_blocking(end).await;
    });
    Ok(())
}

/// A handle of the process, for [`watch()`].
///
/// # Errors
/// It is gone, or the kernel gives no handle.
pub(super) fn open(process: ProcessId) -> std::io::Result<OwnedFd> {
    let gone = || std::io::Error::new(std::io::ErrorKind::NotFound, "it is gone");
    let pid = i32::try_from(process.pid)
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(gone)?;
    let pidfd = pidfd_open(pid, PidfdFlags::NONBLOCK).or_else(|errno| match errno {
        rustix::io::Errno::INVAL => pidfd_open(pid, PidfdFlags::empty()),
        other => Err(other),
    });
    let pidfd = pidfd.map_err(|errno| {
        if errno == rustix::io::Errno::SRCH {
            gone()
        } else {
            errno.into()
        }
    })?;
    // Only now is it sure which process the handle is for.
    if process.is_alive() {
        Ok(pidfd)
    } else {
        Err(gone())
    }
}
