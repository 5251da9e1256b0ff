//! Answers as pages for people. Knows what is said, not how it was asked.
//!
//! Everything that came from outside loses its control characters here: nothing that a
//! guest or a file says may speak to the operator's terminal.

mod status;
mod steps;
mod table;
mod tables;

use std::io;

use super::Streams;
use crate::admin::AdminBody;

pub(super) use steps::allows;
pub(super) use table::Table;

/// Whether a stream takes colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// It is a terminal.
    Always,
    /// It is a file or a pipe, or its owner does not want them.
    Never,
}

impl Colour {
    /// For a stream that is a terminal or not; `NO_COLOR` set to anything means never.
    #[must_use]
    pub fn for_terminal(terminal: bool) -> Self {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        if terminal && !unwanted {
            Self::Always
        } else {
            Self::Never
        }
    }
}

/// Colours that carry meaning, where the stream takes them. Nothing is said by colour alone.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paint(Colour);

impl Paint {
    pub(super) const fn new(colour: Colour) -> Self {
        Self(colour)
    }

    pub(super) fn good(self, text: &str) -> String {
        self.code("32", text)
    }

    pub(super) fn bad(self, text: &str) -> String {
        self.code("1;31", text)
    }

    pub(super) fn bold(self, text: &str) -> String {
        self.code("1", text)
    }

    pub(super) fn dim(self, text: &str) -> String {
        self.code("2", text)
    }

    fn code(self, code: &str, text: &str) -> String {
        match self.0 {
            Colour::Always => format!("\x1b[{code}m{text}\x1b[0m"),
            Colour::Never => text.to_owned(),
        }
    }
}

/// `text` on one line and without control characters.
pub(super) fn clean(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// Writes a good answer.
pub(super) fn body(body: &AdminBody, streams: &mut Streams<'_>) -> io::Result<()> {
    let paint = Paint::new(streams.colour);
    let out = &mut *streams.out;
    match body {
        AdminBody::Done(text) => writeln!(out, "{}", clean(text)),
        AdminBody::Status(view) => status::write(view, super::time::now(), paint, out),
        AdminBody::Regions(views) => tables::regions(views, paint, out),
        AdminBody::Vms(views) => tables::vms(views, paint, out),
        AdminBody::Jobs(views) => tables::jobs(views, paint, out),
        AdminBody::Attached(view) => tables::vms(std::slice::from_ref(view), paint, out),
        AdminBody::Explanation(value) => steps::write(value, paint, out),
        AdminBody::Audit(records) => tables::audit(records, out),
    }
}
