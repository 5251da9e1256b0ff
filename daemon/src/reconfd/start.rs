//! Assembly: files read, parts made, tasks started, and the way out.
//!
//! Knows every part by name and none from within.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tracing::{error, info, warn};

use super::admin_server::{self, Allowed};
use super::audit::Audit;
use super::cards::{CardEvents, CardLink};
use super::duties::Memory;
use super::host::{Host, Limits, Parts};
use super::identity::BootId;
use super::jobs::JobBook;
use super::jobstore::{JobStore as _, SledStore, StoreError};
use super::judge::{FilesError, Judge};
use super::listening::ListenError;
use super::operator::Operator;
use super::process_lock::ProcessLock;
use super::revive::{Revived, revive};
use super::seal::SealedCache;
use crate::files::{create_directories, read_bounded};
use crate::layout::Layout;

/// How long a running job may take to end when the daemon stops.
const GRACE: Duration = Duration::from_secs(30);
/// How long the last records may take to reach the disk.
const FLUSH: Duration = Duration::from_secs(2);

/// What the command line says.
#[derive(Debug, Clone)]
pub(super) struct Options {
    /// host.toml.
    pub host_file: PathBuf,
    /// Start the cards' processes where nobody holds a card.
    pub spawn_cards: bool,
}

/// Why it does not start. Each has an exit code of its own.
#[derive(Debug, Error)]
pub(super) enum StartError {
    /// The operator's files.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// The signature code does not do what it must (CYB-02).
    #[error("the self-test of signatures failed: {0}")]
    SelfTest(String),
    /// A directory, the audit or the registrations.
    #[error("{what}: {error}")]
    State {
        /// What.
        what: String,
        /// Why.
        error: std::io::Error,
    },
    /// The job store, although a new one was tried.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The admin socket.
    #[error(transparent)]
    Socket(#[from] ListenError),
    /// A task that never ends did, while it ran.
    #[error("a part of reconfd was lost: {0}; active regions are left alone, start it again")]
    PartLost(String),
}

/// Runs until a signal ends it. `ready` is called once everything listens.
///
/// # Errors
/// [`StartError`].
pub(super) async fn run(options: Options, ready: impl FnOnce()) -> Result<(), StartError> {
    policy::trust::self_test().map_err(|error| StartError::SelfTest(error.to_string()))?;
    let Prepared {
        parts,
        allowed,
        lock: _until_the_end,
    } = prepare(&options)?;
    let host = Host::new(parts);
    let admin = admin_server::bind(&host.layout.admin_socket())?;
    let revived = revive(&host);
    // None of these ends; where one does it panicked, and a half of a daemon is worse than none.
    let mut parts = JoinSet::new();
    connect(&host, &revived, &mut parts, |number| {
        spawner(&options, &host, number)
    });
    let operator = Operator::new(Arc::clone(&host));
    parts.spawn(admin_server::run(admin, allowed, Arc::clone(&operator)));
    let io = |what: &str| {
        let what = what.to_owned();
        move |error| StartError::State { what, error }
    };
    let mut term = signal(SignalKind::terminate()).map_err(io("signals"))?;
    let mut int = signal(SignalKind::interrupt()).map_err(io("signals"))?;
    let mut hup = signal(SignalKind::hangup()).map_err(io("signals"))?;
    ready();
    info!("ready");
    let result = loop {
        tokio::select! {
            _signal = hup.recv() => reload(&operator).await,
            _signal = term.recv() => break Ok(()),
            _signal = int.recv() => break Ok(()),
            Some(ended) = parts.join_next() => {
                let why = ended.map_or_else(|lost| lost.to_string(), |()| "it returned".to_owned());
                break Err(StartError::PartLost(why));
            }
        }
    };
    leave(&host).await;
    result
}

/// Starts to speak to every card; what they tell counts from now on.
pub(super) fn connect<S: FnMut() + Send + 'static>(
    host: &Arc<Host>,
    _revived: &Revived,
    parts: &mut JoinSet<()>,
    spawn: impl Fn(usize) -> S,
) {
    for (number, link) in host.cards.iter().enumerate() {
        let events: Arc<dyn CardEvents> = Arc::<Host>::clone(host);
        parts.spawn(Arc::clone(link).run(events, spawn(number)));
    }
}

async fn reload(operator: &Arc<Operator>) {
    let operator = Arc::clone(operator);
    match tokio::task::spawn_blocking(move || operator.reload(None)).await {
        Ok(Ok(said)) => info!("reload: {said}"),
        Ok(Err((what, remedy))) => error!("reload refused: {what}; {remedy}"),
        Err(lost) => error!("reload: {lost}"),
    }
}

/// What a host is made of, read and opened.
pub(super) struct Prepared {
    /// The host's parts.
    pub parts: Parts,
    /// Who may speak at the admin socket.
    pub allowed: Allowed,
    /// Nobody else has this state.
    pub lock: ProcessLock,
}

