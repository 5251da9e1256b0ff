//! The files that people write, for a world.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use super::publisher::bitstream_file;
use super::setup::{CardKind, CardSetup, HwicapSetup, REGIONS, Setup};
use anyhow::Result;

/// Where everything of a world lies.
#[derive(Debug, Clone)]
pub struct Places {
    /// The world's own directory.
    pub root: PathBuf,
}

impl Places {
    /// `host.toml`.
    #[must_use]
    pub fn host_file(&self) -> PathBuf {
        self.root.join("etc/host.toml")
    }

    /// `grants.toml`.
    #[must_use]
    pub fn grants(&self) -> PathBuf {
        self.root.join("etc/grants.toml")
    }

    /// The signed list and its bitstreams.
    #[must_use]
    pub fn repository(&self) -> PathBuf {
        self.root.join("repo")
    }

    /// What survives a reboot.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.root.join("state")
    }

    /// What does not.
    #[must_use]
    pub fn run(&self) -> PathBuf {
        self.root.join("run")
    }

    /// The cards' sockets.
    #[must_use]
    pub fn cards(&self) -> PathBuf {
        self.root.join("cards")
    }

    /// The VMs' ports.
    #[must_use]
    pub fn vms(&self) -> PathBuf {
        self.root.join("vm")
    }

    /// What the processes say.
    #[must_use]
    pub fn logs(&self) -> PathBuf {
        self.root.join("log")
    }

    /// Makes every directory.
    ///
    /// # Errors
    /// One cannot be made.
    pub fn make(&self) -> Result<()> {
        let shells = self.root.join("etc/shells");
        for dir in [
            shells,
            self.state(),
            self.run(),
            self.cards(),
            self.vms(),
            self.logs(),
        ] {
            fs::create_dir_all(dir)?;
        }
        Ok(())
    }
}

/// Writes host.toml, the shell files, the blank images and grants.toml.
///
/// # Errors
/// A file cannot be written.
pub(super) fn write(places: &Places, setup: &Setup) -> Result<()> {
    fs::write(places.host_file(), host(places, setup)?)?;
    for (number, card) in setup.cards.iter().enumerate() {
        let shell = shell(places, number, card)?;
        fs::write(
            places.root.join(format!("etc/shells/card{number}.toml")),
            shell,
        )?;
    }
    fs::write(places.grants(), grants(setup)?)?;
    Ok(())
}

fn host(places: &Places, setup: &Setup) -> Result<String> {
    let mut text = format!(
        "[host]\nstate_dir = {:?}\nrun_dir = {:?}\nrepository = {:?}\ngrants = \"grants.toml\"\nlog = \"debug\"\n",
        places.state(),
        places.run(),
        places.repository()
    );
    for (number, card) in setup.cards.iter().enumerate() {
        let address =
            super::card::address(&places.cards(), &format!("card{number}"), card.pci.as_ref());
        let engine = match &card.kind {
            CardKind::Dfl => "dfl",
            CardKind::Hwicap(_) => "hwicap",
        };
        write!(
            text,
            "\n[[card]]\naddress = {address:?}\nengine = {engine:?}\nshell = \"shells/card{number}.toml\"\n"
        )?;
    }
    if !setup.limits.is_empty() {
        write!(text, "\n[limits]\n{}\n", setup.limits.join("\n"))?;
    }
    Ok(text)
}

fn shell(places: &Places, number: usize, card: &CardSetup) -> Result<String> {
    match &card.kind {
        CardKind::Dfl => dfl_shell(places, number, card),
        CardKind::Hwicap(design) => hwicap_shell(places, number, card, design),
    }
}

fn dfl_shell(places: &Places, number: usize, card: &CardSetup) -> Result<String> {
    let interface = card.interface_id;
    let file = bitstream_file(interface, simcard::functions::BLANK, "blank", card.blank)?;
    let name = format!("blank-card{number}.gbs");
    fs::write(places.root.join("etc/shells").join(&name), &file)?;
    let digest = policy::ids::Digest::of(&file);
    let rate = rate(&card.rate)?;
    let mut text = format!("name = \"simulated card {number}\"\n");
    for (port, region) in REGIONS.iter().enumerate() {
        let function = function(places, number, card, port);
        write!(
            text,
            "\n[[region]]\nname = \"{region}\"\nport = {port}\ninterface_id = \"{interface}\"\n\
             region_type = \"example.com/simulated\"\n\
             user_functions = [{function:?}]\n\
             blank = {{ path = \"{name}\", sha256 = \"{digest}\" }}\n{rate}",
        )?;
    }
    Ok(text)
}

fn function(places: &Places, number: usize, card: &CardSetup, port: usize) -> String {
    let name = format!("card{number}");
    super::card::function(&places.cards(), &name, card.pci.as_ref(), port)
}

/// Registers where the simulated card has them.
fn hwicap_shell(
    places: &Places,
    number: usize,
    card: &CardSetup,
    design: &HwicapSetup,
) -> Result<String> {
    let rate = rate(&card.rate)?;
    let blank_function = simcard::functions::BLANK;
    let mut text = format!(
        "name = \"simulated card {number}\"\ndevice = {:?}\n\n[hwicap]\nbar = 0\noffset = 0x10000\n",
        design.device
    );
    for (port, (name, region)) in REGIONS.iter().zip(&design.regions).enumerate() {
        let blank = format!("blank-card{number}-{name}.bit");
        fs::write(places.root.join("etc/shells").join(&blank), &region.blank)?;
        let digest = policy::ids::Digest::of(&region.blank);
        let function = function(places, number, card, port);
        write!(
            text,
            "\n[[region]]\nname = \"{name}\"\nport = {port}\ninterface_id = \"{}\"\n\
             region_type = \"example.com/simulated\"\n\
             user_functions = [{function:?}]\n\
             blank = {{ path = \"{blank}\", sha256 = \"{digest}\", function_id = \"{blank_function}\" }}\n\
             fence = \"required\"\nframes = {:?}\n\
             decoupler = {}\nidentity = {}\n{rate}",
            region.interface_id,
            region.frames,
            0x2_0000 | port << 12,
            0x3_0000 | port << 12,
        )?;
    }
    Ok(text)
}

/// The line of a shell file for a simulator's rate. A quarter of it: the
/// deadline of a load follows from this line, and the machine may be busy.
fn rate(simulated: &str) -> Result<String> {
    Ok(match simulated.parse()? {
        simcard::Rate::Instant => String::new(),
        simcard::Rate::BytesPerSecond(bytes) => {
            format!("rate = \"{} kB/s\"\n", bytes.div_ceil(4000))
        }
    })
}

fn grants(setup: &Setup) -> Result<String> {
    let mut text = String::new();
    for (tenant, _) in &setup.grants {
        write!(text, "[[tenant]]\nname = \"{tenant}\"\n\n")?;
    }
    for (tenant, images) in &setup.grants {
        write!(
            text,
            "[[grant]]\ntenant = \"{tenant}\"\nimages = {images:?}\n\n"
        )?;
    }
    Ok(text)
}
