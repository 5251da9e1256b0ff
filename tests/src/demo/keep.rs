//! `--keep`: the world goes on, and the reader takes over.

use std::io::Write;

use anyhow::Result;

use super::story::{ALICE, BOB};
use crate::process::{self, program};
use crate::world::World;

/// Prints what to type, and waits to be told to end.
pub(super) fn until_told(world: &World, mut out: impl Write) -> Result<()> {
    let (reconf, reconfctl) = (program("reconf")?, program("reconfctl")?);
    writeln!(out, "\nEverything goes on running. In another terminal:\n")?;
    for (vm, commands) in [
        (
            ALICE,
            &["list", "load acme/counter", "describe", "watch"][..],
        ),
        (BOB, &["list", "load acme/adder:1.0"][..]),
    ] {
        let vm = world.vm(vm)?;
        writeln!(out, "  # as the guest of {}", vm.setup.name)?;
        writeln!(out, "  export RECONF_CHANNEL={}", vm.port.display())?;
        for command in commands {
            writeln!(out, "  {} {command}", reconf.display())?;
        }
        writeln!(out)?;
    }
    writeln!(out, "  # as the operator of the host")?;
    writeln!(
        out,
        "  export RECONF_HOST_FILE={}",
        world.places.host_file().display()
    )?;
    for command in [
        "status",
        "regions",
        "vms",
        "audit",
        "stop --reason lunch",
        "resume",
    ] {
        writeln!(out, "  {} {command}", reconfctl.display())?;
    }
    writeln!(
        out,
        "\n  # the card, from behind: {}",
        world.places.cards().display()
    )?;
    writeln!(
        out,
        "  # what the processes say: {}",
        world.places.logs().display()
    )?;
    writeln!(
        out,
        "\nCtrl-C, or `kill {}`, ends it and removes all of it.",
        std::process::id()
    )?;
    out.flush()?;
    process::wait_for_signal();
    Ok(())
}
