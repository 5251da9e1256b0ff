//! Words for what the protocol numbers, and strings of the host's made safe.
//!
//! Knows forms. Must not know where they are shown. Keys, digests and function
//! ids are written as the protocol crate writes them.

use std::time::Duration;

use protocol::message::{JobKind, SlotState, Stage};

/// The name of a slot's state.
#[must_use]
pub fn state(state: SlotState) -> &'static str {
    match state {
        SlotState::Empty => "empty",
        SlotState::Changing => "changing",
        SlotState::Active => "active",
        SlotState::Recovering => "recovering",
        SlotState::Unavailable => "unavailable",
    }
}

/// The name of a job's stage.
#[must_use]
pub fn stage(stage: Stage) -> &'static str {
    match stage {
        Stage::Accepted => "accepted",
        Stage::Verifying => "verifying",
        Stage::Queued => "queued",
        Stage::Isolating => "isolating",
        Stage::Writing => "writing",
        Stage::Checking => "checking",
        Stage::Committing => "committing",
        Stage::Done => "done",
    }
}

/// The name of what a job does.
#[must_use]
pub fn kind(kind: JobKind) -> &'static str {
    match kind {
        JobKind::Load => "load",
        JobKind::Clear => "clear",
    }
}

/// A duration for people: `500 ms`, `5 s`.
#[must_use]
pub fn seconds(duration: Duration) -> String {
    if duration < Duration::from_secs(1) {
        format!("{} ms", duration.as_millis())
    } else if duration.subsec_millis() == 0 {
        format!("{} s", duration.as_secs())
    } else {
        format!("{:.1} s", duration.as_secs_f64())
    }
}

/// A string that came over the channel, made safe to show: control characters
/// and what could turn the text around are replaced, and it is cut at 128
/// characters. A terminal obeys what it is sent.
#[must_use]
pub fn foreign(text: &str) -> String {
    text.chars()
        .take(128)
        .map(|c| {
            let turns_text = matches!(
                c,
                '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}'
            );
            if c.is_control() || turns_text { '\u{fffd}' } else { c }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g10_a_foreign_string_cannot_drive_the_terminal() {
        assert_eq!(
            foreign("a\x1b[2Jb\n\u{202e}c"),
            "a\u{fffd}[2Jb\u{fffd}\u{fffd}c"
        );
        assert_eq!(foreign(&"x".repeat(5000)).len(), 128);
    }

    #[test]
    fn durations_read_well() {
        assert_eq!(seconds(Duration::from_millis(500)), "500 ms");
        assert_eq!(seconds(Duration::from_secs(5)), "5 s");
        assert_eq!(seconds(Duration::from_millis(2500)), "2.5 s");
    }
}