/// Reads the operator's files and opens the state: everything but sockets and tasks.
///
/// # Errors
/// [`StartError`].
pub(super) fn prepare(options: &Options) -> Result<Prepared, StartError> {
    let state = |what: &Path| {
        let what = what.display().to_string();
        move |error| StartError::State { what, error }
    };
    let files = read_host(&options.host_file)?;
    let layout = Layout::of(&files, &options.host_file);
    create_directories(&layout.reconfd_dir()).map_err(state(&layout.reconfd_dir()))?;
    create_directories(&layout.run_dir).map_err(state(&layout.run_dir))?;
    // Before anything is opened: a second one would take sockets and state from the first.
    let lock = ProcessLock::take(&layout.reconfd_dir().join("lock"))
        .map_err(state(&layout.reconfd_dir()))?;
    let (judge, plan) = Judge::read(&options.host_file, &layout)?;
    let audit = Audit::open(&layout.audit()).map_err(state(&layout.audit()))?;
    let opened = SledStore::open(&layout.jobs())?;
    if let Some(aside) = &opened.aside {
        error!(aside = %aside.display(), "the job store was damaged and lies aside: jobs of before are forgotten");
    }
    let boot = BootId::current().map_err(state(Path::new("/proc/sys/kernel/random/boot_id")))?;
    let limits = &files.limits;
    let per_vm = usize::try_from(limits.jobs_per_vm).unwrap_or(usize::MAX);
    let queue = usize::try_from(limits.queue_per_card).unwrap_or(usize::MAX);
    let cards = plan
        .cards()
        .iter()
        .enumerate()
        .map(|(number, card)| CardLink::new(number, layout.card_socket(&card.name), queue))
        .collect();
    let stopped = stopped_reason(&layout);
    let allowed = Allowed {
        uids: files.registrars.uids.iter().copied().collect(),
        gids: files.registrars.gids.iter().copied().collect(),
    };
    let jobs = JobBook::new(per_vm, opened.store.load());
    let parts = Parts {
        plan,
        limits: Limits {
            load_base: limits.load_base,
            notice: limits.notice,
            scrub_tries: limits.scrub_tries,
        },
        judge,
        cards,
        audit,
        store: Box::new(opened.store),
        sealed: SealedCache::new(limits.sealed_bytes_max),
        boot,
        jobs,
        memory: Memory::Whole,
        stopped,
        layout,
    };
    Ok(Prepared {
        parts,
        allowed,
        lock,
    })
}

fn read_host(path: &Path) -> Result<policy::files::Host, FilesError> {
    let max = u64::try_from(policy::files::FILE_MAX).unwrap_or(u64::MAX);
    Ok(policy::files::Host::parse(
        path,
        &crate::files::read_trusted(path, max)?,
    )?)
}

/// A stop outlives a restart. A file that cannot be read still stops: deny by default.
fn stopped_reason(layout: &Layout) -> Option<String> {
    match read_bounded(&layout.stopped(), 64 * 1024) {
        Err(error) if error.is_missing() => None,
        Err(error) => Some(format!("the record of a stop cannot be read: {error}")),
        Ok(bytes) => Some(
            serde_json::from_slice::<serde_json::Value>(&bytes)
                .ok()
                .and_then(|record| record.get("reason")?.as_str().map(str::to_owned))
                .unwrap_or_default(),
        ),
    }
}

/// Starts the card's process when nobody listens; it ends by itself if another holds the card.
fn spawner(options: &Options, host: &Host, card: usize) -> impl FnMut() + Send + use<> {
    let address = host.plan.cards().get(card).map(|card| card.address.clone());
    let host_file = options.host_file.clone();
    let wanted = options.spawn_cards;
    let mut child: Option<std::process::Child> = None;
    move || {
        let running = child
            .as_mut()
            .is_some_and(|child| matches!(child.try_wait(), Ok(None)));
        let (true, false, Some(address)) = (wanted, running, &address) else {
            return;
        };
        let program = std::env::current_exe()
            .ok()
            .and_then(|me| Some(me.parent()?.join("reconf-card")))
            .filter(|beside| beside.exists())
            .unwrap_or_else(|| PathBuf::from("reconf-card"));
        let started = std::process::Command::new(program)
            .arg("--host-file")
            .arg(&host_file)
            .arg("--card")
            .arg(address)
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .spawn();
        match started {
            Ok(started) => child = Some(started),
            Err(error) => warn!(%error, "reconf-card cannot be started"),
        }
    }
}

/// No job begins any more; what runs may end in peace.
async fn leave(host: &Host) {
    info!("stopping: no new jobs, waiting for those that run");
    let waiting: Vec<_> = {
        let mut state = host.state();
        state.leaving = true;
        state.cancels.drain().map(|(_job, cancel)| cancel).collect()
    };
    for cancel in waiting {
        let _ended = cancel.send(());
    }
    let ended = async {
        while host.state().running > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let _in_time = tokio::time::timeout(GRACE, ended).await;
    let running = host.state().running;
    if running > 0 {
        warn!(
            running,
            "jobs are left behind: their regions are made safe by reconf-card"
        );
    }
    flush(host).await;
}

/// What was noted reaches the disk, unless that hangs.
async fn flush(host: &Host) {
    let Some(host) = host.arc() else { return };
    let flushed = tokio::task::spawn_blocking(move || host.audit.flush());
    match tokio::time::timeout(FLUSH, flushed).await {
        Ok(Ok(Ok(()))) => {}
        Ok(Ok(Err(error))) => warn!(%error, "the last records are not in the audit"),
        Ok(Err(_)) | Err(_) => warn!("the last records are not in the audit"),
    }
}
