//! The audit trail: one JSON object a line, appended and made durable before
//! the deed (intent) and after it (outcome).
//!
//! Knows what happened, in words for operators. Must not know how a guest is
//! answered. Where it cannot be written, new loads stop; scrub, clear and
//! isolation go on without it.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use tracing::warn;
use uuid::Uuid;

use super::identity::unix_now;

/// How much of the end of the file [`Audit::last`] looks at.
const TAIL: u64 = 4 * 1024 * 1024;
/// Records that nobody waits for and that are not written yet; what comes beyond is counted.
const WAITING_MAX: usize = 1024;
/// How long the thread leaves a disk alone that said no.
const AFTER_ERROR: Duration = Duration::from_millis(100);

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

/// The trail: written by whoever must know that it is durable, and by a thread of its own for
/// those who must not wait.
#[derive(Debug)]
pub struct Audit {
    path: PathBuf,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    waiting: Mutex<Waiting>,
    wake: Condvar,
    trail: Mutex<Trail>,
}

/// Lines that nobody waits for.
#[derive(Debug, Default)]
struct Waiting {
    lines: VecDeque<Vec<u8>>,
    /// Lines that found no room here.
    lost: u64,
    closing: bool,
}

#[derive(Debug)]
struct Trail {
    file: File,
    /// The file may end in a part of a line.
    torn: bool,
    /// The last error, until a writing goes well.
    trouble: Option<String>,
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
        let mut last = *b"\n";
        if len > 0 {
            file.seek(SeekFrom::Start(len.saturating_sub(1)))?;
            file.read_exact(&mut last)?;
        }
        let shared = Arc::new(Shared {
            waiting: Mutex::default(),
            wake: Condvar::new(),
            trail: Mutex::new(Trail {
                file,
                torn: last != *b"\n",
                trouble: None,
            }),
        });
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
        lock(&self.shared.trail).trouble.clone()
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
        lock(&self.shared.waiting).closing = true;
        self.shared.wake.notify_all();
    }
}

impl Shared {
    fn push(&self, line: Vec<u8>) {
        let mut waiting = lock(&self.waiting);
        if waiting.lines.len() >= WAITING_MAX {
            waiting.lost = waiting.lost.saturating_add(1);
        } else {
            waiting.lines.push_back(line);
        }
        drop(waiting);
        self.wake.notify_one();
    }

    /// Writes what waits, then `line`, in one go: a single sync for all.
    fn write(&self, line: Option<Vec<u8>>, cost: Option<&mut SyncCost>) -> io::Result<()> {
        let mut trail = lock(&self.trail);
        // Taken under the trail's lock, so that lines stand in the order in which they came.
        let (mut lines, lost) = {
            let mut waiting = lock(&self.waiting);
            (
                std::mem::take(&mut waiting.lines),
                std::mem::take(&mut waiting.lost),
            )
        };
        if lost > 0 {
            lines.push_back(line_of(&Record {
                event: "audit",
                outcome: Some("lost".to_owned()),
                reason: Some(format!(
                    "{lost} records came faster than they could be written"
                )),
                ..Record::default()
            })?);
        }
        let noted = lines.len();
        lines.extend(line);
        if lines.is_empty() {
            return Ok(());
        }
        let written = trail.append(&lines, cost);
        drop(trail);
        if let Err(error) = &written {
            // Whoever noted them does not hear of it.
            for line in lines.iter().take(noted) {
                let line = String::from_utf8_lossy(line);
                warn!(%error, record = line.trim_end(), "the audit cannot be written");
            }
        }
        written
    }

    /// The thread's work.
    fn write_what_waits(&self) {
        loop {
            let waiting = lock(&self.waiting);
            let waiting = self
                .wake
                .wait_while(waiting, |waiting| {
                    waiting.lines.is_empty() && waiting.lost == 0 && !waiting.closing
                })
                .unwrap_or_else(PoisonError::into_inner);
            let closing = waiting.closing;
            drop(waiting);
            // An error was told where it happened.
            if self.write(None, None).is_err() {
                std::thread::sleep(AFTER_ERROR);
            }
            if closing {
                return;
            }
        }
    }
}

