//! The management engine (FME): its header with the access switches of the
//! ports, and two features that drivers expect beside the reconfiguration one.
//! Knows the registers; what an access switch does is the region's matter.

use crate::csr::{Level, Store};
use crate::dfl::{self, List, Type};
use crate::fault::Faults;
use crate::region::Access;
use crate::regions::Regions;

/// Registers of the FME header.
pub(crate) mod reg {
    pub(crate) const DFH: u64 = 0x00;
    pub(crate) const GUID_L: u64 = 0x08;
    pub(crate) const GUID_H: u64 = 0x10;
    pub(crate) const CAP: u64 = 0x30;
    pub(crate) const PORT_OFST_0: u64 = 0x38;
    pub(crate) const PORT_OFST_1: u64 = 0x40;
    pub(crate) const BITSTREAM_ID: u64 = 0x60;
    pub(crate) const BITSTREAM_MD: u64 = 0x68;
}

/// Two ports.
const CAP: u64 = 2 << 17;
const PORT_GUEST: u64 = 1 << 55;
const PORT_IMPLEMENTED: u64 = 1 << 60;
/// The static design's identity: spells "RCSIM", version 1.
const BITSTREAM_ID: u64 = 0x5243_5349_4d00_0001;
/// Its metadata: version 1 and a build date (26-11-30).
const BITSTREAM_MD: u64 = 1 << 28 | 0x26_1130;

/// Thermal feature: sensor, and the capability that says "no throttling here".
const THERMAL_SENSOR: u64 = 0x10;
const THERMAL_CAP: u64 = 0x20;
const DEGREES: u64 = 45;
const NO_THROTTLE: u64 = 1;

fn port_at(register: u64) -> Option<u8> {
    match register {
        reg::PORT_OFST_0 => Some(0),
        reg::PORT_OFST_1 => Some(1),
        _ => None,
    }
}

/// Reads the FME header.
pub(crate) fn read(register: u64, regions: &Regions) -> u64 {
    let (guid_high, guid_low) = dfl::halves(dfl::FME_GUID);
    match register {
        reg::DFH => dfl::header(Type::Fiu, 0, List::Continues { next: dfl::THERMAL }),
        reg::GUID_L => guid_low,
        reg::GUID_H => guid_high,
        reg::CAP => CAP,
        reg::BITSTREAM_ID => BITSTREAM_ID,
        reg::BITSTREAM_MD => BITSTREAM_MD,
        _ => port_at(register).map_or(0, |number| port_offset(number, regions)),
    }
}

/// `PORT_OFST(n)`: where the port lies (BAR0) and who reaches it.
fn port_offset(number: u8, regions: &Regions) -> u64 {
    let offset = dfl::PORTS.get(usize::from(number)).copied();
    let (Some(offset), Some(region)) = (offset, regions.get(number)) else {
        return 0;
    };
    let access = match region.access() {
        Access::Guest => PORT_GUEST,
        Access::Host => 0,
    };
    PORT_IMPLEMENTED | access | offset
}

/// Writes the FME header: only the access switches take anything.
pub(crate) fn write(store: Store, regions: &mut Regions, faults: &mut Faults) {
    let Some(region) = port_at(store.register).and_then(|number| regions.get_mut(number)) else {
        return;
    };
    match store.bit(PORT_GUEST) {
        Some(Level::High) => region.give_access(Access::Guest, faults),
        Some(Level::Low) => region.give_access(Access::Host, faults),
        None => {}
    }
}

/// Reads the thermal feature.
pub(crate) fn read_thermal(register: u64) -> u64 {
    match register {
        0 => dfl::header(
            Type::Private,
            1,
            List::Continues {
                next: dfl::FEATURE_SIZE,
            },
        ),
        THERMAL_SENSOR => DEGREES,
        THERMAL_CAP => NO_THROTTLE,
        _ => 0,
    }
}

/// Reads the global error feature: nothing is ever wrong, no interrupt.
pub(crate) fn read_errors(register: u64) -> u64 {
    match register {
        0 => dfl::header(
            Type::Private,
            4,
            List::Continues {
                next: dfl::FEATURE_SIZE,
            },
        ),
        _ => 0,
    }
}
