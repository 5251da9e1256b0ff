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

mod files;
mod record;
mod recover;
mod state;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use crate::engine::RegionId;

pub use files::{Directory, JournalFiles};
pub use recover::{Found, Recovered};
pub use state::{Content, Entry, FunctionId, Job, OwnerTag, RegionState, Sha256, UnixMillis};

use record::{RECORD_SIZE, Record, VERSION};
use recover::Extent;

/// Records after which the file is written anew with one for each region.
const COMPACT_EVERY: usize = 4096;
/// Bytes that a journal may have; several times what it ever gets.
const MOST_BYTES: u64 = 16 << 20;
/// Damaged files that are kept aside; the last one is overwritten.
const KEPT_ASIDE: u32 = 16;

/// The journal of one card's regions.
#[derive(Debug)]
pub struct Journal<F = Directory> {
    files: F,
    name: String,
    /// Bytes of records in the file.
    length: u64,
    next_sequence: u64,
    last: BTreeMap<RegionId, Record>,
    /// Records to append before the file is written anew.
    until_compaction: usize,
    compact_every: usize,
    health: Health,
}

/// Whether it is known what the file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    Sound,
    /// A write or a sync failed and could not be undone.
    Unknown,
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
    /// The path has no file name that can be used.
    #[error("the journal's path names no file")]
    NoName,
    /// An earlier write failed such that the file's content is not known.
    #[error("an earlier write failed; open the journal again to find out what is there")]
    Poisoned,
    /// The operating system failed.
    #[error("{doing}: {source}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl JournalError {
    fn io(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { doing, source }
    }
}

impl Journal {
    /// Opens the journal at `path`, or makes an empty one, and tells what it
    /// knows. One process at a time: the caller holds the card's lock.
    ///
    /// # Errors
    /// [`JournalError::StateTooNew`], or of the system. Damage is no error.
    pub fn open(path: &Path) -> Result<(Self, Recovered), JournalError> {
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.ok_or(JournalError::NoName)?;
        let directory = Directory::open(path.parent().unwrap_or(Path::new(".")))
            .map_err(JournalError::io("opening the journal's directory"))?;
        Self::with_files(directory, name, COMPACT_EVERY)
    }
}

