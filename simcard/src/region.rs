//! One region: its port, the two gates before it, and the function inside.
//!
//! Two switches: **access** (who reaches the function: the host through the
//! management function, or the guest through the user function; `PORT_OFST`
//! b55) and **reset** (`PORT_CTRL` SFTRST). There is one SFTRST, seen from two
//! sides; a reset that the host asserted, only the host releases.
//!
//! Memory beside the function (which would survive a reconfiguration) is not
//! modelled yet; its place is here, next to `function`.

use std::time::Duration;

use crate::csr::{Level, Store};
use crate::dfl::{self, List, Type};
use crate::fault::{Faults, Kind};
use crate::functions::Function;
use crate::stats::{RegionStats, count};

/// Port registers, from the port's base.
pub(crate) mod reg {
    pub(crate) const DFH: u64 = 0x00;
    pub(crate) const GUID_L: u64 = 0x08;
    pub(crate) const GUID_H: u64 = 0x10;
    pub(crate) const NEXT_AFU: u64 = 0x18;
    pub(crate) const SCRATCH: u64 = 0x28;
    pub(crate) const CAP: u64 = 0x30;
    pub(crate) const CTRL: u64 = 0x38;
    pub(crate) const STS: u64 = 0x40;
}

const SFTRST: u64 = 1;
const LATENCY: u64 = 1 << 2;
const SFTRST_ACK: u64 = 1 << 4;
const STS_FROZEN: u64 = 1;

/// Who reaches a region's function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Host,
    Guest,
}

/// From which PCI function an access comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Host,
    Guest,
}

/// Whether SFTRST is set, and who set it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hold {
    Released,
    By(Side),
}

/// Whether the configuration engine works on the region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fabric {
    Still,
    Frozen,
}

/// A region with its port.
#[derive(Debug, Clone)]
pub(crate) struct Region {
    number: u8,
    access: Access,
    hold: Hold,
    /// The port has acknowledged: the function really is in reset.
    acknowledged: bool,
    latency: u64,
    scratch: u64,
    pub(crate) fabric: Fabric,
    function: Function,
    pub(crate) stats: RegionStats,
}

impl Region {
    pub(crate) fn new(number: u8) -> Self {
        Self {
            number,
            access: Access::Host,
            hold: Hold::Released,
            acknowledged: false,
            latency: LATENCY,
            scratch: 0,
            fabric: Fabric::Still,
            function: Function::nothing(),
            stats: RegionStats::default(),
        }
    }

    /// Content lost, SFTRST 0, access with the host; the counts stay.
    pub(crate) fn power_cycle(&mut self) {
        *self = Self {
            stats: self.stats,
            ..Self::new(self.number)
        };
    }

    /// The static logic is reset, the content stays: SFTRST 0, access with the host.
    pub(crate) fn shell_reset(&mut self, now: Duration) {
        let content = self.function.clone();
        self.power_cycle();
        self.function = content;
        self.function.reset(now);
    }

    /// A function level reset of the user function: reaches the region only as far as the guest does.
    pub(crate) fn guest_reset(&mut self, now: Duration) {
        if self.reaches_port(Side::Guest) {
            self.hold = Hold::Released;
            self.acknowledged = false;
            self.function.reset(now);
        }
    }

    pub(crate) fn function(&self) -> &Function {
        &self.function
    }

    pub(crate) fn access(&self) -> Access {
        self.access
    }

    /// The guest reaches the function: what a decoupler does after a reset. No
    /// driver did it, so nothing is counted.
    pub(crate) fn couple(&mut self) {
        self.access = Access::Guest;
    }

    /// Whether the function is held in reset, and the port has said so.
    pub(crate) fn in_reset(&self) -> bool {
        self.acknowledged
    }

    /// The configuration engine took the old content away, or brought new.
    pub(crate) fn configure(&mut self, function: Function) {
        self.function = function;
    }

