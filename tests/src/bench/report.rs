//! How figures are told: one line each, with its goal if it has one; and the
//! little statistics they need.
//!
//! Knows numbers and words. Must not know what was measured.

use std::io::{Stdout, Write as _};
use std::time::Duration;

/// Collects the verdicts while it prints.
#[derive(Debug)]
pub(super) struct Report {
    out: Stdout,
    met: u32,
    missed: u32,
}

/// What a figure should be at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is.
    Pass,
    /// It is more.
    Over,
}

impl Verdict {
    /// Compares a figure with the most that it should be.
    pub(super) fn at_most(figure: f64, most: f64) -> Self {
        if figure <= most {
            Self::Pass
        } else {
            Self::Over
        }
    }
}

impl Report {
    /// Tells on what is measured.
    pub(super) fn begin() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let build = if cfg!(debug_assertions) {
            "a debug build: these figures mean nothing"
        } else {
            "an optimised build"
        };
        let mut report = Self {
            out: std::io::stdout(),
            met: 0,
            missed: 0,
        };
        report.line(&format!("{cores} cores{}, {build}", sha_extensions()));
        report
    }

    /// A reader that has gone is no reason to stop measuring.
    fn line(&mut self, text: &str) {
        let _reader_gone = writeln!(self.out, "{text}");
    }

    /// Begins a group of figures that one command measures.
    pub(super) fn group(&mut self, name: &str) {
        self.line(&format!("\n{name}    (./dev bench {name})"));
    }

    /// A figure.
    pub(super) fn figure(&mut self, what: &str, value: &str) {
        self.line(&format!("  {what:<58} {value:>16}"));
    }

    /// A figure with a goal.
    pub(super) fn judged(&mut self, what: &str, value: &str, goal: &str, verdict: Verdict) {
        let word = match verdict {
            Verdict::Pass => {
                self.met = self.met.saturating_add(1);
                "PASS"
            }
            Verdict::Over => {
                self.missed = self.missed.saturating_add(1);
                "over"
            }
        };
        self.line(&format!("  {what:<58} {value:>16}   goal {goal}: {word}"));
    }

    /// A remark.
    pub(super) fn note(&mut self, text: &str) {
        self.line(&format!("  {text}"));
    }

    /// The summary.
    pub(super) fn end(&mut self) {
        let (met, missed) = (self.met, self.missed);
        self.line(&format!("\n{met} goals met, {missed} missed"));
    }
}

/// Whether the processor hashes by itself: the yardstick depends on it.
fn sha_extensions() -> &'static str {
    let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    if flags.split_whitespace().any(|flag| flag == "sha_ni") {
        " with SHA extensions"
    } else {
        " without x86 SHA extensions"
    }
}

/// One of `count` equal parts; zero where there are none.
pub(super) fn part(whole: Duration, count: u32) -> Duration {
    whole.checked_div(count).unwrap_or_default()
}

/// The one in the middle; zero of none.
pub(super) fn median(mut all: Vec<Duration>) -> Duration {
    all.sort_unstable();
    all.get(all.len() / 2).copied().unwrap_or_default()
}

/// The fastest but one in ten: what it takes where nothing else runs; zero of none.
pub(super) fn tenth_best(mut all: Vec<Duration>) -> Duration {
    all.sort_unstable();
    all.get(all.len() / 10).copied().unwrap_or_default()
}

/// The slowest but one in ten; zero of none.
pub(super) fn tenth_worst(mut all: Vec<Duration>) -> Duration {
    all.sort_unstable();
    let at = all.len().saturating_mul(9) / 10;
    all.get(at).copied().unwrap_or_default()
}

/// A duration for people.
pub(super) fn time(duration: Duration) -> String {
    format!("{:.3} ms", milliseconds(duration))
}

/// In milliseconds.
pub(super) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// How many times `of` a duration is.
pub(super) fn ratio(duration: Duration, of: Duration) -> f64 {
    duration.as_secs_f64() / of.as_secs_f64().max(f64::MIN_POSITIVE)
}

/// Bytes for people; may be negative.
pub(super) fn mebibytes(bytes: f64) -> String {
    format!("{:.2} MiB", bytes / 1_048_576.0)
}

/// A count of bytes as a number to reckon with: exact below 2^53.
#[expect(clippy::cast_precision_loss, reason = "no process has so many bytes")]
pub(super) fn number(bytes: u64) -> f64 {
    bytes as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_in_the_middle() {
        let all = [3, 1, 2].map(Duration::from_millis).to_vec();
        assert_eq!(median(all.clone()), Duration::from_millis(2));
        assert_eq!(tenth_worst(all.clone()), Duration::from_millis(3));
        assert_eq!(tenth_best(all), Duration::from_millis(1));
        assert_eq!(median(Vec::new()), Duration::ZERO);
    }

    #[test]
    fn a_goal_is_met_at_its_edge() {
        assert_eq!(Verdict::at_most(1.5, 1.5), Verdict::Pass);
        assert_eq!(Verdict::at_most(1.6, 1.5), Verdict::Over);
    }
}