impl<F: JournalFiles> Journal<F> {
    /// Opens the journal `name` among `files`. The file is written anew after
    /// every `compact_every` records.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub fn with_files(
        files: F,
        name: &str,
        compact_every: usize,
    ) -> Result<(Self, Recovered), JournalError> {
        let mut journal = Self {
            files,
            name: name.to_owned(),
            length: 0,
            next_sequence: 1,
            last: BTreeMap::new(),
            until_compaction: compact_every,
            compact_every,
            health: Health::Sound,
        };
        let found = journal.recover()?;
        let regions = journal
            .last
            .iter()
            .map(|(region, record)| (*region, record.state));
        let recovered = Recovered {
            regions: regions.collect(),
            found,
        };
        Ok((journal, recovered))
    }

    /// What the journal knows of `region`.
    #[must_use]
    pub fn state(&self, region: RegionId) -> RegionState {
        self.last
            .get(&region)
            .map_or(RegionState::UNKNOWN, |record| record.state)
    }

    /// Writes down one step of `region`, at `now` of the wall clock. It is
    /// durable when this returns.
    ///
    /// # Errors
    /// Nothing that depends on the step may be done: it may or may not be
    /// there when the journal is opened again.
    pub fn append(
        &mut self,
        region: RegionId,
        entry: &Entry,
        now: UnixMillis,
    ) -> Result<(), JournalError> {
        if self.health == Health::Unknown {
            return Err(JournalError::Poisoned);
        }
        let record = Record {
            sequence: self.next_sequence,
            region,
            state: entry.state(now),
        };
        let name = self.name.clone();
        if let Err(source) = write_all(&mut self.files, &name, self.length, &record.encode()) {
            // Half a record may be there. The next one would cover it, if this
            // process lives; a reader would take it for a torn one.
            if self.files.truncate(&name, self.length).is_err() {
                self.health = Health::Unknown;
            }
            return Err(JournalError::io("writing the journal")(source));
        }
        if let Err(source) = self.files.sync(&name) {
            // After a failed sync the system may have dropped what was
            // written, and says so only once. There is no second try.
            self.health = Health::Unknown;
            return Err(JournalError::io("syncing the journal")(source));
        }
        self.length = self.length.saturating_add(RECORD_BYTES);
        self.next_sequence = self.next_sequence.saturating_add(1);
        self.last.insert(region, record);
        self.until_compaction = self.until_compaction.saturating_sub(1);
        if self.until_compaction == 0 {
            self.until_compaction = self.compact_every;
            // The step itself is down, whatever becomes of this.
            if let Err(error) = self.rewrite() {
                tracing::warn!(%error, "the journal could not be compacted");
            }
        }
        Ok(())
    }

    /// Reads the file and puts in order what a crash or damage left.
    fn recover(&mut self) -> Result<Found, JournalError> {
        let name = self.name.clone();
        let most = MOST_BYTES.saturating_add(1);
        let read = self.files.read(&name, most);
        let Some(mut bytes) = read.map_err(JournalError::io("reading the journal"))? else {
            let doing = "making the journal";
            self.files.create(&name).map_err(JournalError::io(doing))?;
            self.files.sync(&name).map_err(JournalError::io(doing))?;
            self.files
                .sync_directory()
                .map_err(JournalError::io(doing))?;
            return Ok(Found::Missing);
        };
        let extent = if u64::try_from(bytes.len()).is_ok_and(|length| length < most) {
            Extent::Whole
        } else {
            bytes.pop();
            Extent::Cut
        };
        let reading = recover::read(&bytes, extent).map_err(|found| JournalError::StateTooNew {
            found,
            known: VERSION,
        })?;
        self.last = reading.last;
        self.length = reading.length;
        self.next_sequence = reading.next_sequence;
        if reading.damaged > 0 {
            let kept_as = self.keep_aside()?;
            self.rewrite()?;
            return Ok(Found::Damaged {
                kept_as,
                places: reading.damaged,
            });
        }
        if reading.torn > 0 {
            let doing = "cutting what a crash left of the journal";
            self.files
                .truncate(&name, self.length)
                .map_err(JournalError::io(doing))?;
            self.files.sync(&name).map_err(JournalError::io(doing))?;
            return Ok(Found::TornTail {
                bytes: reading.torn,
            });
        }
        Ok(Found::Whole)
    }

    /// Gives the damaged file a second name, under which it stays.
    fn keep_aside(&mut self) -> Result<String, JournalError> {
        let doing = "keeping a damaged journal aside";
        let mut kept_as = String::new();
        for number in 1..=KEPT_ASIDE {
            kept_as = format!("{}.damaged-{number}", self.name);
            let mut linked = self.files.link(&self.name, &kept_as);
            if number == KEPT_ASIDE && linked.is_err() {
                self.files
                    .remove(&kept_as)
                    .map_err(JournalError::io(doing))?;
                linked = self.files.link(&self.name, &kept_as);
            }
            match linked {
                Ok(()) => break,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(JournalError::io(doing)(error)),
            }
        }
        self.files
            .sync_directory()
            .map_err(JournalError::io(doing))?;
        Ok(kept_as)
    }

    /// Writes the file anew with one record for each region, in the place of
    /// the old one at once.
    fn rewrite(&mut self) -> Result<(), JournalError> {
        let doing = "writing the journal anew";
        let new = format!("{}.new", self.name);
        let mut sequence = self.next_sequence;
        let mut bytes = Vec::new();
        let mut last = self.last.clone();
        for record in last.values_mut() {
            record.sequence = sequence;
            sequence = sequence.saturating_add(1);
            bytes.extend_from_slice(&record.encode());
        }
        let name = &self.name;
        let files = &mut self.files;
        files.create(&new).map_err(JournalError::io(doing))?;
        write_all(files, &new, 0, &bytes).map_err(JournalError::io(doing))?;
        files.sync(&new).map_err(JournalError::io(doing))?;
        let renamed = files
            .rename(&new, name)
            .and_then(|()| files.sync_directory());
        if let Err(source) = renamed {
            // After a crash the old file might be back, without what would be
            // written from now on.
            self.health = Health::Unknown;
            return Err(JournalError::io(doing)(source));
        }
        self.length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.next_sequence = sequence;
        self.last = last;
        Ok(())
    }
}

/// Bytes of a record, as file offsets count.
const RECORD_BYTES: u64 = RECORD_SIZE as u64;

/// Writes all of `bytes` from `offset` on.
fn write_all<F: JournalFiles>(
    files: &mut F,
    name: &str,
    mut offset: u64,
    mut bytes: &[u8],
) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = match files.write(name, offset, bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            result => result?,
        };
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = bytes.get(written..).unwrap_or_default();
        offset = offset.saturating_add(u64::try_from(written).unwrap_or(u64::MAX));
    }
    Ok(())
}

/// Reads `data` as a journal, for fuzzing. Returns the regions known from it.
pub(crate) fn fuzz_journal(data: &[u8]) -> usize {
    recover::read(data, Extent::Whole).map_or(0, |reading| reading.last.len())
}

#[cfg(test)]
mod tests;
