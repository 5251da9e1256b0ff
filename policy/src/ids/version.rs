//! Versions of images, and which of two is the newer.
//!
//! The order, so that a person can foretell it:
//!
//! 1. Each version is cut at its first `-` into a release and a suffix. The
//!    releases are compared first. Where they are equal, the version without a
//!    suffix is the newer (`1.0-rc1` comes before `1.0`).
//! 2. Releases, and then suffixes, are compared piece by piece. A piece is a
//!    run of digits or a run of letters; `.`, `_` and `-` only separate. Digits
//!    compare as numbers of any length, letters as bytes; digits are newer than
//!    letters; where one runs out of pieces, the other is the newer.
//! 3. Where all that is equal (`1.0` and `1.00`), the bytes decide, so that the
//!    order is total and two different texts are never the same version.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use super::{IdError, IdKind, text_form};

/// The version of an image: `[A-Za-z0-9._-]{1,64}`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Version(Arc<str>);

impl Version {
    /// Reads a version.
    ///
    /// # Errors
    ///
    /// [`IdError`] where the text does not follow the grammar.
    pub fn parse(text: &str) -> Result<Version, IdError> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if (1..=64).contains(&text.len()) && text.bytes().all(allowed) {
            Ok(Version(text.into()))
        } else {
            Err(IdError::new(IdKind::Version, text))
        }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn parts(&self) -> (&str, Option<&str>) {
        match self.0.split_once('-') {
            Some((release, suffix)) => (release, Some(suffix)),
            None => (&self.0, None),
        }
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Version) -> Ordering {
        let ((mine, my_suffix), (theirs, their_suffix)) = (self.parts(), other.parts());
        let suffixes = || match (my_suffix, their_suffix) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
            (Some(mine), Some(theirs)) => pieces(mine).cmp(pieces(theirs)),
        };
        pieces(mine)
            .cmp(pieces(theirs))
            .then_with(suffixes)
            .then_with(|| self.0.cmp(&other.0))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Version) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A run of letters or of digits. Letters come before digits; of two numbers
/// without leading zeros the longer is the greater.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Piece<'a> {
    Letters(&'a [u8]),
    Digits(usize, &'a [u8]),
}

fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    text.as_bytes()
        .chunk_by(|a, b| class(*a) == class(*b))
        .filter_map(|run| match class(*run.first()?) {
            Class::Separator => None,
            Class::Letter => Some(Piece::Letters(run)),
            Class::Digit => {
                let zeros = run.iter().take_while(|byte| **byte == b'0').count();
                let digits = run.get(zeros..).unwrap_or_default();
                Some(Piece::Digits(digits.len(), digits))
            }
        })
}

#[derive(PartialEq, Eq)]
enum Class {
    Separator,
    Letter,
    Digit,
}

fn class(byte: u8) -> Class {
    match byte {
        b'0'..=b'9' => Class::Digit,
        b'.' | b'_' | b'-' => Class::Separator,
        _ => Class::Letter,
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

text_form!(Version);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_the_one_that_people_expect() {
        let rising = [
            "a",
            "alpha2",
            "alpha10",
            "0.9",
            "1",
            "1.0-rc1",
            "1.0-rc2",
            "1.0-rc10",
            "1.0",
            "1.0.0",
            "1.0.1",
            "1.2",
            "1.10",
            "2",
            "10",
            "99999999999999999999999999999",
            "100000000000000000000000000000",
        ];
        for pair in rising.windows(2) {
            let [a, b] = pair else { panic!() };
            assert!(
                Version::parse(a).unwrap() < Version::parse(b).unwrap(),
                "{a} < {b}"
            );
        }
        let (short, long) = (
            Version::parse("1.0").unwrap(),
            Version::parse("1.00").unwrap(),
        );
        assert_ne!(short, long);
        assert_ne!(short.cmp(&long), Ordering::Equal);
    }
}
