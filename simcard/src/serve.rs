//! Puts a card on sockets: one for each PCI function, one for control. A
//! thread each; what one client does wrong ends its own connection only.

use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use thiserror::Error;
use tracing::{debug, error, info, warn};

use crate::card::{Card, PciFunction, Space};
use crate::config::REGIONS;
use crate::control;
use crate::pci::CONFIG_SPACE;
use crate::regions::RegionId;
use crate::vfio_user::connection::{self, Device, Region};

/// Control clients served at once.
const MAX_CONTROL_CLIENTS: usize = 16;
/// How often a quiet control client's thread looks whether it should stop.
const TICK: Duration = Duration::from_millis(200);
/// An answer that is not taken within this time ends the connection.
const PATIENCE: Duration = Duration::from_secs(5);
/// After an accept that failed (descriptors used up, say).
const PAUSE: Duration = Duration::from_millis(100);

/// Where a card's sockets lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sockets {
    /// The management function, vfio-user.
    pub management: PathBuf,
    /// The user functions by region, vfio-user.
    pub user: [PathBuf; REGIONS],
    /// Control, one JSON object a line.
    pub control: PathBuf,
}

impl Sockets {
    /// `DIR/NAME.sock`, `DIR/NAME-vf0.sock`, `DIR/NAME-vf1.sock`, `DIR/NAME.ctl`.
    #[must_use]
    pub fn in_dir(dir: &Path, name: &str) -> Self {
        Self {
            management: dir.join(format!("{name}.sock")),
            user: [0, 1].map(|number: u8| dir.join(format!("{name}-vf{number}.sock"))),
            control: dir.join(format!("{name}.ctl")),
        }
    }

    /// All paths.
    pub fn iter(&self) -> impl Iterator<Item = &Path> {
        [&self.management]
            .into_iter()
            .chain(&self.user)
            .chain([&self.control])
            .map(PathBuf::as_path)
    }
}

/// Why a card cannot be served.
#[derive(Debug, Error)]
pub enum ServeError {
    /// Something that is not a socket lies where a socket should.
    #[error("{0}: exists and is not a socket")]
    NotASocket(PathBuf),
    /// Another process listens there.
    #[error("{0}: another process listens here")]
    InUse(PathBuf),
    /// The system said no.
    #[error("{path}: {source}")]
    Socket {
        /// Which socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No thread could be had.
    #[error("starting a thread: {0}")]
    Thread(#[source] io::Error),
}

/// A card that is being served. Dropping it stops it.
#[derive(Debug)]
pub struct Handle {
    shared: Arc<Shared>,
    sockets: Sockets,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    card: Mutex<Card>,
    stop: AtomicBool,
}

impl Shared {
    /// A panic in one thread (a mistake of ours) leaves the card as it is.
    fn card(&self) -> MutexGuard<'_, Card> {
        self.card.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stopping(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }
}

/// Serves a card. When this returns, all sockets listen.
///
/// # Errors
/// A socket's place is taken, or the system refuses.
pub fn serve(card: Card, sockets: Sockets) -> Result<Handle, ServeError> {
    let shared = Arc::new(Shared {
        card: Mutex::new(card),
        stop: AtomicBool::new(false),
    });
    let functions = [PciFunction::Management]
        .into_iter()
        .chain(RegionId::ALL.map(PciFunction::User))
        .zip([&sockets.management].into_iter().chain(&sockets.user));
    let mut listeners = Vec::new();
    for (function, path) in functions {
        listeners.push((function, listen(path)?));
    }
    let control = listen(&sockets.control)?;

    let mut handle = Handle {
        shared,
        sockets,
        threads: Vec::new(),
    };
    for (function, listener) in listeners {
        let shared = Arc::clone(&handle.shared);
        handle.spawn("function", move || {
            serve_function(&listener, function, &shared);
        })?;
    }
    let shared = Arc::clone(&handle.shared);
    handle.spawn("control", move || serve_control(&control, &shared))?;
    Ok(handle)
}

impl Handle {
    /// The card itself, past all sockets. Nothing is served while this is held.
    pub fn card(&self) -> MutexGuard<'_, Card> {
        self.shared.card()
    }

    /// Where it is served.
    #[must_use]
    pub fn sockets(&self) -> &Sockets {
        &self.sockets
    }

    /// Waits for ever, or until the threads end by themselves.
    pub fn wait(mut self) {
        for thread in self.threads.drain(..) {
            join(thread);
        }
    }

    /// Ends all connections and removes the sockets; dropping does the same.
    pub fn stop(self) {
        drop(self);
    }

    fn spawn(
        &mut self,
        name: &str,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<(), ServeError> {
        let thread = thread::Builder::new()
            .name(format!("simcard-{name}"))
            .spawn(work)
            .map_err(ServeError::Thread)?;
        self.threads.push(thread);
        Ok(())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        for path in self.sockets.iter() {
            // A connection wakes the thread that waits for one.
            drop(UnixStream::connect(path));
        }
        for thread in self.threads.drain(..) {
            join(thread);
        }
        for path in self.sockets.iter() {
            if let Err(error) = std::fs::remove_file(path) {
                debug!(path = %path.display(), %error, "socket not removed");
            }
        }
    }
}

fn join(thread: JoinHandle<()>) {
    if thread.join().is_err() {
        error!("a serving thread panicked");
    }
}

/// Listens, in the place of a socket that nobody listens on any more; nothing
/// else is ever removed.
fn listen(path: &Path) -> Result<UnixListener, ServeError> {
    let failed = |source| ServeError::Socket {
        path: path.to_owned(),
        source,
    };
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(ServeError::NotASocket(path.to_owned()));
        }
        Ok(_socket) => match UnixStream::connect(path) {
            Ok(_somebody) => return Err(ServeError::InUse(path.to_owned())),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                std::fs::remove_file(path).map_err(failed)?;
            }
            Err(error) => return Err(failed(error)),
        },
    }
    UnixListener::bind(path).map_err(failed)
}

