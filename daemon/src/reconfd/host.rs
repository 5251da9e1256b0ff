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
use super::audit::{Audit, Record, SyncCost};
use super::cards::{CardEvents, CardLink};
use super::chores;
use super::identity::{BootId, Generation, unix_now};
use super::jobs::{Job, JobBook};
use super::jobstore::JobStore;
use super::judge::Judge;
use super::orphans;
use super::plan::{HostPlan, RegionKey};
use super::regions::{Duty, Memory, Regions, duty};
use super::registry::{Registration, Registry, SlotPlan, save};
use super::seal::SealedCache;
use super::session::Happened;
use crate::ipc::{Content, JobId, OwnerTag, RegionReport};
use crate::layout::Layout;

/// Events that a slow watcher may be behind.
const EVENT_BOUND: usize = 64;

/// Limits of this host, from host.toml.
#[derive(Debug, Clone)]
pub struct Limits {
    /// A load's time before the size counts.
    pub load_base: Duration,
    /// How long `reconf-card` waits for the last consent; an answer later than that is of no use.
    pub commit_wait: Duration,
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
    started: Instant,
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
    /// Owners that ended since this start: of them it is known that they are over.
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
    /// A session is open.
    pub session: bool,
    abuse: Abuse,
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
    /// Puts the parts together; registrations come in by [`Host::admit`].
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
            started: Instant::now(),
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

    /// Takes a registration that was checked into the living ones.
    pub fn enliven(&self, registration: &Registration) -> watch::Receiver<bool> {
        let (over, ended) = watch::channel(false);
        let (events, _first) = broadcast::channel(EVENT_BOUND);
        let live = Live {
            slots: Registry::slots(&self.plan, registration),
            events,
            over,
            session: false,
            abuse: Abuse::default(),
        };
        self.state().live.insert(registration.vm, live);
        ended
    }

    /// Writes the registrations.
    ///
    /// # Errors
    /// What the system says.
    pub fn save_registrations(&self) -> std::io::Result<()> {
        save(&self.layout.registrations(), &self.state().registry)
    }

    /// A record without intent and outcome. Where the trail cannot be written it goes to the log:
    /// nothing that calls this waits for the audit.
    pub fn note(&self, record: &Record) {
        if let Err(error) = self.audit.write(record, &mut SyncCost::default()) {
            warn!(event = record.event, reason = record.reason, %error, "the audit cannot be written");
        }
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
    /// `false` if there is no such VM.
    pub fn end_generation(&self, vm: Uuid, why: &str, by_uid: Option<u32>) -> bool {
        let (registration, keys) = {
            let mut state = self.state();
            let Some(registration) = state.registry.detach(vm) else {
                return false;
            };
            state.ended.insert(registration.tag());
            if let Some(live) = state.live.remove(&vm) {
                let _nobody = live.over.send(true);
            }
            let keys: Vec<RegionKey> = Registry::slots(&self.plan, &registration)
                .iter()
                .map(|slot| slot.region)
                .collect();
            (registration, keys)
        };
        if let Err(error) = self.save_registrations() {
            // After a crash the old file would name a VM that is over; its process or boot tells.
            warn!(%error, "the registrations cannot be written");
        }
        info!(%vm, why, "a VM's generation is over");
        self.note(&Record {
            event: "detach",
            vm: Some(vm),
            tenant: Some(registration.tenant.clone()),
            generation: Some(registration.generation.short().to_owned()),
            reason: Some(why.to_owned()),
            by_uid,
            ..Record::default()
        });
        for key in keys {
            self.attend(key);
        }
        true
    }

    /// A region's content is not trusted any more.
    fn quarantined(&self, key: RegionKey) {
        let label = self.plan.label(key);
        warn!(region = label, "a region is in quarantine");
        self.note(&Record {
            event: "quarantine",
            region: Some(label),
            reason: Some("shut, its content not trusted; its card's process scrubs it".to_owned()),
            ..Record::default()
        });
    }

    /// Looks at a region and does what is owed to it.
    pub fn attend(&self, key: RegionKey) {
        let Some(me) = self.me.upgrade() else { return };
        let owed = {
            let mut state = self.state();
            if state.leaving {
                return;
            }
            let holders: Vec<_> = state
                .registry
                .holders(&self.plan, key)
                .map(Registration::tag)
                .collect();
            let owner = state
                .regions
                .get(key)
                .and_then(|region| region.report.as_ref()?.tag);
            let memory = if owner.is_some_and(|tag| state.ended.contains(&tag)) {
                Memory::Whole
            } else {
                state.memory
            };
            let Some(region) = state.regions.get_mut(key) else {
                return;
            };
            if region.reserved.is_some() {
                // Whoever has it looks again when it is done.
                return;
            }
            let Some(report) = &region.report else { return };
            let owed = duty(report, &holders, memory, self.limits.scrub_tries);
            if let Duty::Hold(why) = &owed {
                let news = region.held.as_ref() != Some(why);
                region.held = Some(why.clone());
                news.then_some(owed)
            } else {
                region.held = None;
                Some(owed)
            }
        };
        match owed {
            None | Some(Duty::Nothing) => {}
            Some(Duty::Hold(why)) => {
                warn!(region = self.plan.label(key), why, "a region is held");
                self.note(&Record {
                    event: "held",
                    region: Some(self.plan.label(key)),
                    reason: Some(why),
                    ..Record::default()
                });
            }
            Some(Duty::Scrub(why)) => chores::scrub(me, key, why.to_owned(), None),
            Some(Duty::Reopen(tag, digest)) => chores::reopen(me, key, tag, digest),
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

impl CardEvents for Host {
    fn region(&self, card: usize, report: RegionReport) {
        let key = RegionKey {
            card,
            region: report.region,
        };
        let Some(plan) = self.plan.region(key) else {
            warn!(
                card,
                region = report.region.0,
                "a report of a region that no shell file names"
            );
            return;
        };
        info!(region = plan.name, content = ?report.content, access = report.guest_access, "a region's state");
        let (lost, quarantined) = {
            let mut state = self.state();
            let owner = report.tag.and_then(|tag| {
                state
                    .registry
                    .holders(&self.plan, key)
                    .find(|vm| vm.tag() == tag)
                    .map(|vm| vm.vm)
            });
            let was_active = state
                .regions
                .get(key)
                .and_then(|region| region.report.as_ref())
                .is_some_and(|before| before.content == Content::Active && before.guest_access);
            let quarantined = report.content == Content::Quarantined;
            let lost = (was_active && quarantined)
                .then_some(owner)
                .flatten()
                .and_then(|vm| {
                    let slot = state
                        .live
                        .get(&vm)?
                        .slots
                        .iter()
                        .find(|slot| slot.region == key)?
                        .slot;
                    Some((vm, slot))
                });
            if let Some(before) = state
                .regions
                .get(key)
                .and_then(|region| region.report.as_ref()?.tag)
            {
                // Scrubbed and without owner: nobody asks about that one any more.
                if report.tag.is_none() {
                    state.ended.remove(&before);
                }
            }
            state.regions.report(key, report);
            (lost, quarantined)
        };
        if let Some((vm, slot)) = lost {
            self.tell(vm, slot, EventKind::Lost);
        }
        if quarantined {
            self.quarantined(key);
        }
        orphans::settle(self, key);
        self.attend(key);
    }

    fn lost(&self, card: usize) {
        self.state().regions.card_lost(card);
    }
}
