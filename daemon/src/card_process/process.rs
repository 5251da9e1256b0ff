//! The process put together: files, lock, card, journal, regions, socket.
//!
//! Knows the order in which they must come. Must not know what they do.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use card::engine::Engine;
use card::journal::{Found, JournalError, Recovered};
use card::{OpenError, OpenOptions, open_card, open_hwicap};
use policy::files;

use super::bench::Bench;
use super::inbox::Inbox;
use super::known::Known;
use super::ledger::Ledger;
use super::link::{Link, LinkError, Peers};
use super::lock::{CardLock, LockError};
use super::outlet::Outlet;
use super::scrub::Owed;
use super::setup::{Setup, SetupError};
use super::steps::Steps;
use super::trusted::Trusted;
use super::worker::{CardGone, Worker};
use crate::files::create_directories;
use crate::layout::{Layout, card_name};
use crate::signed_list::Places;

/// Waiting time after a first failed scrub.
const SCRUB_PAUSE: Duration = Duration::from_millis(500);

/// Which card, and where its files lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// `host.toml`.
    pub host_file: PathBuf,
    /// The card's address, as `host.toml` writes it.
    pub card: String,
    /// Instead of `run_dir/cards/NAME.sock`.
    pub socket: Option<PathBuf>,
    /// Instead of `host.toml`'s.
    pub state_dir: Option<PathBuf>,
    /// The user that `reconfd` runs as, if it is not ours.
    pub peer: Option<u32>,
}

/// Why the process does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The operator's files.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The verifier does not refuse a bad signature: nothing may be believed.
    #[error("the self-test of the signature check failed")]
    SelfTest,
    /// Another process holds the card, or nobody can tell.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The card cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// This version has no such engine.
    #[error("this version of reconf-card has no engine {0}")]
    Engine(&'static str),
    /// Another card is at this address.
    #[error("the card at {address} has the serial {found}, and host.toml says {expected}")]
    Serial {
        /// Where.
        address: String,
        /// What it says.
        found: String,
        /// What it should say.
        expected: String,
    },
    /// The card went away.
    #[error(transparent)]
    Gone(#[from] CardGone),
    /// The region journal.
    #[error("the region journal: {0}")]
    Journal(#[from] JournalError),
    /// The socket.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// A directory or a thread could not be made.
    #[error("{doing}: {source}")]
    Io {
        /// What was tried.
        doing: String,
        /// What the system said.
        source: std::io::Error,
    },
}

/// A started process: reconciled, listening.
#[derive(Debug)]
pub struct Process {
    worker: Worker,
    controls: Controls,
    link: Link,
    _lock: CardLock,
}

/// What signals do to a running process.
#[derive(Debug, Clone)]
pub struct Controls(Arc<Inbox>);

impl Controls {
    /// Ends the current job safely, and the process.
    pub fn stop(&self) {
        self.0.stop();
    }

    /// Reads the signed list again.
    pub fn reload(&self) {
        self.0.reload();
    }
}

impl Process {
    /// Takes the card, reconciles its regions, and listens.
    ///
    /// # Errors
    /// See [`StartError`]; active regions are as they were.
    pub fn start(options: &Options, steps: Box<dyn Steps>) -> Result<Self, StartError> {
        let setup = Setup::read(&options.host_file, &options.card)?;
        policy::trust::self_test().map_err(|_failed| StartError::SelfTest)?;
        let mut layout = Layout::of(&setup.host, &options.host_file);
        if let Some(state_dir) = &options.state_dir {
            layout.state_dir.clone_from(state_dir);
        }
        let name = card_name(&options.card);
        let directory = layout.card_dir(&name);
        create_directories(&directory).map_err(|source| StartError::Io {
            doing: directory.display().to_string(),
            source,
        })?;
        let lock = CardLock::take(&layout.card_lock(&name))?;

        let engine = open(&setup)?;
        let (ledger, recovered) = Ledger::open(layout.card_journal(&name))?;
        tell(&recovered);
        let regions = setup.regions(engine.as_ref(), &recovered);
        let trusted = Trusted::new(
            Places {
                root: layout.root_file(),
                floor: layout.card_floor(&name),
                list: layout.list(),
                signature: layout.list_signature(),
            },
            setup.host.require.roles.clone(),
        );

        let inbox = Arc::new(Inbox::new());
        let outlet = Arc::new(Outlet::default());
        let limits = &setup.host.limits;
        let bench = Bench {
            engine,
            ledger,
            inbox: Arc::clone(&inbox),
            outlet: Arc::clone(&outlet),
            steps,
            commit_wait: limits.commit_wait,
        };
        // As much as one more bitstream: reconfd keeps those that are likely to come again.
        let known = Known::new(limits.bitstream_max);
        let owed = Owed::new(limits.scrub_tries, SCRUB_PAUSE);
        let worker = Worker::start(bench, regions, trusted, known, owed)?;

        let socket = options.socket.clone();
        let mut link = Link::listen(&socket.unwrap_or_else(|| layout.card_socket(&name)))?;
        link.accept(Peers::new(options.peer), Arc::clone(&inbox), outlet)
            .map_err(|source| StartError::Io {
                doing: "making a thread".to_owned(),
                source,
            })?;
        Ok(Self {
            worker,
            controls: Controls(inbox),
            link,
            _lock: lock,
        })
    }

    /// What signals may do.
    #[must_use]
    pub fn controls(&self) -> Controls {
        self.controls.clone()
    }

    /// Works until it is told to stop.
    ///
    /// # Errors
    /// The card went away; another start may find it again.
    pub fn run(self) -> Result<(), CardGone> {
        let result = self.worker.run();
        self.controls.stop();
        // The socket goes before the lock, so that it is never a successor's.
        drop(self.link);
        result
    }
}

/// Opens the card, and makes sure that it is the one meant.
fn open(setup: &Setup) -> Result<Box<dyn Engine>, StartError> {
    let mut options = OpenOptions::default();
    options.waits.engine = setup.host.limits.wait_max;
    let engine = match setup.card.engine {
        files::Engine::Dfl => open_card(&setup.address, &options)?,
        files::Engine::Hwicap => open_hwicap(&setup.address, &setup.layout()?, &options)?,
        other => return Err(StartError::Engine(other.name())),
    };
    if let Some(expected) = &setup.card.serial {
        let found = engine.device().serial.map_or_else(
            || "none".to_owned(),
            |serial| {
                let bytes = serial.0.to_be_bytes();
                let pairs: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                pairs.join("-")
            },
        );
        if found != *expected {
            return Err(StartError::Serial {
                address: setup.address.to_string(),
                found,
                expected: expected.clone(),
            });
        }
    }
    Ok(engine)
}

fn tell(recovered: &Recovered) {
    match &recovered.found {
        Found::Whole => {}
        Found::Missing => {
            tracing::warn!("there was no region journal: lost, or this is the first start");
        }
        Found::TornTail { bytes } => {
            tracing::warn!(bytes, "the last write of the journal had not ended");
        }
        Found::Damaged { kept_as, places } => {
            tracing::error!(kept_as, places, "the region journal is damaged");
        }
    }
}
