//! The card as a whole: which register an access reaches. Pure: no sockets, no
//! threads; its only outside is the clock of its [`Config`].

use std::time::Duration;

use uuid::Uuid;

use crate::config::{Config, OnClose, REGIONS};
use crate::csr;
use crate::fault::{Fault, FaultRefused, Faults, Kind, Times};
use crate::pci::{Asked, ConfigSpace, Identity};
use crate::regions::{RegionId, Regions};
use crate::shape::{Around, Inside};
use crate::silicon::Written;
use crate::slot::Slot;
use crate::stats::{Stats, count};

/// One of the card's PCI functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PciFunction {
    /// What the host keeps.
    Management,
    /// What a guest gets: the way into one region.
    User(RegionId),
}

/// Where in a function an access goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Space {
    /// Configuration space, 4 KiB.
    Config,
    /// BAR0.
    Bar0,
}

/// A simulated card.
#[derive(Debug, Clone)]
pub struct Card {
    config: Config,
    inside: Inside,
    faults: Faults,
    /// The count of data stores from which on the card is gone.
    gone_from: Option<u64>,
    management: Slot,
    user: [Slot; REGIONS],
    power_cycles: u64,
}

impl Card {
    /// A card as power finds it: regions without content. DFL: SFTRST 0,
    /// access with the host. AMD: all regions coupled.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let inside = Inside::new(&config);
        let ids = inside.ids();
        let slot = |function, device, serial| {
            Slot::new(Identity {
                vendor: ids.vendor,
                device,
                serial,
                bar_size: inside.bar_size(function),
            })
        };
        let serial = Some(config.serial);
        Self {
            management: slot(PciFunction::Management, ids.management, serial),
            user: RegionId::ALL.map(|id| slot(PciFunction::User(id), ids.user, None)),
            inside,
            faults: Faults::default(),
            gone_from: None,
            power_cycles: 0,
            config,
        }
    }

    /// Size of a function's BAR0 in bytes.
    #[must_use]
    pub fn bar_size(&self, function: PciFunction) -> u64 {
        self.inside.bar_size(function)
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
                self.inside.read(function, offset, out, now);
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
                        self.settle();
                        let (inside, mut around) = self.parts();
                        inside.store(function, store, &mut around);
                    }
                }
            }
        }
    }

    /// A function level reset.
    ///
    /// Of the management function: the static logic starts over (engine and
    /// ports or decouplers), the content of the regions stays. Of a user
    /// function: its configuration space, and its region's function as far as
    /// the guest reaches it.
    pub fn reset(&mut self, function: PciFunction) {
        self.settle();
        let slot = self.slot_mut(function);
        slot.space.reset();
        count(&mut slot.stats.resets);
        let (inside, mut around) = self.parts();
        inside.reset(function, &mut around);
    }

    /// Power off and on: nothing is left but the counts and the faults.
    pub fn power_cycle(&mut self) {
        let (inside, mut around) = self.parts();
        inside.power_cycle(&mut around);
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
        let fits = match &self.inside {
            Inside::Dfl(_) => fault.kind.is_of_dfl(),
            Inside::Hwicap(_) => fault.kind.is_of_hwicap(),
        };
        if !fits {
            return Err(FaultRefused::NotOfThisShape);
        }
        match fault.kind {
            Kind::StickyError { bits } => {
                if let Inside::Dfl(dfl) = &mut self.inside {
                    dfl.engine.raise(bits);
                }
                if fault.times == Times::Once {
                    return Ok(());
                }
            }
            Kind::CardGone { after_words } => {
                if fault.times == Times::Once {
                    return Err(FaultRefused::Lasting);
                }
                self.gone_from = Some(self.inside.data_stores().saturating_add(after_words));
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
            power_cycles: self.power_cycles,
            ..Stats::default()
        };
        match &self.inside {
            Inside::Dfl(dfl) => {
                stats.stray_data_stores = dfl.engine.stray_data_stores;
                stats.engine_resets = dfl.engine.resets;
            }
            Inside::Hwicap(shell) => stats.hwicap = Some(shell.stats()),
        }
        for (to, region) in stats.regions.iter_mut().zip(self.inside.regions().iter()) {
            *to = region.stats;
        }
        for (to, slot) in stats.user.iter_mut().zip(&self.user) {
            *to = slot.stats;
        }
        stats
    }

    /// The frames that were written since the last [`Card::mark`]; `None`: a
    /// card whose frames nobody knows.
    pub fn written(&mut self) -> Option<Written> {
        self.settle();
        match &self.inside {
            Inside::Dfl(_) => None,
            Inside::Hwicap(shell) => Some(shell.logic().written()),
        }
    }

    /// Forgets which frames were written. `None`: see [`Card::written`].
    pub fn mark(&mut self) -> Option<()> {
        self.settle();
        match &mut self.inside {
            Inside::Dfl(_) => None,
            Inside::Hwicap(shell) => {
                shell.logic_mut().forget_written();
                Some(())
            }
        }
    }

    /// The device's name, where the card has frames.
    #[must_use]
    pub fn device(&self) -> Option<&str> {
        match &self.inside {
            Inside::Dfl(_) => None,
            Inside::Hwicap(shell) => Some(shell.logic().geometry().name()),
        }
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
        self.inside.regions_mut()
    }

    /// The function's configuration space, and whether a client holds it.
    pub(crate) fn bus_view(&self, function: PciFunction) -> (&ConfigSpace, u64) {
        let slot = self.slot(function);
        (&slot.space, slot.connected)
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.gone_from
            .is_some_and(|from| self.inside.data_stores() >= from)
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

    /// What is inside, and what it needs of the rest.
    fn parts(&mut self) -> (&mut Inside, Around<'_>) {
        let around = Around {
            now: self.config.clock.now(),
            faults: &mut self.faults,
            table: &self.config.table,
        };
        (&mut self.inside, around)
    }

    /// Lets happen what time has brought.
    fn settle(&mut self) -> Duration {
        let (inside, mut around) = self.parts();
        inside.settle(&mut around);
        around.now
    }
}
