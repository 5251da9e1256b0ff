//! What every PCI function of a card has of its own, whatever lies behind it.

use crate::pci::{ConfigSpace, Identity};
use crate::stats::FunctionStats;

/// A PCI function's own state.
#[derive(Debug, Clone)]
pub(crate) struct Slot {
    pub(crate) space: ConfigSpace,
    pub(crate) connected: u64,
    pub(crate) stats: FunctionStats,
}

impl Slot {
    pub(crate) fn new(identity: Identity) -> Self {
        Self {
            space: ConfigSpace::new(identity),
            connected: 0,
            stats: FunctionStats::default(),
        }
    }
}