impl Trail {
    fn append(&mut self, lines: &VecDeque<Vec<u8>>, cost: Option<&mut SyncCost>) -> io::Result<()> {
        let result = self.try_append(lines, cost);
        self.trouble = result.as_ref().err().map(ToString::to_string);
        result
    }

    fn try_append(
        &mut self,
        lines: &VecDeque<Vec<u8>>,
        cost: Option<&mut SyncCost>,
    ) -> io::Result<()> {
        let mut bytes = Vec::new();
        if self.torn {
            bytes.push(b'\n');
        }
        bytes.extend(lines.iter().flatten());
        let before = self.file.metadata()?.len();
        if let Err(error) = self.file.write_all(&bytes) {
            // On a full disk a part was written: away with it, or the next line would be glued to it.
            self.torn = self.file.set_len(before).is_err() || self.torn;
            return Err(error);
        }
        self.torn = false;
        let start = Instant::now();
        self.file.sync_data()?;
        if let Some(cost) = cost {
            cost.add_since(start);
        }
        Ok(())
    }
}

fn line_of(record: &Record) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(&Line {
        time: unix_now(),
        record,
    })?;
    line.push(b'\n');
    Ok(line)
}

/// A lock is never held while something can panic; if it was all the same, its data is whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_comes_before_what_is_written_after_it() {
        let dir = tempfile::tempdir().unwrap();
        let audit = Audit::open(&dir.path().join("audit.jsonl")).unwrap();
        for _round in 0..50 {
            audit.note(&event("detach"));
            audit
                .write(&event("load"), &mut SyncCost::default())
                .unwrap();
        }
        audit.note(&event("stop"));
        let events: Vec<String> = audit
            .last(1000)
            .unwrap()
            .iter()
            .map(|line| line["event"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(events.len(), 101);
        assert!(
            events
                .chunks(2)
                .take(50)
                .all(|two| two == ["detach", "load"])
        );
        assert_eq!(events[100], "stop", "what was noted is read");
    }

    #[test]
    fn g11_notes_that_nobody_writes_are_bounded_and_counted() {
        let dir = tempfile::tempdir().unwrap();
        let audit = Audit::open(&dir.path().join("audit.jsonl")).unwrap();
        {
            // A disk that hangs: whoever notes does not wait for it.
            let _hangs = lock(&audit.shared.trail);
            for _note in 0..10_000 {
                audit.note(&event("detach"));
            }
            assert_eq!(lock(&audit.shared.waiting).lines.len(), WAITING_MAX);
        }
        let all = audit.last(100_000).unwrap();
        assert_eq!(all.len(), WAITING_MAX + 1);
        let lost = all.last().unwrap();
        assert_eq!(lost["outcome"], "lost");
        assert!(lost["reason"].as_str().unwrap().starts_with("8976 "));
    }

    #[test]
    fn p16_a_full_disk_is_told_and_tears_no_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.jsonl");
        let audit = Audit::open(&path).unwrap();
        audit
            .write(&event("stop"), &mut SyncCost::default())
            .unwrap();
        // A file that takes nothing, in place of the real one.
        let good = std::mem::replace(
            &mut lock(&audit.shared.trail).file,
            File::options().append(true).open("/dev/full").unwrap(),
        );
        let full = audit.write(&event("load"), &mut SyncCost::default());
        assert_eq!(full.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert!(audit.trouble().is_some());
        // A part of the line got through, and could not be taken back.
        let mut trail = lock(&audit.shared.trail);
        trail.file = good;
        trail.file.write_all(b"{\"torn").unwrap();
        assert!(trail.torn, "/dev/full cannot be cut");
        drop(trail);
        audit
            .write(&event("resume"), &mut SyncCost::default())
            .unwrap();
        assert!(audit.trouble().is_none());
        let all = audit.last(10).unwrap();
        assert_eq!(all.len(), 3);
        assert_eq!(all[2]["event"], "resume", "a line of its own");
    }

    fn event(event: &'static str) -> Record {
        Record {
            event,
            ..Record::default()
        }
    }

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
