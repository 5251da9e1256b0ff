//! Payloads that are not of the simulated format, known by their digest.
//!
//! A real partial bitstream means nothing to a simulated fabric. A table given
//! at the start says which function each one makes. The digest is SHA-256 over
//! what arrives at the data register: the payload **padded with zeros to a
//! multiple of four bytes**, for the register takes whole words. A card of the
//! AMD shape takes the words of a file most significant byte first, so that the
//! digest is of the file's data as it stands in a `.bit` or big-endian `.bin`.

use std::collections::HashMap;

use ring::digest::{SHA256, digest};
use thiserror::Error;
use uuid::Uuid;

/// SHA-256 of the received words.
pub type Digest = [u8; 32];

/// No table is longer; a longer one is a mistake.
const MAX_ENTRIES: usize = 65_536;

/// Digest to AFU id.
#[derive(Debug, Clone, Default)]
pub struct Table(HashMap<Digest, Uuid>);

/// Why a table could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TableError {
    /// A line is not `DIGEST UUID`.
    #[error("line {line}: expected a SHA-256 in 64 hex digits, a blank, and an AFU id")]
    BadLine {
        /// Counted from 1.
        line: usize,
    },
    /// Two lines for one digest.
    #[error("line {line}: this digest was given before")]
    Twice {
        /// Counted from 1.
        line: usize,
    },
    /// More than 65 536 entries.
    #[error("more than {MAX_ENTRIES} entries")]
    TooLong,
}

impl Table {
    /// Reads a table: one entry a line, 64 hex digits, a blank, a UUID; empty
    /// lines and lines that begin with `#` are skipped.
    ///
    /// # Errors
    /// A line that cannot be read, a digest given twice, too many entries.
    pub fn parse(text: &str) -> Result<Self, TableError> {
        let mut table = Self::default();
        for (line, content) in (1..).zip(text.lines()) {
            let content = content.trim();
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            let (digest, function) = entry(content).ok_or(TableError::BadLine { line })?;
            if table.0.len() >= MAX_ENTRIES {
                return Err(TableError::TooLong);
            }
            if table.0.insert(digest, function).is_some() {
                return Err(TableError::Twice { line });
            }
        }
        Ok(table)
    }

    /// Adds what `payload` makes; the padding is done here.
    pub fn insert_payload(&mut self, payload: &[u8], function: Uuid) {
        self.0.insert(padded_digest(payload), function);
    }

    /// Whether it knows no payload at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What the payload with this digest makes.
    #[must_use]
    pub fn get(&self, digest: &Digest) -> Option<Uuid> {
        self.0.get(digest).copied()
    }
}

/// SHA-256 of a payload as the card counts it: zero-padded to four bytes.
#[must_use]
pub fn padded_digest(payload: &[u8]) -> Digest {
    let mut padded = payload.to_vec();
    padded.resize(payload.len().next_multiple_of(4), 0);
    as_digest(digest(&SHA256, &padded).as_ref())
}

/// A SHA-256 out of ring's hands; its length is 32 by its kind.
pub(crate) fn as_digest(bytes: &[u8]) -> Digest {
    let mut out = [0; 32];
    for (to, from) in out.iter_mut().zip(bytes) {
        *to = *from;
    }
    out
}

fn entry(line: &str) -> Option<(Digest, Uuid)> {
    let (hex, function) = line.split_once(char::is_whitespace)?;
    Some((hex_digest(hex)?, function.trim().parse().ok()?))
}

fn hex_digest(hex: &str) -> Option<Digest> {
    let mut out = [0u8; 32];
    let mut digits = hex.chars();
    for byte in &mut out {
        let high = digits.next()?.to_digit(16)?;
        let low = digits.next()?.to_digit(16)?;
        *byte = u8::try_from(high << 4 | low).ok()?;
    }
    digits.next().is_none().then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "6E340B9CFFB37A989CA544E6BB780A2C78901D3FB33738768511A30617AFA01D";

    #[test]
    fn a_table_is_read_with_comments() {
        let id = Uuid::from_u128(7);
        let table = Table::parse(&format!("# payloads\n\n  {ONE}\t{id}\n")).unwrap();
        let mut digest = [0; 32];
        digest[..2].copy_from_slice(&[0x6e, 0x34]);
        assert_eq!(table.get(&digest), None);
        assert_eq!(table.get(&hex_digest(ONE).unwrap()), Some(id));
    }

    #[test]
    fn bad_lines_are_named() {
        let id = Uuid::from_u128(7);
        assert_eq!(
            Table::parse("\nx").unwrap_err(),
            TableError::BadLine { line: 2 }
        );
        assert_eq!(
            Table::parse(&format!("{ONE}0 {id}")).unwrap_err(),
            TableError::BadLine { line: 1 }
        );
        assert_eq!(
            Table::parse(&format!("{ONE} {id}\n{ONE} {id}")).unwrap_err(),
            TableError::Twice { line: 2 }
        );
    }

    #[test]
    fn payloads_are_padded_before_they_are_hashed() {
        assert_eq!(padded_digest(&[9]), padded_digest(&[9, 0, 0, 0]));
        assert_ne!(
            padded_digest(&[9]),
            padded_digest(&[9, 0, 0, 0, 0, 0, 0, 0])
        );
    }
}
