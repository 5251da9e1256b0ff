//! What happened, counted. Tests ask here what a driver did to the card,
//! instead of believing what the driver says.

use serde::Serialize;

use crate::config::REGIONS;
use crate::hwicap::HwicapStats;

/// Counts of one region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct RegionStats {
    /// SFTRST set by the management function.
    pub resets_by_host: u64,
    /// SFTRST set by the user function.
    pub resets_by_guest: u64,
    /// Access taken from the guest.
    pub isolations: u64,
    /// Access given to the guest.
    pub handovers: u64,
    /// Words taken by a reconfiguration of this region.
    pub data_words: u64,
    /// Reconfigurations begun.
    pub pr_starts: u64,
    /// START stores that began nothing.
    pub pr_refused: u64,
    /// Reconfigurations that ended well.
    pub pr_successes: u64,
    /// Reconfigurations that ended in an error.
    pub pr_failures: u64,
    /// Reconfigurations that a reset cut off.
    pub pr_aborted: u64,
}

/// Counts of one PCI function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct FunctionStats {
    /// Function level resets: by vfio-user's reset, by config space, at close.
    pub resets: u64,
    /// Clients that connected.
    pub connections: u64,
}

/// All counts of a card since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Stats {
    /// By region.
    pub regions: [RegionStats; REGIONS],
    /// The management function.
    pub management: FunctionStats,
    /// The user functions, by region.
    pub user: [FunctionStats; REGIONS],
    /// Stores to DATA while nothing was running.
    pub stray_data_stores: u64,
    /// RST edges of the configuration engine.
    pub engine_resets: u64,
    /// Power cycles.
    pub power_cycles: u64,
    /// What only a card of the AMD shape counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hwicap: Option<HwicapStats>,
}

/// One more, without ever wrapping.
pub(crate) fn count(counter: &mut u64) {
    *counter = counter.saturating_add(1);
}
