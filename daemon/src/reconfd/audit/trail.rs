//! The audit's file: lines appended in order, durable together, whole or not at
//! all.
//!
//! Knows lines and the disk. Must not know what they say.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tracing::warn;

use super::{SyncCost, lost_line};

/// Lines that nobody waits for and that are not written yet; what comes beyond is counted.
pub(super) const WAITING_MAX: usize = 1024;
/// How long the thread leaves a disk alone that said no.
const AFTER_ERROR: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) waiting: Mutex<Waiting>,
    wake: Condvar,
    pub(super) trail: Mutex<Trail>,
    /// The last error, until a writing goes well. Apart from the trail, whose lock is held as long
    /// as a disk hangs.
    trouble: Mutex<Option<String>>,
}

/// Lines that nobody waits for.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pub(super) lines: VecDeque<Vec<u8>>,
    /// Lines that found no room here.
    lost: u64,
    closing: bool,
}

#[derive(Debug)]
pub(super) struct Trail {
    pub(super) file: File,
    /// The file may end in a part of a line.
    pub(super) torn: bool,
}

impl Shared {
    /// Opens the file.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
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
        let torn = last != *b"\n";
        Ok(Self {
            waiting: Mutex::default(),
            wake: Condvar::new(),
            trail: Mutex::new(Trail { file, torn }),
            trouble: Mutex::default(),
        })
    }

    /// Why the trail cannot be written, while it cannot.
    pub(super) fn trouble(&self) -> Option<String> {
        lock(&self.trouble).clone()
    }

    /// Ends the thread, once it has written what waits.
    pub(super) fn close(&self) {
        lock(&self.waiting).closing = true;
        self.wake.notify_all();
    }

    /// Has a line written soon; never waits for the disk.
    pub(super) fn push(&self, line: Vec<u8>) {
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
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn write(
        &self,
        line: Option<Vec<u8>>,
        cost: Option<&mut SyncCost>,
    ) -> io::Result<()> {
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
            lines.push_back(lost_line(lost)?);
        }
        let noted = lines.len();
        lines.extend(line);
        if lines.is_empty() {
            return Ok(());
        }
        let written = trail.append(&lines, cost);
        drop(trail);
        *lock(&self.trouble) = written.as_ref().err().map(ToString::to_string);
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
    pub(super) fn write_what_waits(&self) {
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

/// A lock is never held while something can panic; if it was all the same, its data is whole.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
