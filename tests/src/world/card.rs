//! A simulated card, and the process that holds it.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use bitstream::device::Family;
use serde_json::{Value, json};

use super::setup::{CardKind, CardSetup, PciPlace};
use crate::process::{Process, READY_WITHIN, program};

/// A card: the simulator, and `reconf-card` while it runs.
#[derive(Debug)]
pub struct Card {
    name: String,
    dir: PathBuf,
    pci: Option<PciPlace>,
    /// The card itself, where it is a simulator of ours.
    pub simulator: Option<Process>,
    /// Its process.
    pub process: Option<Process>,
}

impl Card {
    /// Starts the simulator of card `number`, with its sockets in `dir`.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(number: usize, setup: &CardSetup, dir: &Path, logs: &Path) -> Result<Self> {
        let name = format!("card{number}");
        if setup.pci.is_some() {
            return Ok(Self {
                name,
                dir: dir.to_owned(),
                pci: setup.pci.clone(),
                simulator: None,
                process: None,
            });
        }
        let mut command = Command::new(program("reconf-simcard")?);
        command.arg("--dir").arg(dir).args(["--name", &name]);
        command.args(["--serial", &format!("{:016x}", serial(number))]);
        command.args(["--rate", &setup.rate]);
        match &setup.kind {
            CardKind::Dfl => {
                command.args(["--interface-id", &setup.interface_id.to_string()]);
            }
            CardKind::Hwicap(design) => {
                command.args(["--shape", "hwicap", "--device", &design.device]);
                command.arg("--geometry").arg(geometry_of(&design.device)?);
            }
        }
        if !setup.table.is_empty() {
            let table = dir.join(format!("{name}.table"));
            std::fs::write(&table, &setup.table)?;
            command.arg("--table").arg(table);
        }
        let log = logs.join(format!("{name}.log"));
        let simulator = Process::start(&name, &mut command, &log)?;
        Ok(Self {
            name,
            dir: dir.to_owned(),
            pci: None,
            simulator: Some(simulator),
            process: None,
        })
    }

    /// Its address, as host.toml names it.
    #[must_use]
    pub fn address(&self) -> String {
        address(&self.dir, &self.name, self.pci.as_ref())
    }

    /// The address of the user function of a region.
    #[must_use]
    pub fn function(&self, region: usize) -> String {
        function(&self.dir, &self.name, self.pci.as_ref(), region)
    }

    /// Says one object to the card from behind, past all registers.
    ///
    /// # Errors
    /// The card does not answer, or says no.
    pub fn control(&self, line: &Value) -> Result<Value> {
        let mut answer = String::new();
        let words = format!("{line}\n");
        if let Some(pci) = &self.pci {
            let mut port = File::options().read(true).write(true).open(pci.control)?;
            port.write_all(words.as_bytes())?;
            BufReader::new(port).read_line(&mut answer)?;
        } else {
            let path = self.dir.join(format!("{}.ctl", self.name));
            let mut stream = UnixStream::connect(&path).context("the card's control socket")?;
            stream.set_read_timeout(Some(READY_WITHIN))?;
            stream.write_all(words.as_bytes())?;
            BufReader::new(stream).read_line(&mut answer)?;
        }
        let answer: Value = serde_json::from_str(&answer).context("the card's answer")?;
        ensure!(
            answer.get("ok") == Some(&Value::Bool(true)),
            "{line}: {answer}"
        );
        Ok(answer)
    }

    /// What happened in a region, counted by the card.
    ///
    /// # Errors
    /// The card does not answer.
    pub fn stats(&self, region: usize) -> Result<RegionStats> {
        let answer = self.control(&json!({"get": "stats"}))?;
        let region = answer.pointer(&format!("/stats/regions/{region}"));
        Ok(serde_json::from_value(
            region.context("no such region")?.clone(),
        )?)
    }

    /// What a region is now, as the card knows it.
    ///
    /// # Errors
    /// The card does not answer.
    pub fn region(&self, region: usize) -> Result<Value> {
        let answer = self.control(&json!({"get": "state"}))?;
        let region = answer.pointer(&format!("/state/regions/{region}"));
        Ok(region.context("no such region")?.clone())
    }

    /// The frames that were written since [`Card::forget_frames`], but for mask frames.
    ///
    /// # Errors
    /// The card does not answer, or knows no frames.
    pub fn written_frames(&self) -> Result<Vec<FrameRange>> {
        let answer = self.control(&json!({"get": "frames"}))?;
        let ranges = answer.pointer("/frames/ranges").context("no frames")?;
        Ok(serde_json::from_value(ranges.clone())?)
    }

    /// Has the card forget which frames were written.
    ///
    /// # Errors
    /// The card does not answer, or knows no frames.
    pub fn forget_frames(&self) -> Result<()> {
        self.control(&json!({"do": "mark"})).map(|_answer| ())
    }

    /// A count of an AMD card: `words` that its configuration logic took, `frames_while_coupled`
    /// and others.
    ///
    /// # Errors
    /// The card does not answer, or does not count it.
    pub fn hwicap_count(&self, name: &str) -> Result<u64> {
        let answer = self.control(&json!({"get": "stats"}))?;
        let count = answer.pointer(&format!("/stats/hwicap/{name}"));
        count.and_then(Value::as_u64).context("no such count")
    }

    /// Whether the guest reaches a region, as the card knows it.
    ///
    /// # Errors
    /// The card does not answer.
    pub fn guest_has_access(&self, region: usize) -> Result<bool> {
        Ok(self.region(region)?.get("access").and_then(Value::as_str) == Some("guest"))
    }
}

