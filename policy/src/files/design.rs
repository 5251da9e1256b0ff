//! What a shell file says of the device and of what the static design put where.
//!
//! Knows keys, numbers and what contradicts itself. Must not know devices: what
//! a device or a line of frames means is read where frames are known, and this
//! keeps the place of each for that reader's refusals.

use serde::Deserialize;
use toml::Spanned;

use super::read::Source;
use super::{Engine, Fence, FileError, Problem, Region, Shell};

/// Registers of AXI peripherals are words of four bytes.
const WORD: u64 = 4;
/// Highest BAR of a PCI function.
const BAR_MAX: u8 = 5;

/// A text of a file, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// The text.
    pub text: String,
    /// Its line, from 1.
    pub line: u32,
    /// Its column, from 1.
    pub column: u32,
}

impl Placed {
    pub(super) fn of(text: Spanned<String>, source: Source<'_>) -> Placed {
        let (line, column) = source.place(text.span().start);
        Placed {
            text: text.into_inner(),
            line,
            column,
        }
    }

    /// A refusal of `file` at this place.
    #[must_use]
    pub fn refused(&self, file: &str, problem: Problem) -> FileError {
        FileError {
            file: file.to_owned(),
            line: self.line,
            column: self.column,
            problem,
        }
    }
}

/// Where the static design of an AMD device put its AXI HWICAP: the window of
/// registers through which all its regions are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hwicap {
    /// The BAR of the management function, 0 to 5.
    pub bar: u8,
    /// Bytes from the BAR's start to the window.
    pub offset: u64,
    /// Its line in the file.
    pub line: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HwicapTable {
    bar: Spanned<u8>,
    offset: Spanned<u64>,
}

impl HwicapTable {
    pub(super) fn check(self, source: Source<'_>) -> Result<Hwicap, FileError> {
        let bar = *self.bar.get_ref();
        if bar > BAR_MAX {
            let why = format!("a PCI function has the BARs 0 to {BAR_MAX}");
            return Err(source.error(self.bar.span(), Problem::Value(why)));
        }
        let (line, _) = source.place(self.bar.span().start);
        Ok(Hwicap {
            bar,
            offset: aligned(&self.offset, source)?,
            line,
        })
    }
}

/// The offset of a register: whole words.
pub(super) fn aligned(offset: &Spanned<u64>, source: Source<'_>) -> Result<u64, FileError> {
    let bytes = *offset.get_ref();
    if bytes.is_multiple_of(WORD) {
        return Ok(bytes);
    }
    let why = format!("registers lie at multiples of {WORD} bytes");
    Err(source.error(offset.span(), Problem::Value(why)))
}

/// What the parts of one file must say together, whichever engine reads it.
pub(super) fn agree(shell: &Shell) -> Result<(), FileError> {
    if let (Some(line), None) = (shell.restores.first(), &shell.device) {
        // Which columns these are is a matter of the device.
        let missing = Problem::MissingKey("device".to_owned());
        return Err(line.refused(&shell.file, missing));
    }
    for region in &shell.regions {
        let at = |problem| Err(at_region(shell, region, problem));
        if region.fence == Fence::Required && region.frames.is_empty() {
            return at(Problem::MissingKey("frames".to_owned()));
        }
        if !region.frames.is_empty() && shell.device.is_none() {
            // Which frames these are is a matter of the device.
            return at(Problem::MissingKey("device".to_owned()));
        }
        if shell.hwicap.is_some() {
            continue;
        }
        for (key, offset) in [
            ("decoupler", region.decoupler),
            ("identity", region.identity),
        ] {
            if offset.is_some() {
                let why =
                    format!("`{key}` is an offset in the BAR of [hwicap], which is not there");
                return at(Problem::Conflict(why));
            }
        }
    }
    Ok(())
}

impl Shell {
    /// Whether the file says what this engine needs, and nothing that it would
    /// ignore in silence.
    ///
    /// # Errors
    ///
    /// [`FileError`] at the region, or at the file's first line.
    pub fn serves(&self, engine: Engine) -> Result<(), FileError> {
        let top = |line, problem| {
            Err(FileError {
                file: self.file.clone(),
                line,
                column: 1,
                problem,
            })
        };
        match (engine, &self.hwicap) {
            (Engine::Dfl, None) => return Ok(()),
            (Engine::Dfl, Some(hwicap)) => {
                let why = "the engine dfl has no use for [hwicap]".to_owned();
                return top(hwicap.line, Problem::Conflict(why));
            }
            (Engine::Hwicap, None) => return top(1, Problem::MissingKey("[hwicap]".to_owned())),
            (Engine::Hwicap, Some(_)) => {}
        }
        if self.device.is_none() {
            return top(1, Problem::MissingKey("device".to_owned()));
        }
        match self
            .regions
            .iter()
            .find(|region| region.decoupler.is_none())
        {
            None => Ok(()),
            Some(region) => Err(at_region(
                self,
                region,
                Problem::MissingKey("decoupler".to_owned()),
            )),
        }
    }
}

fn at_region(shell: &Shell, region: &Region, problem: Problem) -> FileError {
    FileError {
        file: shell.file.clone(),
        line: region.line,
        column: 1,
        problem,
    }
}
