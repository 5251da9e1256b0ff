//! `doctor`, on trees that look like a machine's /sys, /proc and /dev.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::Value;
use tempfile::TempDir;

use super::*;

const CARD: &str = "0000:3b:00.0";
const NORTH: &str = "0000:3b:00.1";
const SOUTH: &str = "0000:3b:00.2";

/// A machine with one card whose management function and two user functions are in
/// groups of their own, all bound to vfio-pci: nothing is wrong with it.
struct Machine {
    dir: TempDir,
}

impl Machine {
    fn new() -> Self {
        let machine = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        machine.write("proc/sys/kernel/osrelease", "6.12.0-amd64\n");
        machine.write(
            "sys/module/vfio/parameters/enable_unsafe_noiommu_mode",
            "N\n",
        );
        fs::create_dir_all(machine.at("sys/bus/pci/drivers/vfio-pci")).unwrap();
        for (group, function) in [("7", CARD), ("8", NORTH), ("9", SOUTH)] {
            machine.write(
                &format!("sys/bus/pci/devices/{function}/class"),
                "0x120000\n",
            );
            machine.write(
                &format!("sys/bus/pci/devices/{function}/driver_override"),
                "vfio-pci\n",
            );
            machine.drive(function, Some("vfio-pci"));
            machine.join(function, group);
            machine.write(&format!("dev/vfio/{group}"), "");
            machine.mode(&format!("dev/vfio/{group}"), 0o600);
        }
        machine.write(
            "etc/host.toml",
            &format!(
                "[host]\nstate_dir = \"/s\"\nrun_dir = \"/r\"\nrepository = \"/p\"\n\
                 grants = \"grants.toml\"\n\n[[card]]\naddress = \"pci:{CARD}\"\n\
                 engine = \"dfl\"\nshell = \"a.toml\"\nserial = \"00-0a-35-ff-fe-00-10-00\"\n"
            ),
        );
        let region = |port: u8, name: &str, function: &str| {
            format!(
                "[[region]]\nname = \"{name}\"\nport = {port}\n\
                 interface_id = \"69528db6-eb31-577a-8c36-68f9faa081f6\"\n\
                 region_type = \"test/region\"\nuser_functions = [\"pci:{function}\"]\n"
            )
        };
        let shell = format!(
            "name = \"a shell\"\n{}{}",
            region(0, "north", NORTH),
            region(1, "south", SOUTH)
        );
        machine.write("etc/a.toml", &shell);
        machine.write_bytes(
            &format!("sys/bus/pci/devices/{CARD}/config"),
            &config(0x000a_35ff_fe00_1000),
        );
        machine
    }

    fn at(&self, path: &str) -> std::path::PathBuf {
        self.dir.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        self.write_bytes(path, text.as_bytes());
    }

    fn write_bytes(&self, path: &str, bytes: &[u8]) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn mode(&self, path: &str, mode: u32) {
        fs::set_permissions(self.at(path), fs::Permissions::from_mode(mode)).unwrap();
    }

    fn link(&self, path: &str, to: &str) {
        let path = self.at(path);
        if path.is_symlink() {
            fs::remove_file(&path).unwrap();
        }
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(to, path).unwrap();
    }

    fn drive(&self, function: &str, driver: Option<&str>) {
        let link = format!("sys/bus/pci/devices/{function}/driver");
        match driver {
            Some(driver) => self.link(&link, &format!("../../drivers/{driver}")),
            None => fs::remove_file(self.at(&link)).unwrap(),
        }
    }

    fn join(&self, function: &str, group: &str) {
        self.link(
            &format!("sys/bus/pci/devices/{function}/iommu_group"),
            &format!("../../../kernel/iommu_groups/{group}"),
        );
        fs::create_dir_all(self.at(&format!(
            "sys/kernel/iommu_groups/{group}/devices/{function}"
        )))
        .unwrap();
    }

    fn run(&self, json: bool) -> Ran {
        let host = format!("--host-file={}", self.at("etc/host.toml").display());
        let root = format!("--root={}", self.dir.path().display());
        let mut args = vec![host.as_str(), "doctor", &root];
        if json {
            args.push("--json");
        }
        reconfctl(&args)
    }

    /// The codes of what is not well, each with what it is about.
    fn complaints(&self) -> Vec<(String, String)> {
        let ran = self.run(true);
        let value = ran.json();
        let findings = value["findings"].as_array().unwrap();
        let text = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
        let bad = findings.iter().filter(|finding| finding["grade"] != "well");
        let bad: Vec<&Value> = bad.collect();
        for finding in &bad {
            assert!(!text(finding, "remedy").is_empty(), "{finding}");
        }
        let wrong = bad.iter().any(|finding| finding["grade"] == "wrong");
        assert_eq!(ran.exit, if wrong { Exit::No } else { Exit::Done });
        assert_eq!(value["ok"], !wrong);
        bad.iter()
            .map(|finding| (text(finding, "code"), text(finding, "about")))
            .collect()
    }

    fn only(&self, code: &str, about: &str) {
        assert_eq!(self.complaints(), [(code.to_owned(), about.to_owned())]);
    }
}

