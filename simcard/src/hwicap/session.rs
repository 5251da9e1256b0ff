//! Which function a stream of words makes: the words that went to the
//! configuration logic since a decoupler last moved, what was written
//! meanwhile, and how it ended.
//!
//! A function is known by a frame that names it ([`crate::mark`]), or by the
//! digest of the file's words in the table, most significant byte first: the
//! SHA-256 of a `.bit` file's data, and of a big-endian `.bin`. A driver pushes
//! other words around the file's (probes, a DESYNC): so the file may begin
//! where the FIFO was cleared or where padding begins, and end anywhere after
//! a DESYNC while the logic is deaf.

use ring::digest::{Context, SHA256};
use uuid::Uuid;

use crate::silicon::{Logic, Moment};
use crate::table::{Table, as_digest};

/// A stream longer than this (256 MiB) is known by its mark only.
const MAX_WORDS: usize = 64 << 20;
/// So many beginnings and ends are tried.
const MAX_STARTS: usize = 16;
const MAX_ENDS: usize = 1024;
const PADDING: u32 = u32::MAX;
const PAGE: usize = 4096;

/// How the run of this session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// No frame was written.
    Untouched,
    /// Frames were written; no good end yet.
    Open,
    /// Configuration stopped, or ended unchecked.
    Failed,
    /// The last end was good.
    Sound,
}

/// The session.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    words: Vec<u32>,
    overlong: bool,
    starts: Vec<usize>,
    ends: Vec<usize>,
    padding: bool,
    mark: Option<Uuid>,
    pub(crate) outcome: Outcome,
    pub(crate) count: u64,
    judged: usize,
}

impl Session {
    pub(crate) fn new() -> Self {
        Self {
            words: Vec::new(),
            overlong: false,
            starts: vec![0],
            ends: Vec::new(),
            padding: false,
            mark: None,
            outcome: Outcome::Untouched,
            count: 0,
            judged: 0,
        }
    }

    /// A file may begin here.
    pub(crate) fn may_begin(&mut self) {
        let here = self.words.len();
        if self.starts.len() < MAX_STARTS && self.starts.last() != Some(&here) {
            self.starts.push(here);
        }
    }

    /// A word went in, with what it brought about; `logic` is as it is after it.
    pub(crate) fn push(&mut self, word: u32, moment: Moment, logic: &Logic) {
        self.count = self.count.saturating_add(1);
        let deaf = !logic.synced();
        if deaf && word == PADDING && !self.padding {
            self.may_begin();
        }
        self.padding = deaf && word == PADDING;
        if self.words.len() >= MAX_WORDS {
            self.overlong = true;
        } else {
            self.words.push(word);
        }
        match moment {
            Moment::Frame(mark) => {
                self.mark = mark.or(self.mark);
                if self.outcome != Outcome::Failed {
                    self.outcome = Outcome::Open;
                }
            }
            Moment::Stopped => self.outcome = Outcome::Failed,
            Moment::End(ending) if self.outcome == Outcome::Open => {
                self.outcome = match ending {
                    crate::silicon::Ending::Sound => Outcome::Sound,
                    crate::silicon::Ending::Unsound => Outcome::Failed,
                };
            }
            _ => {}
        }
        if deaf && self.outcome == Outcome::Sound && self.ends.len() < MAX_ENDS {
            self.ends.push(self.words.len());
        }
    }

    /// What the words so far make; `None`: nothing that anybody knows, or
    /// nothing new since the last time it was asked.
    pub(crate) fn judge(&mut self, table: &Table) -> Option<Uuid> {
        if self.outcome != Outcome::Sound || self.judged == self.words.len() {
            return None;
        }
        self.judged = self.words.len();
        if table.is_empty() || self.overlong {
            return self.mark;
        }
        self.starts
            .iter()
            .find_map(|start| self.look_up(*start, table))
            .or(self.mark)
    }

    /// Hashes once from a beginning, and looks each end up on the way.
    fn look_up(&self, start: usize, table: &Table) -> Option<Uuid> {
        let mut context = Context::new(&SHA256);
        let mut page = Vec::with_capacity(PAGE);
        let mut at = start;
        for end in &self.ends {
            let Some(words) = self.words.get(at..*end) else {
                continue;
            };
            for chunk in words.chunks(PAGE / 4) {
                page.clear();
                page.extend(chunk.iter().flat_map(|word| word.to_be_bytes()));
                context.update(&page);
            }
            at = *end;
            let digest = as_digest(context.clone().finish().as_ref());
            if let Some(function) = table.get(&digest) {
                return Some(function);
            }
        }
        None
    }
}
