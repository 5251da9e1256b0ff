//! The partial reconfiguration feature of a classic card (id 5, revision 0).
//!
//! What is classic about it, and where other cards differ:
//!
//! - COMPLETE always ends in START = 0, with or without an error;
//! - RST clears START, COMPLETE and STS b16, but not ERR;
//! - STS b16 is raised together with any ERR bit, is 0 during a good run, and
//!   falls with RST or when the last ERR bit is written away;
//! - the region is CTRL `[9:7]`;
//! - ERR b2 tells a foreign interface id.
//!
//! An OFS card (revision 1) behaves otherwise in each of these; its engine
//! would be a sibling of this file with the same calls.

use std::time::Duration;

use uuid::Uuid;

use crate::config::Rate;
use crate::csr::{Level, Store};
use crate::dfl::{self, List, Type};
use crate::fault::{Faults, Kind, PrError, Stage};
use crate::fifo::{Drain, Fifo, Push};
use crate::functions::Function;
use crate::region::Fabric;
use crate::regions::Regions;
use crate::run::Run;
use crate::stats::count;
use crate::table::Table;

/// Registers, from the feature's base.
pub(crate) mod reg {
    pub(crate) const DFH: u64 = 0x00;
    pub(crate) const CTRL: u64 = 0x08;
    pub(crate) const STS: u64 = 0x10;
    pub(crate) const DATA: u64 = 0x18;
    pub(crate) const ERR: u64 = 0x20;
    pub(crate) const INTFC_ID_L: u64 = 0xa8;
    pub(crate) const INTFC_ID_H: u64 = 0xb0;
}

/// Bits of CTRL.
pub(crate) mod ctrl {
    pub(crate) const RST: u64 = 1;
    pub(crate) const RST_ACK: u64 = 1 << 4;
    pub(crate) const REGION_SHIFT: u32 = 7;
    pub(crate) const REGION: u64 = 7 << REGION_SHIFT;
    pub(crate) const START: u64 = 1 << 12;
    pub(crate) const COMPLETE: u64 = 1 << 13;
}

const STS_FAULT: u64 = 1 << 16;
const STS_HOST_SHIFT: u32 = 24;
/// The ERR bits that exist.
const ERR_BITS: u64 = 0x1f;

/// STS `[27:24]`, as far as this engine passes through them.
#[derive(Debug, Clone, Copy)]
enum HostStatus {
    Idle = 0,
    AwaitingFirstWord = 4,
    Streaming = 5,
    Closing = 7,
}

/// What the engine needs of the rest of the card.
pub(crate) struct Surroundings<'a> {
    pub(crate) now: Duration,
    pub(crate) regions: &'a mut Regions,
    pub(crate) faults: &'a mut Faults,
    pub(crate) table: &'a Table,
}

/// The engine with its registers.
#[derive(Debug, Clone)]
pub(crate) struct Engine {
    interface: Uuid,
    rate: Rate,
    fifo: Fifo,
    rst: Rst,
    busy_stuck: bool,
    region: u8,
    complete: bool,
    err: u64,
    fault: bool,
    data: u64,
    run: Option<Run>,
    pub(crate) data_stores: u64,
    pub(crate) stray_data_stores: u64,
    pub(crate) resets: u64,
}

/// The RST handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rst {
    Low,
    Acknowledged,
    /// A fault: no acknowledgement comes.
    Ignored,
}

impl Engine {
    pub(crate) fn new(interface: Uuid, rate: Rate, fifo_depth: u16) -> Self {
        Self {
            interface,
            rate,
            fifo: Fifo::new(fifo_depth),
            rst: Rst::Low,
            busy_stuck: false,
            region: 0,
            complete: false,
            err: 0,
            fault: false,
            data: 0,
            run: None,
            data_stores: 0,
            stray_data_stores: 0,
            resets: 0,
        }
    }

    /// Everything to its reset values, ERR too: power, or a reset of the management function.
    pub(crate) fn hard_reset(&mut self, around: &mut Surroundings<'_>) {
        self.abort(around);
        self.fifo.start(Drain::At(self.rate), 0, around.now);
        *self = Self {
            data_stores: self.data_stores,
            stray_data_stores: self.stray_data_stores,
            resets: self.resets,
            fifo: self.fifo.clone(),
            ..Self::new(self.interface, self.rate, 0)
        };
    }

