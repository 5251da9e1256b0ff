//! Frame sets as people write and read them, in the device's terms.
//!
//! Knows the words of one line and the geometry that they are about. Must not
//! know which file the lines stand in.
//!
//! ```text
//! line   = block [half] rows columns [minors]
//! block  = "logic" | "bram"
//! half   = "top" | "bottom"                 7-series: always; else: never
//! rows   = "row" number | "rows" list
//! columns = "column" number | "columns" list
//! minors = "minor" number | "minors" list   left out: every frame of the columns
//! list   = item {"," item}                  ascending, without spaces
//! item   = number | number "-" number
//! ```
//!
//! A line stands for every frame in each of its columns in each of its rows.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::ops::Range;

use thiserror::Error;

use super::address::{Block, FrameAddress, Half};
use super::blocks::{BlockList, FrameBlock};
use super::frames::FrameSet;
use super::geometry::{Column, FrameIndex, Geometry, Row};
use super::part::Device;
use super::region::RegionFrames;

/// More lines than this are no region that a person can check.
const MOST_LINES: usize = 16_384;

/// A word from outside is quoted up to so many characters.
const QUOTED: usize = 24;

/// A line that names no frames.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {} of the frames: {why}", line.saturating_add(1))]
pub struct FrameSetError {
    /// Which line, counted from 0.
    pub line: usize,
    /// What is wrong with it.
    pub why: FrameSetFault,
}

/// What is wrong with a line, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FrameSetFault {
    /// There are no lines at all.
    #[error("there are none, so nothing could be loaded; name the region's frames")]
    Nothing,
    /// More lines than a region can need.
    #[error("there are more than {MOST_LINES} lines")]
    TooManyLines,
    /// Another word was expected here, or one more.
    #[error("{found} stands where {expected} is expected")]
    Word {
        /// What stands there: quoted, or `the end`.
        found: String,
        /// What may stand there.
        expected: &'static str,
    },
    /// Something that is neither a number nor an ascending list of them.
    #[error("{found} is not {expected}")]
    Number {
        /// What stands there, quoted.
        found: String,
        /// What may stand there.
        expected: &'static str,
    },
    /// The die has no such row.
    #[error("there is no {block}{} row {row}; there are rows 0 to {last}",
        half.map(|half| format!(" {half}")).unwrap_or_default())]
    Row {
        /// Of which block type.
        block: Block,
        /// In which half.
        half: Option<Half>,
        /// The row asked for.
        row: u32,
        /// The last row that there is.
        last: u32,
    },
    /// The die has no frames of this kind in this half.
    #[error("the device has no {block} there")]
    NoRows {
        /// Of which block type.
        block: Block,
    },
    /// The row has fewer columns.
    #[error("there is no column {column} in row {row}; there are columns 0 to {last}")]
    Column {
        /// The column asked for.
        column: u32,
        /// The row.
        row: u32,
        /// The last column of that row.
        last: u32,
    },
    /// The column has fewer frames.
    #[error(
        "there is no minor {minor} in column {column} of row {row}; there are minors 0 to {last}"
    )]
    Minor {
        /// The minor asked for.
        minor: u32,
        /// The column.
        column: u32,
        /// The row.
        row: u32,
        /// The last minor of that column.
        last: u32,
    },
    /// A frame address that sets reserved bits, or no block has frames of.
    #[error("{found} is no frame address of this family")]
    Address {
        /// What stands there, quoted.
        found: String,
    },
    /// A list of blocks, for a device whose columns are known.
    #[error("the columns of {device} are known: write rows and columns, as \"{example}\"")]
    BlocksNotNeeded {
        /// The device.
        device: &'static str,
        /// A line of the right form.
        example: String,
    },
    /// Rows and columns, for a device whose columns are not known.
    #[error(
        "the columns of {device} are not known: write \"block 0x… frames …\", \
        as `reconfctl region learn` does"
    )]
    BlocksNeeded {
        /// The device.
        device: &'static str,
    },
    /// A device of several dies.
    #[error("{device} is of several dies, whose frames cannot be fenced yet")]
    MultiDie {
        /// The device.
        device: &'static str,
    },
}

