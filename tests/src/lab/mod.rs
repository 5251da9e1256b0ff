//! The lab: VMs in which code that is not ours meets the simulated card.
//!
//! Knows the tree that `tests/lab/prepare` made, and how to boot from it. The
//! judges' expectations stand in modules of their own. Needs no root: only the
//! preparation does.

pub mod host;
mod initramfs;
pub mod linux;
mod vm;

use std::path::{Path, PathBuf};

pub use initramfs::Initramfs;
pub use vm::Vm;

/// What `tests/lab/prepare` made.
#[derive(Debug, Clone)]
pub struct Tree {
    lab: PathBuf,
}

impl Tree {
    /// The tree that `RECONF_LAB` names; none where the lab was not prepared.
    #[must_use]
    pub fn prepared() -> Option<Self> {
        let lab = PathBuf::from(std::env::var_os("RECONF_LAB")?);
        lab.join("recipe").is_file().then_some(Self { lab })
    }

    fn root(&self) -> PathBuf {
        self.lab.join("tree")
    }

    /// A file that was made for VMs to run.
    fn guest(&self, name: &str) -> PathBuf {
        self.root().join("opt/guest").join(name)
    }
}

/// A script that VMs run, from `tests/lab`.
fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("lab").join(name)
}
