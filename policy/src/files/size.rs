//! Sizes and rates as people write them: `"256 MiB"`, `"1 MB/s"`.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// A number of bytes; in a file `"64 MiB"`, or a plain number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ByteSize(pub u64);

/// Bytes a second; in a file `"1 MB/s"`, or a plain number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Rate(pub u64);

const UNITS: [(&str, u64); 9] = [
    ("B", 1),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

/// A whole number above 0, a space or none, a unit.
fn bytes(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits)?;
    let unit = unit.strip_prefix(' ').unwrap_or(unit);
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
    number
        .parse::<u64>()
        .ok()?
        .checked_mul(*factor)
        .filter(|bytes| *bytes > 0)
}

struct Amount {
    suffix: &'static str,
    example: &'static str,
}

impl Visitor<'_> for Amount {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an amount above 0, such as \"{}\"", self.example)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<u64, E> {
        u64::try_from(value)
            .ok()
            .filter(|bytes| *bytes > 0)
            .ok_or_else(|| E::invalid_value(serde::de::Unexpected::Signed(value), &self))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<u64, E> {
        i64::try_from(value)
            .ok()
            .ok_or_else(|| E::invalid_value(serde::de::Unexpected::Unsigned(value), &self))
            .and_then(|value| Amount { ..self }.visit_i64(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<u64, E> {
        value
            .strip_suffix(self.suffix)
            .and_then(bytes)
            .ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(value), &self))
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ByteSize, D::Error> {
        deserializer
            .deserialize_any(Amount {
                suffix: "",
                example: "256 MiB",
            })
            .map(ByteSize)
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Rate, D::Error> {
        deserializer
            .deserialize_any(Amount {
                suffix: "/s",
                example: "1 MB/s",
            })
            .map(Rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_strict() {
        assert_eq!(bytes("256 MiB"), Some(256 << 20));
        assert_eq!(bytes("256MiB"), Some(256 << 20));
        assert_eq!(bytes("1 MB"), Some(1_000_000));
        for bad in [
            "",
            "0 B",
            "1",
            "MiB",
            "1  MiB",
            "1 mib",
            "-1 B",
            "1.5 MiB",
            "1 MiB ",
            " 1 B",
            "99999999999999999999 B",
            "99999999 TiB",
            "1 M",
            "1 MB/s",
        ] {
            assert_eq!(bytes(bad), None, "{bad:?}");
        }
    }
}
