//! The device feature list: how a header is spelled, and where this card keeps
//! its features. The map is the classic one: ports and their AFUs lie in BAR0
//! of the management function, in rising order, as Linux's driver insists.
//!
//! | BAR0 of the management function | what |
//! |---|---|
//! | 0x00000 | FME header (id 0) |
//! | 0x01000 | thermal management (id 1) |
//! | 0x02000 | global errors (id 4) |
//! | 0x03000 | partial reconfiguration (id 5, revision 0), end of list |
//! | 0x10000 | port 0, its AFU at 0x20000 (64 KiB) |
//! | 0x40000 | port 1, its AFU at 0x50000 (64 KiB) |
//!
//! A user function's BAR0 has its port at 0 and the AFU at 0x10000.

use uuid::Uuid;

/// Size of BAR0 of the management function.
pub const MANAGEMENT_BAR: u64 = 512 << 10;
/// Size of BAR0 of a user function.
pub const USER_BAR: u64 = 128 << 10;

/// Offset of the thermal feature.
pub const THERMAL: u64 = 0x1000;
/// Offset of the global error feature.
pub const ERRORS: u64 = 0x2000;
/// Offset of the partial reconfiguration feature.
pub const PR: u64 = 0x3000;
/// Distance from one feature of the FME to the next.
pub const FEATURE_SIZE: u64 = 0x1000;
/// Offsets of the ports, by region.
pub const PORTS: [u64; crate::config::REGIONS] = [0x10000, 0x40000];
/// From a port's header to its AFU.
pub const NEXT_AFU: u64 = 0x10000;
/// Size of an AFU.
pub const AFU_SIZE: u64 = 64 << 10;

/// GUID of an FME (management engine).
pub const FME_GUID: Uuid = Uuid::from_u128(0xbfaf_2ae9_4a52_46e3_82fe_38f0_f9e1_7764);
/// GUID of a port.
pub const PORT_GUID: Uuid = Uuid::from_u128(0x3ab4_9893_138d_42eb_9642_b06c_6b35_5b87);

/// What kind of feature a header begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Afu = 1,
    Private = 3,
    Fiu = 4,
}

/// Whether more features follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum List {
    Continues { next: u64 },
    Ends,
}

/// A version 0 device feature header of revision 0.
pub(crate) const fn header(kind: Type, id: u64, list: List) -> u64 {
    let kind = match kind {
        Type::Afu => 1 << 60,
        Type::Private => 3 << 60,
        Type::Fiu => 4 << 60,
    };
    let list = match list {
        List::Continues { next } => (next & 0x00ff_ffff) << 16,
        List::Ends => 1 << 40,
    };
    kind | list | (id & 0xfff)
}

/// The halves of a UUID as registers hold them: high, low.
pub(crate) fn halves(id: Uuid) -> (u64, u64) {
    id.as_u64_pair()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_spelled_as_the_specification_does() {
        assert_eq!(header(Type::Private, 5, List::Ends), 0x3000_0100_0000_0005);
        assert_eq!(
            header(Type::Fiu, 0, List::Continues { next: 0x1000 }),
            0x4000_0000_1000_0000
        );
    }

    #[test]
    fn the_map_fits_its_bars_and_rises() {
        for pair in PORTS.windows(2) {
            assert!(pair[0] + NEXT_AFU + AFU_SIZE <= pair[1]);
        }
        assert!(PORTS[1] + NEXT_AFU + AFU_SIZE <= MANAGEMENT_BAR);
        assert!(PR + FEATURE_SIZE <= PORTS[0]);
        assert_eq!(NEXT_AFU + AFU_SIZE, USER_BAR);
    }
}
