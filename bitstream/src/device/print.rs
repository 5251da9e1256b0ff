//! A frame set as lines, in the device's terms, for people and for
//! [`FrameSet::parse`].
//!
//! Knows how to say a set in few lines, and in one way only. The grammar is told
//! in the module `parse`.

use std::collections::HashMap;
use std::fmt;

use super::address::{Block, Half};
use super::frames::FrameSet;
use super::geometry::{Column, FrameIndex, Geometry, Row};
use super::words::{Numbers, append, one};

impl FrameSet {
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
                        rows: one(row.row),
                        key,
                    }),
                }
            }
        }
        lines.iter().map(ToString::to_string).collect()
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
                None => groups.push((one(column.column), minors)),
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

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LineKey {
            block,
            half,
            columns,
            minors,
        } = &self.key;
        write!(f, "{block}")?;
        if let Some(half) = half {
            write!(f, " {half}")?;
        }
        noun(f, "row", &self.rows)?;
        noun(f, "column", columns)?;
        if minors.is_empty() {
            Ok(())
        } else {
            noun(f, "minor", minors)
        }
    }
}

/// ` column 3`, ` columns 2-14,20`.
fn noun(f: &mut fmt::Formatter<'_>, word: &str, numbers: &Numbers) -> fmt::Result {
    let single = matches!(numbers.as_slice(), [only] if only.len() == 1);
    write!(f, " {word}{} ", if single { "" } else { "s" })?;
    for (at, range) in numbers.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        match range.end.saturating_sub(1) {
            last if last == range.start => write!(f, "{comma}{last}")?,
            last => write!(f, "{comma}{}-{last}", range.start)?,
        }
    }
    Ok(())
}
