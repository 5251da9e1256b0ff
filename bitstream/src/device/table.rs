//! The tables in `geometry/`, read once.
//!
//! Knows their grammar, which is told at the top of each. Must not guess: a
//! line that it does not understand makes the whole table an error, which a test
//! would see; a program that ran with one would know no device at all.

use std::sync::OnceLock;

use thiserror::Error;

use super::address::{Block, Half};
use super::family::Family;
use super::geometry::{Geometry, GeometryError, RowSpec};
use super::part::{Part, PartDie, Shape};
use super::words;

const FILES: [&str; 3] = [
    include_str!("../../geometry/series7.txt"),
    include_str!("../../geometry/ultrascale.txt"),
    include_str!("../../geometry/known.txt"),
];

/// All that is known of devices.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) layouts: Vec<(String, Geometry)>,
    pub(super) parts: Vec<Part>,
}

/// A line of a table that means nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: {why}")]
pub(super) struct TableError {
    line: usize,
    why: Fault,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
enum Fault {
    #[error("not a statement")]
    Statement,
    #[error("a row stands before the first layout")]
    NoLayout,
    #[error("not a family")]
    Family,
    #[error("not rows of this family")]
    Rows,
    #[error("not a run of columns")]
    Run,
    #[error("not an IDCODE, or one that was there before")]
    Idcode,
    #[error("not a part name, or one that was there before")]
    Name,
    #[error("no such layout of this family, or two of one name")]
    Layout,
    #[error("the layout that ends here: {0}")]
    Geometry(GeometryError),
}

/// Every device; none where a table is damaged, so that nothing is accepted.
pub(super) fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| Table::read(&FILES).unwrap_or_default())
}

/// A layout whose rows are still being read.
struct Open {
    name: String,
    family: Family,
    rows: Vec<RowSpec>,
}

impl Table {
    /// Reads tables, in order; line numbers count on from file to file.
    pub(super) fn read(files: &[&str]) -> Result<Table, TableError> {
        let mut table = Table::default();
        let mut open = None;
        let mut line = 0;
        for (at, text) in (1..).zip(files.iter().flat_map(|file| file.lines())) {
            line = at;
            table
                .statement(text, &mut open)
                .map_err(|why| TableError { line, why })?;
        }
        table
            .close(&mut open)
            .map_err(|why| TableError { line, why })?;
        Ok(table)
    }

    /// The tables of the crate, with what is wrong with them.
    #[cfg(test)]
    pub(super) fn own() -> Result<Table, TableError> {
        Table::read(&FILES)
    }

    fn statement(&mut self, text: &str, open: &mut Option<Open>) -> Result<(), Fault> {
        if text.is_empty() || text.starts_with('#') {
            return Ok(());
        }
        let words: Vec<&str> = text.split(' ').collect();
        match words.as_slice() {
            ["layout", name, family] => {
                self.close(open)?;
                let family = parse_family(family)?;
                *open = Some(Open {
                    name: (*name).to_owned(),
                    family,
                    rows: Vec::new(),
                });
                Ok(())
            }
            ["device", idcode, family, names, shape @ ..] => {
                self.close(open)?;
                self.device(idcode, parse_family(family)?, names, shape)
            }
            [block @ ("logic" | "bram"), place @ ..] => {
                let open = open.as_mut().ok_or(Fault::NoLayout)?;
                let block = if *block == "logic" {
                    Block::Logic
                } else {
                    Block::Bram
                };
                let (half, rows, runs) = match (open.family, place) {
                    (Family::Series7, ["top", rows, ":", runs @ ..]) => {
                        (Some(Half::Top), rows, runs)
                    }
                    (Family::Series7, ["bottom", rows, ":", runs @ ..]) => {
                        (Some(Half::Bottom), rows, runs)
                    }
                    (Family::UltraScale | Family::UltraScalePlus, [rows, ":", runs @ ..]) => {
                        (None, rows, runs)
                    }
                    _ => return Err(Fault::Rows),
                };
                let columns = parse_runs(runs)?;
                for row in parse_rows(rows)? {
                    open.rows.push(RowSpec {
                        block,
                        half,
                        row,
                        columns: columns.clone(),
                    });
                }
                Ok(())
            }
            _ => Err(Fault::Statement),
        }
    }

