//! The audit trail: one JSON object a line, appended and made durable before
//! the deed (intent) and after it (outcome).
//!
//! Knows what happened, in words for operators. Must not know how a guest is
//! answered. Where it cannot be written, new loads stop; scrub, clear and
//! isolation go on without it.

mod trail;

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;
use tracing::warn;
use uuid::Uuid;

use super::identity::unix_now;
use super::outcome::Finding;
use trail::Shared;

/// How much of the end of the file [`Audit::last`] looks at.
const TAIL: u64 = 4 * 1024 * 1024;

/// One line. Fields that do not apply are left out.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Record {
    /// What it is about: `load`, `clear`, `attach`, `stop`, …
    pub event: &'static str,
    /// `intent`, `outcome`, or nothing where there is just the fact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<&'static str>,
    /// The VM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vm: Option<Uuid>,
    /// Its tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Its generation, short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<String>,
    /// `card/region`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// The guest's slot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot: Option<u16>,
    /// The image: as asked for when it was denied, as resolved when it was granted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The bitstream's digest, hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The job's number between our processes, hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// The rule and role that allowed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Version of the signed list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_version: Option<u64>,
    /// How it ended: a stable word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// The whole story, for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The card's control, status and error words, where the card failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<[String; 3]>,
    /// What the frame fence found, where it refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finding: Option<Box<Finding>>,
    /// Who asked, at the admin socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_uid: Option<u32>,
}

#[derive(Serialize)]
struct Line<'a> {
    time: u64,
    #[serde(flatten)]
    record: &'a Record,
}

/// What durable writes have cost, for the figures.
#[derive(Debug, Clone, Copy, Default)]
pub struct SyncCost {
    /// How many.
    pub count: u32,
    /// Nanoseconds in all.
    pub nanos: u64,
}

impl SyncCost {
    /// Adds one that began at `start`.
    pub fn add_since(&mut self, start: Instant) {
        self.count = self.count.saturating_add(1);
        self.nanos = self
            .nanos
            .saturating_add(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }
}

/// The trail: written by whoever must know that it is durable, and by a thread of its own for
/// those who must not wait.
#[derive(Debug)]
pub struct Audit {
    path: PathBuf,
    shared: Arc<Shared>,
}

impl Audit {
    /// Opens the trail for appending; a line that a crash left half-written is ended, so that
    /// the next one stands by itself.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(path: &Path) -> io::Result<Self> {
        let shared = Arc::new(Shared::open(path)?);
        let writer = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || writer.write_what_waits())?;
        Ok(Self {
            path: path.to_owned(),
            shared,
        })
    }

    /// Appends a record, after all that were noted before, and waits until it is durable.
    ///
    /// # Errors
    /// What the system says; the record is then not in the trail.
    pub fn write(&self, record: &Record, cost: &mut SyncCost) -> io::Result<()> {
        let line = line_of(record)?;
        self.shared.write(Some(line), Some(cost))
    }

    /// Has a record appended soon. Never waits for the disk; a record that cannot be written
    /// goes to the log.
    pub fn note(&self, record: &Record) {
        match line_of(record) {
            Ok(line) => self.shared.push(line),
            Err(error) => warn!(event = record.event, %error, "a record cannot be put in words"),
        }
    }

    /// Writes what was noted; for the way out.
    ///
    /// # Errors
    /// What the system says.
    pub fn flush(&self) -> io::Result<()> {
        self.shared.write(None, None)
    }

    /// Why the trail cannot be written, while it cannot.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.shared.trouble()
    }

    /// The last `count` records, oldest first. Lines that are no JSON are told as such.
    ///
    /// # Errors
    /// What the system says.
    pub fn last(&self, count: usize) -> io::Result<Vec<serde_json::Value>> {
        if let Err(error) = self.flush() {
            warn!(%error, "the audit's last records are not in it");
        }
        let mut file = File::open(&self.path)?;
        let len = file.metadata()?.len();
        file.seek(SeekFrom::Start(len.saturating_sub(TAIL)))?;
        let mut bytes = Vec::new();
        file.take(TAIL).read_to_end(&mut bytes)?;
        let lines: Vec<&[u8]> = bytes
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .collect();
        let skip = lines.len().saturating_sub(count);
        Ok(lines
            .into_iter()
            .skip(skip)
            .map(|line| {
                serde_json::from_slice(line)
                    .unwrap_or_else(|error| serde_json::json!({ "unreadable": error.to_string() }))
            })
            .collect())
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        self.shared.close();
    }
}

/// What is written in place of records that found no room.
fn lost_line(lost: u64) -> io::Result<Vec<u8>> {
    line_of(&Record {
        event: "audit",
        outcome: Some("lost".to_owned()),
        reason: Some(format!(
            "{lost} records came faster than they could be written"
        )),
        ..Record::default()
    })
}

fn line_of(record: &Record) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(&Line {
        time: unix_now(),
        record,
    })?;
    line.push(b'\n');
    Ok(line)
}

#[cfg(test)]
mod tests;