/// Frames in a row, as the card counts and addresses them.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
pub struct FrameRange {
    /// The first, in configuration order.
    pub first: u32,
    /// How many.
    pub count: u32,
    far: String,
    last_far: String,
}

impl FrameRange {
    /// The addresses of the first and the last.
    ///
    /// # Errors
    /// They are none.
    pub fn ends(&self) -> Result<[u32; 2]> {
        let address = |text: &str| u32::from_str_radix(text, 16).context("a frame's address");
        Ok([address(&self.far)?, address(&self.last_far)?])
    }
}

/// The project's table in which a device is.
fn geometry_of(device: &str) -> Result<PathBuf> {
    let family = bitstream::device::Device::named(device)
        .context("a known device")?
        .family();
    let file = match family {
        Family::Series7 => "series7.txt",
        Family::UltraScale | Family::UltraScalePlus => "ultrascale.txt",
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bitstream/geometry");
    Ok(folder.join(file))
}

/// What the card counted for one region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
pub struct RegionStats {
    /// Resets by the management function.
    pub resets_by_host: u64,
    /// Access taken from the guest.
    pub isolations: u64,
    /// Access given to the guest.
    pub handovers: u64,
    /// Words of all reconfigurations.
    pub data_words: u64,
    /// Reconfigurations begun.
    pub pr_starts: u64,
    /// Those that ended well.
    pub pr_successes: u64,
    /// Those that did not.
    pub pr_failures: u64,
}

/// The address of the user function of a region.
pub(super) fn function(dir: &Path, name: &str, pci: Option<&PciPlace>, region: usize) -> String {
    if let Some(function) = pci.and_then(|pci| pci.functions.get(region)) {
        return format!("pci:{function}");
    }
    let socket = dir.join(format!("{name}-vf{region}.sock"));
    format!("vfio-user:{}", socket.display())
}

/// The address of a card; the sockets of a simulated one are in `dir`.
pub(super) fn address(dir: &Path, name: &str, pci: Option<&PciPlace>) -> String {
    if let Some(pci) = pci {
        return format!("pci:{}", pci.management);
    }
    format!("vfio-user:{}", dir.join(format!("{name}.sock")).display())
}

fn serial(number: usize) -> u64 {
    0x000a_35ff_fe00_1000_u64.saturating_add(u64::try_from(number).unwrap_or(u64::MAX))
}