    /// Sets ERR bits from outside (a fault), as an engine that found an error.
    pub(crate) fn raise(&mut self, bits: u64) {
        self.err |= bits & ERR_BITS;
        self.fault |= bits & ERR_BITS != 0;
    }

    /// Does what would have happened up to now.
    pub(crate) fn settle(&mut self, around: &mut Surroundings<'_>) {
        self.fifo.settle(around.now);
        if self.complete
            && self.fifo.is_empty()
            && let Some(run) = self.run.take_if(|run| run.can_end())
        {
            self.finish(run, around);
        }
    }

    pub(crate) fn read(&self, register: u64) -> u64 {
        let (high, low) = dfl::halves(self.interface);
        match register {
            reg::DFH => dfl::header(Type::Private, 5, List::Ends),
            reg::CTRL => self.control(),
            reg::STS => self.status(),
            reg::DATA => self.data,
            reg::ERR => self.err,
            reg::INTFC_ID_L => low,
            reg::INTFC_ID_H => high,
            _ => 0,
        }
    }

    fn control(&self) -> u64 {
        let rst = match self.rst {
            Rst::Low => 0,
            Rst::Acknowledged => ctrl::RST | ctrl::RST_ACK,
            Rst::Ignored => ctrl::RST,
        };
        let start = if self.run.is_some() { ctrl::START } else { 0 };
        let complete = if self.complete { ctrl::COMPLETE } else { 0 };
        rst | u64::from(self.region) << ctrl::REGION_SHIFT | start | complete
    }

    fn status(&self) -> u64 {
        let host = match &self.run {
            None => HostStatus::Idle,
            Some(_) if self.complete => HostStatus::Closing,
            Some(run) if run.words == 0 => HostStatus::AwaitingFirstWord,
            Some(_) => HostStatus::Streaming,
        };
        let fault = if self.fault || self.busy_stuck {
            STS_FAULT
        } else {
            0
        };
        u64::from(self.fifo.credit()) | fault | (host as u64) << STS_HOST_SHIFT
    }

    pub(crate) fn write(&mut self, store: Store, around: &mut Surroundings<'_>) {
        match store.register {
            reg::CTRL => self.write_control(store, around),
            reg::DATA => self.write_data(store, around),
            reg::ERR => {
                self.err &= !(store.value & store.mask);
                // What comes back by itself is not cleared by a driver.
                let sticky = |kind: &Kind| match kind {
                    Kind::StickyError { bits } => Some(*bits),
                    _ => None,
                };
                let sticky = around.faults.strike(None, sticky).unwrap_or(0);
                self.fault &= self.err != 0;
                self.raise(sticky);
            }
            _ => {}
        }
    }

    fn write_control(&mut self, store: Store, around: &mut Surroundings<'_>) {
        let region = (store.over(self.control()) & ctrl::REGION) >> ctrl::REGION_SHIFT;
        self.region = u8::try_from(region).unwrap_or(0);
        match (store.bit(ctrl::RST), self.rst) {
            (Some(Level::High), Rst::Low) => self.reset(around),
            (Some(Level::Low), _) => self.rst = Rst::Low,
            _ => {}
        }
        // START and COMPLETE are set-only, and stay 0 while RST is held.
        if self.rst != Rst::Low {
            return;
        }
        self.complete |= store.bit(ctrl::COMPLETE) == Some(Level::High);
        if store.bit(ctrl::START) == Some(Level::High) && self.run.is_none() {
            self.start(around);
        }
        self.settle(around);
    }

    /// RST rises.
    fn reset(&mut self, around: &mut Surroundings<'_>) {
        count(&mut self.resets);
        self.abort(around);
        self.complete = false;
        self.fault = false;
        self.fifo.start(Drain::At(self.rate), 0, around.now);
        self.busy_stuck = around.faults.strikes(None, Kind::BusyStuck);
        self.rst = if around.faults.strikes(None, Kind::RstNoAck) {
            Rst::Ignored
        } else {
            Rst::Acknowledged
        };
    }

