//! `[limits]` of `host.toml`.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::read::Source;
use super::{ByteSize, FileError, Problem, Rate};

/// `[limits]`: bounds, each with a default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// Longest bitstream, in bytes. Default 256 MiB.
    pub bitstream_max: u64,
    /// Sealed bytes kept in all, in bytes. Default 512 MiB.
    pub sealed_bytes_max: u64,
    /// Jobs kept for a VM and generation. Default 64.
    pub jobs_per_vm: u32,
    /// Jobs that wait for one card. Default 8.
    pub queue_per_card: u32,
    /// How long a card waits for the last consent. Default 5 s.
    pub commit_wait: Duration,
    /// Notice before the host takes something away. Default 2 s.
    pub notice: Duration,
    /// A load's deadline is this and its size / rate. Default 2 s.
    pub load_base: Duration,
    /// Bytes a second, where the shell file states no rate. Default 1 MB/s.
    pub load_rate: u64,
    /// Longest single wait for the card. Default 8 s.
    pub wait_max: Duration,
    /// Failed scrubs before an operator is needed. Default 3.
    pub scrub_tries: u32,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct LimitsTable {
    bitstream_max: Option<Spanned<ByteSize>>,
    sealed_bytes_max: Option<Spanned<ByteSize>>,
    jobs_per_vm: Option<Spanned<u64>>,
    queue_per_card: Option<Spanned<u64>>,
    commit_wait_ms: Option<Spanned<u64>>,
    notice_ms: Option<Spanned<u64>>,
    load_base_ms: Option<Spanned<u64>>,
    load_rate: Option<Spanned<Rate>>,
    wait_max_ms: Option<Spanned<u64>>,
    scrub_tries: Option<Spanned<u64>>,
}

/// A value if there is one, within its range, or the default.
fn within(
    value: Option<&Spanned<u64>>,
    default: u64,
    range: RangeInclusive<u64>,
    source: Source<'_>,
) -> Result<u64, FileError> {
    let Some(value) = value else {
        return Ok(default);
    };
    let number = *value.get_ref();
    if range.contains(&number) {
        return Ok(number);
    }
    let why = format!(
        "{number} is out of range: {} to {}",
        range.start(),
        range.end()
    );
    Err(source.error(value.span(), Problem::Value(why)))
}

impl LimitsTable {
    /// Ranges, and what must hold between two of them.
    pub(super) fn check(&self, source: Source<'_>) -> Result<Limits, FileError> {
        let count = |value: &Option<Spanned<u64>>, default, max| {
            within(value.as_ref(), default, 1..=max, source)
                .map(|number| u32::try_from(number).unwrap_or(u32::MAX))
        };
        let ms = |value: &Option<Spanned<u64>>, default, max| {
            within(value.as_ref(), default, 1..=max, source).map(Duration::from_millis)
        };
        let bytes = |value: &Option<Spanned<ByteSize>>, default: u64| match value {
            Some(size) => size.get_ref().0,
            None => default,
        };
        let limits = Limits {
            bitstream_max: bytes(&self.bitstream_max, 256 << 20),
            sealed_bytes_max: bytes(&self.sealed_bytes_max, 512 << 20),
            jobs_per_vm: count(&self.jobs_per_vm, 64, 4096)?,
            queue_per_card: count(&self.queue_per_card, 8, 1024)?,
            commit_wait: ms(&self.commit_wait_ms, 5_000, 60_000)?,
            notice: ms(&self.notice_ms, 2_000, 60_000)?,
            load_base: ms(&self.load_base_ms, 2_000, 600_000)?,
            load_rate: self
                .load_rate
                .as_ref()
                .map_or(1_000_000, |rate| rate.get_ref().0),
            wait_max: ms(&self.wait_max_ms, 8_000, 600_000)?,
            scrub_tries: count(&self.scrub_tries, 3, 100)?,
        };
        // A bitstream that is allowed must also find room.
        if limits.sealed_bytes_max < limits.bitstream_max {
            let span = [&self.sealed_bytes_max, &self.bitstream_max]
                .into_iter()
                .flatten()
                .next()
                .map_or(0..0, Spanned::span);
            let why = format!(
                "sealed_bytes_max ({}) is below bitstream_max ({}): such a bitstream finds no room",
                limits.sealed_bytes_max, limits.bitstream_max
            );
            return Err(source.error(span, Problem::Conflict(why)));
        }
        Ok(limits)
    }
}
