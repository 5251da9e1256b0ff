//! From bytes to a typed file, every refusal with its place.
//!
//! Knows how the `toml` crate words its refusals: what it offers as text
//! (which key is unknown, which ones are known) is taken from there, and the
//! tests notice if the wording changes.

use std::ops::Range;

use serde::de::DeserializeOwned;

use super::{FILE_MAX, FileError, Problem};

/// A file's text with its name: turns positions into lines.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    name: &'a str,
    text: &'a str,
}

impl<'a> Source<'a> {
    /// Checks size and encoding.
    pub(super) fn new(name: &'a str, bytes: &'a [u8]) -> Result<Source<'a>, FileError> {
        let whole = Source { name, text: "" };
        if bytes.len() > FILE_MAX {
            return Err(whole.error(0..0, Problem::TooLarge));
        }
        match std::str::from_utf8(bytes) {
            // Editors of another system begin files with a mark that means nothing.
            Ok(text) => Ok(Source {
                name,
                text: text.strip_prefix('\u{feff}').unwrap_or(text),
            }),
            Err(error) => {
                let good = bytes.get(..error.valid_up_to()).unwrap_or_default();
                let text = std::str::from_utf8(good).unwrap_or_default();
                Err(Source { name, text }.error(good.len()..good.len(), Problem::Encoding))
            }
        }
    }

    /// Reads the file. `sections` names every section with its keys, to tell
    /// where a misplaced key belongs.
    pub(super) fn read<T: DeserializeOwned>(
        self,
        sections: &[(&str, &[&str])],
    ) -> Result<T, FileError> {
        toml::from_str(self.text).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            let problem = problem(error.message(), sections, self.is_syntax());
            self.error(span, problem)
        })
    }

    fn is_syntax(self) -> bool {
        self.text.parse::<toml::Table>().is_err()
    }

    /// A refusal at a place of this file.
    pub(super) fn error(self, span: Range<usize>, problem: Problem) -> FileError {
        let (line, column) = self.place(span.start);
        FileError {
            file: self.name.to_owned(),
            line,
            column,
            problem,
        }
    }

    /// Line and column of a byte, from 1.
    pub(super) fn place(self, at: usize) -> (u32, u32) {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line = before.matches('\n').count().saturating_add(1);
        let start = before
            .rfind('\n')
            .map_or(0, |newline| newline.saturating_add(1));
        let column = before
            .get(start..)
            .unwrap_or_default()
            .chars()
            .count()
            .saturating_add(1);
        let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        (small(line), small(column))
    }
}

fn problem(message: &str, sections: &[(&str, &[&str])], syntax: bool) -> Problem {
    let mut quoted = message.split('`').skip(1).step_by(2);
    if syntax {
        return Problem::Syntax(one_line(message));
    }
    if message.starts_with("unknown field") {
        let key = quoted.next().unwrap_or_default();
        // The crate hands a date to a struct as one with a private field.
        if key.starts_with("$__toml") {
            return Problem::Value("a date is of no use here".to_owned());
        }
        let elsewhere = sections
            .iter()
            .filter(|(_, keys)| keys.contains(&key))
            .map(|(section, _)| (*section).to_owned())
            .collect();
        return Problem::UnknownKey {
            key: key.escape_debug().to_string(),
            nearest: nearest(key, &quoted.collect::<Vec<_>>()),
            elsewhere,
        };
    }
    if message.starts_with("missing field") {
        return Problem::MissingKey(quoted.next().unwrap_or_default().to_owned());
    }
    Problem::Value(one_line(message))
}

fn one_line(message: &str) -> String {
    message
        .lines()
        .map(str::trim)
        .collect::<Vec<_>>()
        .join("; ")
}

/// The known key that a person most probably meant: the fewest letters apart,
/// and not more than a third of its length.
fn nearest(key: &str, known: &[&str]) -> Option<String> {
    let plain = |text: &str| text.to_lowercase().replace('-', "_");
    let key = plain(key);
    known
        .iter()
        .map(|known| (distance(&key, &plain(known)), known))
        .filter(|(distance, known)| distance.saturating_mul(3) <= known.len())
        .min()
        .map(|(_, known)| (*known).to_owned())
}

/// How many letters to add, drop or change (Levenshtein). Only the first 64
/// letters of a key count, so that a long key costs nothing.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(64).enumerate() {
        let mut next = vec![i.saturating_add(1)];
        for ((y, diagonal), above) in b.iter().zip(&row).zip(row.iter().skip(1)) {
            let left = next.last().copied().unwrap_or_default();
            let change = diagonal.saturating_add(usize::from(x != *y));
            next.push(
                change
                    .min(left.saturating_add(1))
                    .min(above.saturating_add(1)),
            );
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", ""), 3);
        assert_eq!(
            nearest("state-dir", &["run_dir", "state_dir"]),
            Some("state_dir".into())
        );
        assert_eq!(nearest("colour", &["run_dir", "state_dir"]), None);
    }
}
