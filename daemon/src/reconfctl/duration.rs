//! Spans of time as people write them: `500ms`, `10s`, `5m`, `12h`, `30d`.

use std::time::Duration;

/// Parses a whole number and its unit; a number alone counts seconds.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text.strip_prefix(digits).unwrap_or_default();
    let number: u64 = digits
        .parse()
        .map_err(|_not_a_number| format!("{text:?} is not a span of time such as 10s or 30d"))?;
    let milliseconds = match unit {
        "ms" => 1,
        "" | "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(format!("unknown unit {unit:?}; use ms, s, m, h or d")),
    };
    let whole = number
        .checked_mul(milliseconds)
        .ok_or_else(|| format!("{text:?} is too long"))?;
    if whole == 0 {
        return Err("it must be longer than nothing".to_owned());
    }
    Ok(Duration::from_millis(whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans() {
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("10"), Ok(Duration::from_secs(10)));
        assert_eq!(parse("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(parse("30d"), Ok(Duration::from_secs(30 * 86_400)));
        for bad in [
            "",
            "s",
            "-1s",
            "1.5h",
            "1w",
            "0s",
            "99999999999999999999",
            "999999999999999999d",
            "1 s",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
