//! The host: everything that the parts of `reconfd` share.
//!
//! One lock guards what changes together (registrations, regions, jobs). It is
//! held for moments, never over a wait. Knows who owes what to whom. Must not
//! know frames, packets' layout, or signature mathematics.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use protocol::message::{EventKind, JobKey, Slot};
use tokio::sync::{broadcast, oneshot, watch};
use tracing::{info, warn};
use uuid::Uuid;

use super::abuse::{Abuse, Verdict};
use super::audit::{Audit, Record};
use super::cards::CardLink;
use super::duties::Memory;
use super::identity::{BootId, Generation, unix_now};
use super::jobs::{Job, JobBook, JobRecord};
use super::jobstore::JobStore;
use super::judge::Judge;
use super::plan::HostPlan;
use super::regions::Regions;
use super::registrations::{Saved, save};
use super::registry::{Registration, Registry, SlotPlan};
use super::repeats::Repeats;
use super::seal::SealedCache;
use super::session::Happened;
use super::troubles::Troubles;
use crate::ipc::{JobId, OwnerTag};
use crate::layout::Layout;

/// Events that a slow watcher may be behind.
const EVENT_BOUND: usize = 64;

/// Limits of this host, from host.toml.
#[derive(Debug, Clone)]
pub struct Limits {
    /// A load's time before the size counts.
    pub load_base: Duration,
    /// Notice before the host takes something away.
    pub notice: Duration,
    /// Scrubs that may fail in a row.
    pub scrub_tries: u32,
}

/// See the module's words.
pub struct Host {
    /// Where files lie.
    pub layout: Layout,
    /// Regions and functions.
    pub plan: HostPlan,
    /// Limits.
    pub limits: Limits,
    /// The decision.
    pub judge: Judge,
    /// The cards, in the order of host.toml.
    pub cards: Vec<Arc<CardLink>>,
    /// The trail.
    pub audit: Audit,
    /// Jobs that outlive us.
    pub store: Box<dyn JobStore>,
    /// Sealed bytes.
    pub sealed: SealedCache,
    /// This boot.
    pub boot: BootId,
    /// When we started, seconds of Unix time.
    pub since: u64,
    /// What cannot be written, for the operator.
    pub troubles: Troubles,
    started: Instant,
    saving: Mutex<()>,
    state: Mutex<State>,
    me: Weak<Host>,
}

/// What the lock guards.
pub struct State {
    /// Who holds what.
    pub registry: Registry,
    /// What lives beside each registration.
    pub live: BTreeMap<Uuid, Live>,
    /// What each region holds.
    pub regions: Regions,
    /// The jobs.
    pub jobs: JobBook,
    /// The operator's reason, while new loads are denied.
    pub stopped: Option<String>,
    /// Whether the registrations of before are known.
    pub memory: Memory,
    /// While the registrations of before are lost: owners of whom it is known all the same that
    /// they are over.
    pub ended: HashSet<OwnerTag>,
    /// How to cancel what still waits.
    pub cancels: HashMap<JobId, oneshot::Sender<()>>,
    /// No job begins any more: the daemon stops.
    pub leaving: bool,
    /// Jobs that run.
    pub running: u32,
}

/// What lives beside a registration.
pub struct Live {
    /// The VM's slots.
    pub slots: Vec<SlotPlan>,
    /// Its events.
    pub events: broadcast::Sender<Happened>,
    /// Turns true when the generation ends.
    pub over: watch::Sender<bool>,
    /// Connections with an open session: one, or two while a newer takes an older one's place.
    pub sessions: u32,
    /// Why it is not wholly back after a restart, for the operator.
    pub trouble: Option<String>,
    /// What was refused to it of late, for the audit.
    pub refusals: Repeats,
    abuse: Abuse,
}

/// What became of an end.
#[derive(Debug)]
pub enum Ended {
    /// There is no such VM, or it is another start of it.
    NotThere,
    /// Over, and it stays so.
    Durably,
    /// Over, but a crash now might bring it back.
    NotDurably(std::io::Error),
}

/// What a [`Host`] is made of.
pub struct Parts {
    /// See [`Host`].
    pub layout: Layout,
    /// See [`Host`].
    pub plan: HostPlan,
    /// See [`Host`].
    pub limits: Limits,
    /// See [`Host`].
    pub judge: Judge,
    /// See [`Host`].
    pub cards: Vec<Arc<CardLink>>,
    /// See [`Host`].
    pub audit: Audit,
    /// See [`Host`].
    pub store: Box<dyn JobStore>,
    /// See [`Host`].
    pub sealed: SealedCache,
    /// See [`Host`].
    pub boot: BootId,
    /// The book of jobs, from the store.
    pub jobs: JobBook,
    /// Whether the registrations could be read.
    pub memory: Memory,
    /// The operator's reason, if loads were stopped before.
    pub stopped: Option<String>,
}

