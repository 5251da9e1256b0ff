//! What a card's functions reach, by its shape: the DFL map, or the AMD shell.
//! One place per shape where an access is sent on; the card around it knows of
//! configuration space, faults and clients only.

use std::time::Duration;

use crate::bar::Block;
use crate::card::PciFunction;
use crate::config::{Config, Shape};
use crate::csr::{self, Store};
use crate::dfl;
use crate::fault::Faults;
use crate::fme;
use crate::hwicap::{self, Shell};
use crate::pr::{Engine, Surroundings};
use crate::region::Side;
use crate::regions::Regions;
use crate::table::Table;

/// PCI vendor and device ids of a card's functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PciIds {
    /// Vendor of all functions.
    pub vendor: u16,
    /// Device of the management function.
    pub management: u16,
    /// Device of a user function.
    pub user: u16,
}

/// A card of the DFL shape (Intel's PAC).
pub const DFL_IDS: PciIds = PciIds {
    vendor: 0x8086,
    management: 0x09c4,
    user: 0x09c5,
};
/// A card of the AMD shape (XDMA's usual numbers).
pub const HWICAP_IDS: PciIds = PciIds {
    vendor: 0x10ee,
    management: 0x9038,
    user: 0x9138,
};

/// What a shape needs of the card around it.
pub(crate) struct Around<'a> {
    pub(crate) now: Duration,
    pub(crate) faults: &'a mut Faults,
    pub(crate) table: &'a Table,
}

/// What is behind the functions.
#[derive(Debug, Clone)]
pub(crate) enum Inside {
    Dfl(Box<Dfl>),
    Hwicap(Box<Shell>),
}

/// The DFL shape: an engine, and regions with ports.
#[derive(Debug, Clone)]
pub(crate) struct Dfl {
    pub(crate) engine: Engine,
    pub(crate) regions: Regions,
}

impl Inside {
    pub(crate) fn new(config: &Config) -> Self {
        let fifo = config.fifo.words();
        match &config.shape {
            Shape::Dfl => Self::Dfl(Box::new(Dfl {
                engine: Engine::new(config.interface_id, config.rate, fifo),
                regions: Regions::new(),
            })),
            Shape::Hwicap(geometry) => Self::Hwicap(Box::new(Shell::new(
                geometry.as_ref().clone(),
                config.rate,
                fifo,
            ))),
        }
    }

    pub(crate) fn ids(&self) -> PciIds {
        match self {
            Self::Dfl(_) => DFL_IDS,
            Self::Hwicap(_) => HWICAP_IDS,
        }
    }

    pub(crate) fn bar_size(&self, function: PciFunction) -> u64 {
        match (self, function) {
            (_, PciFunction::User(_)) => dfl::USER_BAR,
            (Self::Dfl(_), PciFunction::Management) => dfl::MANAGEMENT_BAR,
            (Self::Hwicap(_), PciFunction::Management) => hwicap::MANAGEMENT_BAR,
        }
    }

    pub(crate) fn regions(&self) -> &Regions {
        match self {
            Self::Dfl(dfl) => &dfl.regions,
            Self::Hwicap(shell) => &shell.regions,
        }
    }

    pub(crate) fn regions_mut(&mut self) -> &mut Regions {
        match self {
            Self::Dfl(dfl) => &mut dfl.regions,
            Self::Hwicap(shell) => &mut shell.regions,
        }
    }

    /// Words of bitstreams that were stored so far.
    pub(crate) fn data_stores(&self) -> u64 {
        match self {
            Self::Dfl(dfl) => dfl.engine.data_stores,
            Self::Hwicap(shell) => shell.data_stores(),
        }
    }

    /// Lets happen what time has brought.
    pub(crate) fn settle(&mut self, around: &mut Around<'_>) {
        match self {
            Self::Dfl(dfl) => {
                let (engine, mut around) = dfl.parts(around);
                engine.settle(&mut around);
            }
            Self::Hwicap(shell) => shell.settle(around),
        }
    }

    /// A function level reset of a function.
    pub(crate) fn reset(&mut self, function: PciFunction, around: &mut Around<'_>) {
        let now = around.now;
        match (self, function) {
            (Self::Dfl(dfl), PciFunction::User(region)) => {
                dfl.regions.of(region).guest_reset(now);
                dfl.engine.port_moved(&mut dfl.regions);
            }
            (Self::Dfl(dfl), PciFunction::Management) => {
                let (engine, mut around) = dfl.parts(around);
                engine.hard_reset(&mut around);
                for region in dfl.regions.iter_mut() {
                    region.shell_reset(now);
                }
            }
            (Self::Hwicap(shell), PciFunction::User(region)) => {
                shell.regions.of(region).guest_reset(now);
            }
            (Self::Hwicap(shell), PciFunction::Management) => shell.shell_reset(now),
        }
    }

    pub(crate) fn power_cycle(&mut self, around: &mut Around<'_>) {
        match self {
            Self::Dfl(dfl) => {
                let (engine, mut around) = dfl.parts(around);
                engine.hard_reset(&mut around);
                for region in dfl.regions.iter_mut() {
                    region.power_cycle();
                }
            }
            Self::Hwicap(shell) => shell.power_cycle(),
        }
    }

    /// Reads BAR0.
    pub(crate) fn read(&mut self, function: PciFunction, at: u64, out: &mut [u8], now: Duration) {
        match (self, function) {
            (Self::Dfl(dfl), _) => {
                csr::load(at, out, |register| dfl.load(function, register, now));
            }
            (Self::Hwicap(shell), PciFunction::Management) => {
                csr::load_words(at, out, |register| shell.load(register));
            }
            (Self::Hwicap(shell), PciFunction::User(region)) => {
                csr::load(at, out, |register| shell.user_load(region, register, now));
            }
        }
    }

    /// Takes a store to BAR0.
    pub(crate) fn store(&mut self, function: PciFunction, store: Store, around: &mut Around<'_>) {
        match (self, function) {
            (Self::Dfl(dfl), _) => dfl.store(function, store, around),
            (Self::Hwicap(shell), PciFunction::Management) => shell.store(store, around),
            (Self::Hwicap(shell), PciFunction::User(region)) => {
                shell.user_store(region, store, around);
            }
        }
    }
}

impl Dfl {
    /// The engine, and what it needs of the rest.
    fn parts<'a>(&'a mut self, around: &'a mut Around<'_>) -> (&'a mut Engine, Surroundings<'a>) {
        let around = Surroundings {
            now: around.now,
            regions: &mut self.regions,
            faults: around.faults,
            table: around.table,
        };
        (&mut self.engine, around)
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

    fn store(&mut self, function: PciFunction, store: Store, around: &mut Around<'_>) {
        let (side, number, store) = match function {
            PciFunction::User(region) if store.register < dfl::USER_BAR => {
                (Side::Guest, region.number(), store)
            }
            PciFunction::User(_) => return,
            PciFunction::Management => match Block::at(store.register) {
                Block::Fme => return fme::write(store, &mut self.regions, around.faults),
                Block::Pr(register) => {
                    let (engine, mut around) = self.parts(around);
                    return engine.write(Store { register, ..store }, &mut around);
                }
                Block::Port(number, register) => (Side::Host, number, Store { register, ..store }),
                Block::Thermal(_) | Block::Errors(_) | Block::Hole | Block::Outside => return,
            },
        };
        if let Some(region) = self.regions.get_mut(number) {
            region.write(side, store, around.now, around.faults);
            self.engine.port_moved(&mut self.regions);
        }
    }
}
