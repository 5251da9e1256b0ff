//! The host's file, and the places that follow from it.

use std::path::{Path, PathBuf};

use policy::files::{FILE_MAX, Host};

use super::exit::{Exit, Failure};
use crate::files::{FileError, read_trusted};
use crate::layout::Layout;

/// `host.toml`, read and believed.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) host: Host,
    pub(super) layout: Layout,
}

/// Reads `host_file`.
pub(super) fn of(host_file: &Path) -> Result<Place, Failure> {
    let file = absolute(host_file)?;
    let bytes = read_trusted(&file, file_max()).map_err(|error| unreadable(&error))?;
    let host = Host::parse(&file, &bytes)
        .map_err(|error| Failure::files(error.to_string(), "see all of it: reconfctl check"))?;
    let layout = Layout::of(&host, &file);
    Ok(Place { host, layout })
}

/// The longest configuration file, in bytes.
pub(super) fn file_max() -> u64 {
    u64::try_from(FILE_MAX).unwrap_or(u64::MAX)
}

pub(super) fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| Failure::io(&path.display().to_string(), &error))
}

/// A file that could not be read, and what to do about it.
pub(super) fn unreadable(error: &FileError) -> Failure {
    let remedy = match error {
        FileError::Missing { .. } => "make the file, or name another; docs/samples has one of each",
        FileError::Unsafe { .. } => "put the file itself there",
        FileError::UnsafePermissions { .. } | FileError::UnsafeOwner { .. } => {
            "make it root's, and writable by root alone"
        }
        FileError::Exposed { .. } => "and if others have read it, make a new one",
        FileError::TooLarge { .. } => "is this the right file?",
        FileError::Io { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
            return Failure::new(Exit::NotPermitted, error.to_string(), "run this as root");
        }
        FileError::Io { .. } => "see what keeps the file from being read",
    };
    Failure::files(error.to_string(), remedy)
}