    /// The store to `PORT_OFST` b55.
    pub(crate) fn give_access(&mut self, to: Access, faults: &mut Faults) {
        if self.access == to || faults.strikes(Some(self.number), Kind::AccessIgnored) {
            return;
        }
        self.access = to;
        match to {
            Access::Host => count(&mut self.stats.isolations),
            Access::Guest => count(&mut self.stats.handovers),
        }
    }

    /// The host always reaches the port's header. The guest does while access
    /// is its and the host does not hold the reset.
    fn reaches_port(&self, side: Side) -> bool {
        side == Side::Host || (self.access == Access::Guest && self.hold != Hold::By(Side::Host))
    }

    fn reaches_function(&self, side: Side) -> bool {
        let open = match side {
            Side::Host => self.access == Access::Host,
            Side::Guest => self.access == Access::Guest,
        };
        open && self.hold == Hold::Released && !self.acknowledged && self.fabric == Fabric::Still
    }

    /// Reads a register; `offset` from the port's base, the AFU lies at `NEXT_AFU`.
    pub(crate) fn read(&self, side: Side, offset: u64, now: Duration) -> u64 {
        if let Some(register) = offset.checked_sub(dfl::NEXT_AFU) {
            return if self.reaches_function(side) {
                self.function.read(register, now)
            } else {
                u64::MAX
            };
        }
        if !self.reaches_port(side) {
            return u64::MAX;
        }
        let (guid_high, guid_low) = dfl::halves(dfl::PORT_GUID);
        match offset {
            reg::DFH => dfl::header(Type::Fiu, 1, List::Ends),
            reg::GUID_L => guid_low,
            reg::GUID_H => guid_high,
            reg::NEXT_AFU => dfl::NEXT_AFU,
            reg::SCRATCH => self.scratch,
            reg::CAP => (dfl::AFU_SIZE >> 10) << 8 | u64::from(self.number),
            reg::CTRL => self.control(),
            reg::STS if self.fabric == Fabric::Frozen => STS_FROZEN,
            _ => 0,
        }
    }

    fn control(&self) -> u64 {
        let held = if self.hold == Hold::Released {
            0
        } else {
            SFTRST
        };
        let acknowledged = if self.acknowledged { SFTRST_ACK } else { 0 };
        held | self.latency | acknowledged
    }

    /// Writes a register; `store` relative to the port's base.
    pub(crate) fn write(&mut self, side: Side, store: Store, now: Duration, faults: &mut Faults) {
        if store.register >= dfl::NEXT_AFU {
            if self.reaches_function(side) {
                self.function.write(store.relative_to(dfl::NEXT_AFU), now);
            }
            return;
        }
        if !self.reaches_port(side) {
            return;
        }
        match store.register {
            reg::SCRATCH => self.scratch = store.over(self.scratch),
            reg::CTRL => {
                self.latency = store.over(self.latency) & LATENCY;
                match store.bit(SFTRST) {
                    Some(Level::High) => self.assert_reset(side, now, faults),
                    Some(Level::Low) => self.release_reset(now, faults),
                    None => {}
                }
            }
            _ => {}
        }
    }

    fn assert_reset(&mut self, side: Side, now: Duration, faults: &mut Faults) {
        if self.hold == Hold::By(side) {
            return;
        }
        let was_released = self.hold == Hold::Released;
        self.hold = Hold::By(side);
        match side {
            Side::Host => count(&mut self.stats.resets_by_host),
            Side::Guest => count(&mut self.stats.resets_by_guest),
        }
        if was_released {
            self.function.reset(now);
            self.acknowledged = !faults.strikes(Some(self.number), Kind::PortNoAck);
        }
    }

    fn release_reset(&mut self, now: Duration, faults: &mut Faults) {
        if self.hold == Hold::Released {
            return;
        }
        self.hold = Hold::Released;
        self.acknowledged =
            self.acknowledged && faults.strikes(Some(self.number), Kind::PortAckStuck);
        self.function.reset(now);
    }
}
