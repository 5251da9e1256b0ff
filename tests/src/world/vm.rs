//! A VM, as far as reconf sees one: a port that a guest opens, and user functions.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use uuid::Uuid;

use super::setup::{Channel, VmSetup};
use crate::process::{Process, program};

/// A VM.
#[derive(Debug)]
pub struct Vm {
    /// What it was made from.
    pub setup: VmSetup,
    /// Its UUID.
    pub uuid: Uuid,
    /// The end of its channel where the host is.
    pub host_end: PathBuf,
    /// Where guest processes open its port.
    pub port: PathBuf,
    /// Every byte that a guest received.
    pub received: PathBuf,
    /// What plays QEMU.
    pub qemu: Process,
}

impl Vm {
    /// Starts the VM's character device.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(number: usize, setup: &VmSetup, world: &super::Places) -> Result<Self> {
        let uuid = Uuid::from_u128(
            0x7a31_c94e_0000_4d52_9e88_1d0c_b3f2_0000_u128.saturating_add(u128::try_from(number)?),
        );
        let port = world.vms().join(number.to_string());
        let host_end = match setup.channel {
            Channel::HostListens => world.run().join(format!("vm/{uuid}/org.reconf.0")),
            Channel::VmListens => world.vms().join(format!("{number}.host")),
        };
        let received = world.vms().join(format!("{number}.received"));
        let log = world.logs().join(format!("vm{number}.log"));
        let qemu = start_qemu(setup, &host_end, &port, &received, &log)?;
        Ok(Self {
            setup: setup.clone(),
            uuid,
            host_end,
            port,
            received,
            qemu,
        })
    }

    /// The arguments of `reconfctl vm attach` for this VM, whose functions are given.
    #[must_use]
    pub fn attach_arguments(&self, functions: &[String]) -> Vec<String> {
        let mut args = vec!["vm".into(), "attach".into(), self.uuid.to_string()];
        args.extend(["--tenant".into(), self.setup.tenant.into()]);
        args.extend(["--name".into(), self.setup.name.into()]);
        for (slot, function) in functions.iter().enumerate() {
            args.extend([
                "--function".into(),
                format!("{function}={}", guest_pci(slot)),
            ]);
        }
        match self.setup.channel {
            Channel::HostListens => args.push("--listen".into()),
            Channel::VmListens => {
                args.extend(["--connect".into(), self.host_end.display().to_string()]);
            }
        }
        args.extend(["--pid".into(), self.qemu.pid().to_string()]);
        args
    }
}

/// Where a guest sees the function of a slot.
#[must_use]
pub fn guest_pci(slot: usize) -> String {
    format!("0000:00:{:02x}.0", slot.saturating_add(5))
}

fn start_qemu(
    setup: &VmSetup,
    host_end: &Path,
    port: &Path,
    received: &Path,
    log: &Path,
) -> Result<Process> {
    let mut command = Command::new(program("reconf-chardev")?);
    command.arg(match setup.channel {
        Channel::HostListens => "--connect",
        Channel::VmListens => "--listen",
    });
    command
        .arg(host_end)
        .arg("--guest")
        .arg(port)
        .arg("--record")
        .arg(received);
    Process::start(setup.name, &mut command, log)
}