pub(super) fn parse_region<L: AsRef<str>>(
    device: Device,
    lines: &[L],
) -> Result<RegionFrames, FrameSetError> {
    let name = device.name();
    if device.is_multi_die() {
        return Err(FrameSetError {
            line: 0,
            why: FrameSetFault::MultiDie { device: name },
        });
    }
    let is_block = |text: &str| text.split_ascii_whitespace().next() == Some("block");
    if let Some(geometry) = device.geometry() {
        if let Some(line) = lines.iter().position(|text| is_block(text.as_ref())) {
            let why = FrameSetFault::BlocksNotNeeded {
                device: name,
                example: example(geometry),
            };
            return Err(FrameSetError { line, why });
        }
        return FrameSet::parse(geometry, lines).map(RegionFrames::Set);
    }
    if let Some(line) = lines.iter().position(|text| !is_block(text.as_ref())) {
        return Err(FrameSetError {
            line,
            why: FrameSetFault::BlocksNeeded { device: name },
        });
    }
    let mut blocks = Vec::new();
    each_line(lines, |words| {
        parse_block(device, words).map(|block| blocks.push(block))
    })?;
    Ok(RegionFrames::Blocks(
        blocks.into_iter().collect::<BlockList>(),
    ))
}

/// A line of the form that the die takes.
fn example(geometry: &Geometry) -> String {
    let first = geometry.columns().first();
    let all = first.map(|column| FrameSet::from_iter([column.range()]));
    all.and_then(|set| set.to_lines(geometry).into_iter().next())
        .unwrap_or_default()
}

