//! Reading a journal whole, and telling a crash from damage.
//!
//! A crash leaves a record that had not been acknowledged: cut short, or room
//! for it that still holds zeros. It is taken back; nothing was done on the
//! strength of it. A record lies within one sector, so a sound program never
//! leaves one that is half old and half new. Anything else is damage, and what
//! the damaged record may have said counts against its region: quarantined,
//! or, where the region cannot be told, unknown, as are all regions then that
//! have no later record.

use std::collections::BTreeMap;

use crate::engine::RegionId;

use super::record::{RECORD_SIZE, Record, Unreadable};
use super::state::{Content, RegionState};

/// What was found when a journal was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// The regions of which something is known; of all others nothing is.
    pub regions: BTreeMap<RegionId, RegionState>,
    /// How the file was found.
    pub found: Found,
}

/// How a journal's file was found.
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
    /// Damaged in a way that no crash leaves. The file is kept aside, and
    /// written anew with what is still known.
    Damaged {
        /// Name of the file that was kept, in the same directory.
        kept_as: String,
        /// Damaged places.
        places: usize,
    },
}

/// What a journal's bytes say.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) last: BTreeMap<RegionId, Record>,
    pub(super) next_sequence: u64,
    /// Bytes of whole records.
    pub(super) length: u64,
    /// Bytes behind them that an unfinished write left.
    pub(super) torn: u64,
    /// Damaged places.
    pub(super) damaged: usize,
}

/// Whether a file was read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    Whole,
    /// There is more of it than any journal has.
    Cut,
}

/// Reads a journal's bytes. The error is the version of a newer program.
pub(super) fn read(bytes: &[u8], extent: Extent) -> Result<Reading, u8> {
    let mut last: BTreeMap<RegionId, (usize, Record)> = BTreeMap::new();
    let mut hurt: BTreeMap<RegionId, usize> = BTreeMap::new();
    let mut hurt_all = None;
    let mut damaged = 0usize;
    let mut expected = None;

    let (records, cut_short) = bytes.as_chunks::<RECORD_SIZE>();
    let mut used = records.len();
    for (place, record) in records.iter().enumerate() {
        let rest = records.get(place..).unwrap_or_default();
        if rest.iter().flatten().all(|byte| *byte == 0) {
            used = place;
            break;
        }
        match Record::decode(record, expected) {
            Ok(record) => {
                if expected.is_some_and(|expected| expected != record.sequence) {
                    // Records are missing here, or stand here twice.
                    damaged = damaged.saturating_add(1);
                    hurt_all = Some(place);
                }
                expected = Some(record.sequence.saturating_add(1));
                last.insert(record.region, (place, record));
            }
            Err(Unreadable::Newer(version)) => return Err(version),
            Err(Unreadable::Damaged(region)) => {
                damaged = damaged.saturating_add(1);
                match region {
                    Some(region) => {
                        hurt.insert(region, place);
                    }
                    None => hurt_all = Some(place),
                }
                expected = expected.map(|sequence: u64| sequence.saturating_add(1));
            }
        }
    }
    if extent == Extent::Cut {
        damaged = damaged.saturating_add(1);
        hurt_all = Some(usize::MAX);
    }

    let next_sequence = expected.unwrap_or(1);
    let mut known = BTreeMap::new();
    for (region, (place, record)) in last {
        let unknown = hurt_all.is_some_and(|hurt| hurt > place);
        if !unknown {
            known.insert(region, record);
        }
        // A later record tells all there is to know.
        if hurt.get(&region).is_some_and(|hurt| *hurt < place) {
            hurt.remove(&region);
        }
    }
    for region in hurt.into_keys() {
        // Who owns it was in the record as well.
        let state = RegionState {
            content: Content::Quarantined { failures: 0 },
            ..RegionState::UNKNOWN
        };
        let sequence = next_sequence;
        let record = Record {
            sequence,
            region,
            state,
        };
        known.insert(region, record);
    }
    let length = used.saturating_mul(RECORD_SIZE);
    let zeros = records
        .len()
        .saturating_sub(used)
        .saturating_mul(RECORD_SIZE);
    let torn = zeros.saturating_add(cut_short.len());
    Ok(Reading {
        last: known,
        next_sequence,
        length: u64::try_from(length).unwrap_or(u64::MAX),
        torn: u64::try_from(torn).unwrap_or(u64::MAX),
        damaged,
    })
}
