//! Reads one device out of a table of column layouts.
//!
//! The table is text, one statement a line; its own first lines give the
//! grammar. Read here: `layout NAME FAMILY`, the rows that follow it
//! (`BLOCK WHERE : RUN...`), and `device IDCODE FAMILY NAMES layout NAME`.

use thiserror::Error;

use super::geometry::{Family, Geometry, Row};

/// No part has as many; more is a mistake in the table.
const MAX_ROWS: usize = 512;
const MAX_COLUMNS: usize = 1024;
const MAX_FRAMES: u16 = 256;

/// Why a device's geometry could not be had.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum GeometryError {
    /// A statement that cannot be read.
    #[error("line {line}: {why}")]
    BadLine {
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        why: &'static str,
    },
    /// The table does not name the device.
    #[error("no device of the name or IDCODE {0:?} in this table")]
    NoDevice(String),
    /// The table names it, but its columns are not known, or it has several dies.
    #[error("{0}: the table has no columns for a single die of this device")]
    NoColumns(String),
}

impl Geometry {
    /// The device of that name (`xc7z020`) or IDCODE (`0x03727093`).
    ///
    /// # Errors
    /// It is not in the table, or a line that matters cannot be read.
    pub fn parse(table: &str, device: &str) -> Result<Self, GeometryError> {
        let (idcode, family, layout) = find(table, device)?;
        let rows = rows(table, layout)?;
        if rows.is_empty() {
            return Err(GeometryError::NoColumns(device.to_owned()));
        }
        Ok(Self::new(device.to_owned(), family, idcode, rows))
    }
}

/// Statements with their line numbers.
fn statements(table: &str) -> impl Iterator<Item = (usize, Vec<&str>)> {
    (1..).zip(table.lines()).filter_map(|(line, text)| {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let first = words.first()?;
        (!first.starts_with('#')).then_some((line, words))
    })
}

fn find<'a>(table: &'a str, device: &str) -> Result<(u32, Family, &'a str), GeometryError> {
    for (line, words) in statements(table) {
        let ["device", idcode, family, names, rest @ ..] = words.as_slice() else {
            continue;
        };
        let named = names.split(',').any(|name| name == device) || *idcode == device;
        if !named {
            continue;
        }
        let bad = |why| GeometryError::BadLine { line, why };
        let idcode = idcode
            .strip_prefix("0x")
            .and_then(|digits| u32::from_str_radix(digits, 16).ok())
            .ok_or(bad("an IDCODE is 0x and hexadecimal digits"))?;
        let family = self::family(family).ok_or(bad("no such family"))?;
        return match rest {
            ["layout", layout] => Ok((idcode, family, layout)),
            _ => Err(GeometryError::NoColumns(device.to_owned())),
        };
    }
    Err(GeometryError::NoDevice(device.to_owned()))
}

fn family(word: &str) -> Option<Family> {
    match word {
        "series7" => Some(Family::Series7),
        "ultrascale" => Some(Family::UltraScale),
        "ultrascale+" => Some(Family::UltraScalePlus),
        _ => None,
    }
}

/// The rows of a layout, in their order.
fn rows(table: &str, layout: &str) -> Result<Vec<Row>, GeometryError> {
    let mut rows = Vec::new();
    let mut inside = false;
    for (line, words) in statements(table) {
        let bad = |why| GeometryError::BadLine { line, why };
        match words.as_slice() {
            ["layout", name, _family] => inside = *name == layout,
            ["device", ..] => inside = false,
            _ if !inside => {}
            [block, rest @ ..] => {
                let block = match *block {
                    "logic" => 0,
                    "bram" => 1,
                    _ => return Err(bad("a row begins with `logic` or `bram`")),
                };
                let (half, numbers, runs) = match rest {
                    ["bottom", numbers, ":", runs @ ..] => (1, numbers, runs),
                    ["top", numbers, ":", runs @ ..] | [numbers, ":", runs @ ..] => {
                        (0, numbers, runs)
                    }
                    _ => return Err(bad("rows and a colon are wanted")),
                };
                let (first, last) = numbers.split_once('-').unwrap_or((numbers, numbers));
                let (Ok(first), Ok(last)) = (first.parse::<u8>(), last.parse::<u8>()) else {
                    return Err(bad("a row is a number, or a range of numbers"));
                };
                let columns = columns(runs).ok_or(bad("a run is FRAMES or COUNTxFRAMES"))?;
                for row in first..=last {
                    if rows.len() >= MAX_ROWS {
                        return Err(bad("too many rows"));
                    }
                    rows.push(Row {
                        block,
                        half,
                        row,
                        columns: columns.clone(),
                    });
                }
            }
            [] => {}
        }
    }
    Ok(rows)
}

fn columns(runs: &[&str]) -> Option<Vec<u16>> {
    let mut columns = Vec::new();
    for run in runs {
        let (count, frames) = run.split_once('x').unwrap_or(("1", run));
        let count: usize = count.parse().ok()?;
        let frames: u16 = frames.parse().ok()?;
        let room = MAX_COLUMNS.checked_sub(columns.len())?;
        if !(1..=MAX_FRAMES).contains(&frames) || count > room {
            return None;
        }
        columns.extend(std::iter::repeat_n(frames, count));
    }
    (!columns.is_empty()).then_some(columns)
}
