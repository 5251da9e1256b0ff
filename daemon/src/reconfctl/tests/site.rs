//! A host with a card and a publisher beside it, all in a temporary directory.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use bitstream::gbs::{Clocks, Draft, build};
use serde_json::Value;
use tempfile::TempDir;
use uuid::Uuid;

use super::*;

pub(super) const INTERFACE: Uuid = Uuid::from_u128(0x6952_8db6_eb31_577a_8c36_68f9_faa0_81f6);
pub(super) const FUNCTION: Uuid = Uuid::from_u128(0x1111_2222_3333_4444_5555_6666_7777_8888);
pub(super) const CARD: &str = "vfio-user:/run/sim/card0.sock";

pub(super) fn gbs(function: Uuid, payload: &[u8]) -> Vec<u8> {
    build(&Draft {
        interface_id: INTERFACE,
        accelerator: function,
        name: "test",
        clocks: Clocks::default(),
        power: 0,
        payload,
    })
    .unwrap()
}

/// A host with a card and a publisher beside it, both in one temporary directory.
pub(super) struct Site {
    pub(super) dir: TempDir,
}

impl Site {
    pub(super) fn new() -> Self {
        let site = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        for directory in ["etc/shells", "repo/targets/acme", "state", "run"] {
            std::fs::create_dir_all(site.path(directory)).unwrap();
        }
        let blank = gbs(Uuid::from_u128(1), b"blank");
        site.write("etc/blank.gbs", &blank);
        site.write(
            "etc/host.toml",
            format!(
                "[host]\nstate_dir = \"../state\"\nrun_dir = \"../run\"\nrepository = \"../repo\"\n\n\
                 [[card]]\naddress = \"{CARD}\"\nengine = \"dfl\"\nshell = \"shells/a.toml\"\n"
            )
            .as_bytes(),
        );
        site.write("etc/grants.toml", b"[[tenant]]\nname = \"blue\"\n");
        site.shell(&policy::ids::Digest::of(&blank).to_string());
        site.write("repo/targets/acme/aes.gbs", &gbs(FUNCTION, b"payload"));
        site.write(
            "list.toml",
            b"[[image]]\nname = \"acme/aes:1.0\"\nvariants = [{ path = \"acme/aes.gbs\" }]\n",
        );
        site
    }

    pub(super) fn shell(&self, blank: &str) {
        self.write(
            "etc/shells/a.toml",
            format!(
                "name = \"a\"\n[[region]]\nname = \"left\"\nport = 0\ninterface_id = \"{INTERFACE}\"\n\
                 region_type = \"intel.com/fpga-dcp\"\nuser_functions = [\"vfio-user:/run/sim/vf0.sock\"]\n\
                 blank = {{ path = \"../blank.gbs\", sha256 = \"{blank}\" }}\n"
            )
            .as_bytes(),
        );
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(super) fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.path(name), bytes).unwrap();
        std::fs::set_permissions(self.path(name), std::fs::Permissions::from_mode(0o644)).unwrap();
    }

    pub(super) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// Arguments that begin with `@` are paths of the site.
    pub(super) fn run(&self, args: &[&str]) -> Ran {
        let host = self.path("etc/host.toml");
        let mut all = vec!["--host-file".to_owned(), text(&host).to_owned()];
        all.extend(args.iter().map(|arg| match arg.strip_prefix('@') {
            Some(name) => text(&self.path(name)).to_owned(),
            None => (*arg).to_owned(),
        }));
        reconfctl(&all)
    }

    pub(super) fn done(&self, args: &[&str]) -> Value {
        let ran = self.run(&[&["--json"], args].concat());
        assert_eq!(ran.exit, Exit::Done, "{args:?}: {}{}", ran.out, ran.err);
        ran.json()
    }

    pub(super) fn keys(&self, name: &str) {
        let (directory, public) = (format!("@{name}"), format!("@{name}/key.pub"));
        let root = format!("@{name}/root.json");
        self.done(&["repo", "keygen", "--out", &directory]);
        self.done(&["repo", "root", "--key", &public, "--out", &root]);
    }

    pub(super) fn publish(&self, key: &str) -> Value {
        let key = format!("@{key}/key.pk8");
        self.done(&[
            "repo",
            "publish",
            "--key",
            &key,
            "--list",
            "@list.toml",
            "--dir",
            "@repo",
        ])
    }
}
