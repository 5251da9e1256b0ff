//! Refusals that repeat: the first of a minute are told in full, of the others
//! one line counts how many there were and why (threats G11, R5).
//!
//! Pure: time is given to it. A guest may ask for what it may not have ten
//! thousand times a second; that costs the audit a few lines a minute.

use std::collections::BTreeMap;
use std::time::Duration;

use uuid::Uuid;

use super::audit::Record;

/// Told in full within one [`WINDOW`].
const IN_FULL: u32 = 20;
/// How long they count together.
const WINDOW: Duration = Duration::from_secs(60);
/// Reasons that are counted apart; they are our own words, and few. What comes beyond is counted
/// as "other".
const REASONS: usize = 16;

/// One VM's refusals.
#[derive(Debug, Default)]
pub struct Repeats {
    since: Option<Duration>,
    told: u32,
    hushed: BTreeMap<String, u64>,
}

/// What to do with a refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tell {
    /// Write it down.
    InFull,
    /// It was counted. It is the first of its window that was: ask [`Repeats::due`] after this time.
    Count(Duration),
    /// It was counted.
    Hush,
}

/// What was counted, by reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// How often for each reason.
    pub counts: BTreeMap<String, u64>,
}

impl Summary {
    /// The one line.
    #[must_use]
    pub fn record(&self, vm: Uuid) -> Record {
        let sum = self
            .counts
            .values()
            .fold(0u64, |sum, count| sum.saturating_add(*count));
        let each: Vec<String> = self
            .counts
            .iter()
            .map(|(reason, count)| format!("{count} {reason}"))
            .collect();
        Record {
            event: "refused",
            vm: Some(vm),
            outcome: Some("repeated".to_owned()),
            reason: Some(format!(
                "{sum} more were refused within a minute: {}",
                each.join(", ")
            )),
            ..Record::default()
        }
    }
}

impl Repeats {
    /// A refusal for `reason` at `now`, a time since any fixed start; and what an earlier window
    /// left to be told.
    pub fn refused(&mut self, reason: &str, now: Duration) -> (Option<Summary>, Tell) {
        let before = self.due(now);
        let since = *self.since.get_or_insert(now);
        if self.told < IN_FULL {
            self.told = self.told.saturating_add(1);
            return (before, Tell::InFull);
        }
        let first = self.hushed.is_empty();
        let reason = if self.hushed.len() < REASONS || self.hushed.contains_key(reason) {
            reason
        } else {
            "other"
        };
        let count = self.hushed.entry(reason.to_owned()).or_default();
        *count = count.saturating_add(1);
        let rest = WINDOW.saturating_sub(now.saturating_sub(since));
        (before, if first { Tell::Count(rest) } else { Tell::Hush })
    }

    /// What is to be told once the window is over; begins anew then.
    pub fn due(&mut self, now: Duration) -> Option<Summary> {
        let since = self.since?;
        if now.saturating_sub(since) < WINDOW {
            return None;
        }
        self.rest()
    }

    /// What was not told yet; begins anew.
    pub fn rest(&mut self) -> Option<Summary> {
        let counts = std::mem::take(self).hushed;
        (!counts.is_empty()).then_some(Summary { counts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g11_a_million_refusals_are_a_few_lines_and_exact_counts() {
        let mut repeats = Repeats::default();
        let (mut lines, mut timers, mut counted) = (0u64, 0u32, 0u64);
        let total = 1_000_000u64;
        // Ten thousand a second, for 100 s.
        for number in 0..total {
            let now = Duration::from_micros(number * 100);
            let reason = if number % 3 == 0 {
                "not-granted"
            } else {
                "unknown-image"
            };
            let (summary, tell) = repeats.refused(reason, now);
            if let Some(summary) = summary {
                lines += 1;
                counted += summary.counts.values().sum::<u64>();
            }
            match tell {
                Tell::InFull => {
                    lines += 1;
                    counted += 1;
                }
                Tell::Count(after) => {
                    assert!(after <= WINDOW);
                    timers += 1;
                }
                Tell::Hush => {}
            }
        }
        let rest = repeats.rest().unwrap();
        counted += rest.counts.values().sum::<u64>();
        assert_eq!(counted, total, "every refusal is told or counted");
        assert!(lines <= 60, "{lines}");
        assert_eq!(timers, 2, "one timer a window");
        assert!(repeats.rest().is_none());
    }

    #[test]
    fn a_few_are_told_in_full_minute_after_minute() {
        let mut repeats = Repeats::default();
        for number in 0..200u64 {
            let now = Duration::from_secs(number * 5);
            assert_eq!(repeats.refused("busy", now), (None, Tell::InFull));
        }
    }

    #[test]
    fn r5_reasons_are_bounded() {
        let mut repeats = Repeats::default();
        for number in 0..10_000 {
            repeats.refused(&format!("reason {number}"), Duration::ZERO);
        }
        let summary = repeats.rest().unwrap();
        assert!(summary.counts.len() <= REASONS + 1);
        assert_eq!(
            summary.counts.values().sum::<u64>(),
            10_000 - u64::from(IN_FULL)
        );
    }

    #[test]
    fn nothing_is_due_before_its_time() {
        let mut repeats = Repeats::default();
        for _number in 0..30 {
            repeats.refused("busy", Duration::from_secs(7));
        }
        assert!(repeats.due(Duration::from_secs(66)).is_none());
        let summary = repeats.due(Duration::from_secs(67)).unwrap();
        assert_eq!(summary.counts["busy"], 10);
        let record = summary.record(Uuid::nil());
        assert!(record.reason.unwrap().contains("10 busy"));
        assert!(repeats.due(Duration::from_secs(300)).is_none());
    }
}
