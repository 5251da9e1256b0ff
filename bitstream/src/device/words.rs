//! The words of a line: nouns, numbers, lists of numbers.
//!
//! Knows how they are spelled. Must not know what they count.

use std::ops::Range;

use super::fault::FrameSetFault;

/// A word from outside is quoted up to so many characters.
const QUOTED: usize = 24;

/// Ascending ranges of small numbers, none touching another.
pub(super) type Numbers = Vec<Range<u32>>;

/// A single number.
pub(super) fn one(number: u32) -> Numbers {
    std::iter::once(number..number.saturating_add(1)).collect()
}

/// Adds a number that is greater than all before.
pub(super) fn append(numbers: &mut Numbers, number: u32) {
    let end = number.saturating_add(1);
    match numbers.last_mut() {
        Some(last) if last.end == number => last.end = end,
        _ => numbers.push(number..end),
    }
}

/// A word that stands before numbers, and its plural.
pub(super) struct Noun {
    one: &'static str,
    many: &'static str,
}

pub(super) const ROWS: Noun = Noun {
    one: "row",
    many: "rows",
};
pub(super) const COLUMNS: Noun = Noun {
    one: "column",
    many: "columns",
};
pub(super) const MINORS: Noun = Noun {
    one: "minor",
    many: "minors",
};

/// The words of a line that were not read yet.
pub(super) struct Words<'a> {
    rest: std::str::SplitAsciiWhitespace<'a>,
}

impl<'a> Words<'a> {
    pub(super) fn of(line: &'a str) -> Words<'a> {
        Words {
            rest: line.split_ascii_whitespace(),
        }
    }

    pub(super) fn next_word(&mut self) -> Option<&'a str> {
        self.rest.next()
    }

    pub(super) fn peek(&self) -> Option<&'a str> {
        self.rest.clone().next()
    }

    pub(super) fn end(&mut self) -> Result<(), FrameSetFault> {
        match self.next_word() {
            None => Ok(()),
            found => Err(word(found, "the end of the line")),
        }
    }

    /// Numbers after a noun; `None` where another word stands, or none.
    pub(super) fn numbers(&mut self, noun: &Noun) -> Result<Option<Numbers>, FrameSetFault> {
        let (single, expected) = match self.peek() {
            Some(found) if found == noun.one => (true, "one number (write a plural before a list)"),
            Some(found) if found == noun.many => (false, "an ascending list, as \"2-14,20\""),
            _ => return Ok(None),
        };
        self.next_word();
        let text = self.next_word().ok_or_else(|| word(None, expected))?;
        let fault = || FrameSetFault::Number {
            found: quote(text),
            expected,
        };
        let numbers = list(text).ok_or_else(fault)?;
        let is_one = matches!(numbers.as_slice(), [only] if only.len() == 1);
        if single && !is_one {
            Err(fault())
        } else {
            Ok(Some(numbers))
        }
    }
}

/// `2-14,20`: ascending, no number twice.
fn list(text: &str) -> Option<Numbers> {
    let mut numbers: Numbers = Vec::new();
    for item in text.split(',') {
        let range = match item.split_once('-') {
            None => number(item)?..number(item)?.checked_add(1)?,
            Some((first, last)) => number(first)?..number(last)?.checked_add(1)?,
        };
        let ascending = numbers.last().is_none_or(|last| last.end <= range.start);
        if range.is_empty() || !ascending {
            return None;
        }
        numbers.push(range);
    }
    Some(numbers)
}

/// A plain decimal number: no sign, no leading zero.
pub(super) fn number(text: &str) -> Option<u32> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let canonical = text == "0" || !text.starts_with('0');
    if plain && canonical {
        text.parse().ok()
    } else {
        None
    }
}

pub(super) fn word(found: Option<&str>, expected: &'static str) -> FrameSetFault {
    FrameSetFault::Word {
        found: found.map_or_else(|| "the end".to_owned(), quote),
        expected,
    }
}

/// A word from outside, escaped, and cut where it is long.
pub(super) fn quote(text: &str) -> String {
    let mut cut: String = text.chars().take(QUOTED).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    format!("{cut:?}")
}
