//! Where what lies in the management function's BAR0.

use super::ip;
use crate::regions::RegionId;

/// Size of BAR0 of the management function.
pub const MANAGEMENT_BAR: u64 = 1 << 20;
/// Offset of the HWICAP core.
pub const HWICAP: u64 = 0x10000;
/// Offset of region 0's decoupler.
pub const DECOUPLERS: u64 = 0x20000;
/// Offset of region 0's identity block.
pub const IDENTITIES: u64 = 0x30000;
/// From one region's block to the next one's.
pub const STRIDE: u64 = 0x1000;

/// What lies at an offset of the management function's BAR0.
pub(super) enum Block {
    Core(u64),
    Decoupler(u8, u64),
    Identity(u8, u64),
    Hole,
    Outside,
}

impl Block {
    pub(super) fn at(offset: u64) -> Self {
        if offset >= MANAGEMENT_BAR {
            return Self::Outside;
        }
        if let Some(register) = offset.checked_sub(HWICAP).filter(|at| *at < ip::SIZE) {
            return Self::Core(register);
        }
        for region in RegionId::ALL {
            let number = region.number();
            let inside = |base: u64| {
                offset
                    .checked_sub(base)
                    .and_then(|at| at.checked_sub(u64::from(number).wrapping_mul(STRIDE)))
                    .filter(|at| *at < STRIDE)
            };
            if let Some(register) = inside(DECOUPLERS) {
                return Self::Decoupler(number, register);
            }
            if let Some(register) = inside(IDENTITIES) {
                return Self::Identity(number, register);
            }
        }
        Self::Hole
    }
}