impl Host {
    /// Puts the parts together; registrations come in later.
    #[must_use]
    pub fn new(parts: Parts) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            state: Mutex::new(State {
                registry: Registry::default(),
                live: BTreeMap::new(),
                regions: Regions::new(&parts.plan),
                jobs: parts.jobs,
                stopped: parts.stopped,
                memory: parts.memory,
                ended: HashSet::new(),
                cancels: HashMap::new(),
                leaving: false,
                running: 0,
            }),
            layout: parts.layout,
            plan: parts.plan,
            limits: parts.limits,
            judge: parts.judge,
            cards: parts.cards,
            audit: parts.audit,
            store: parts.store,
            sealed: parts.sealed,
            boot: parts.boot,
            since: unix_now(),
            troubles: Troubles::default(),
            started: Instant::now(),
            saving: Mutex::new(()),
            me: me.clone(),
        })
    }

    /// The lock. Never held over an `await`.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time since start, for limits that count in it.
    #[must_use]
    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// Takes a registration that was checked into the living ones; nothing, if it was ended
    /// meanwhile.
    pub fn enliven(&self, registration: &Registration) -> Option<watch::Receiver<bool>> {
        let (over, ended) = watch::channel(false);
        let (events, _first) = broadcast::channel(EVENT_BOUND);
        let live = Live {
            slots: Registry::slots(&self.plan, registration),
            events,
            over,
            sessions: 0,
            abuse: Abuse::default(),
            trouble: None,
            refusals: Repeats::default(),
        };
        let mut state = self.state();
        state
            .registry
            .alive(registration.vm, &registration.generation)?;
        state.live.insert(registration.vm, live);
        Some(ended)
    }

    /// Writes the registrations; may wait for the disk.
    ///
    /// # Errors
    /// What the system says; an alarm tells of it until it goes well.
    pub fn save_registrations(&self) -> std::io::Result<()> {
        // The snapshot is taken inside: of two writers the later one writes the later state.
        let _one_at_a_time = self.saving.lock().unwrap_or_else(PoisonError::into_inner);
        let snapshot = {
            let state = self.state();
            Saved {
                lost_in: (state.memory != Memory::Whole).then(|| self.boot.clone()),
                vms: state.registry.all().cloned().collect(),
            }
        };
        let written = save(&self.layout.registrations(), &snapshot);
        self.troubles.note("the registrations", &written);
        written
    }

    /// The same, by somebody who must not wait.
    pub fn save_registrations_later(&self) {
        if let (Some(me), Ok(runtime)) = (self.arc(), tokio::runtime::Handle::try_current()) {
            // An error is an alarm until the next writing goes well.
            runtime.spawn_blocking(move || drop(me.save_registrations()));
        }
    }

    /// This host, for tasks that outlive the caller.
    pub(super) fn arc(&self) -> Option<Arc<Self>> {
        self.me.upgrade()
    }

    /// A record without intent and outcome. Nothing that calls this waits for the disk; where
    /// the trail cannot be written it goes to the log.
    pub fn note(&self, record: &Record) {
        self.audit.note(record);
    }

    /// Broken framing on a VM's channel.
    #[must_use]
    pub fn framing_error(&self, vm: Uuid) -> Verdict {
        let now = self.uptime();
        self.state()
            .live
            .get_mut(&vm)
            .map_or(Verdict::Forgive, |live| live.abuse.framing_error(now))
    }

    /// Tells every watcher of a VM.
    pub fn tell(&self, vm: Uuid, slot: u16, what: EventKind) {
        if let Some(live) = self.state().live.get(&vm) {
            // Nobody watches: fine.
            let _watchers = live.events.send(Happened {
                slot: Slot(slot),
                what,
            });
        }
    }

    /// Changes a job and tells its watchers.
    pub fn job_changed(
        &self,
        vm: Uuid,
        generation: &Generation,
        key: JobKey,
        change: impl FnOnce(&mut Job),
    ) -> Option<Job> {
        let job = self.state().jobs.update(vm, generation, key, change)?;
        self.tell(vm, job.record.slot, EventKind::Progress(job.info()));
        Some(job)
    }

    /// Ends a VM's generation: no grant any more, its channel closed, its regions scrubbed.
    /// Where `only` is given, that generation and no later one. May wait for the disk.
    pub fn end_generation(
        &self,
        vm: Uuid,
        only: Option<&Generation>,
        why: &str,
        by_uid: Option<u32>,
    ) -> Ended {
        let (registration, forgotten, refused) = {
            let mut state = self.state();
            let is_meant = state
                .registry
                .get(vm)
                .is_some_and(|there| only.is_none_or(|only| *only == there.generation));
            let Some(registration) = is_meant.then(|| state.registry.detach(vm)).flatten() else {
                return Ended::NotThere;
            };
            if state.memory != Memory::Whole {
                state.ended.insert(registration.tag());
            }
            let refused = state.live.remove(&vm).and_then(|mut live| {
                let _nobody = live.over.send(true);
                live.refusals.rest()
            });
            // Jobs that still run forget themselves when they end.
            let forgotten = state.jobs.forget(vm, &registration.generation);
            (registration, forgotten, refused)
        };
        info!(%vm, why, "a VM's generation is over");
        if let Some(refused) = refused {
            self.note(&refused.record(vm));
        }
        self.note(&Record {
            event: "detach",
            vm: Some(vm),
            tenant: Some(registration.tenant.clone()),
            generation: Some(registration.generation.short().to_owned()),
            reason: Some(why.to_owned()),
            by_uid,
            ..Record::default()
        });
        for slot in Registry::slots(&self.plan, &registration) {
            self.attend(slot.region);
        }
        self.forget(&forgotten);
        match self.save_registrations() {
            Ok(()) => Ended::Durably,
            Err(error) => {
                // After a crash the old file would name a VM that is over; its process or boot tells.
                warn!(%error, "the registrations cannot be written");
                Ended::NotDurably(error)
            }
        }
    }

    /// Takes jobs of a generation that is over out of the store.
    pub(super) fn forget(&self, jobs: &[JobRecord]) {
        if !jobs.is_empty()
            && let Err(error) = self.store.remove(jobs)
        {
            warn!(%error, "jobs of a VM that is over stay in the store until the next start");
        }
    }
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host")
            .field("plan", &self.plan)
            .finish_non_exhaustive()
    }
}
