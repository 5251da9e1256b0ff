//! A whole host in a temporary directory: real processes, a simulated card,
//! real sockets; no root, no hardware, no VM.
//!
//! Knows how everything is put together. Must not know what a test wants of it.

mod card;
mod files;
mod leaks;
pub mod partial;
mod publisher;
mod registers;
pub mod setup;
mod vm;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

pub use card::{Card, FrameRange, RegionStats};
pub use files::Places;
pub use partial::Partial;
pub use publisher::{Publisher, bitstream_file};
pub use registers::{Before, SHUT, UserFunction};
pub use setup::{
    CardKind, CardSetup, Channel, HwicapRegion, HwicapSetup, ImageSetup, PciPlace, Setup, VmSetup,
};
pub use vm::{Vm, guest_pci};

use crate::process::{self, Process, READY_WITHIN, program, wait_for};

/// A command may take this long before a test gives it up.
const COMMAND_WITHIN: Duration = Duration::from_secs(60);

/// The whole host. Its processes end when it is dropped.
#[derive(Debug)]
pub struct World {
    // In the order in which they should go.
    daemon: Option<Process>,
    /// The VMs.
    pub vms: Vec<Vm>,
    /// The cards.
    pub cards: Vec<Card>,
    /// Who signs the images.
    pub publisher: Publisher,
    /// Where everything lies.
    pub places: Places,
    /// What it was made from.
    pub setup: Setup,
    _dir: tempfile::TempDir,
}

/// What a command did.
#[derive(Debug, Clone)]
pub struct Ran {
    /// Its exit code; -1 if a signal ended it.
    pub code: i32,
    /// What it printed.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
}

impl Ran {
    /// Each line of output as JSON.
    ///
    /// # Errors
    /// A line is none.
    pub fn json_lines(&self) -> Result<Vec<Value>> {
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).with_context(|| format!("not JSON: {line}")))
            .collect()
    }

    /// The last line of output as JSON: the result.
    ///
    /// # Errors
    /// There is none.
    pub fn json(&self) -> Result<Value> {
        self.json_lines()?
            .pop()
            .with_context(|| format!("printed nothing; {}", self.stderr))
    }

    /// Passes the result on if the command ended well.
    ///
    /// # Errors
    /// It did not.
    pub fn good(self) -> Result<Self> {
        ensure!(
            self.code == 0,
            "exit code {}: {}{}",
            self.code,
            self.stdout,
            self.stderr
        );
        Ok(self)
    }
}

impl World {
    /// Makes a world, and waits until every part of it is ready.
    ///
    /// # Errors
    /// A part does not come up; its log is told.
    pub fn start(setup: Setup) -> Result<Self> {
        let mut world = Self::make(setup)?;
        for number in 0..world.cards.len() {
            world.start_card_process(number)?;
        }
        world.start_daemon()?;
        // A VM that comes before the first scrub would find its region held.
        world.settle()?;
        for number in 0..world.vms.len() {
            world.attach(number)?;
        }
        world.settle()?;
        Ok(world)
    }

    /// Waits until no region is unknown: a new card's regions are made blank first.
    ///
    /// # Errors
    /// One stays so.
    pub fn settle(&self) -> Result<()> {
        wait_for("every region to be blank or active", READY_WITHIN, || {
            let answer = self.operator(&["regions"])?;
            let regions = answer
                .get("regions")
                .and_then(Value::as_array)
                .context("no regions")?;
            let settled = regions.iter().all(|region| {
                let content = region.get("content").and_then(Value::as_str);
                matches!(content, Some("blank" | "active"))
                    && region.get("job").is_none_or(Value::is_null)
            });
            Ok(settled.then_some(()))
        })
    }

