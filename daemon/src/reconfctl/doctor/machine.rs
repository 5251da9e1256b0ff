//! One machine: its IOMMU, its VFIO, and each card's function by itself.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use ::card::{CardAddress, PciAddress, pci};

use super::{Finding, Plan, odd, well, wrong};

/// The oldest kernel with all that the processes use.
const OLDEST: (u32, u32) = (5, 15);
const BIND: &str = "bind it: `driverctl set-override ADDRESS vfio-pci`";

/// The files through which the system tells of itself.
#[derive(Debug)]
pub(super) struct Machine {
    root: PathBuf,
}

impl Machine {
    pub(super) fn under(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
        }
    }

    /// A path of the system, as if the root were `/`.
    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    fn text(&self, path: &str) -> Option<String> {
        let text = fs::read_to_string(self.path(path)).ok()?;
        Some(text.trim().to_owned())
    }

    /// The names in a folder, in order.
    pub(super) fn names(&self, path: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path(path)) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }

    /// The last part of what a link names.
    fn link(&self, path: &str) -> Option<String> {
        let target = fs::read_link(self.path(path)).ok()?;
        Some(target.file_name()?.to_string_lossy().into_owned())
    }

    /// Who drives a function.
    pub(super) fn driver(&self, function: &str) -> Option<String> {
        self.link(&format!("/sys/bus/pci/devices/{function}/driver"))
    }

    /// The IOMMU group of a function.
    pub(super) fn group(&self, function: &str) -> Option<String> {
        self.link(&format!("/sys/bus/pci/devices/{function}/iommu_group"))
    }

    /// Whether it is a bridge: those share groups and need no driver of ours.
    pub(super) fn is_bridge(&self, function: &str) -> bool {
        let class = self.text(&format!("/sys/bus/pci/devices/{function}/class"));
        class.is_some_and(|class| class.starts_with("0x0604"))
    }

    /// The machine as a whole.
    pub(super) fn examine(&self) -> Vec<Finding> {
        let mut found = vec![self.kernel()];
        if self.names("/sys/kernel/iommu_groups").is_empty() {
            found.push(wrong(
                "this machine",
                "iommu-off",
                "it has no IOMMU groups: the IOMMU is off, or there is none",
                "turn it on in the firmware (VT-d, AMD-Vi, SMMU), and boot with intel_iommu=on where the processor is Intel's",
            ));
        } else {
            found.push(well("this machine", "iommu-on", "its IOMMU is on"));
        }
        let unsafe_mode = self.text("/sys/module/vfio/parameters/enable_unsafe_noiommu_mode");
        if unsafe_mode.is_some_and(|mode| mode == "Y" || mode == "1") {
            found.push(wrong(
                "this machine",
                "no-iommu-mode",
                "VFIO gives devices without an IOMMU: they reach all memory",
                "load the module vfio without enable_unsafe_noiommu_mode",
            ));
        }
        if self.path("/sys/bus/pci/drivers/vfio-pci").is_dir() {
            found.push(well("this machine", "vfio", "the driver vfio-pci is there"));
        } else {
            found.push(wrong(
                "this machine",
                "vfio-missing",
                "the driver vfio-pci is not loaded",
                "modprobe vfio-pci, and name it in /etc/modules-load.d/",
            ));
        }
        found
    }

    fn kernel(&self) -> Finding {
        let release = self.text("/proc/sys/kernel/osrelease").unwrap_or_default();
        let mut numbers = release.split(['.', '-']).map(str::parse::<u32>);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(major)), Some(Ok(minor))) if (major, minor) < OLDEST => wrong(
                "this machine",
                "kernel-too-old",
                format!("its kernel is {release}"),
                format!("boot {}.{} or newer", OLDEST.0, OLDEST.1),
            ),
            (Some(Ok(_)), Some(Ok(_))) => {
                well("this machine", "kernel", format!("its kernel is {release}"))
            }
            _ => odd(
                "this machine",
                "kernel-unknown",
                "its kernel does not tell its number",
                "is /proc mounted?",
            ),
        }
    }

    /// A card: its management function, and who holds its user functions.
    pub(super) fn card(&self, plan: &Plan) -> Vec<Finding> {
        let pci = match &plan.address {
            CardAddress::Pci(pci) => *pci,
            CardAddress::VfioUser(path) => return vec![self.socket(path)],
        };
        let mut found = self.function(pci);
        if let (Some(stated), Some(has)) = (&plan.serial, self.serial(pci)) {
            found.push(if *stated == has {
                well(pci.to_string(), "serial", "it has the serial number that host.toml states")
            } else {
                wrong(
                    pci.to_string(),
                    "other-card",
                    format!("its serial number is {has}, and host.toml states {stated}"),
                    "is this the card that you mean? Slots change their numbers when others are filled",
                )
            });
        }
        for (region, functions) in &plan.regions {
            for function in functions {
                if let CardAddress::Pci(function) = function {
                    found.push(self.user_function(*function, region));
                }
            }
        }
        found
    }

    fn socket(&self, path: &Path) -> Finding {
        let there = self.path(&path.to_string_lossy()).exists();
        if there {
            return well(
                path.display().to_string(),
                "socket",
                "somebody serves the card there",
            );
        }
        wrong(
            path.display().to_string(),
            "no-socket",
            "nobody serves a card there",
            "start what serves it",
        )
    }

    /// A function that is to be opened through VFIO.
    fn function(&self, pci: PciAddress) -> Vec<Finding> {
        let name = pci.to_string();
        let folder = format!("/sys/bus/pci/devices/{name}");
        if !self.path(&folder).exists() {
            return vec![wrong(
                pci.to_string(),
                "no-function",
                "there is no such PCI function",
                "compare with `lspci -D`; `echo 1 > /sys/bus/pci/rescan` looks again",
            )];
        }
        let mut found = Vec::new();
        let bind = BIND.replace("ADDRESS", &name);
        match self.driver(&name).as_deref() {
            Some("vfio-pci") => {
                found.push(well(pci.to_string(), "bound", "it is bound to vfio-pci"));
                let chosen = self.text(&format!("{folder}/driver_override"));
                if chosen.as_deref() != Some("vfio-pci") {
                    found.push(odd(
                        pci.to_string(),
                        "not-overridden",
                        "nothing keeps another driver from it at the next boot",
                        bind,
                    ));
                }
            }
            Some(other) => found.push(wrong(
                pci.to_string(),
                "other-driver",
                format!("the driver {other} has it"),
                bind,
            )),
            None => found.push(wrong(
                pci.to_string(),
                "no-driver",
                "no driver has it",
                bind,
            )),
        }
        match self.group(&name) {
            Some(group) => found.extend(self.node(pci, &group)),
            None => found.push(wrong(
                pci.to_string(),
                "no-group",
                "it is in no IOMMU group",
                "turn the IOMMU on",
            )),
        }
        found
    }

    /// The file through which the group is opened.
    fn node(&self, pci: PciAddress, group: &str) -> Option<Finding> {
        let path = format!("/dev/vfio/{group}");
        let mode = fs::metadata(self.path(&path)).ok()?.mode();
        (mode & 0o006 != 0).then(|| {
            wrong(
                pci.to_string(),
                "open-to-all",
                format!("everybody may open {path} (mode {:o})", mode & 0o7777),
                format!("chmod 600 {path}, and mend the udev rule that did it"),
            )
        })
    }

    fn user_function(&self, pci: PciAddress, region: &str) -> Finding {
        let name = pci.to_string();
        if !self.path(&format!("/sys/bus/pci/devices/{name}")).exists() {
            return wrong(
                pci.to_string(),
                "no-user-function",
                format!(
                    "the shell file says that it ends in the region {region}, and it is not there"
                ),
                "correct the shell file, or make the card's functions appear",
            );
        }
        match self.driver(&name).as_deref() {
            None | Some("vfio-pci") => well(
                pci.to_string(),
                "user-function",
                format!("it ends in the region {region}, and a VM may have it"),
            ),
            Some(other) => odd(
                pci.to_string(),
                "held-by-host",
                format!("the host's driver {other} holds it, which ends in the region {region}"),
                "no VM gets it so: bind it to vfio-pci, or to nothing",
            ),
        }
    }

    /// The serial number, read from configuration space as sysfs gives it.
    fn serial(&self, pci: PciAddress) -> Option<String> {
        let path = self.path(&format!("/sys/bus/pci/devices/{pci}/config"));
        let serial = pci::serial_in(&fs::read(path).ok()?)?;
        let bytes = serial.0.to_be_bytes();
        let pairs: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Some(pairs.join("-"))
    }
}
