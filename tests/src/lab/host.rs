//! A host of ours in a VM: the product's own processes reach the simulated card
//! through the kernel's VFIO, as they would reach a real one.
//!
//! Knows a list of scenarios that runs in the VM ([`inside`]) and, for comparison,
//! process to process without one. Must not know how cards are simulated.

use std::fs;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use card::device::{Bar, Device, DeviceError, DmaMapping, DmaRights, InterruptKind, Space};
use card::vfio::KernelDevice;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use serde_json::{Value, json};
use simcard::functions::ADDER;

use super::{Initramfs, Tree, Vm, script};
use crate::process::{Process, READY_WITHIN, program, run as run_command, wait_for};
use crate::world::{CardSetup, PciPlace, Setup, VmSetup, World};

/// The card of the VM: its functions are QEMU's devices, in their order.
const CARD: PciPlace = PciPlace {
    management: "0000:00:01.0",
    functions: ["0000:00:02.0", "0000:00:03.0"],
    control: "/dev/ttyS1",
};

const ALICE: usize = 0;
const BOB: usize = 1;

/// One thing that a host does with its card.
pub type Scenario = (&'static str, fn(&mut World) -> Result<()>);

/// What every card must go through, however it is reached.
pub const SCENARIOS: &[Scenario] = &[
    ("a guest loads, and its function appears", load),
    ("what is not granted is not loaded", denied),
    (
        "an error of the card quarantines, and a scrub mends",
        mended,
    ),
    ("the card's process dies, and comes back", killed),
    ("a clear leaves nothing", cleared),
];

/// What only a card behind the kernel's VFIO goes through.
const KERNEL: &[Scenario] = &[
    ("one process holds the card", held_once),
    ("a function is reset, interrupts, and reaches memory", calls),
    ("a card bound to nothing says so", unbound),
    ("a card that is taken away comes back", removed),
];

/// A world with one card, which is where `pci` says or simulated here.
#[must_use]
pub fn setup(pci: Option<PciPlace>) -> Setup {
    Setup {
        cards: vec![CardSetup {
            pci,
            ..CardSetup::default()
        }],
        vms: vec![
            VmSetup::new("alice", "blue", 0, 0),
            VmSetup::new("bob", "green", 0, 1),
        ],
        ..Setup::default()
    }
}

/// What runs in the VM. Each scenario is told on a line.
///
/// # Errors
/// The world does not come up. A scenario that fails is told, and no error here.
pub fn inside() -> Result<()> {
    let mut world = World::start(setup(Some(CARD)))?;
    println!("LAB fact regions {}", world.operator(&["regions"])?);
    for (name, play) in SCENARIOS.iter().chain(KERNEL) {
        match play(&mut world) {
            Ok(()) => println!("LAB ok {name}"),
            Err(error) => println!("LAB error {name}: {}", one_line(&error)),
        }
    }
    world.close()
}

fn one_line(error: &anyhow::Error) -> String {
    format!("{error:#}").replace('\n', " / ")
}

/// Boots the VM and gives what it said: a line for each scenario.
///
/// # Errors
/// The VM or the card could not be run, or a scenario failed.
pub fn run(tree: &Tree, folder: &Path) -> Result<Vec<String>> {
    let initramfs = folder.join("initramfs");
    archive(tree, folder)?.write(&initramfs)?;
    let mut card = Command::new(program("reconf-simcard")?);
    let interface = CardSetup::default().interface_id;
    card.args(["--serial", "000a35fffe001000", "--name", "card0"])
        .args(["--interface-id", &interface.to_string(), "--dir"])
        .arg(folder);
    let card = Process::start("reconf-simcard", &mut card, &folder.join("card.log"))?;
    let sockets = ["card0.sock", "card0-vf0.sock", "card0-vf1.sock"].map(|name| folder.join(name));
    let devices: Vec<&Path> = sockets.iter().map(std::path::PathBuf::as_path).collect();
    let lines = Vm {
        tree,
        initramfs: &initramfs,
        devices: &devices,
        control: &folder.join("card0.ctl"),
        console: &folder.join("console"),
        host: true,
    }
    .run(Duration::from_secs(240));
    drop(card);
    lines
}

/// How many lines [`run`] gives for scenarios.
#[must_use]
pub fn count() -> usize {
    SCENARIOS.len().saturating_add(KERNEL.len())
}

/// The product's programs, what they are linked with, and VFIO's modules.
fn archive(tree: &Tree, folder: &Path) -> Result<Initramfs> {
    let mut archive = Initramfs::default();
    for name in [
        "bin",
        "dev",
        "lib",
        "lib/x86_64-linux-gnu",
        "lib64",
        "modules",
        "proc",
        "sys",
        "tmp",
    ] {
        archive.folder(name)?;
    }
    archive.copy("bin/busybox", &tree.guest("busybox"))?;
    archive.copy("bin/sh", &tree.guest("busybox"))?;
    archive.file("init", 0o755, &fs::read(script("init"))?)?;
    archive.copy("scenario", &script("vfio-host"))?;
    for module in fs::read_dir(tree.guest("vfio"))? {
        let module = module?;
        let name = module.file_name();
        let name = name.to_str().context("a module's name")?;
        archive.copy(&format!("modules/{name}"), &module.path())?;
    }
    let mut libraries = std::collections::BTreeSet::new();
    for name in [
        "reconfd",
        "reconf-card",
        "reconf",
        "reconfctl",
        "reconf-chardev",
        "reconf-lab-host",
    ] {
        let from = program(name)?;
        // Without what is for debuggers: a VM unpacks ten times less.
        let slim = folder.join(name);
        let mut strip = Command::new("strip");
        strip.arg("-o").arg(&slim).arg(&from);
        let stripped = run_command(&mut strip, Duration::from_secs(60))?;
        ensure!(stripped.status.success(), "strip {}", from.display());
        archive.copy(&format!("bin/{name}"), &slim)?;
        libraries.extend(linked(&from)?);
    }
    for library in libraries {
        let inside = library.strip_prefix('/').context("an absolute path")?;
        archive.copy(inside, Path::new(&library))?;
    }
    Ok(archive)
}

/// The files that a program is linked with, its loader among them.
fn linked(program: &Path) -> Result<Vec<String>> {
    let mut ldd = Command::new("ldd");
    ldd.arg(program);
    let output = run_command(&mut ldd, Duration::from_secs(60))?;
    let text = String::from_utf8(output.stdout)?;
    let paths = text.lines().filter_map(|line| {
        let (path, _address) = line.trim().rsplit_once(" (")?;
        let path = path.rsplit_once("=> ").map_or(path, |(_name, path)| path);
        path.starts_with('/').then(|| path.to_owned())
    });
    Ok(paths.collect())
}

fn load(world: &mut World) -> Result<()> {
    world.must(ALICE, &["load", "acme/adder"])?;
    let id = world.user_function(ALICE, 0)?.id()?;
    ensure!(id == Some(ADDER), "the guest sees {id:?}");
    let stats = world.card(0)?.stats(0)?;
    ensure!(stats.pr_successes >= 1 && stats.handovers >= 1, "{stats:?}");
    Ok(())
}

fn denied(world: &mut World) -> Result<()> {
    let before = world.card(0)?.stats(1)?;
    let answer = world.ask(BOB, &["load", "acme/adder"])?;
    ensure!(answer.get("ok") == Some(&json!(false)), "{answer}");
    let after = world.card(0)?.stats(1)?;
    ensure!(before.data_words == after.data_words, "words were written");
    Ok(())
}

fn mended(world: &mut World) -> Result<()> {
    let fault = json!({"fault": "pr-error", "bits": ["crc"], "at": "data", "region": 0});
    world.card(0)?.control(&fault)?;
    let answer = world.ask(ALICE, &["load", "acme/counter"])?;
    ensure!(answer.get("ok") == Some(&json!(false)), "{answer}");
    world.card(0)?.control(&json!({"clear": "faults"}))?;
    world.wait_content(ALICE, 0, "blank")?;
    load(world)
}

fn killed(world: &mut World) -> Result<()> {
    let card = world.cards.first_mut().context("no card")?;
    card.process.as_mut().context("no process")?.kill()?;
    world.start_card_process(0)?;
    world.settle()?;
    // It answers whole, or not at all.
    let id = world.user_function(ALICE, 0)?.id()?;
    ensure!(id.is_none() || id == Some(ADDER), "the guest sees {id:?}");
    world.must(ALICE, &["load", "acme/adder", "--force"])?;
    load(world)
}

fn cleared(world: &mut World) -> Result<()> {
    world.must(ALICE, &["clear"])?;
    world.wait_content(ALICE, 0, "blank")?;
    let id = world.user_function(ALICE, 0)?.id()?;
    ensure!(id != Some(ADDER), "the guest still sees it");
    Ok(())
}

/// A second process does not get the group.
fn held_once(_world: &mut World) -> Result<()> {
    match KernelDevice::open(CARD.management.parse()?) {
        Err(DeviceError::Unusable { why, .. }) if why.contains("group") => Ok(()),
        Err(other) => bail!("{other}"),
        Ok(_device) => bail!("two hold the card"),
    }
}

/// Every call of the device trait, on a user function that nobody uses.
fn calls(_world: &mut World) -> Result<()> {
    let mut device = KernelDevice::open(CARD.functions[1].parse()?)?;
    let identity = device.identity().clone();
    ensure!(identity.vendor != 0xffff, "{identity:?}");
    device.reset()?;
    let first = device.load64(Bar::ZERO, 0)?;
    let mut word = [0; 8];
    device.read(Space::Bar(Bar::ZERO), 0, &mut word)?;
    ensure!(
        first == u64::from_le_bytes(word),
        "two ways to one register differ"
    );
    ensure!(
        matches!(
            device.load64(Bar::ZERO, 4),
            Err(DeviceError::Unaligned { .. })
        ),
        "half of two registers"
    );
    let end = device.size(Space::Bar(Bar::ZERO));
    ensure!(
        matches!(
            device.load64(Bar::ZERO, end),
            Err(DeviceError::OutOfRange { .. })
        ),
        "past the end"
    );
    ensure!(device.size(Space::Config) >= 256, "no configuration space");
    interrupts(&mut device)?;
    memory(&mut device)?;
    ensure!(!device.leaving(), "nobody asked for it");
    Ok(())
}

fn interrupts(device: &mut KernelDevice) -> Result<()> {
    let signal = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    let kind = InterruptKind::Msix;
    let vectors = device.interrupts(kind);
    println!("LAB fact vectors {vectors}");
    if vectors > 0 {
        device.set_interrupt(kind, 0, Some(signal.as_fd()))?;
        device.set_interrupt(kind, 0, None)?;
    }
    let none = device.set_interrupt(kind, vectors, Some(signal.as_fd()));
    ensure!(
        matches!(none, Err(DeviceError::NoSuchInterrupt { .. })),
        "{none:?}"
    );
    Ok(())
}

/// Memory is given and taken back once, through the VM's IOMMU.
fn memory(device: &mut KernelDevice) -> Result<()> {
    const SIZE: u64 = 64 << 10;
    let file = memfd_create("dma", MemfdFlags::CLOEXEC)?;
    ftruncate(&file, SIZE)?;
    let mapping = DmaMapping {
        iova: 0x10_0000,
        size: SIZE,
        offset: 0,
        rights: DmaRights::ReadWrite,
    };
    device.dma_map(mapping, file.as_fd())?;
    let twice = device.dma_map(mapping, file.as_fd());
    ensure!(twice.is_err(), "one address for two ranges");
    device.dma_unmap(mapping.iova, SIZE)?;
    ensure!(
        device.dma_unmap(mapping.iova, SIZE).is_err(),
        "taken back twice"
    );
    Ok(())
}

fn unbound(world: &mut World) -> Result<()> {
    let card = world.cards.first_mut().context("no card")?;
    card.process.as_mut().context("no process")?.stop()?;
    card.process = None;
    let address = format!("pci:{}", CARD.management);
    let probe = ["card", "probe", &address];
    let found = world.reconfctl(&probe)?.good()?;
    ensure!(found.stdout.contains("[[region]]"), "{}", found.stdout);
    let driver = Path::new("/sys/bus/pci/drivers/vfio-pci");
    fs::write(driver.join("unbind"), CARD.management)?;
    let said = world.reconfctl(&probe)?;
    ensure!(
        said.code != 0 && said.stderr.contains("has no driver"),
        "{}",
        said.stderr
    );
    fs::write(driver.join("bind"), CARD.management)?;
    world.start_card_process(0)?;
    world.settle()?;
    load(world)?;
    let regions: Value = world.operator(&["regions"])?;
    ensure!(regions.get("regions").is_some(), "{regions}");
    Ok(())
}

/// Removed from sysfs while it is held and programmed: the kernel asks for it, and waits
/// until its process has let it go. Found again, it serves again.
fn removed(world: &mut World) -> Result<()> {
    load(world)?;
    let folder = Path::new("/sys/bus/pci/devices").join(CARD.management);
    let remove = folder.join("remove");
    let removing = std::thread::spawn(move || fs::write(remove, "1"));
    wait_for(
        "the card's process to let the card go",
        READY_WITHIN,
        || {
            let card = world.cards.first_mut().context("no card")?;
            let process = card.process.as_mut().context("no process")?;
            Ok((!process.runs()).then_some(()))
        },
    )?;
    let removed = removing.join();
    ensure!(matches!(removed, Ok(Ok(()))), "{removed:?}");
    ensure!(!folder.exists(), "it is still there");
    let card = world.cards.first_mut().context("no card")?;
    let log = card.process.as_mut().context("no process")?.log_text();
    ensure!(log.contains("wants it back"), "{log}");
    card.process = None;
    // The guest is told that it cannot be served now, and not that all is well.
    let answer = world.ask(ALICE, &["load", "acme/counter", "--no-wait"])?;
    ensure!(answer.get("ok") == Some(&json!(false)), "{answer}");
    fs::write("/sys/bus/pci/rescan", "1")?;
    fs::write(folder.join("driver_override"), "vfio-pci")?;
    fs::write("/sys/bus/pci/drivers_probe", CARD.management)?;
    world.start_card_process(0)?;
    world.settle()?;
    world.must(ALICE, &["load", "acme/adder", "--force"])?;
    load(world)
}
