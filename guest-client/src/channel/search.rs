//! Where a channel may be, and what was found there.
//!
//! Knows the well-known places. Must not know what is said over a channel.

use std::fmt;
use std::path::{Path, PathBuf};

use super::{Stream, open};
use crate::error::{Error, Result};
use crate::text;

/// Where the agent serves: it owns the port and lets several users share it.
pub const AGENT_SOCKET: &str = "/run/reconf/guest.sock";

/// The virtio port itself; udev makes the link from the port's name.
pub const PORT: &str = "/dev/virtio-ports/org.reconf.0";

/// The environment variable that names a channel.
pub const ENVIRONMENT: &str = "RECONF_CHANNEL";

/// Names in the ports' directory that an error lists at most.
const LISTED_AT_MOST: usize = 16;

/// Where to look, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    candidates: Vec<PathBuf>,
    /// Looked into for the error message only: a port under a wrong name is
    /// the usual mistake of whoever wrote the VM's definition.
    ports: PathBuf,
    /// A path that somebody named is used or fails; the well-known ones are tried.
    named: bool,
}

impl Places {
    /// The one path that the user named.
    #[must_use]
    pub fn named(path: impl Into<PathBuf>) -> Self {
        Self {
            candidates: vec![path.into()],
            ports: ports_directory(),
            named: true,
        }
    }

    /// What [`ENVIRONMENT`] names, else the agent's socket, then the port.
    #[must_use]
    pub fn usual() -> Self {
        match std::env::var_os(ENVIRONMENT) {
            Some(path) if !path.is_empty() => Self::named(path),
            _ => Self::among(vec![AGENT_SOCKET.into(), PORT.into()], ports_directory()),
        }
    }

    /// A search of the caller's own: the first that opens is taken.
    pub(super) fn among(candidates: Vec<PathBuf>, ports: PathBuf) -> Self {
        Self {
            candidates,
            ports,
            named: false,
        }
    }

    /// Opens the first place that can be opened.
    pub(super) async fn open(&self) -> Result<Stream> {
        let mut tried = Vec::with_capacity(self.candidates.len());
        let mut telling = None;
        for path in &self.candidates {
            match open(path).await {
                Ok(stream) => return Ok(stream),
                Err(error) if self.named => return Err(error),
                Err(error) => {
                    tried.push(Tried {
                        path: path.clone(),
                        why: reason(&error),
                    });
                    // A channel that is there and refuses says more than one that is not.
                    if !is_absent(&error) {
                        telling.get_or_insert(error);
                    }
                }
            }
        }
        Err(telling.unwrap_or_else(|| {
            Error::NoChannel(SearchReport {
                tried,
                ports: names_in(&self.ports),
            })
        }))
    }
}

impl From<&Path> for Places {
    fn from(path: &Path) -> Self {
        Self::named(path)
    }
}

fn ports_directory() -> PathBuf {
    Path::new(PORT)
        .parent()
        .map(Path::to_path_buf)
        .unwrap_or_default()
}

fn is_absent(error: &Error) -> bool {
    matches!(error, Error::Open { source, .. } if source.kind() == std::io::ErrorKind::NotFound)
}

fn reason(error: &Error) -> String {
    match error {
        Error::Open { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            "not there".into()
        }
        Error::Open { source, .. } => source.to_string(),
        other => other.to_string(),
    }
}

/// The names of the ports that this VM does have; empty where it has none.
fn names_in(directory: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .flatten()
        .take(LISTED_AT_MOST)
        .map(|entry| text::foreign(&entry.file_name().to_string_lossy()))
        .collect();
    names.sort();
    names
}

/// One place and why it did not do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// The place.
    pub path: PathBuf,
    /// The reason, for people.
    pub why: String,
}

/// What a search found that led nowhere.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SearchReport {
    /// Every place tried.
    pub tried: Vec<Tried>,
    /// The names of the virtio ports that are there.
    pub ports: Vec<String>,
}

impl fmt::Display for SearchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, Tried { path, why }) in self.tried.iter().enumerate() {
            let comma = if n == 0 { "" } else { ", " };
            write!(f, "{comma}{}: {why}", path.display())?;
        }
        if self.ports.is_empty() {
            f.write_str("; this VM has no named virtio ports")
        } else {
            write!(f, "; this VM's virtio ports are: {}", self.ports.join(", "))
        }
    }
}