/// Configuration space with a serial number behind another capability.
fn config(serial: u64) -> Vec<u8> {
    let mut config = vec![0; 4096];
    config[0x100..0x104].copy_from_slice(&(0x140_u32 << 20 | 1 << 16 | 0x000b).to_le_bytes());
    config[0x140..0x144].copy_from_slice(&(1_u32 << 16 | 0x0003).to_le_bytes());
    config[0x144..0x14c].copy_from_slice(&serial.to_le_bytes());
    config
}

#[test]
fn a_machine_in_order_is_well() {
    let machine = Machine::new();
    assert_eq!(machine.complaints(), []);
    let page = machine.run(false);
    assert_eq!(page.exit, Exit::Done);
    assert!(page.out.contains("0 wrong, 0 odd"), "{}", page.out);
    assert!(page.out.contains("host.toml states"), "{}", page.out);
}

#[test]
fn d11_a_machine_without_an_iommu_is_told() {
    let machine = Machine::new();
    fs::remove_dir_all(machine.at("sys/kernel/iommu_groups")).unwrap();
    for function in [CARD, NORTH, SOUTH] {
        fs::remove_file(machine.at(&format!("sys/bus/pci/devices/{function}/iommu_group")))
            .unwrap();
    }
    let complaints = machine.complaints();
    let codes: Vec<&str> = complaints.iter().map(|(code, _)| code.as_str()).collect();
    assert_eq!(codes, ["iommu-off", "no-group"]);
    let machine = Machine::new();
    machine.write(
        "sys/module/vfio/parameters/enable_unsafe_noiommu_mode",
        "Y\n",
    );
    machine.only("no-iommu-mode", "this machine");
}

#[test]
fn d11_who_is_in_a_group_with_whom_is_told() {
    // A guest's function beside the management function.
    let machine = Machine::new();
    machine.join(NORTH, "7");
    machine.only("shared-group", "IOMMU group 7");
    // Two regions' functions together.
    let machine = Machine::new();
    machine.join(SOUTH, "8");
    machine.only("shared-group", "IOMMU group 8");
    // Somebody else's device; a bridge is nobody's.
    let machine = Machine::new();
    for (function, class, driver) in [
        ("0000:3a:00.0", "0x060400\n", "pcieport"),
        ("0000:3b:00.7", "0x020000\n", "ixgbe"),
    ] {
        machine.write(&format!("sys/bus/pci/devices/{function}/class"), class);
        machine.drive(function, Some(driver));
        machine.join(function, "7");
    }
    machine.only("group-blocked", "IOMMU group 7");
    assert!(machine.run(false).out.contains("0000:3b:00.7 (ixgbe)"));
}

#[test]
fn what_is_wrong_with_a_function_is_told() {
    let machine = Machine::new();
    machine.drive(CARD, Some("dfl-pci"));
    let complaints = machine.complaints();
    let codes: Vec<&str> = complaints.iter().map(|(code, _)| code.as_str()).collect();
    assert_eq!(codes, ["other-driver", "group-blocked"]);

    let machine = Machine::new();
    machine.drive(CARD, None);
    machine.only("no-driver", CARD);

    let machine = Machine::new();
    machine.write(
        &format!("sys/bus/pci/devices/{CARD}/driver_override"),
        "(null)\n",
    );
    machine.only("not-overridden", CARD);

    let machine = Machine::new();
    machine.mode("dev/vfio/7", 0o666);
    machine.only("open-to-all", CARD);

    let machine = Machine::new();
    fs::remove_dir_all(machine.at(&format!("sys/bus/pci/devices/{CARD}"))).unwrap();
    machine.only("no-function", CARD);

    let machine = Machine::new();
    machine.drive(NORTH, Some("igb"));
    let codes: Vec<String> = machine
        .complaints()
        .into_iter()
        .map(|(code, _)| code)
        .collect();
    assert_eq!(codes, ["held-by-host", "group-blocked"]);

    let machine = Machine::new();
    fs::remove_dir_all(machine.at(&format!("sys/bus/pci/devices/{SOUTH}"))).unwrap();
    machine.only("no-user-function", SOUTH);
}

#[test]
fn d10_another_card_and_an_old_kernel_are_told() {
    let machine = Machine::new();
    machine.write_bytes(&format!("sys/bus/pci/devices/{CARD}/config"), &config(7));
    machine.only("other-card", CARD);
    // Who may not read it all is told nothing, and nothing false.
    machine.write_bytes(
        &format!("sys/bus/pci/devices/{CARD}/config"),
        &config(7)[..64],
    );
    assert_eq!(machine.complaints(), []);
    machine.write("proc/sys/kernel/osrelease", "5.4.0-generic\n");
    machine.only("kernel-too-old", "this machine");
    fs::remove_dir_all(machine.at("sys/bus/pci/drivers/vfio-pci")).unwrap();
    machine.write("proc/sys/kernel/osrelease", "6.1.0\n");
    machine.only("vfio-missing", "this machine");
}

#[test]
fn wrong_files_are_for_check_to_explain() {
    let machine = Machine::new();
    machine.write("etc/host.toml", "nonsense");
    let ran = machine.run(false);
    assert_eq!(ran.exit, Exit::Files);
    assert!(ran.err.contains("reconfctl check"), "{}", ran.err);
}