/// Gives the words of each line to `read`, and its error the line's number.
fn each_line<L: AsRef<str>>(
    lines: &[L],
    mut read: impl FnMut(&mut Words<'_>) -> Result<(), FrameSetFault>,
) -> Result<(), FrameSetError> {
    if lines.is_empty() {
        return Err(FrameSetError {
            line: 0,
            why: FrameSetFault::Nothing,
        });
    }
    if lines.len() > MOST_LINES {
        return Err(FrameSetError {
            line: MOST_LINES,
            why: FrameSetFault::TooManyLines,
        });
    }
    for (line, text) in lines.iter().enumerate() {
        let mut words = Words {
            rest: text.as_ref().split_ascii_whitespace(),
        };
        read(&mut words)
            .and_then(|()| words.end())
            .map_err(|why| FrameSetError { line, why })?;
    }
    Ok(())
}

impl FrameSet {
    /// Reads lines such as `logic top rows 0-1 columns 2-14,20` or
    /// `logic row 2 column 0 minors 0-3`; the grammar is in the module's text.
    ///
    /// # Errors
    ///
    /// [`FrameSetError`] names the line, counted from 0, and what is wrong.
    pub fn parse<L: AsRef<str>>(
        geometry: &Geometry,
        lines: &[L],
    ) -> Result<FrameSet, FrameSetError> {
        let mut set = FrameSet::new();
        each_line(lines, |words| parse_line(geometry, words, &mut set))?;
        Ok(set)
    }

    /// The lines that stand for the set, in configuration order of their first
    /// frames. Equal sets have equal lines. Frames that the die does not have
    /// are left out.
    #[must_use]
    pub fn to_lines(&self, geometry: &Geometry) -> Vec<String> {
        let mut lines: Vec<Line> = Vec::new();
        let mut places: HashMap<LineKey, usize> = HashMap::new();
        for row in geometry.rows() {
            for (columns, minors) in self.columns_alike(geometry, row) {
                let key = LineKey {
                    block: row.block,
                    half: row.half,
                    columns,
                    minors,
                };
                let place = *places.entry(key.clone()).or_insert(lines.len());
                match lines.get_mut(place) {
                    Some(line) => append(&mut line.rows, row.row),
                    None => lines.push(Line {
                        rows: vec![row.row..row.row.saturating_add(1)],
                        key,
                    }),
                }
            }
        }
        lines.iter().map(Line::to_string).collect()
    }

    /// The columns of a row that are in the set, those with the same minors
    /// together. An empty list of minors stands for all of them.
    fn columns_alike(&self, geometry: &Geometry, row: &Row) -> Vec<(Numbers, Numbers)> {
        let mut groups: Vec<(Numbers, Numbers)> = Vec::new();
        let mut places: HashMap<Numbers, usize> = HashMap::new();
        for column in geometry.row_columns(row) {
            let Some(minors) = self.minors(column) else {
                continue;
            };
            let place = *places.entry(minors.clone()).or_insert(groups.len());
            match groups.get_mut(place) {
                Some((columns, _)) => append(columns, column.column),
                None => {
                    let columns = vec![column.column..column.column.saturating_add(1)];
                    groups.push((columns, minors));
                }
            }
        }
        groups
    }

    /// Which minors of a column are in the set: `None` where none is, an empty
    /// list where all are.
    fn minors(&self, column: &Column) -> Option<Numbers> {
        let whole = column.range();
        if self.contains_range(&whole) {
            return Some(Vec::new());
        }
        let part = self.intersection(&FrameSet::from_iter([whole.clone()]));
        let minor = |frame: FrameIndex| frame.0.saturating_sub(whole.start.0);
        let minors: Numbers = part
            .ranges()
            .iter()
            .map(|r| minor(r.start)..minor(r.end))
            .collect();
        if minors.is_empty() {
            None
        } else {
            Some(minors)
        }
    }
}

/// Ascending ranges of small numbers, none touching another.
type Numbers = Vec<Range<u32>>;

/// Adds a number that is greater than all before.
fn append(numbers: &mut Numbers, number: u32) {
    let end = number.saturating_add(1);
    match numbers.last_mut() {
        Some(last) if last.end == number => last.end = end,
        _ => numbers.push(number..end),
    }
}

/// What lines that differ in their rows alone have in common.
#[derive(Clone, PartialEq, Eq, Hash)]
struct LineKey {
    block: Block,
    half: Option<Half>,
    columns: Numbers,
    minors: Numbers,
}

struct Line {
    rows: Numbers,
    key: LineKey,
}

impl Line {
    fn to_string(&self) -> String {
        let mut text = self.key.block.to_string();
        if let Some(half) = self.key.half {
            text.push_str(&format!(" {half}"));
        }
        text.push_str(&noun("row", &self.rows));
        text.push_str(&noun("column", &self.key.columns));
        if !self.key.minors.is_empty() {
            text.push_str(&noun("minor", &self.key.minors));
        }
        text
    }
}

/// ` column 3`, ` columns 2-14,20`.
fn noun(word: &str, numbers: &Numbers) -> String {
    let items: Vec<String> = numbers
        .iter()
        .map(|range| match range.end.saturating_sub(1) {
            last if last == range.start => last.to_string(),
            last => format!("{}-{last}", range.start),
        })
        .collect();
    let plural = if items.len() == 1 && items.iter().all(|item| !item.contains('-')) {
        ""
    } else {
        "s"
    };
    format!(" {word}{plural} {}", items.join(","))
}

fn parse_line(
    geometry: &Geometry,
    words: &mut Words<'_>,
    set: &mut FrameSet,
) -> Result<(), FrameSetFault> {
    let block = match words.next_word() {
        Some("logic") => Block::Logic,
        Some("bram") => Block::Bram,
        other => return Err(word(other, "\"logic\" or \"bram\"")),
    };
    let halves = geometry.rows().iter().any(|row| row.half.is_some());
    let half = match words.peek() {
        Some("top") if halves => Some(Half::Top),
        Some("bottom") if halves => Some(Half::Bottom),
        other if halves => return Err(word(other, "\"top\" or \"bottom\"")),
        _ => None,
    };
    if half.is_some() {
        words.next_word();
    }
    let rows = words
        .numbers(&ROWS)?
        .ok_or_else(|| word(words.peek(), "\"row\" or \"rows\""))?;
    let columns = words
        .numbers(&COLUMNS)?
        .ok_or_else(|| word(words.peek(), "\"column\" or \"columns\""))?;
    let minors = words.numbers(&MINORS)?;
    for row in check_rows(geometry, block, half, &rows)? {
        add_row(geometry, row, &columns, minors.as_ref(), set)?;
    }
    Ok(())
}

/// The rows with these numbers; all of them exist.
fn check_rows<'g>(
    geometry: &'g Geometry,
    block: Block,
    half: Option<Half>,
    rows: &Numbers,
) -> Result<Vec<&'g Row>, FrameSetFault> {
    let there: Vec<&Row> = geometry
        .rows()
        .iter()
        .filter(|row| (row.block, row.half) == (block, half))
        .collect();
    let last = there
        .iter()
        .map(|row| row.row)
        .max()
        .ok_or(FrameSetFault::NoRows { block })?;
    if let Some(row) = beyond(rows, last) {
        return Err(FrameSetFault::Row {
            block,
            half,
            row,
            last,
        });
    }
    Ok(there
        .into_iter()
        .filter(|row| rows.iter().any(|range| range.contains(&row.row)))
        .collect())
}