    /// A run is cut off: what it left in the region is no function.
    fn abort(&mut self, around: &mut Surroundings<'_>) {
        if let Some(run) = self.run.take()
            && let Some(region) = around.regions.get_mut(run.region)
        {
            region.fabric = Fabric::Still;
            count(&mut region.stats.pr_aborted);
        }
    }

    fn start(&mut self, around: &mut Surroundings<'_>) {
        let number = self.region;
        let injected = around.faults.strike(Some(number), |kind| match kind {
            Kind::PrError { bits, at } => Some((*bits, *at)),
            _ => None,
        });
        let at = |stage| injected.map_or(0, |(bits, at)| if at == stage { bits } else { 0 });

        let Some(region) = around.regions.get_mut(number) else {
            return self.refuse(PrError::Operation.bit());
        };
        // Bits of ERR that a reset left behind are no obstacle: Linux clears them
        // only where b16 is set, and loads all the same.
        if self.fault || !region.in_reset() || at(Stage::Start) != 0 {
            count(&mut region.stats.pr_refused);
            return self.refuse(match at(Stage::Start) {
                0 => PrError::Operation.bit(),
                bits => bits,
            });
        }
        count(&mut region.stats.pr_starts);
        region.fabric = Fabric::Frozen;
        region.configure(Function::nothing());

        let (drain, taken) = self.speed(number, around.faults);
        self.fifo.start(drain, taken, around.now);
        let mut run = Run::begin(number, around.faults);
        run.at_data = at(Stage::Data);
        run.at_complete = at(Stage::Complete);
        self.run = Some(run);
    }

    /// How fast this run goes, and how many credits are gone from the start.
    fn speed(&self, region: u8, faults: &mut Faults) -> (Drain, u16) {
        let stuck = faults.strike(Some(region), |kind| match kind {
            Kind::CreditsStuck { credit } => Some(*credit),
            _ => None,
        });
        if let Some(credit) = stuck {
            let taken = credit.map_or(0, |credit| self.fifo.depth().saturating_sub(credit));
            return (Drain::Blocked, taken);
        }
        let slow = faults.strike(Some(region), |kind| match kind {
            Kind::SlowRate { bytes_per_second } => Some(*bytes_per_second),
            _ => None,
        });
        (Drain::At(slow.map_or(self.rate, Rate::BytesPerSecond)), 0)
    }

    /// START begins nothing.
    fn refuse(&mut self, bits: u64) {
        self.complete = false;
        self.raise(bits);
    }

    /// Any store pushes one word, whatever its size: the low half of the
    /// register as it was left by **whole or low** stores. A store of four
    /// bytes at +4 comes too late to change what it pushes: the old low word
    /// goes in again.
    fn write_data(&mut self, store: Store, around: &mut Surroundings<'_>) {
        self.data = store.over(self.data);
        let word = u32::try_from(self.data & u64::from(u32::MAX)).unwrap_or(0);
        count(&mut self.data_stores);
        self.fifo.settle(around.now);
        let Some(run) = &mut self.run else {
            count(&mut self.stray_data_stores);
            return;
        };
        let mut errors = std::mem::take(&mut run.at_data);
        match self.fifo.push() {
            Push::Taken => run.recogniser.push(word),
            Push::Lost => errors |= PrError::FifoOverflow.bit(),
        }
        count(&mut run.words);
        if let Some(region) = around.regions.get_mut(run.region) {
            count(&mut region.stats.data_words);
        }
        run.errors |= errors;
        self.raise(errors);
    }

    /// The region under work left its reset: a wrong operation.
    pub(crate) fn port_moved(&mut self, regions: &mut Regions) {
        let Some(run) = &mut self.run else { return };
        if regions
            .get_mut(run.region)
            .is_some_and(|region| !region.in_reset())
        {
            run.errors |= PrError::Operation.bit();
            self.raise(PrError::Operation.bit());
        }
    }

    fn finish(&mut self, run: Run, around: &mut Surroundings<'_>) {
        self.complete = false;
        let Some(region) = around.regions.get_mut(run.region) else {
            return;
        };
        region.fabric = Fabric::Still;
        match run.verdict(self.interface, around.table) {
            Ok(function) => {
                region.configure(Function::named(function, around.now));
                count(&mut region.stats.pr_successes);
            }
            Err(bits) => {
                count(&mut region.stats.pr_failures);
                self.raise(bits);
            }
        }
    }
}
