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
/// The kernel gives no pidfd.
pub(super) fn watch(
    host: Arc<Host>,
    vm: Uuid,
    generation: &Generation,
    process: ProcessId,
    mut over: watch::Receiver<bool>,
) -> std::io::Result<()> {
    let generation = generation.clone();
    let ended = open(process);
    let pidfd = match ended {
        Ok(pidfd) => pidfd,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            host.end_generation(vm, "its process is gone", None);
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    #[expect(
        deprecated,
        reason = "an OwnedFd is one open descriptor for as long as it lives, which is what its \
                  unsafe successor asks a caller to promise; unsafe has one home, in card/"
    )]
    let readable = AsyncFd::with_interest(pidfd, Interest::READABLE)?;
    tokio::spawn(async move {
        tokio::select! {
            ready = readable.readable() => {
                let still = host.state().registry.alive(vm, &generation).is_some();
                if ready.is_ok() && still {
                    host.end_generation(vm, "its process ended", None);
                }
            }
            _over = over.wait_for(|over| *over) => {}
        }
    });
    Ok(())
}

fn open(process: ProcessId) -> std::io::Result<OwnedFd> {
    let gone = || std::io::Error::from(std::io::ErrorKind::NotFound);
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