fn add_row(
    geometry: &Geometry,
    row: &Row,
    columns: &Numbers,
    minors: Option<&Numbers>,
    set: &mut FrameSet,
) -> Result<(), FrameSetFault> {
    let there = geometry.row_columns(row);
    let last = there.last().map_or(0, |column| column.column);
    if let Some(column) = beyond(columns, last) {
        return Err(FrameSetFault::Column {
            column,
            row: row.row,
            last,
        });
    }
    for column in there
        .iter()
        .filter(|c| columns.iter().any(|range| range.contains(&c.column)))
    {
        let Some(minors) = minors else {
            set.insert_range(column.range());
            continue;
        };
        let last = column.frames.saturating_sub(1);
        if let Some(minor) = beyond(minors, last) {
            let Row { row, .. } = *row;
            return Err(FrameSetFault::Minor {
                minor,
                column: column.column,
                row,
                last,
            });
        }
        for range in minors {
            let frame = |minor: u32| FrameIndex(column.first.0.saturating_add(minor));
            set.insert_range(frame(range.start)..frame(range.end));
        }
    }
    Ok(())
}

/// The first number that is greater than `last`.
fn beyond(numbers: &Numbers, last: u32) -> Option<u32> {
    let range = numbers
        .iter()
        .find(|range| range.end > last.saturating_add(1))?;
    Some(range.start.max(last.saturating_add(1)))
}

fn parse_block(device: Device, words: &mut Words<'_>) -> Result<FrameBlock, FrameSetFault> {
    // `parse_region` saw it.
    words.next_word();
    let text = words.next_word();
    let no_address = || FrameSetFault::Address {
        found: quote(text.unwrap_or_default()),
    };
    let digits = text
        .ok_or_else(|| word(None, "a frame address"))?
        .strip_prefix("0x")
        .filter(|digits| digits.len() == 8 && digits.bytes().all(|b| b.is_ascii_hexdigit()))
        .ok_or_else(no_address)?;
    let address = u32::from_str_radix(digits, 16)
        .ok()
        .and_then(|raw| FrameAddress::parse(device.family(), raw).ok())
        .filter(|address| matches!(address.block(), Block::Logic | Block::Bram))
        .ok_or_else(no_address)?;
    match words.next_word() {
        Some("frames") => {}
        other => return Err(word(other, "\"frames\"")),
    }
    let expected = "a number of frames";
    let text = words.next_word().ok_or_else(|| word(None, expected))?;
    let frames = number(text)
        .and_then(NonZeroU32::new)
        .ok_or_else(|| FrameSetFault::Number {
            found: quote(text),
            expected,
        })?;
    Ok(FrameBlock { address, frames })
}

/// A word that stands before numbers, and its plural.
struct Noun {
    one: &'static str,
    many: &'static str,
}

const ROWS: Noun = Noun {
    one: "row",
    many: "rows",
};
const COLUMNS: Noun = Noun {
    one: "column",
    many: "columns",
};
const MINORS: Noun = Noun {
    one: "minor",
    many: "minors",
};

/// The words of a line that were not read yet.
struct Words<'a> {
    rest: std::str::SplitAsciiWhitespace<'a>,
}

impl<'a> Words<'a> {
    fn next_word(&mut self) -> Option<&'a str> {
        self.rest.next()
    }

    fn peek(&self) -> Option<&'a str> {
        self.rest.clone().next()
    }

    fn end(&mut self) -> Result<(), FrameSetFault> {
        match self.next_word() {
            None => Ok(()),
            found => Err(word(found, "the end of the line")),
        }
    }

    /// Numbers after a noun; `None` where another word stands, or none.
    fn numbers(&mut self, noun: &Noun) -> Result<Option<Numbers>, FrameSetFault> {
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
fn number(text: &str) -> Option<u32> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let canonical = text == "0" || !text.starts_with('0');
    if plain && canonical {
        text.parse().ok()
    } else {
        None
    }
}

fn word(found: Option<&str>, expected: &'static str) -> FrameSetFault {
    FrameSetFault::Word {
        found: found.map_or_else(|| "the end".to_owned(), quote),
        expected,
    }
}

/// A word from outside, escaped, and cut where it is long.
fn quote(text: &str) -> String {
    let mut cut: String = text.chars().take(QUOTED).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    format!("{cut:?}")
}
