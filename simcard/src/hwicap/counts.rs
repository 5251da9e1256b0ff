//! What is counted in this shape, for tests to look at.

use serde::Serialize;

use crate::silicon::{Dangers, Trouble};

/// Counts that only this shape has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct HwicapStats {
    /// Words that went into the configuration logic.
    pub words: u64,
    /// Words that found the FIFO full.
    pub lost_words: u64,
    /// Software resets of the core.
    pub core_resets: u64,
    /// Aborts.
    pub aborts: u64,
    /// Sync words taken.
    pub syncs: u64,
    /// DESYNC commands.
    pub desyncs: u64,
    /// Writes of frames, each time one was written.
    pub frames_written: u64,
    /// Those while no region was decoupled.
    pub frames_while_coupled: u64,
    /// Frames whose address does not exist.
    pub frames_lost: u64,
    /// Pad frames that were not zero.
    pub unclean_pads: u64,
    /// Writes of the CRC register.
    pub crc_checks: u64,
    /// GRESTORE commands.
    pub restores: u64,
    /// Times that `CFGERR_N` fell.
    pub config_errors: u64,
    /// Why, the last time.
    pub last_error: Option<Trouble>,
    /// What could have hurt others.
    pub dangers: Dangers,
}