    /// Makes everything but the product's processes: files, cards, VMs, the enrolled root.
    ///
    /// # Errors
    /// A part does not come up.
    pub fn make(setup: Setup) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("reconf-").tempdir()?;
        let places = Places {
            root: dir.path().to_owned(),
        };
        places.make()?;
        files::write(&places, &setup)?;
        let publisher = publish(&places, &setup)?;
        let mut cards = Vec::new();
        for (number, card) in setup.cards.iter().enumerate() {
            cards.push(Card::start(number, card, &places.cards(), &places.logs())?);
        }
        let mut vms = Vec::new();
        for (number, vm) in setup.vms.iter().enumerate() {
            vms.push(Vm::start(number, vm, &places)?);
        }
        let world = Self {
            daemon: None,
            vms,
            cards,
            publisher,
            places,
            setup,
            _dir: dir,
        };
        world.enrol()?;
        Ok(world)
    }

    fn enrol(&self) -> Result<()> {
        let root = self.places.root.join("root.json");
        std::fs::write(&root, self.publisher.root()?)?;
        self.reconfctl(&["trust", "enrol", &root.to_string_lossy()])?
            .good()?;
        Ok(())
    }

    /// Starts `reconf-card` for a card.
    ///
    /// # Errors
    /// It does not become ready.
    pub fn start_card_process(&mut self, number: usize) -> Result<()> {
        let host_file = self.places.host_file();
        let log = self.places.logs().join(format!("reconf-card{number}.log"));
        let card = self.cards.get_mut(number).context("no such card")?;
        let mut command = Command::new(program("reconf-card")?);
        command.arg("--host-file").arg(host_file).args([
            "--card",
            &card.address(),
            "--print-ready",
        ]);
        card.process = Some(Process::start("reconf-card", &mut command, &log)?);
        Ok(())
    }

    /// Starts `reconfd`.
    ///
    /// # Errors
    /// It does not become ready.
    pub fn start_daemon(&mut self) -> Result<()> {
        let log = self.places.logs().join("reconfd.log");
        let mut command = Command::new(program("reconfd")?);
        command
            .arg("--host-file")
            .arg(self.places.host_file())
            .arg("--print-ready");
        self.daemon = Some(Process::start("reconfd", &mut command, &log)?);
        Ok(())
    }

    /// `reconfd`.
    ///
    /// # Errors
    /// It was not started.
    pub fn daemon(&mut self) -> Result<&mut Process> {
        self.daemon.as_mut().context("reconfd was not started")
    }

    /// Kills `reconfd` as a crash would.
    ///
    /// # Errors
    /// It was not started.
    pub fn kill_daemon(&mut self) -> Result<()> {
        self.daemon()?.kill()?;
        self.daemon = None;
        Ok(())
    }

    /// Registers a VM with `reconfd`, as a hook or an operator would.
    ///
    /// # Errors
    /// `reconfd` says no.
    pub fn attach(&self, vm: usize) -> Result<()> {
        let vm = self.vm(vm)?;
        let functions = self.functions(vm)?;
        self.reconfctl(&vm.attach_arguments(&functions))?.good()?;
        Ok(())
    }

    fn functions(&self, vm: &Vm) -> Result<Vec<String>> {
        let function = |(card, region): &(usize, usize)| Ok(self.card(*card)?.function(*region));
        vm.setup.regions.iter().map(function).collect()
    }

    /// A VM by number.
    ///
    /// # Errors
    /// There is none.
    pub fn vm(&self, number: usize) -> Result<&Vm> {
        self.vms.get(number).context("no such VM")
    }

    /// A card by number.
    ///
    /// # Errors
    /// There is none.
    pub fn card(&self, number: usize) -> Result<&Card> {
        self.cards.get(number).context("no such card")
    }

    /// The command line of `reconf` in a VM.
    ///
    /// # Errors
    /// The program or the VM is missing.
    pub fn guest_command(&self, vm: usize, args: &[&str]) -> Result<Command> {
        let mut command = Command::new(program("reconf")?);
        command
            .args(args)
            .env("RECONF_CHANNEL", &self.vm(vm)?.port)
            .env("NO_COLOR", "1");
        Ok(command)
    }

    /// Runs `reconf` in a VM.
    ///
    /// # Errors
    /// It cannot be run, or does not end.
    pub fn reconf(&self, vm: usize, args: &[&str]) -> Result<Ran> {
        ran(&mut self.guest_command(vm, args)?)
    }

    /// Runs `reconf --json` in a VM and gives its result.
    ///
    /// # Errors
    /// It cannot be run, or printed no JSON.
    pub fn ask(&self, vm: usize, args: &[&str]) -> Result<Value> {
        self.reconf(vm, &[args, &["--json"]].concat())?.json()
    }

    /// Runs `reconf` in a VM, and insists that it goes well.
    ///
    /// # Errors
    /// It does not.
    pub fn must(&self, vm: usize, args: &[&str]) -> Result<Value> {
        self.reconf(vm, &[args, &["--json"]].concat())?
            .good()?
            .json()
    }

    /// The command line of `reconfctl`.
    ///
    /// # Errors
    /// The program is missing.
    pub fn operator_command(&self, args: &[impl AsRef<str>]) -> Result<Command> {
        let mut command = Command::new(program("reconfctl")?);
        command.args(args.iter().map(AsRef::as_ref));
        command
            .env("RECONF_HOST_FILE", self.places.host_file())
            .env("NO_COLOR", "1");
        Ok(command)
    }

    /// Runs `reconfctl`.
    ///
    /// # Errors
    /// It cannot be run, or does not end.
    pub fn reconfctl(&self, args: &[impl AsRef<str>]) -> Result<Ran> {
        ran(&mut self.operator_command(args)?)
    }

    /// Runs `reconfctl --json` and gives its answer.
    ///
    /// # Errors
    /// It cannot be run, or printed no JSON.
    pub fn operator(&self, args: &[&str]) -> Result<Value> {
        self.reconfctl(&[args, &["--json"]].concat())?.json()
    }

    /// The region of a VM's slot as the operator sees it.
    ///
    /// # Errors
    /// `reconfd` does not tell it.
    pub fn region_of(&self, vm: usize, slot: usize) -> Result<Value> {
        let uuid = self.vm(vm)?.uuid.to_string();
        let answer = self.operator(&["regions"])?;
        let regions = answer
            .get("regions")
            .and_then(Value::as_array)
            .context("no regions")?;
        let mine = |region: &&Value| {
            region.get("vm").and_then(Value::as_str) == Some(&uuid)
                && region.get("slot").and_then(Value::as_u64) == u64::try_from(slot).ok()
        };
        regions
            .iter()
            .find(mine)
            .cloned()
            .context("the VM's region is not listed")
    }

    /// Waits until the region of a VM's slot has this content.
    ///
    /// # Errors
    /// It does not come to it in time.
    pub fn wait_content(&self, vm: usize, slot: usize, content: &str) -> Result<Value> {
        wait_for(&format!("the region to be {content}"), READY_WITHIN, || {
            let region = self.region_of(vm, slot)?;
            let is = region.get("content").and_then(Value::as_str) == Some(content);
            Ok(is.then_some(region))
        })
    }

    /// The audit trail, oldest first.
    ///
    /// # Errors
    /// `reconfd` does not tell it.
    pub fn audit(&self) -> Result<Vec<Value>> {
        let answer = self.operator(&["audit", "--last", "1000"])?;
        let records = answer.get("audit").and_then(Value::as_array);
        Ok(records.context("no audit trail")?.clone())
    }

    /// The user function behind a VM's slot, as its guest would reach it.
    ///
    /// # Errors
    /// It does not answer.
    pub fn user_function(&self, vm: usize, slot: usize) -> Result<UserFunction> {
        let vm = self.vm(vm)?;
        let (card, region) = vm.setup.regions.get(slot).context("no such slot")?;
        let before = match self.setup.cards.get(*card).map(|card| &card.kind) {
            Some(CardKind::Hwicap(_)) => Before::Nothing,
            Some(CardKind::Dfl) | None => Before::Port,
        };
        UserFunction::behind(&self.card(*card)?.function(*region), before)
    }

    /// Ends the world, after looking for what a guest must never see (INV3).
    ///
    /// # Errors
    /// A guest saw something.
    pub fn close(self) -> Result<()> {
        leaks::check(&self)
    }

    /// Where it lies.
    #[must_use]
    pub fn dir(&self) -> PathBuf {
        self.places.root.clone()
    }
}

fn publish(places: &Places, setup: &Setup) -> Result<Publisher> {
    let mut publisher = Publisher::new(&places.repository())?;
    let mut interfaces: Vec<_> = setup.cards.iter().map(|card| card.interface_id).collect();
    interfaces.sort();
    interfaces.dedup();
    for image in &setup.images {
        publisher.add(image, &interfaces)?;
    }
    publisher.publish(setup.good_for)?;
    Ok(publisher)
}

fn ran(command: &mut Command) -> Result<Ran> {
    let output = process::run(command, COMMAND_WITHIN)?;
    Ok(Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}
