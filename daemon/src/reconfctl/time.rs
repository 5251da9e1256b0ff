//! Moments as people read them. All in UTC: hosts of one site need not share a zone.

use std::time::{SystemTime, UNIX_EPOCH};

use policy::time::UnixTime;

/// Now, in seconds of Unix time; 0 on a host whose clock is before 1970.
pub(super) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

/// `2026-11-30T22:11:26Z` for seconds of Unix time.
pub(super) fn moment(seconds: u64) -> String {
    UnixTime(seconds).to_string()
}

/// `3 h` for a number of seconds: the largest unit that fits.
pub(super) fn span(seconds: u64) -> String {
    let (unit, name) = match seconds {
        0..60 => (1, "s"),
        60..3600 => (60, "min"),
        3600..172_800 => (3600, "h"),
        _ => (86_400, "days"),
    };
    format!("{} {name}", seconds.checked_div(unit).unwrap_or(0))
}

/// `3 h ago`, or `in 3 h`.
pub(super) fn relative(moment: u64, now: u64) -> String {
    match now.checked_sub(moment) {
        Some(past) => format!("{} ago", span(past)),
        None => format!("in {}", span(moment.saturating_sub(now))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_directions() {
        assert_eq!(relative(100, 100), "0 s ago");
        assert_eq!(relative(0, 7200), "2 h ago");
        assert_eq!(relative(86_400 * 30, 0), "in 30 days");
        assert_eq!(span(u64::MAX), "213503982334601 days");
    }
}
