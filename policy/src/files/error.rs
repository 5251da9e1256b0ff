//! What is wrong with a file, where, and what to do.

use std::fmt;

use serde::Serialize;
use thiserror::Error;

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Problem {
    /// Above [`FILE_MAX`](super::FILE_MAX).
    TooLarge,
    /// Not UTF-8.
    Encoding,
    /// Not TOML.
    Syntax(String),
    /// A key that means nothing here.
    UnknownKey {
        /// The key.
        key: String,
        /// The key that was probably meant.
        nearest: Option<String>,
        /// The sections where this very key belongs.
        elsewhere: Vec<String>,
    },
    /// A key that must be there.
    MissingKey(String),
    /// A value of the wrong kind, out of range, or not in its grammar.
    Value(String),
    /// Two entries that cannot both hold.
    Conflict(String),
}

/// A file is refused. Lines and columns count from 1; a column is a character.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize)]
pub struct FileError {
    /// The file, as the caller named it.
    pub file: String,
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
    /// What is wrong there.
    pub problem: Problem,
}

impl FileError {
    /// A stable name of the problem.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self.problem {
            Problem::TooLarge => "file-too-large",
            Problem::Encoding => "file-encoding",
            Problem::Syntax(_) => "file-syntax",
            Problem::UnknownKey { .. } => "unknown-key",
            Problem::MissingKey(_) => "missing-key",
            Problem::Value(_) => "bad-value",
            Problem::Conflict(_) => "conflict",
        }
    }

    /// What to do about it, in one sentence.
    #[must_use]
    pub fn remedy(&self) -> String {
        match &self.problem {
            Problem::TooLarge => "Take out what is not needed; the limit is 1 MiB.".to_owned(),
            Problem::Encoding => "Save the file as UTF-8.".to_owned(),
            Problem::Syntax(_) => "Correct the line; the format is TOML 1.0.".to_owned(),
            Problem::UnknownKey {
                nearest: Some(nearest),
                ..
            } => {
                format!("Write `{nearest}`, or take the key out.")
            }
            Problem::UnknownKey { elsewhere, .. } if !elsewhere.is_empty() => {
                format!("Move it to {}, where it is known.", elsewhere.join(" or "))
            }
            Problem::UnknownKey { .. } => {
                "Take the key out; the samples show what is known.".to_owned()
            }
            Problem::MissingKey(key) => format!("Add `{key}`; the sample shows how."),
            Problem::Value(_) => "Correct the value.".to_owned(),
            Problem::Conflict(_) => "Keep one of the two.".to_owned(),
        }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FileError {
            file,
            line,
            column,
            problem,
        } = self;
        write!(f, "{file}:{line}:{column}: ")?;
        match problem {
            Problem::TooLarge => f.write_str("the file is longer than 1 MiB")?,
            Problem::Encoding => f.write_str("the file is not UTF-8")?,
            Problem::UnknownKey { key, .. } => write!(f, "unknown key `{key}`")?,
            Problem::MissingKey(key) => write!(f, "the key `{key}` is missing")?,
            Problem::Syntax(why) | Problem::Value(why) | Problem::Conflict(why) => {
                f.write_str(why)?;
            }
        }
        write!(f, ". {}", self.remedy())
    }
}
