//! The card in the shape of an AMD shell: an AXI HWICAP core in front of the
//! device's own configuration logic, a decoupler and an identity block for
//! each region.
//!
//! | BAR0 of the management function, 1 MiB | what |
//! |---|---|
//! | 0x10000 | AXI HWICAP |
//! | 0x20000 + n × 0x1000 | decoupler of region n: b0 1 decouples, 0 couples, reads back |
//! | 0x30000 + n × 0x1000 | identity of region n: function id, low half at +0, high half at +8 |
//!
//! A user function's BAR0 has its region's function at 0x10000, as in the
//! other shape, and nothing before it.

mod counts;
mod ip;
mod map;
mod session;

use std::time::Duration;

use crate::config::Rate;
use crate::csr::Store;
use crate::dfl;
use crate::fault::Kind;
use crate::fifo::Drain;
use crate::functions::{self, Function};
use crate::region::{Access, Side};
use crate::regions::{RegionId, Regions};
use crate::shape::Around;
use crate::silicon::{Logic, Moment, Trouble};
use crate::stats::count;
use ip::{Ip, cr, reg};
use map::Block;
use session::{Outcome, Session};

pub use counts::HwicapStats;
pub use map::{DECOUPLERS, HWICAP, IDENTITIES, MANAGEMENT_BAR, STRIDE};

/// What faults make of this session.
#[derive(Debug, Clone, Copy)]
struct Turn {
    rate: Rate,
    /// Configuration stops at this word of the session.
    stop_at: Option<u64>,
    identity: Identity,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Identity {
    AsTold,
    Wrong,
}

/// The shell with all that is in it.
#[derive(Debug, Clone)]
pub(crate) struct Shell {
    rate: Rate,
    ip: Ip,
    logic: Logic,
    session: Session,
    /// Set by the first transfer since a decoupler moved.
    turn: Option<Turn>,
    /// Whose decoupler was told last to decouple.
    told: Option<RegionId>,
    pub(crate) regions: Regions,
    words: u64,
    frames_while_coupled: u64,
}

impl Shell {
    pub(crate) fn new(geometry: crate::silicon::Geometry, rate: Rate, fifo: u16) -> Self {
        let mut shell = Self {
            rate,
            ip: Ip::new(fifo),
            logic: Logic::new(geometry),
            session: Session::new(),
            turn: None,
            told: None,
            regions: Regions::new(),
            words: 0,
            frames_while_coupled: 0,
        };
        shell.couple_all();
        shell
    }

    pub(crate) fn logic(&self) -> &Logic {
        &self.logic
    }

    pub(crate) fn logic_mut(&mut self) -> &mut Logic {
        &mut self.logic
    }

    /// Stores to the write FIFO so far.
    pub(crate) fn data_stores(&self) -> u64 {
        self.ip.data_stores
    }

    pub(crate) fn stats(&self) -> HwicapStats {
        let counts = &self.logic.counts;
        HwicapStats {
            words: self.words,
            lost_words: self.ip.lost_words,
            core_resets: self.ip.resets,
            aborts: self.ip.aborts,
            syncs: counts.syncs,
            desyncs: counts.desyncs,
            frames_written: counts.frames,
            frames_while_coupled: self.frames_while_coupled,
            frames_lost: counts.lost_frames,
            unclean_pads: counts.unclean_pads,
            crc_checks: counts.crc_checks,
            restores: counts.restores,
            config_errors: counts.config_errors,
            last_error: counts.last_error,
            dangers: counts.dangers,
        }
    }

    /// A decoupler's register is zero after a reset: it couples.
    fn couple_all(&mut self) {
        for region in self.regions.iter_mut() {
            region.couple();
        }
    }

    /// The shell's own logic starts over; the device's configuration logic and
    /// the regions' contents do not notice.
    pub(crate) fn shell_reset(&mut self, now: Duration) {
        self.close_session();
        self.ip.reset();
        for region in self.regions.iter_mut() {
            region.shell_reset(now);
        }
        self.couple_all();
    }

    /// Power off and on; IPROG is the same for a card.
    pub(crate) fn power_cycle(&mut self) {
        self.logic.power_cycle();
        self.ip.reset();
        for region in self.regions.iter_mut() {
            region.power_cycle();
        }
        self.session = Session::new();
        self.turn = None;
        self.couple_all();
    }