    /// Ends the layout that is being read, if one is.
    fn close(&mut self, open: &mut Option<Open>) -> Result<(), Fault> {
        let Some(Open { name, family, rows }) = open.take() else {
            return Ok(());
        };
        if self.layouts.iter().any(|(before, _)| *before == name) {
            return Err(Fault::Layout);
        }
        let geometry = Geometry::new(family, rows).map_err(Fault::Geometry)?;
        self.layouts.push((name, geometry));
        Ok(())
    }

    fn device(
        &mut self,
        idcode: &str,
        family: Family,
        names: &str,
        shape: &[&str],
    ) -> Result<(), Fault> {
        let idcode = parse_idcode(idcode)?;
        if self.parts.iter().any(|part| part.idcode == idcode) {
            return Err(Fault::Idcode);
        }
        let names: Vec<String> = names.split(',').map(str::to_owned).collect();
        for (at, name) in names.iter().enumerate() {
            let known = self.parts.iter().flat_map(|part| &part.names);
            let fresh = !known.chain(names.iter().take(at)).any(|n| n == name);
            if !fresh || !name.starts_with('x') {
                return Err(Fault::Name);
            }
        }
        let shape = match shape {
            ["unknown"] => Shape::Unknown,
            ["unknown-dies"] => Shape::Dies(Vec::new()),
            ["layout", name] => Shape::Layout(self.layout(family, name)?),
            ["dies", dies @ ..] if !dies.is_empty() => Shape::Dies(
                dies.iter()
                    .map(|die| self.die(family, die))
                    .collect::<Result<_, _>>()?,
            ),
            _ => return Err(Fault::Statement),
        };
        self.parts.push(Part {
            idcode,
            family,
            names,
            shape,
        });
        Ok(())
    }

    fn die(&self, family: Family, text: &str) -> Result<PartDie, Fault> {
        let mut parts = text.splitn(3, '=');
        let (Some(name), Some(idcode), Some(layout)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(Fault::Statement);
        };
        Ok(PartDie {
            name: name.to_owned(),
            idcode: parse_idcode(idcode)?,
            layout: self.layout(family, layout)?,
        })
    }

    fn layout(&self, family: Family, name: &str) -> Result<usize, Fault> {
        self.layouts
            .iter()
            .position(|(n, geometry)| n == name && geometry.family() == family)
            .ok_or(Fault::Layout)
    }
}

fn parse_family(word: &str) -> Result<Family, Fault> {
    Family::ALL
        .into_iter()
        .find(|family| family.keyword() == word)
        .ok_or(Fault::Family)
}

fn parse_idcode(word: &str) -> Result<u32, Fault> {
    let digits = word.strip_prefix("0x").filter(|digits| {
        // A sign is a digit to the standard library's reader.
        digits.len() == 8 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    });
    let idcode = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
    idcode
        .filter(|idcode| idcode >> 28 == 0)
        .ok_or(Fault::Idcode)
}

fn parse_rows(word: &str) -> Result<std::ops::RangeInclusive<u32>, Fault> {
    let number = |text: &str| {
        words::number(text)
            .filter(|&row| row < 64)
            .ok_or(Fault::Rows)
    };
    match word.split_once('-') {
        None => number(word).map(|row| row..=row),
        Some((first, last)) => {
            let (first, last) = (number(first)?, number(last)?);
            if first < last {
                Ok(first..=last)
            } else {
                Err(Fault::Rows)
            }
        }
    }
}

fn parse_runs(words: &[&str]) -> Result<Vec<u32>, Fault> {
    let number = |text: &str| words::number(text).filter(|&n| n <= 1024).ok_or(Fault::Run);
    let mut columns = Vec::new();
    for word in words {
        let (count, frames) = match word.split_once('x') {
            None => (1, number(word)?),
            Some((count, frames)) => (number(count)?, number(frames)?),
        };
        columns.extend((0..count).map(|_| frames));
    }
    Ok(columns)
}
