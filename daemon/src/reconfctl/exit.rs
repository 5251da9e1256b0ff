//! How the command ends: a closed set of exit codes, and failures that say what to do next.

use std::io::{self, Write};
use std::process::ExitCode;

use super::show::{Colour, Paint, clean};

/// The exit codes. Scripts rely on them: numbers never change their meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// 0: done, or well.
    Done = 0,
    /// 1: the answer is no.
    No = 1,
    /// 2: the command line is wrong; of `inspect` and `diff`: a file is not understood.
    Usage = 2,
    /// 3: `reconfd`, or the card, is not reachable.
    Unreachable = 3,
    /// 4: not permitted.
    NotPermitted = 4,
    /// 5: files are wrong, missing, or could not be written.
    Files = 5,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Something that was not done: what happened to what, and what to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) exit: Exit,
    pub(super) error: String,
    pub(super) remedy: String,
}

impl Failure {
    pub(super) fn new(exit: Exit, error: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            exit,
            error: error.into(),
            remedy: remedy.into(),
        }
    }

    /// Files are wrong.
    pub(super) fn files(error: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(Exit::Files, error, remedy)
    }

    /// A file could not be read or written: not permitted is told from the rest.
    pub(super) fn io(what: &str, source: &io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::PermissionDenied => Self::new(
                Exit::NotPermitted,
                format!("{what}: {source}"),
                "run this as root, or as the owner of the directory",
            ),
            io::ErrorKind::AlreadyExists => Self::files(
                format!("{what}: there already"),
                "nothing was overwritten; choose another place, or move it away",
            ),
            _ => Self::files(format!("{what}: {source}"), "correct the path or the file"),
        }
    }

    /// In the shape of a refused admin request, so that scripts need one reader.
    pub(super) fn to_json(&self) -> serde_json::Value {
        serde_json::json!({ "ok": false, "error": self.error, "remedy": self.remedy })
    }

    pub(super) fn write(&self, out: &mut dyn Write, colour: Colour) -> io::Result<()> {
        let paint = Paint::new(colour);
        writeln!(out, "{} {}", paint.bad("error:"), clean(&self.error))?;
        if !self.remedy.is_empty() {
            writeln!(out, "{} {}", paint.dim(" next:"), clean(&self.remedy))?;
        }
        Ok(())
    }
}