    /// Lets through what time has brought.
    pub(crate) fn settle(&mut self, around: &mut Around<'_>) {
        while let Some(word) = self.ip.drained(around.now) {
            self.word(word, around.now);
        }
        self.judge(around);
    }

    /// The regions that are decoupled.
    fn shut(&self) -> impl Iterator<Item = RegionId> {
        RegionId::ALL.into_iter().filter(|id| {
            self.regions
                .get(id.number())
                .is_some_and(|region| region.access() == Access::Host)
        })
    }

    /// The region that a load is for: of those that are decoupled the one that was told so
    /// last, or the only one.
    fn target(&self) -> Option<RegionId> {
        let mut shut = self.shut();
        let first = shut.next().filter(|_| shut.next().is_none());
        self.told
            .filter(|told| self.shut().any(|id| id == *told))
            .or(first)
    }

    /// The regions that a load changes: its target; where none can be told, all that are
    /// decoupled.
    fn changed(&self) -> Vec<RegionId> {
        match self.target() {
            Some(target) => vec![target],
            None => self.shut().collect(),
        }
    }

    /// A word goes into the configuration logic.
    fn word(&mut self, word: u32, now: Duration) {
        count(&mut self.words);
        let stop_at = self.turn.and_then(|turn| turn.stop_at);
        let moment = if stop_at == Some(self.session.count) {
            self.logic.stop(Trouble::Injected)
        } else {
            self.logic.take(word)
        };
        let before = self.session.outcome;
        self.session.push(word, moment, &self.logic);
        let changed = self.changed();
        for id in &changed {
            let stats = &mut self.regions.of(*id).stats;
            count(&mut stats.data_words);
            if before == Outcome::Untouched && self.session.outcome != Outcome::Untouched {
                count(&mut stats.pr_starts);
            }
            if before != Outcome::Failed && self.session.outcome == Outcome::Failed {
                count(&mut stats.pr_failures);
            }
        }
        match moment {
            Moment::Frame(_) if changed.is_empty() => {
                count(&mut self.frames_while_coupled);
                // Nobody can say whose they are.
                for region in self.regions.iter_mut() {
                    region.configure(Function::nothing());
                }
            }
            Moment::Frame(_) => {
                for id in changed {
                    self.regions.of(id).configure(Function::nothing());
                }
            }
            Moment::Reboot => {
                self.power_cycle();
                for region in self.regions.iter_mut() {
                    region.guest_reset(now);
                }
            }
            _ => {}
        }
    }

    /// The function that the session made appears in the region that the load is for.
    fn judge(&mut self, around: &Around<'_>) {
        if self.ip.writing() {
            return;
        }
        if let Some(id) = self.target()
            && let Some(function) = self.session.judge(around.table)
            && self.regions.of(id).function().id().is_none()
        {
            let wrong = self
                .turn
                .is_some_and(|turn| turn.identity == Identity::Wrong);
            let function = if wrong { functions::WRONG } else { function };
            self.regions
                .of(id)
                .configure(Function::named(function, around.now));
        }
    }

    /// The core was reset, or the port: what was begun has ended, and a file may begin.
    fn start_over(&mut self) {
        if self.session.outcome == Outcome::Untouched {
            self.session.may_begin();
        } else {
            self.close_session();
        }
    }

    /// What was begun is counted; what comes next is another stream.
    fn close_session(&mut self) {
        for id in self.changed() {
            let stats = &mut self.regions.of(id).stats;
            match self.session.outcome {
                Outcome::Sound => count(&mut stats.pr_successes),
                Outcome::Open => count(&mut stats.pr_aborted),
                Outcome::Untouched | Outcome::Failed => {}
            }
        }
        self.session = Session::new();
        self.turn = None;
    }

    /// A 32-bit read of the management function.
    pub(crate) fn load(&mut self, offset: u64) -> u32 {
        match Block::at(offset) {
            Block::Core(register) => self.ip.load(register, &self.logic),
            Block::Decoupler(number, 0) => self
                .regions
                .get(number)
                .map_or(0, |region| u32::from(region.access() == Access::Host)),
            Block::Identity(number, register) => {
                let id = self
                    .regions
                    .get(number)
                    .and_then(|region| region.function().id())
                    .map_or(0u128, |id| id.as_u128());
                let shift = u32::try_from(register).unwrap_or(u32::MAX).checked_mul(8);
                let word = shift.and_then(|shift| id.checked_shr(shift)).unwrap_or(0);
                u32::try_from(word & u128::from(u32::MAX)).unwrap_or(0)
            }
            Block::Decoupler(..) | Block::Hole => 0,
            Block::Outside => u32::MAX,
        }
    }

