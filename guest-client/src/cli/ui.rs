//! Where the command writes, and in which manner.
//!
//! Knows streams, colour and JSON. Must not know clients or commands.

use std::io::{self, IsTerminal, Write};

use serde::Serialize;

use super::args::{Global, When};

/// Standard output and error, or what a test puts in their place.
pub(crate) struct Ui<'a> {
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    form: Form,
    volume: Volume,
    colour: Colour,
    progress: Progress,
}

/// What results look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// How much is said beside the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Volume {
    Normal,
    Quiet,
}

/// Whether results and errors are coloured; each stream decides for itself.
#[derive(Debug, Clone, Copy)]
struct Colour {
    out: bool,
    err: bool,
}

/// How a job's progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Not at all.
    None,
    /// One JSON object a line, on standard output.
    Json,
    /// A bar on the terminal.
    Bar,
    /// A plain line a stage, on standard error.
    Lines,
}

/// The few colours that mean something.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ink {
    Good,
    Bad,
    Faint,
}

impl<'a> Ui<'a> {
    /// The manner that the options, the environment and the terminal ask for.
    pub(crate) fn new(out: &'a mut dyn Write, err: &'a mut dyn Write, global: &Global) -> Self {
        let wanted = |terminal: bool| match global.color {
            When::Always => true,
            When::Never => false,
            When::Auto => terminal && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()),
        };
        let err_terminal = io::stderr().is_terminal();
        Self {
            out,
            err,
            form: if global.json { Form::Json } else { Form::Text },
            volume: if global.quiet {
                Volume::Quiet
            } else {
                Volume::Normal
            },
            colour: Colour {
                out: wanted(io::stdout().is_terminal()),
                err: wanted(err_terminal),
            },
            progress: match (global.quiet, global.json, err_terminal) {
                (true, _, _) => Progress::None,
                (false, true, _) => Progress::Json,
                (false, false, true) => Progress::Bar,
                (false, false, false) => Progress::Lines,
            },
        }
    }

    pub(crate) fn form(&self) -> Form {
        self.form
    }

    pub(crate) fn progress(&self) -> Progress {
        self.progress
    }

    /// Text of a result, to standard output.
    pub(crate) fn result(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    /// One JSON object and a line's end, to standard output.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_string(value)?;
        line.push('\n');
        self.result(&line)
    }

    /// A line that helps and is no result, to standard error; not with `--quiet`.
    pub(crate) fn hint(&mut self, text: &str) -> io::Result<()> {
        if self.volume == Volume::Quiet {
            return Ok(());
        }
        writeln!(self.err, "{text}")
    }

    /// What went wrong and what to do next, to standard error.
    pub(crate) fn error(&mut self, what: &str, remedy: &str) -> io::Result<()> {
        let label = paint(self.colour.err, Ink::Bad, "error:");
        writeln!(self.err, "{label} {what}")?;
        if remedy.is_empty() {
            return Ok(());
        }
        let label = paint(self.colour.err, Ink::Faint, "  try:");
        writeln!(self.err, "{label} {remedy}")
    }

    /// The text in a colour, if results are coloured.
    pub(crate) fn ink(&self, ink: Ink, text: &str) -> String {
        paint(self.colour.out, ink, text)
    }
}

fn paint(coloured: bool, ink: Ink, text: &str) -> String {
    let code = match ink {
        Ink::Good => "32",
        Ink::Bad => "1;31",
        Ink::Faint => "2",
    };
    if coloured {
        format!("\x1b[{code}m{text}\x1b[0m")
    } else {
        text.to_owned()
    }
}
