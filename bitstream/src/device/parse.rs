//! Frame sets and lists of blocks from lines, in the device's terms.
//!
//! Knows the grammar of one line and the geometry that it is about. Must not
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

use std::num::NonZeroU32;

use super::address::{Block, FrameAddress, Half};
use super::blocks::{BlockList, FrameBlock};
use super::fault::{FrameSetError, FrameSetFault, MOST_LINES};
use super::frames::FrameSet;
use super::geometry::{FrameIndex, Geometry, Row};
use super::part::Device;
use super::region::RegionFrames;
use super::words::{COLUMNS, MINORS, Numbers, ROWS, Words, number, quote, word};

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
        let mut words = Words::of(text.as_ref());
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
