//! The card as a whole: which register an access reaches. Pure: no sockets, no
//! threads; its only outside is the clock of its [`Config`].

use std::time::Duration;

use uuid::Uuid;

use crate::bar::Block;
use crate::config::{Config, OnClose, REGIONS};
use crate::csr::{self, Store};
use crate::dfl;
use crate::fault::{Fault, Faults, Kind, Times};
use crate::fme;
use crate::pci::{Asked, ConfigSpace, Identity};
use crate::pr::{Engine, Surroundings};
use crate::region::Side;
use crate::regions::{RegionId, Regions};
use crate::stats::{FunctionStats, Stats, count};

/// PCI vendor of all functions (Intel).
pub const VENDOR: u16 = 0x8086;
/// PCI device of the management function.
pub const MANAGEMENT_DEVICE: u16 = 0x09c4;
/// PCI device of a user function.
pub const USER_DEVICE: u16 = 0x09c5;

/// One of the card's PCI functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PciFunction {
    /// What the host keeps.
    Management,
    /// What a guest gets: the way into one region.
    User(RegionId),
}

impl PciFunction {
    /// Size of its BAR0 in bytes.
    #[must_use]
    pub fn bar_size(self) -> u64 {
        match self {
            Self::Management => dfl::MANAGEMENT_BAR,
            Self::User(_) => dfl::USER_BAR,
        }
    }
}

/// Where in a function an access goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Space {
    /// Configuration space, 4 KiB.
    Config,
    /// BAR0.
    Bar0,
}

/// Why a fault was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FaultRefused {
    /// Too many wait already.
    #[error("no room: {} faults wait", crate::fault::MAX_FAULTS)]
    Full,
    /// A fault of the whole card cannot be of one region.
    #[error("this fault is of the whole card, not of a region")]
    NotOfARegion,
    /// A state, not an event: only `until-cleared` means something.
    #[error("this fault lasts: give \"times\": \"until-cleared\"")]
    Lasting,
    /// Below one byte a second nothing ever ends; that is another fault.
    #[error("bytes_per_second is at least 1")]
    NoSpeed,
}

/// A simulated card.
#[derive(Debug, Clone)]
pub struct Card {
    config: Config,
    engine: Engine,
    regions: Regions,
    faults: Faults,
    /// The count of data stores from which on the card is gone.
    gone_from: Option<u64>,
    management: Slot,
    user: [Slot; REGIONS],
    power_cycles: u64,
}

/// A PCI function's own state.
#[derive(Debug, Clone)]
struct Slot {
    space: ConfigSpace,
    connected: u64,
    stats: FunctionStats,
}

impl Slot {
    fn new(device: u16, serial: Option<u64>, bar_size: u64) -> Self {
        let identity = Identity {
            vendor: VENDOR,
            device,
            serial,
            bar_size,
        };
        Self {
            space: ConfigSpace::new(identity),
            connected: 0,
            stats: FunctionStats::default(),
        }
    }
}

