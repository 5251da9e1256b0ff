//! What this process says to `reconfd`: to the one connection that counts, or
//! to nobody.
//!
//! Knows the socket and its deadline. Must not know what the words mean. A
//! peer that does not read loses its connection, for the worker must not wait
//! for it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::net::Shutdown;
use rustix::net::sockopt::{Timeout, set_socket_timeout};

use super::inbox::ConnectionId;
use crate::ipc::socket::Socket;
use crate::ipc::{FromCard, IpcError, Packet};

/// How long one packet may wait for room in the socket.
const SEND_WAIT: Duration = Duration::from_millis(500);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Outlet {
    now: Mutex<Option<(ConnectionId, Arc<Socket>)>>,
}

impl Outlet {
    /// From now on `socket` is spoken to; the one before is closed.
    ///
    /// # Errors
    /// The system's; then nobody is spoken to.
    pub(super) fn replace(&self, id: ConnectionId, socket: Arc<Socket>) -> Result<(), IpcError> {
        let bounded = set_socket_timeout(&*socket, Timeout::Send, Some(SEND_WAIT));
        let mut now = self.lock();
        if let Some((_, old)) = now.take() {
            hang_up(&old);
        }
        bounded.map_err(|errno| IpcError::Io(errno.into()))?;
        *now = Some((id, socket));
        Ok(())
    }

    /// Says it, if `to` is still the connection that counts.
    pub(super) fn say(&self, to: ConnectionId, message: &FromCard) {
        let socket = match &*self.lock() {
            Some((id, socket)) if *id == to => Arc::clone(socket),
            _ => return,
        };
        if let Err(error) = socket.send(&Packet::from(message).to_bytes(), None) {
            tracing::warn!(%error, "reconfd does not take a packet; its connection is closed");
            self.close(to);
        }
    }

    /// Closes the connection `id`, if it still is the one spoken to. Its reader sees the end.
    pub(super) fn close(&self, id: ConnectionId) {
        let mut now = self.lock();
        if now.as_ref().is_some_and(|(at, _)| *at == id)
            && let Some((_, socket)) = now.take()
        {
            hang_up(&socket);
        }
    }

    /// Closes whatever connection is spoken to.
    pub(super) fn close_all(&self) {
        let open = self.lock().take();
        if let Some((_, socket)) = open {
            hang_up(&socket);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<(ConnectionId, Arc<Socket>)>> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn hang_up(socket: &Socket) {
    // The other end may be gone already, which is what is wanted.
    let _already_gone = rustix::net::shutdown(socket, Shutdown::Both);
}
