//! Assembly: files read, parts made, tasks started, and the way out.
//!
//! Knows every part by name and none from within.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::signal::unix::{SignalKind, signal};
use tracing::{error, info, warn};

use super::admin_server::{self, Allowed};
use super::audit::{Audit, Record};
use super::cards::{CardEvents, CardLink};
use super::channel::ChannelError;
use super::host::{Host, Limits, Parts};
use super::identity::BootId;
use super::jobs::JobBook;
use super::jobstore::{JobStore as _, SledStore, StoreError};
use super::judge::{FilesError, Judge};
use super::operator::{Operator, enliven, regions_of};
use super::regions::Memory;
use super::registry::{self, Stored};
use super::seal::SealedCache;
use crate::files::{create_directories, read_bounded};
use crate::layout::Layout;

/// How long a running job may take to end when the daemon stops.
const GRACE: Duration = Duration::from_secs(30);

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
    Socket(#[from] ChannelError),
}

/// Runs until a signal ends it. `ready` is called once everything listens.
///
/// # Errors
/// [`StartError`].
pub(super) async fn run(options: Options, ready: impl FnOnce()) -> Result<(), StartError> {
    policy::trust::self_test().map_err(|error| StartError::SelfTest(error.to_string()))?;
    let (host, admin, allowed) = build(&options)?;
    for (number, link) in host.cards.iter().enumerate() {
        let events: Arc<dyn CardEvents> = Arc::<Host>::clone(&host);
        let spawn = spawner(&options, &host, number);
        tokio::spawn(Arc::clone(link).run(events, spawn));
    }
    revive(&host);
    tokio::spawn(admin_server::run(
        admin,
        allowed,
        Operator::new(Arc::clone(&host)),
    ));
    let io = |what: &str| {
        let what = what.to_owned();
        move |error| StartError::State { what, error }
    };
    let mut term = signal(SignalKind::terminate()).map_err(io("signals"))?;
    let mut int = signal(SignalKind::interrupt()).map_err(io("signals"))?;
    let mut hup = signal(SignalKind::hangup()).map_err(io("signals"))?;
    ready();
    info!("ready");
    loop {
        tokio::select! {
            _signal = hup.recv() => match host.judge.reload() {
                Ok(said) => info!("reload: {said}"),
                Err(what) => error!("reload refused, the old files stay in force: {what}"),
            },
            _signal = term.recv() => break,
            _signal = int.recv() => break,
        }
    }
    leave(&host).await;
    Ok(())
}

type Built = (Arc<Host>, tokio::net::UnixListener, Allowed);

fn build(options: &Options) -> Result<Built, StartError> {
    let state = |what: &Path| {
        let what = what.display().to_string();
        move |error| StartError::State { what, error }
    };
    let files = read_host(&options.host_file)?;
    let layout = Layout::of(&files, &options.host_file);
    create_directories(&layout.reconfd_dir()).map_err(state(&layout.reconfd_dir()))?;
    create_directories(&layout.run_dir).map_err(state(&layout.run_dir))?;
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
    let admin = admin_server::bind(&layout.admin_socket())?;
    let allowed = Allowed {
        uids: files.registrars.uids.iter().copied().collect(),
        gids: files.registrars.gids.iter().copied().collect(),
    };
    let jobs = JobBook::new(per_vm, opened.store.load());
    let host = Host::new(Parts {
        plan,
        limits: Limits {
            load_base: limits.load_base,
            commit_wait: limits.commit_wait,
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
    });
    Ok((host, admin, allowed))
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

/// Brings the registrations of before to life, or ends them.
fn revive(host: &Arc<Host>) {
    let path = host.layout.registrations();
    let first_start = !path.exists();
    let over = match registry::load(&path, &host.boot) {
        Stored::Good { alive, over } => {
            for registration in alive {
                let vm = registration.vm;
                let attached = host
                    .state()
                    .registry
                    .attach(&host.plan, registration.clone());
                if let Err(error) = attached {
                    warn!(%vm, %error, "a registration of before does not fit any more");
                    continue;
                }
                if let Err(what) = enliven(host, &registration) {
                    error!(%vm, what, "the channel of a VM of before cannot be opened");
                }
            }
            over
        }
        Stored::Lost(why) => {
            host.state().memory = Memory::Lost;
            if first_start {
                info!("no registrations yet");
            } else {
                error!(
                    why,
                    "the registrations are lost: regions with an owner are held until attached again"
                );
            }
            Vec::new()
        }
    };
    for registration in over {
        info!(vm = %registration.vm, "a VM of before is over");
        host.note(&Record {
            event: "detach",
            vm: Some(registration.vm),
            tenant: Some(registration.tenant.clone()),
            generation: Some(registration.generation.short().to_owned()),
            reason: Some("its process or the host's boot ended while reconfd was away".to_owned()),
            ..Record::default()
        });
        for key in regions_of(host, &registration) {
            host.attend(key);
        }
    }
    if let Err(error) = host.save_registrations() {
        warn!(%error, "the registrations cannot be written");
    }
    let gone = {
        let mut state = host.state();
        let alive: Vec<_> = state
            .registry
            .all()
            .map(|vm| (vm.vm, vm.generation.clone()))
            .collect();
        state.jobs.retain_generations(|vm, generation| {
            alive.iter().any(|(a, g)| *a == vm && g == generation)
        })
    };
    if let Err(error) = host.store.remove(&gone) {
        warn!(%error, "jobs of VMs that are over stay in the store");
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
    let paths: Vec<PathBuf> = std::iter::once(host.layout.admin_socket()).collect();
    for path in paths {
        let _gone = std::fs::remove_file(path);
    }
}