impl Card {
    /// A card as power finds it: regions without content, SFTRST 0, access with the host.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let user = Slot::new(USER_DEVICE, None, dfl::USER_BAR);
        Self {
            engine: Engine::new(config.interface_id, config.rate, config.fifo.words()),
            regions: Regions::new(),
            faults: Faults::default(),
            gone_from: None,
            management: Slot::new(MANAGEMENT_DEVICE, Some(config.serial), dfl::MANAGEMENT_BAR),
            user: [user.clone(), user],
            power_cycles: 0,
            config,
        }
    }

    /// Reads `out.len()` bytes. What does not exist, and a card that is gone, reads all-ones.
    pub fn read(&mut self, function: PciFunction, space: Space, offset: u64, out: &mut [u8]) {
        if self.is_gone() {
            out.fill(0xff);
            return;
        }
        match space {
            Space::Config => self.slot(function).space.read(offset, out),
            Space::Bar0 => {
                let now = self.settle();
                csr::load(offset, out, |register| self.load(function, register, now));
            }
        }
    }

    /// Writes `bytes`, cut into accesses of at most eight bytes at rising
    /// offsets, none across a register. What does not exist takes nothing.
    pub fn write(&mut self, function: PciFunction, space: Space, offset: u64, bytes: &[u8]) {
        if self.is_gone() {
            return;
        }
        match space {
            Space::Config => {
                let asked = self.slot_mut(function).space.write(offset, bytes);
                if asked == Asked::FunctionLevelReset {
                    self.reset(function);
                }
            }
            Space::Bar0 => {
                for store in csr::stores(offset, bytes) {
                    if !self.is_gone() {
                        let now = self.settle();
                        self.store(function, store, now);
                    }
                }
            }
        }
    }

    /// A function level reset.
    ///
    /// Of the management function: the static logic starts over (engine and
    /// ports, access to the host), the content of the regions stays. Of a user
    /// function: its configuration space, and its region's function as far as
    /// the guest reaches it.
    pub fn reset(&mut self, function: PciFunction) {
        let now = self.settle();
        let slot = self.slot_mut(function);
        slot.space.reset();
        count(&mut slot.stats.resets);
        match function {
            PciFunction::User(region) => {
                self.regions.of(region).guest_reset(now);
                self.engine.port_moved(&mut self.regions);
            }
            PciFunction::Management => {
                let (engine, mut around) = self.parts(now);
                engine.hard_reset(&mut around);
                for region in self.regions.iter_mut() {
                    region.shell_reset(now);
                }
            }
        }
    }

    /// Power off and on: nothing is left but the counts and the faults.
    pub fn power_cycle(&mut self) {
        let now = self.config.clock.now();
        let (engine, mut around) = self.parts(now);
        engine.hard_reset(&mut around);
        for region in self.regions.iter_mut() {
            region.power_cycle();
        }
        for slot in self.user.iter_mut().chain([&mut self.management]) {
            slot.space.reset();
        }
        count(&mut self.power_cycles);
    }

    /// A client of a function came.
    pub fn connected(&mut self, function: PciFunction) {
        let slot = self.slot_mut(function);
        slot.connected = slot.connected.saturating_add(1);
        count(&mut slot.stats.connections);
    }

    /// A client of a function went: [`OnClose`] says what that means.
    pub fn disconnected(&mut self, function: PciFunction) {
        let slot = self.slot_mut(function);
        slot.connected = slot.connected.saturating_sub(1);
        if self.config.on_close == OnClose::Reset {
            self.reset(function);
        }
    }

    /// Lets a fault wait, or strike at once where it is a state.
    ///
    /// # Errors
    /// What makes no sense, or no room.
    pub fn inject(&mut self, fault: Fault) -> Result<(), FaultRefused> {
        let whole_card = matches!(
            fault.kind,
            Kind::StickyError { .. } | Kind::RstNoAck | Kind::BusyStuck | Kind::CardGone { .. }
        );
        if whole_card && fault.region.is_some() {
            return Err(FaultRefused::NotOfARegion);
        }
        match fault.kind {
            Kind::StickyError { bits } => {
                self.engine.raise(bits);
                if fault.times == Times::Once {
                    return Ok(());
                }
            }
            Kind::CardGone { after_words } => {
                if fault.times == Times::Once {
                    return Err(FaultRefused::Lasting);
                }
                self.gone_from = Some(self.engine.data_stores.saturating_add(after_words));
            }
            Kind::SlowRate {
                bytes_per_second: 0,
            } => return Err(FaultRefused::NoSpeed),
            _ => {}
        }
        self.faults.add(fault).ok_or(FaultRefused::Full)
    }

    /// No fault waits any more; a card that was gone is back as it was.
    pub fn clear_faults(&mut self) {
        self.faults.clear();
        self.gone_from = None;
    }

    /// The faults that wait.
    #[must_use]
    pub fn faults(&self) -> &[Fault] {
        self.faults.all()
    }

    /// Everything counted so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let mut stats = Stats {
            management: self.management.stats,
            stray_data_stores: self.engine.stray_data_stores,
            engine_resets: self.engine.resets,
            power_cycles: self.power_cycles,
            ..Stats::default()
        };
        for (to, region) in stats.regions.iter_mut().zip(self.regions.iter()) {
            *to = region.stats;
        }
        for (to, slot) in stats.user.iter_mut().zip(&self.user) {
            *to = slot.stats;
        }
        stats
    }

    /// The interface id that payloads must carry.
    #[must_use]
    pub fn interface_id(&self) -> Uuid {
        self.config.interface_id
    }

    /// The serial number of the management function.
    #[must_use]
    pub fn serial(&self) -> u64 {
        self.config.serial
    }

    /// The regions, with all that time has brought.
    pub(crate) fn settled_regions(&mut self) -> &mut Regions {
        self.settle();
        &mut self.regions
    }

    /// The function's configuration space, and whether a client holds it.
    pub(crate) fn bus_view(&self, function: PciFunction) -> (&ConfigSpace, u64) {
        let slot = self.slot(function);
        (&slot.space, slot.connected)
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.gone_from
            .is_some_and(|from| self.engine.data_stores >= from)
    }

    fn slot(&self, function: PciFunction) -> &Slot {
        let [first, second] = &self.user;
        match function {
            PciFunction::Management => &self.management,
            PciFunction::User(region) if region.index() == 0 => first,
            PciFunction::User(_) => second,
        }
    }

    fn slot_mut(&mut self, function: PciFunction) -> &mut Slot {
        let [first, second] = &mut self.user;
        match function {
            PciFunction::Management => &mut self.management,
            PciFunction::User(region) if region.index() == 0 => first,
            PciFunction::User(_) => second,
        }
    }

    /// The engine, and what it needs of the rest.
    fn parts(&mut self, now: Duration) -> (&mut Engine, Surroundings<'_>) {
        let around = Surroundings {
            now,
            regions: &mut self.regions,
            faults: &mut self.faults,
            table: &self.config.table,
        };
        (&mut self.engine, around)
    }

    /// Lets happen what time has brought.
    fn settle(&mut self) -> Duration {
        let now = self.config.clock.now();
        let (engine, mut around) = self.parts(now);
        engine.settle(&mut around);
        now
    }

    fn load(&self, function: PciFunction, register: u64, now: Duration) -> u64 {
        match function {
            PciFunction::User(region) => match self.regions.get(region.number()) {
                Some(region) if register < dfl::USER_BAR => region.read(Side::Guest, register, now),
                _ => u64::MAX,
            },
            PciFunction::Management => match Block::at(register) {
                Block::Fme => fme::read(register, &self.regions),
                Block::Thermal(register) => fme::read_thermal(register),
                Block::Errors(register) => fme::read_errors(register),
                Block::Pr(register) => self.engine.read(register),
                Block::Port(number, register) => self
                    .regions
                    .get(number)
                    .map_or(u64::MAX, |region| region.read(Side::Host, register, now)),
                Block::Hole => 0,
                Block::Outside => u64::MAX,
            },
        }
    }

    fn store(&mut self, function: PciFunction, store: Store, now: Duration) {
        let (side, number, store) = match function {
            PciFunction::User(region) if store.register < dfl::USER_BAR => {
                (Side::Guest, region.number(), store)
            }
            PciFunction::User(_) => return,
            PciFunction::Management => match Block::at(store.register) {
                Block::Fme => return fme::write(store, &mut self.regions, &mut self.faults),
                Block::Pr(register) => {
                    let (engine, mut around) = self.parts(now);
                    return engine.write(Store { register, ..store }, &mut around);
                }
                Block::Port(number, register) => (Side::Host, number, Store { register, ..store }),
                Block::Thermal(_) | Block::Errors(_) | Block::Hole | Block::Outside => return,
            },
        };
        if let Some(region) = self.regions.get_mut(number) {
            region.write(side, store, now, &mut self.faults);
            self.engine.port_moved(&mut self.regions);
        }
    }
}
