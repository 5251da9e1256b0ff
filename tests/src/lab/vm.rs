//! A lab VM: QEMU with the simulated card in it, and what the VM says.
//!
//! Knows QEMU's arguments and lines that begin with `LAB `. Must not know what
//! a scenario asks.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::Tree;
use crate::process::run;

/// What QEMU is started with, beside the tree's own.
#[derive(Debug)]
pub struct Vm<'a> {
    /// The tree that QEMU and the kernel come from.
    pub tree: &'a Tree,
    /// The VM's root file system.
    pub initramfs: &'a Path,
    /// vfio-user sockets, one PCI device each, on bus 0 from slot 1 on.
    pub devices: &'a [&'a Path],
    /// A socket that the VM reaches as its second serial port.
    pub control: &'a Path,
    /// The file that gets the console.
    pub console: &'a Path,
    /// It has an IOMMU, and more memory: a host of ours rather than a guest.
    pub host: bool,
}

impl Vm<'_> {
    /// Boots, waits until the VM powers off, and gives its `LAB` lines without
    /// that word.
    ///
    /// # Errors
    /// It does not end in time, or not with the line `LAB end`; the console is told.
    pub fn run(&self, within: Duration) -> Result<Vec<String>> {
        let mut command = self.tree.qemu();
        let memory = if self.host { "1G" } else { "512M" };
        let mut words = "console=ttyS0 quiet panic=-1".to_owned();
        command
            .args(["-nodefaults", "-no-user-config", "-no-reboot", "-nographic"])
            .args(["-machine", "q35,memory-backend=m0", "-accel", "tcg"])
            .args(["-cpu", "max", "-smp", "2", "-m", memory, "-monitor", "none"])
            .arg("-object")
            .arg(format!("memory-backend-memfd,id=m0,size={memory},share=on"));
        if self.host {
            // QEMU has no device's DMA mapped without caching mode.
            command.args(["-device", "intel-iommu,intremap=on,caching-mode=on"]);
            words.push_str(" intel_iommu=on");
        }
        command
            .arg("-chardev")
            .arg(path_option("file,id=console,path=", self.console)?)
            .args(["-serial", "chardev:console"])
            .arg("-chardev")
            .arg(path_option("socket,id=control,path=", self.control)?)
            .args(["-serial", "chardev:control"])
            .arg("-kernel")
            .arg(self.tree.guest("vmlinuz"))
            .arg("-initrd")
            .arg(self.initramfs)
            .args(["-append", &words]);
        for (index, device) in self.devices.iter().enumerate() {
            let path = device.to_str().context("a socket's path")?;
            let slot = index.saturating_add(1);
            let device = serde_json::json!({
                "driver": "vfio-user-pci",
                "id": format!("card{index}"),
                "addr": format!("{slot:x}.0"),
                "socket": { "type": "unix", "path": path },
            });
            command.arg("-device").arg(device.to_string());
        }
        let output = run(&mut command, within);
        let console = fs::read(self.console).unwrap_or_default();
        let text = String::from_utf8_lossy(&console).into_owned();
        let output = output.with_context(|| text.clone())?;
        if !output.status.success() {
            let words = String::from_utf8_lossy(&output.stderr);
            bail!("QEMU: {}\n{words}\n{text}", output.status);
        }
        let lines: Vec<String> = text
            .lines()
            .filter_map(|line| line.trim_end().split_once("LAB "))
            .map(|(_, said)| said.to_owned())
            .collect();
        ensure!(
            lines.last().is_some_and(|line| line == "end"),
            "the VM did not come to its end:\n{text}"
        );
        if let Some(error) = lines.iter().find(|line| line.starts_with("error ")) {
            bail!("{error}\n{text}");
        }
        Ok(lines)
    }
}

/// QEMU takes commas as separators; our paths have none.
fn path_option(before: &str, path: &Path) -> Result<String> {
    let path = path.to_str().context("a path")?;
    ensure!(!path.contains(','), "a comma in {path}");
    Ok(format!("{before}{path}"))
}

impl Tree {
    /// The tree's QEMU, run without chroot, so that sockets are where we see them.
    fn qemu(&self) -> Command {
        let under = |path: &str| self.root().join(path);
        let mut command = Command::new(under("lib64/ld-linux-x86-64.so.2"));
        let libraries = under("usr/lib/x86_64-linux-gnu");
        let pulse = libraries.join("pulseaudio");
        command
            .arg("--library-path")
            .arg(format!("{}:{}", libraries.display(), pulse.display()))
            .args(["--argv0", "qemu-system-x86_64"])
            .arg(under("usr/bin/qemu-system-x86_64"));
        for data in ["usr/share/qemu", "usr/share/seabios", "usr/lib/ipxe/qemu"] {
            command.arg("-L").arg(under(data));
        }
        command
    }
}
