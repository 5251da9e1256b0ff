//! Points in time, in whole seconds. Nothing here reads a clock: `now` is
//! always given by the caller.

use std::fmt;
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Seconds since 1970-01-01T00:00:00Z. Written `2030-01-31T23:59:59Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct UnixTime(pub u64);

const DAY: u64 = 86_400;
/// Years that are read and written: four digits.
const YEARS: std::ops::RangeInclusive<u64> = 1970..=9999;

impl UnixTime {
    /// The last second that can be written: 9999-12-31T23:59:59Z.
    pub const MAX: UnixTime = UnixTime(253_402_300_799);

    /// Reads the written form, and no other: UTC, seconds, upper-case `T` and `Z`.
    #[must_use]
    pub fn parse(text: &str) -> Option<UnixTime> {
        let (date, clock) = text.strip_suffix('Z')?.split_once('T')?;
        let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
        let [hour, minute, second] = numbers(clock, ':', [2, 2, 2])?;
        if !YEARS.contains(&year) || hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let days = days_before(year, month, day)?;
        let of_day = hour
            .checked_mul(3600)?
            .checked_add(minute.checked_mul(60)?)?;
        days.checked_mul(DAY)?
            .checked_add(of_day)?
            .checked_add(second)
            .map(UnixTime)
    }

    /// This much later; at most [`UnixTime::MAX`].
    #[must_use]
    pub fn after(self, duration: Duration) -> UnixTime {
        UnixTime(self.0.saturating_add(duration.as_secs())).min(UnixTime::MAX)
    }
}

/// Exactly three numbers of exactly these lengths.
fn numbers(text: &str, between: char, lengths: [usize; 3]) -> Option<[u64; 3]> {
    let mut parts = text.split(between);
    let mut numbers = [0; 3];
    for (number, length) in numbers.iter_mut().zip(lengths) {
        let part = parts.next()?;
        if part.len() != length || !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(numbers)
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_of(year: u64) -> u64 {
    if is_leap(year) { 366 } else { 365 }
}

fn months_of(year: u64) -> [u64; 12] {
    let february = if is_leap(year) { 29 } else { 28 };
    [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
}

/// Days from 1970-01-01 to this one, if there is such a day.
fn days_before(year: u64, month: u64, day: u64) -> Option<u64> {
    let month = usize::try_from(month.checked_sub(1)?).ok()?;
    let lengths = months_of(year);
    let in_month = day
        .checked_sub(1)
        .filter(|d| lengths.get(month).is_some_and(|l| d < l))?;
    let years: u64 = (1970..year).map(days_of).sum();
    let months: u64 = lengths.iter().take(month).sum();
    years.checked_add(months)?.checked_add(in_month)
}

impl fmt::Display for UnixTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = (*self).min(UnixTime::MAX).0;
        let mut days = seconds.div_euclid(DAY);
        let mut year = 1970u64;
        while days >= days_of(year) {
            days = days.saturating_sub(days_of(year));
            year = year.saturating_add(1);
        }
        let mut month = 1u64;
        for length in months_of(year) {
            if days < length {
                break;
            }
            days = days.saturating_sub(length);
            month = month.saturating_add(1);
        }
        let day = days.saturating_add(1);
        let clock = seconds.rem_euclid(DAY);
        let (hour, minute, second) = (
            clock.div_euclid(3600),
            clock.rem_euclid(3600).div_euclid(60),
            clock.rem_euclid(60),
        );
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"
        )
    }
}

impl Serialize for UnixTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for UnixTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<UnixTime, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        UnixTime::parse(&text)
            .ok_or_else(|| D::Error::custom("not a time: write it as 2030-01-31T23:59:59Z"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_times() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T12:00:00Z", 951_825_600),
            ("2024-12-31T23:59:59Z", 1_735_689_599),
            ("9999-12-31T23:59:59Z", UnixTime::MAX.0),
        ] {
            assert_eq!(UnixTime::parse(text), Some(UnixTime(seconds)));
            assert_eq!(UnixTime(seconds).to_string(), text);
        }
        for bad in [
            "2023-02-29T00:00:00Z",
            "2024-13-01T00:00:00Z",
            "2024-00-01T00:00:00Z",
            "2024-01-00T00:00:00Z",
            "2024-01-01T24:00:00Z",
            "2024-01-01T00:00:60Z",
            "2024-01-01T00:00:00",
            "2024-01-01t00:00:00z",
            "2024-01-01 00:00:00Z",
            "2024-01-01T00:00:00+00:00",
            "1969-12-31T23:59:59Z",
            "10000-01-01T00:00:00Z",
            "2024-1-01T00:00:00Z",
            "2024-01-01-01T00:00:00Z",
            "",
            "now",
            "2024-01-01T00:00:00.0Z",
        ] {
            assert_eq!(UnixTime::parse(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(seconds in 0..=UnixTime::MAX.0) {
            let time = UnixTime(seconds);
            prop_assert_eq!(UnixTime::parse(&time.to_string()), Some(time));
        }
    }
}
