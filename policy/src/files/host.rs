//! `host.toml`: what this host has, what it demands, and where things lie.
//!
//! Written by root on the host, never synced; read by `reconfd` and
//! `reconf-card`. Cards are opted in one by one. The sample is
//! `docs/samples/host.toml`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::limits::{Limits, LimitsTable};
use super::read::Source;
use super::{FileError, Problem};
use crate::ids::{CardAddress, Digest, RolePattern};
use crate::trust::Format;

/// The parsed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Jobs, registrations, audit, journals and rollback floors.
    pub state_dir: PathBuf,
    /// Sockets.
    pub run_dir: PathBuf,
    /// The signed list and the folder `targets` beside it.
    pub repository: PathBuf,
    /// `grants.toml`.
    pub grants: PathBuf,
    /// How much is logged.
    pub log: LogLevel,
    /// The cards, in the order of the file.
    pub cards: Vec<CardEntry>,
    /// What images and engines must bring.
    pub require: Requirements,
    /// Who may use the admin socket.
    pub registrars: Registrars,
    /// Bounds.
    pub limits: Limits,
    /// SHA-256 of the file.
    pub digest: Digest,
}

/// One card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardEntry {
    /// Where it is.
    pub address: CardAddress,
    /// The PCI Express device serial number; where given, another card at the same address is refused.
    pub serial: Option<String>,
    /// Who programs it.
    pub engine: Engine,
    /// Its shell file.
    pub shell: PathBuf,
    /// Its line in the file.
    pub line: u32,
}

/// How much is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// What failed.
    Error,
    /// And what is odd.
    Warn,
    /// And what happened.
    #[default]
    Info,
    /// And why.
    Debug,
    /// Everything.
    Trace,
}

/// The driver of one programming interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Engine {
    /// DFL registers, by our own access.
    Dfl,
    /// AXI HWICAP with a decoupler for each region, by our own access.
    Hwicap,
}

impl Engine {
    /// How it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Engine::Dfl => "dfl",
            Engine::Hwicap => "hwicap",
        }
    }

    /// Whether it can load what is in such a container.
    #[must_use]
    pub fn takes(self, format: Format) -> bool {
        match format {
            Format::Gbs => self == Engine::Dfl,
            Format::Bit | Format::Bin => self == Engine::Hwicap,
        }
    }
}

/// What an engine can be demanded to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// The region can stay shut after the write.
    HoldsIsolated,
    /// The identity of the function is read back and compared.
    IdentityChecked,
    /// The guest's outstanding transactions end before the region is shut.
    Drains,
    /// A guest's access to a shut region completes.
    AnswersWhileShut,
    /// Frames can be checked.
    Fenced,
}

/// `[require]`: what images and engines must bring.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Requirements {
    /// An image's role must be one of these; none given: any role in the signed list.
    pub roles: Vec<RolePattern>,
    /// Every engine must have all of these.
    pub capabilities: BTreeSet<Capability>,
}

/// `[registrars]`: who may use the admin socket, beside root and our own user.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Registrars {
    /// User ids.
    pub uids: BTreeSet<u32>,
    /// Group ids.
    pub gids: BTreeSet<u32>,
}

/// Every section of the file with its keys.
pub(super) const SECTIONS: [(&str, &[&str]); 5] = [
    (
        "[host]",
        &["state_dir", "run_dir", "repository", "grants", "log"],
    ),
    ("[[card]]", &["address", "serial", "engine", "shell"]),
    ("[require]", &["roles", "capabilities"]),
    ("[registrars]", &["uids", "gids"]),
    (
        "[limits]",
        &[
            "bitstream_max",
            "sealed_bytes_max",
            "jobs_per_vm",
            "queue_per_card",
            "commit_wait_ms",
            "notice_ms",
            "load_base_ms",
            "load_rate",
            "wait_max_ms",
            "scrub_tries",
        ],
    ),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    host: HostTable,
    #[serde(default)]
    card: Vec<CardTable>,
    #[serde(default)]
    require: Requirements,
    #[serde(default)]
    registrars: Registrars,
    #[serde(default)]
    limits: LimitsTable,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct HostTable {
    state_dir: Option<PathBuf>,
    run_dir: Option<PathBuf>,
    repository: Option<PathBuf>,
    grants: Option<PathBuf>,
    log: LogLevel,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CardTable {
    address: Spanned<CardAddress>,
    serial: Option<Spanned<String>>,
    engine: Engine,
    shell: PathBuf,
}

impl Host {
    /// Reads the file. Relative paths in it are relative to the file's folder.
    ///
    /// # Errors
    ///
    /// [`FileError`] with line and column.
    pub fn parse(file: &Path, bytes: &[u8]) -> Result<Host, FileError> {
        let name = file.display().to_string();
        let source = Source::new(&name, bytes)?;
        let raw: File = source.read(&SECTIONS)?;
        let base = file.parent().unwrap_or(Path::new(""));
        let state_dir = base.join(
            raw.host
                .state_dir
                .as_deref()
                .unwrap_or(Path::new("/var/lib/reconf")),
        );
        let repository = match &raw.host.repository {
            Some(path) => base.join(path),
            None => state_dir.join("repo/current"),
        };
        Ok(Host {
            repository,
            state_dir,
            run_dir: base.join(
                raw.host
                    .run_dir
                    .as_deref()
                    .unwrap_or(Path::new("/run/reconf")),
            ),
            grants: base.join(
                raw.host
                    .grants
                    .as_deref()
                    .unwrap_or(Path::new("grants.toml")),
            ),
            log: raw.host.log,
            cards: cards(raw.card, base, source)?,
            require: raw.require,
            registrars: raw.registrars,
            limits: raw.limits.check(source)?,
            digest: Digest::of(bytes),
        })
    }

    /// The card at this address.
    #[must_use]
    pub fn card(&self, address: &CardAddress) -> Option<&CardEntry> {
        self.cards.iter().find(|card| card.address == *address)
    }
}

fn cards(
    tables: Vec<CardTable>,
    base: &Path,
    source: Source<'_>,
) -> Result<Vec<CardEntry>, FileError> {
    let mut cards: Vec<CardEntry> = Vec::new();
    for table in tables {
        let span = table.address.span();
        let address = table.address.into_inner();
        if let Some(first) = cards.iter().find(|card| card.address == address) {
            let why = format!("the card {address} stands at line {} already", first.line);
            return Err(source.error(span, Problem::Conflict(why)));
        }
        let serial = table
            .serial
            .map(|serial| check_serial(serial, source))
            .transpose()?;
        let (line, _) = source.place(span.start);
        cards.push(CardEntry {
            address,
            serial,
            engine: table.engine,
            shell: base.join(table.shell),
            line,
        });
    }
    Ok(cards)
}

/// The form in which `reconfctl card probe` prints it: eight bytes in hex, dashes between.
fn check_serial(serial: Spanned<String>, source: Source<'_>) -> Result<String, FileError> {
    let span = serial.span();
    let serial = serial.into_inner();
    let byte = |part: &str| crate::hex::decode::<1>(part).is_some();
    if serial.split('-').count() == 8 && serial.split('-').all(byte) {
        return Ok(serial);
    }
    let why = "a serial is eight bytes in lower-case hex with dashes, such as \
               \"00-0a-35-ff-ff-00-12-34\""
        .to_owned();
    Err(source.error(span, Problem::Value(why)))
}
