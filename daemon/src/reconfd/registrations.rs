//! The registrations on disk: what a restart finds of the VMs before it.
//!
//! Knows one file and how to ask the kernel about what is in it. Must not know
//! what is done for a VM that is over.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::identity::{BootId, ProcessId};
use super::registry::Registration;
use crate::files::FileError;

/// Longest registrations file, in bytes.
const MAX_FILE: u64 = 8 * 1024 * 1024;

/// The file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Saved {
    /// The boot in which earlier registrations were lost, until every region's owner is known
    /// again: a second restart must not forget that something was forgotten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_in: Option<BootId>,
    /// Every VM.
    pub vms: Vec<Registration>,
}

/// What the file held at start.
#[derive(Debug)]
pub enum Stored {
    /// It was read: these are alive, and these are over (another boot, or their process ended).
    Good {
        /// Alive.
        alive: Vec<Registration>,
        /// Over.
        over: Vec<Registration>,
        /// Of this boot some were lost earlier.
        lost: bool,
    },
    /// There is none.
    Missing,
    /// It could not be read: regions with an owner are held until their VM is attached again.
    Lost(String),
}

/// Reads the registrations and checks each against the kernel.
#[must_use]
pub fn load(path: &Path, boot: &BootId) -> Stored {
    let bytes = match crate::files::read_bounded(path, MAX_FILE) {
        Ok(bytes) => bytes,
        Err(FileError::Missing { .. }) => return Stored::Missing,
        Err(error) => return Stored::Lost(error.to_string()),
    };
    match serde_json::from_slice::<Saved>(&bytes) {
        Err(error) => Stored::Lost(error.to_string()),
        Ok(saved) => {
            let (alive, over) = saved
                .vms
                .into_iter()
                .partition(|vm| vm.boot == *boot && vm.process.is_none_or(ProcessId::is_alive));
            // No VM outlives the host's boot: what was lost in an earlier one is over.
            let lost = saved.lost_in.is_some_and(|lost| lost == *boot);
            Stored::Good { alive, over, lost }
        }
    }
}

/// Writes the registrations; durable when it returns.
///
/// # Errors
/// What the system says; the file of before is then still there.
pub fn save(path: &Path, saved: &Saved) -> std::io::Result<()> {
    let mut bytes = serde_json::to_vec_pretty(saved)?;
    bytes.push(b'\n');
    crate::files::write_atomic(path, &bytes, crate::files::Readers::Group)
}

#[cfg(test)]
mod tests {
    use super::super::registry::tests::registration;
    use super::*;

    #[test]
    fn what_was_saved_is_checked_against_the_kernel() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("registrations.json");
        let boot = BootId::current().unwrap();
        assert!(matches!(load(&path, &boot), Stored::Missing));
        let mut dead = registration(&[("vf:0.0", None)]);
        dead.process = Some(ProcessId {
            pid: std::process::id(),
            started: 1,
        });
        let mut alive = registration(&[("vf:0.1", None)]);
        alive.process = Some(ProcessId::of(std::process::id()).unwrap());
        let saved = Saved {
            lost_in: None,
            vms: vec![dead.clone(), alive.clone()],
        };
        save(&path, &saved).unwrap();
        let Stored::Good {
            alive: kept,
            over,
            lost,
        } = load(&path, &boot)
        else {
            panic!("lost")
        };
        assert_eq!((kept, over, lost), (vec![alive], vec![dead], false));
        std::fs::write(&path, b"[{").unwrap();
        assert!(matches!(load(&path, &boot), Stored::Lost(_)));
    }

    #[test]
    fn that_some_were_lost_is_known_over_a_restart_but_not_over_a_boot() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("registrations.json");
        let boot = BootId::current().unwrap();
        let other: BootId = serde_json::from_str("\"another boot\"").unwrap();
        for (lost_in, want) in [
            (None, false),
            (Some(boot.clone()), true),
            (Some(other), false),
        ] {
            let saved = Saved {
                lost_in,
                vms: Vec::new(),
            };
            save(&path, &saved).unwrap();
            assert!(matches!(load(&path, &boot), Stored::Good { lost, .. } if lost == want));
        }
    }
}
