//! A simulated card, and the process that holds it.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::setup::CardSetup;
use crate::process::{Process, READY_WITHIN, program};

/// A card: the simulator, and `reconf-card` while it runs.
#[derive(Debug)]
pub struct Card {
    name: String,
    dir: PathBuf,
    /// The card itself.
    pub simulator: Process,
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
        let mut command = Command::new(program("reconf-simcard")?);
        command.arg("--dir").arg(dir).args(["--name", &name]);
        command.args(["--serial", &format!("{:016x}", serial(number))]);
        command.args(["--interface-id", &setup.interface_id.to_string()]);
        command.args(["--rate", &setup.rate]);
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
            simulator,
            process: None,
        })
    }

    /// Its address, as host.toml names it.
    #[must_use]
    pub fn address(&self) -> String {
        address(&self.dir, &self.name)
    }

    /// The address of the user function of a region.
    #[must_use]
    pub fn function(&self, region: usize) -> String {
        format!(
            "vfio-user:{}",
            self.dir
                .join(format!("{}-vf{region}.sock", self.name))
                .display()
        )
    }

    /// Says one object to the card from behind, past all registers.
    ///
    /// # Errors
    /// The card does not answer, or says no.
    pub fn control(&self, line: &Value) -> Result<Value> {
        let path = self.dir.join(format!("{}.ctl", self.name));
        let mut stream = UnixStream::connect(&path).context("the card's control socket")?;
        stream.set_read_timeout(Some(READY_WITHIN))?;
        stream.write_all(format!("{line}\n").as_bytes())?;
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer)?;
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

    /// Whether the guest reaches a region, as the card knows it.
    ///
    /// # Errors
    /// The card does not answer.
    pub fn guest_has_access(&self, region: usize) -> Result<bool> {
        Ok(self.region(region)?.get("access").and_then(Value::as_str) == Some("guest"))
    }
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

/// The address of a card whose sockets are in `dir`.
#[must_use]
pub(super) fn address(dir: &Path, name: &str) -> String {
    format!("vfio-user:{}", dir.join(format!("{name}.sock")).display())
}

fn serial(number: usize) -> u64 {
    0x000a_35ff_fe00_1000_u64.saturating_add(u64::try_from(number).unwrap_or(u64::MAX))
}
