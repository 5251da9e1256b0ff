//! Where a repository is read from.
//!
//! Knows places and limits. What comes is believed by nobody yet.

use std::io::Read;
use std::path::PathBuf;

use crate::files::{self, FileError};

/// What is asked for, as it is named in the repository.
#[derive(Debug, Clone, Copy)]
pub enum Place<'a> {
    /// A document: a file's name, percent-encoded.
    Metadata(&'a str),
    /// A target: a path, percent-encoded but for its slashes.
    Target(&'a str),
}

/// What a source gave.
pub enum Fetched {
    /// The bytes, as a stream that ends with an error rather than stalls.
    Here(Box<dyn Read>),
    /// The source says that there is none.
    Missing,
}

/// Why nothing came.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A file could not be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The server, or the way to it.
    #[error("{url}: {why}")]
    Http {
        /// What was asked for.
        url: String,
        /// What happened.
        why: String,
    },
}

/// A repository that can be read.
pub trait Source {
    /// Begins to read. The caller stops at its own limit of bytes.
    ///
    /// # Errors
    ///
    /// [`SourceError`]; that there is no such file is not one.
    fn open(&self, place: Place<'_>) -> Result<Fetched, SourceError>;
}

/// A repository in two folders of this host.
#[derive(Debug, Clone)]
pub struct Directory {
    /// Where the documents are.
    pub metadata: PathBuf,
    /// Where the targets are.
    pub targets: PathBuf,
}

impl Source for Directory {
    fn open(&self, place: Place<'_>) -> Result<Fetched, SourceError> {
        let (folder, name) = match place {
            Place::Metadata(name) => (&self.metadata, name),
            Place::Target(path) => (&self.targets, path),
        };
        match files::open_beneath(folder, name.as_ref()) {
            Ok((file, _size)) => Ok(Fetched::Here(Box::new(file))),
            Err(error) if error.is_missing() => Ok(Fetched::Missing),
            Err(error) => Err(error.into()),
        }
    }
}
