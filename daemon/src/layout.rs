//! Where each file of a host lies.
//!
//! Knows names and directories only: opens nothing, creates nothing. Every
//! process of the product asks here, so that two of them never disagree about a
//! path. Must not know what is in the files.

use std::path::{Path, PathBuf};

use policy::files::Host;
use uuid::Uuid;

use crate::hex;

/// The four directories of a host, and every path below them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// What must survive a reboot: `/var/lib/reconf`.
    pub state_dir: PathBuf,
    /// Sockets, gone with the boot: `/run/reconf`.
    pub run_dir: PathBuf,
    /// The signed list and its bitstreams: `/var/lib/reconf/repo/current`.
    pub repository: PathBuf,
    /// Where `host.toml` lies; relative paths in it start here: `/etc/reconf`.
    pub etc: PathBuf,
}

impl Layout {
    /// The places that `host`, read from `host_file`, names.
    #[must_use]
    pub fn of(host: &Host, host_file: &Path) -> Self {
        Self {
            state_dir: host.state_dir.clone(),
            run_dir: host.run_dir.clone(),
            repository: host.repository.clone(),
            etc: host_file.parent().unwrap_or(Path::new("")).to_path_buf(),
        }
    }

    /// The enrolled root: whose signatures this host believes.
    #[must_use]
    pub fn root_file(&self) -> PathBuf {
        self.state_dir.join("trust/root.json")
    }

    /// `reconfd`'s own directory.
    #[must_use]
    pub fn reconfd_dir(&self) -> PathBuf {
        self.state_dir.join("reconfd")
    }

    /// The lowest list version that `reconfd` still believes.
    #[must_use]
    pub fn reconfd_floor(&self) -> PathBuf {
        self.reconfd_dir().join("floor.json")
    }

    /// Which VM holds which user functions.
    #[must_use]
    pub fn registrations(&self) -> PathBuf {
        self.reconfd_dir().join("registrations.json")
    }

    /// The job store (a sled directory).
    #[must_use]
    pub fn jobs(&self) -> PathBuf {
        self.reconfd_dir().join("jobs")
    }

    /// The audit trail, one JSON object a line.
    #[must_use]
    pub fn audit(&self) -> PathBuf {
        self.reconfd_dir().join("audit.jsonl")
    }

    /// There while the operator's `stop` is in force.
    #[must_use]
    pub fn stopped(&self) -> PathBuf {
        self.reconfd_dir().join("stopped.json")
    }

    /// The directory of one card's process; `name` is made by [`card_name`].
    #[must_use]
    pub fn card_dir(&self, name: &str) -> PathBuf {
        self.state_dir.join("cards").join(name)
    }

    /// The lowest list version that this card's process still believes.
    #[must_use]
    pub fn card_floor(&self, name: &str) -> PathBuf {
        self.card_dir(name).join("floor.json")
    }

    /// Locked by the one process that holds the card.
    #[must_use]
    pub fn card_lock(&self, name: &str) -> PathBuf {
        self.card_dir(name).join("lock")
    }

    /// The region journal.
    #[must_use]
    pub fn card_journal(&self, name: &str) -> PathBuf {
        self.card_dir(name).join("journal")
    }

    /// Where operators and registrars speak to `reconfd`.
    #[must_use]
    pub fn admin_socket(&self) -> PathBuf {
        self.run_dir.join("admin.sock")
    }

    /// Where `reconfd` speaks to a card's process.
    #[must_use]
    pub fn card_socket(&self, name: &str) -> PathBuf {
        self.run_dir.join("cards").join(format!("{name}.sock"))
    }

    /// A VM's channel, where we listen and QEMU connects.
    #[must_use]
    pub fn vm_channel(&self, vm: Uuid) -> PathBuf {
        self.run_dir
            .join("vm")
            .join(vm.hyphenated().to_string())
            .join("org.reconf.0")
    }

    /// The list of images.
    #[must_use]
    pub fn list(&self) -> PathBuf {
        self.repository.join("images.json")
    }

    /// The list's signature, over its exact bytes.
    #[must_use]
    pub fn list_signature(&self) -> PathBuf {
        self.repository.join("images.json.sig")
    }

    /// The directory that target paths start in.
    #[must_use]
    pub fn targets(&self) -> PathBuf {
        self.repository.join("targets")
    }
}

/// Longest part of a card's path that its file name repeats, in bytes: socket paths are short.
const READABLE: usize = 20;

/// A card's address (`pci:0000:3b:00.0`, `vfio-user:/path`) as a file name:
/// `pci-0000-3b-00.0`, `vfio-user-card0-5f2c19d0`.
///
/// Different addresses give different names: whatever is more than a plain PCI address
/// carries eight digits of its SHA-256.
#[must_use]
pub fn card_name(address: &str) -> String {
    let plain = |c: char| c.is_ascii_hexdigit() || c == ':' || c == '.';
    if let Some(pci) = address.strip_prefix("pci:")
        && pci.len() <= READABLE
        && pci.chars().all(|c| plain(c) && !c.is_ascii_uppercase())
    {
        return format!("pci-{}", pci.replace(':', "-"));
    }
    let scheme = if address.starts_with("vfio-user:") {
        "vfio-user"
    } else {
        "card"
    };
    let last = address.rsplit(['/', ':']).next().unwrap_or_default();
    let readable: String = last
        .strip_suffix(".sock")
        .unwrap_or(last)
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '-' {
                c
            } else {
                '_'
            }
        })
        .take(READABLE)
        .collect();
    let digest = ring::digest::digest(&ring::digest::SHA256, address.as_bytes());
    let mark: String = hex::encode(digest.as_ref()).chars().take(8).collect();
    format!("{scheme}-{readable}-{mark}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> Layout {
        Layout {
            state_dir: "/var/lib/reconf".into(),
            run_dir: "/run/reconf".into(),
            repository: "/var/lib/reconf/repo/current".into(),
            etc: "/etc/reconf".into(),
        }
    }

    #[test]
    fn a_channel_lies_where_libvirt_is_told() {
        let vm = Uuid::from_u128(0x1234_5678_9abc_4def_8123_4567_89ab_cdef);
        assert_eq!(
            layout().vm_channel(vm),
            Path::new("/run/reconf/vm/12345678-9abc-4def-8123-456789abcdef/org.reconf.0")
        );
    }

    #[test]
    fn a_pci_card_is_named_by_its_address() {
        assert_eq!(card_name("pci:0000:3b:00.0"), "pci-0000-3b-00.0");
    }

    #[test]
    fn different_cards_have_different_files() {
        let addresses = [
            "pci:0000:3b:00.0",
            "pci:0000-3b-00.0",
            "vfio-user:/run/a/card.sock",
            "vfio-user:/run/b/card.sock",
            "vfio-user:/run/b/card_sock",
            "vfio-user:/run/b/card",
            "card:/run/b/card",
            "",
        ];
        let mut names: Vec<_> = addresses.iter().map(|a| card_name(a)).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), addresses.len());
    }

    #[test]
    fn every_name_is_one_short_path_component() {
        for address in [
            "vfio-user:/../..",
            "vfio-user:/a/../",
            "pci:../../x",
            "pci:..",
            "\0/é漢",
        ] {
            let name = card_name(address);
            assert!(name.is_ascii() && name.len() <= 40, "{name}");
            assert!(
                !name.contains(['/', '\0']) && name != "." && name != "..",
                "{name}"
            );
        }
    }
}