    /// A store of the management function, as the 32-bit stores it is made of.
    pub(crate) fn store(&mut self, store: Store, around: &mut Around<'_>) {
        for (offset, value, mask) in store.words() {
            match Block::at(offset) {
                Block::Core(reg::CR) => self.control(value, around),
                Block::Core(register) => self.ip.store(register, value),
                Block::Decoupler(number, 0) if mask & 1 == 1 => {
                    let to = if value & 1 == 1 {
                        Access::Host
                    } else {
                        Access::Guest
                    };
                    self.move_decoupler(number, to, around);
                }
                _ => {}
            }
            self.settle(around);
        }
    }

    fn move_decoupler(&mut self, number: u8, to: Access, around: &mut Around<'_>) {
        let Some(moves) = self.regions.get(number).map(|region| region.access() != to) else {
            return;
        };
        // Whoever tells a decoupler, moved or not, begins or ends a load of its region.
        if moves || to == Access::Host {
            self.close_session();
        }
        if to == Access::Host {
            self.told = RegionId::ALL.into_iter().find(|id| id.number() == number);
        }
        if !moves {
            return;
        }
        if let Some(region) = self.regions.get_mut(number) {
            region.give_access(to, around.faults);
        }
    }

    fn control(&mut self, value: u32, around: &mut Around<'_>) {
        if value & cr::ABORT != 0 {
            count(&mut self.ip.aborts);
            self.ip.clear();
            self.logic.abort();
            self.start_over();
        }
        if value & cr::RESET != 0 {
            count(&mut self.ip.resets);
            self.ip.reset();
            self.logic.clear_error();
            self.start_over();
        }
        if value & cr::CLEAR != 0 {
            self.ip.clear();
            self.session.may_begin();
        }
        if value & cr::WRITE != 0 && !self.ip.writing() {
            let drain = self.drain(around);
            self.ip.begin_write(drain, around.now);
            self.settle(around);
        }
        if value & cr::READ != 0 && !self.ip.writing() {
            self.ip.begin_read(&mut self.logic);
        }
    }

    /// How this transfer goes. Faults strike only while a region is decoupled:
    /// a load is what they are about.
    fn drain(&mut self, around: &mut Around<'_>) -> Drain {
        if self.shut().next().is_none() {
            return Drain::At(self.rate);
        }
        let region = self.target().map(RegionId::number);
        let faults = &mut *around.faults;
        let (rate, sent) = (self.rate, self.session.count);
        let turn = *self.turn.get_or_insert_with(|| {
            let slow = faults.strike(region, |kind| match kind {
                Kind::SlowRate { bytes_per_second } => Some(*bytes_per_second),
                _ => None,
            });
            let stop = faults.strike(region, |kind| match kind {
                Kind::ConfigError { after_words } => Some(*after_words),
                _ => None,
            });
            let identity = if faults.strikes(region, Kind::WrongIdentity) {
                Identity::Wrong
            } else {
                Identity::AsTold
            };
            Turn {
                rate: slow.map_or(rate, Rate::BytesPerSecond),
                stop_at: stop.map(|words| sent.saturating_add(words)),
                identity,
            }
        });
        if faults.strikes(region, Kind::Hang) {
            Drain::Blocked
        } else {
            Drain::At(turn.rate)
        }
    }

    /// A read of a user function.
    pub(crate) fn user_load(&self, region: RegionId, register: u64, now: Duration) -> u64 {
        match self.regions.get(region.number()) {
            Some(region) if region.access() == Access::Guest && register < dfl::USER_BAR => {
                if register < dfl::NEXT_AFU {
                    0
                } else {
                    region.read(Side::Guest, register, now)
                }
            }
            _ => u64::MAX,
        }
    }

    /// A store of a user function.
    pub(crate) fn user_store(&mut self, region: RegionId, store: Store, around: &mut Around<'_>) {
        if (dfl::NEXT_AFU..dfl::USER_BAR).contains(&store.register) {
            let region = self.regions.of(region);
            region.write(Side::Guest, store, around.now, around.faults);
        }
    }
}
