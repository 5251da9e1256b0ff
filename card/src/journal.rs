//! The region journal: what each region was meant to hold, across crashes.
//!
//! An append-only file of its own, records of fixed size, each with a check
//! sum, each durable before [`Journal::append`] returns. The journal is the
//! truth about intent, the card about facts; whoever starts reads both and
//! reconciles them. It knows regions by number, owners as opaque tags, and
//! nothing of devices.
//!
//! ```text
//!             Intent            Commit
//!   (any) ------------> Writing ------> Active
//!     | Quarantined        |              |
//!     v                    v              v
//! Quarantined <------------+--------------+--- Released (owner gone)
//!     |  Blank
//!     v
//!   Blank
//! ```
//!
//! Every record tells the whole state of its region, so the last good record
//! of a region is the truth about it, whatever became of those before.

mod state;

use std::collections::BTreeMap;
use std::path::Path;

use crate::engine::RegionId;

pub use state::{Content, Entry, FunctionId, Job, OwnerTag, RegionState, Sha256, UnixMillis};


/// Records after which the file is written anew with one for each region.
const DEFAULT_COMPACT_AT: usize = 4096;

/// The journal of one card's regions.
#[derive(Debug)]
pub struct Journal {}

/// What was in the file.
#[derive(Debug)]
pub struct Recovered {
    /// The regions of which something is known; of all others nothing is.
    pub regions: BTreeMap<RegionId, RegionState>,
    /// How the file was found.
    pub found: Found,
}

/// How the journal's file was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Whole.
    Whole,
    /// There was none: lost, or this is the first start.
    Missing,
    /// The last write had not ended; it was taken back.
    TornTail {
        /// Bytes taken back.
        bytes: u64,
    },
    /// Damaged in a way that no crash leaves; the file is kept aside.
    Damaged {
        /// Name of the file that was kept, in the same directory.
        kept_as: String,
        /// Damaged places.
        places: usize,
    },
}

impl Journal {
    /// Opens the journal at `path`, or makes it.
    pub fn open(path: &Path) -> Result<(Self, Recovered), JournalError> { let _ = path; todo!() }
    /// Writes down one step of `region`; durable when it returns.
    pub fn append(&mut self, region: RegionId, entry: &Entry, now: UnixMillis) -> Result<(), JournalError> { let _ = (region, entry, now); todo!() }
    /// What the journal knows of `region`.
    pub fn state(&self, region: RegionId) -> RegionState { let _ = region; todo!() }
}

/// Why the journal could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A newer version of reconf wrote it; nothing of it was touched.
    #[error("the journal is of format {found}, this program reads up to {known}")]
    StateTooNew {
        /// Format of the file.
        found: u8,
        /// Newest format that is understood.
        known: u8,
    },
    /// An earlier write failed such that the file's content is unknown.
    #[error("an earlier write failed; open the journal again to find out what is there")]
    Poisoned,
    /// The operating system failed.
    #[error("{doing}: {source}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
}