/// One PCI function behind a socket.
struct FunctionDevice<'a> {
    shared: &'a Shared,
    function: PciFunction,
}

impl FunctionDevice<'_> {
    fn space(region: Region) -> Space {
        match region {
            Region::Bar0 => Space::Bar0,
            Region::Config => Space::Config,
        }
    }
}

impl Device for FunctionDevice<'_> {
    fn size(&self, region: Region) -> u64 {
        match region {
            Region::Bar0 => self.shared.card().bar_size(self.function),
            Region::Config => CONFIG_SPACE,
        }
    }

    fn read(&self, region: Region, offset: u64, out: &mut [u8]) {
        self.shared
            .card()
            .read(self.function, Self::space(region), offset, out);
    }

    fn write(&self, region: Region, offset: u64, bytes: &[u8]) {
        self.shared
            .card()
            .write(self.function, Self::space(region), offset, bytes);
    }

    fn reset(&self) {
        self.shared.card().reset(self.function);
    }
}

/// One client after the other: who comes second waits until the first has gone.
fn serve_function(listener: &UnixListener, function: PciFunction, shared: &Shared) {
    let device = FunctionDevice { shared, function };
    while let Some(stream) = accept(listener, shared) {
        debug!(?function, "connected");
        shared.card().connected(function);
        let served = catch_unwind(AssertUnwindSafe(|| {
            connection::serve(&stream, &device, &shared.stop)
        }));
        shared.card().disconnected(function);
        match served {
            Ok(ended) => debug!(?function, %ended, "connection ended"),
            Err(_panic) => error!(?function, "a connection ended in a panic"),
        }
    }
}

/// The next connection; `None` when the card stops.
fn accept(listener: &UnixListener, shared: &Shared) -> Option<UnixStream> {
    loop {
        let accepted = listener.accept();
        if shared.stopping() {
            return None;
        }
        match accepted {
            Ok((stream, _address)) => return Some(stream),
            Err(error) => {
                warn!(%error, "accept");
                thread::sleep(PAUSE);
            }
        }
    }
}

fn serve_control(listener: &UnixListener, shared: &Arc<Shared>) {
    let busy = AtomicUsize::new(0);
    thread::scope(|scope| {
        while let Some(stream) = accept(listener, shared) {
            if busy.load(Ordering::SeqCst) >= MAX_CONTROL_CLIENTS {
                warn!("too many control clients");
                continue;
            }
            busy.fetch_add(1, Ordering::SeqCst);
            let busy = &busy;
            scope.spawn(move || {
                if let Err(error) = serve_lines(&stream, shared) {
                    debug!(%error, "control connection");
                }
                busy.fetch_sub(1, Ordering::SeqCst);
            });
        }
    });
}

fn serve_lines(mut stream: &UnixStream, shared: &Shared) -> io::Result<()> {
    stream.set_read_timeout(Some(TICK))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut reader = BufReader::with_capacity(control::MAX_LINE, stream);
    let mut line = Vec::new();
    loop {
        if shared.stopping() {
            return Ok(());
        }
        let found = match reader.fill_buf() {
            Ok([]) => return Ok(()),
            Ok(bytes) => bytes,
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) =>
            {
                continue;
            }
            Err(error) => return Err(error),
        };
        let end = found.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(found.len(), |end| end.saturating_add(1));
        line.extend_from_slice(found.get(..end.unwrap_or(taken)).unwrap_or_default());
        reader.consume(taken);
        if line.len() > control::MAX_LINE {
            return stream.write_all(b"{\"ok\":false,\"error\":\"the line is too long\"}\n");
        }
        if end.is_some() {
            let mut answer = control::answer(&mut shared.card(), &line);
            info!(line = %line.escape_ascii(), "control");
            answer.push('\n');
            stream.write_all(answer.as_bytes())?;
            line.clear();
        }
    }
}
