//! The audit trail: one JSON object a line, appended and made durable before
//! the deed (intent) and after it (outcome).
//!
//! Knows what happened, in words for operators. Must not know how a guest is
//! answered. Where it cannot be written, new loads stop; scrub, clear and
//! isolation go on without it.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

use serde::Serialize;
use uuid::Uuid;

use super::identity::unix_now;

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

/// The file.
#[derive(Debug)]
pub struct Audit {
    path: PathBuf,
    file: Mutex<File>,
}

impl Audit {
    /// Opens the trail for appending; a line that a crash left half-written is ended, so that
    /// the next one stands by itself.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut file = File::options()
            .create(true)
            .append(true)
            .read(true)
            .mode(0o640)
            .open(path)?;
        let len = file.metadata()?.len();
        if len > 0 {
            file.seek(SeekFrom::Start(len.saturating_sub(1)))?;
            let mut last = [0u8; 1];
            file.read_exact(&mut last)?;
            if last != *b"\n" {
                file.write_all(b"\n")?;
            }
        }
        Ok(Self {
            path: path.to_owned(),
            file: Mutex::new(file),
        })
    }

    /// Appends a record and waits until it is durable.
    ///
    /// # Errors
    /// What the system says; the trail then may hold a part of the line, which the next opening ends.
    pub fn write(&self, record: &Record, cost: &mut SyncCost) -> io::Result<()> {
        let mut line = serde_json::to_vec(&Line {
            time: unix_now(),
            record,
        })?;
        line.push(b'\n');
        let mut file = self
            .file
            .lock()
            .map_err(|_poisoned| io::Error::other("the audit's lock is poisoned"))?;
        file.write_all(&line)?;
        let start = Instant::now();
        file.sync_data()?;
        cost.add_since(start);
        Ok(())
    }

    /// The last `count` records, oldest first. Lines that are no JSON are told as such.
    ///
    /// # Errors
    /// What the system says.
    pub fn last(&self, count: usize) -> io::Result<Vec<serde_json::Value>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_a_torn_line_stands_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.jsonl");
        let mut cost = SyncCost::default();
        let record = Record {
            event: "stop",
            reason: Some("a\nb\u{1b}[31m".into()),
            ..Record::default()
        };
        Audit::open(&path)
            .unwrap()
            .write(&record, &mut cost)
            .unwrap();
        std::fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap()
            .write_all(b"{\"torn")
            .unwrap();
        let audit = Audit::open(&path).unwrap();
        audit.write(&record, &mut cost).unwrap();
        let all = audit.last(10).unwrap();
        assert_eq!(all.len(), 3);
        assert_eq!(all[0]["reason"], "a\nb\u{1b}[31m");
        assert!(all[1]["unreadable"].is_string());
        assert_eq!(all[2]["event"], "stop");
        assert_eq!(audit.last(1).unwrap().len(), 1);
        assert_eq!(cost.count, 2);
        // G10: whatever a guest names, a record is one line without control characters.
        let raw = std::fs::read(&path).unwrap();
        assert!(
            raw.iter()
                .all(|byte| *byte == b'\n' || !byte.is_ascii_control())
        );
    }
}
