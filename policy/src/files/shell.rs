//! `shells/*.toml`: the regions of one card, and what its static design can do.
//!
//! Made by `reconfctl card probe`, checked and finished by the operator. User
//! functions stand in it by address, so there is one file a card. What is not
//! stated is taken to be absent: the defaults are the pessimistic ones. The
//! samples are `docs/samples/shell.toml` and `docs/samples/shell-hwicap.toml`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::design::{Hwicap, HwicapTable, Placed, agree, aligned};
use super::read::Source;
use super::{ByteSize, Engine, FileError, Problem, Rate};
use crate::ids::{Digest, FunctionAddress, FunctionId, InterfaceId, RegionName, RegionType};

/// The parsed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shell {
    /// The file's name, for messages.
    pub file: String,
    /// The operator's name for the static design.
    pub name: String,
    /// The device, as the operator names it.
    pub device: Option<Placed>,
    /// Columns of no region that every partial bitstream of the device restores,
    /// a line a group.
    pub restores: Vec<Placed>,
    /// Where the HWICAP is, for the engine of that name.
    pub hwicap: Option<Hwicap>,
    /// The regions, by port.
    pub regions: Vec<Region>,
    /// SHA-256 of the file.
    pub digest: Digest,
}

/// One partial-reconfiguration region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// The operator's name for it.
    pub name: RegionName,
    /// Its number on the card.
    pub port: u16,
    /// Which bitstreams fit.
    pub interface_id: InterfaceId,
    /// What operators call regions like this one.
    pub region_type: RegionType,
    /// The user functions that end in it: at least one.
    pub user_functions: Vec<FunctionAddress>,
    /// What leaves it without tenant logic. Without one, the region serves one
    /// tenant until a power cycle.
    pub blank: Option<Blank>,
    /// Bytes a second that the card takes; none stated: the host's default.
    pub rate: Option<u64>,
    /// Longest bitstream for this region, in bytes; none stated: the host's.
    pub bitstream_max: Option<u64>,
    /// May a tenant load what its own development key signed?
    pub development: bool,
    /// Does a guest's access to the shut region complete?
    pub answers_while_shut: bool,
    /// Must frames be checked?
    pub fence: Fence,
    /// The frames that are the region's own, a line a group; none stated: not known.
    pub frames: Vec<Placed>,
    /// Bytes from the start of the HWICAP's BAR to the register that decouples the region.
    pub decoupler: Option<u64>,
    /// Bytes from there to the registers that show the function; none stated: it shows none.
    pub identity: Option<u64>,
    /// Its line in the file.
    pub line: u32,
}

/// A blank image: found by path, believed by digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blank {
    /// Where it lies.
    pub path: PathBuf,
    /// What it is.
    pub sha256: Digest,
    /// The function that the region shows then. Needed to prove it where the
    /// container does not name it.
    pub function_id: Option<FunctionId>,
}

/// Whether bitstreams for a region are held to its frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fence {
    /// They cannot be, or need not be.
    #[default]
    None,
    /// What cannot be checked is refused.
    Required,
}

/// What a target must fit: all that the second verification knows of a region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegionFacts {
    /// Which bitstreams fit.
    pub interface_id: InterfaceId,
    /// What operators call regions like this one.
    pub region_type: RegionType,
    /// Longest bitstream, in bytes.
    pub bitstream_max: u64,
    /// Who programs it: each engine takes its own containers.
    pub engine: Engine,
}

impl Region {
    /// What a target must fit. `host_max` is the host's limit, in bytes, and
    /// `engine` the card's.
    #[must_use]
    pub fn facts(&self, engine: Engine, host_max: u64) -> RegionFacts {
        RegionFacts {
            engine,
            interface_id: self.interface_id,
            region_type: self.region_type.clone(),
            bitstream_max: self.bitstream_max.map_or(host_max, |own| own.min(host_max)),
        }
    }
}

pub(super) const SECTIONS: [(&str, &[&str]); 3] = [
    ("the top of the file", &["name", "device", "restores"]),
    ("[hwicap]", &["bar", "offset"]),
    (
        "[[region]]",
        &[
            "name",
            "port",
            "interface_id",
            "region_type",
            "user_functions",
            "blank",
            "rate",
            "bitstream_max",
            "development",
            "answers_while_shut",
            "fence",
            "frames",
            "decoupler",
            "identity",
        ],
    ),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: Spanned<String>,
    device: Option<Spanned<String>>,
    restores: Option<Spanned<Vec<Spanned<String>>>>,
    hwicap: Option<HwicapTable>,
    #[serde(default)]
    region: Vec<RegionTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RegionTable {
    name: Spanned<RegionName>,
    port: Spanned<u16>,
    interface_id: InterfaceId,
    region_type: RegionType,
    user_functions: Spanned<Vec<Spanned<FunctionAddress>>>,
    blank: Option<BlankTable>,
    rate: Option<Rate>,
    bitstream_max: Option<ByteSize>,
    #[serde(default)]
    development: bool,
    #[serde(default)]
    answers_while_shut: bool,
    #[serde(default)]
    fence: Fence,
    frames: Option<Spanned<Vec<Spanned<String>>>>,
    decoupler: Option<Spanned<u64>>,
    identity: Option<Spanned<u64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BlankTable {
    path: PathBuf,
    sha256: Digest,
    function_id: Option<FunctionId>,
}

impl Shell {
    /// Reads the file. Relative paths in it are relative to the file's folder.
    ///
    /// # Errors
    ///
    /// [`FileError`] with line and column.
    pub fn parse(file: &Path, bytes: &[u8]) -> Result<Shell, FileError> {
        let file_name = file.display().to_string();
        let source = Source::new(&file_name, bytes)?;
        let raw: File = source.read(&SECTIONS)?;
        let name = raw.name.get_ref();
        if name.is_empty() || name.len() > 128 || name.chars().any(char::is_control) {
            let why = "a shell's name has 1 to 128 bytes and no control characters".to_owned();
            return Err(source.error(raw.name.span(), Problem::Value(why)));
        }
        let base = file.parent().unwrap_or(Path::new(""));
        let mut regions = Regions {
            source,
            ports: BTreeMap::new(),
            names: BTreeMap::new(),
            functions: BTreeMap::new(),
            registers: BTreeMap::new(),
        };
        let mut parsed = Vec::new();
        for table in raw.region {
            parsed.push(regions.add(table, base)?);
        }
        parsed.sort_by_key(|region| region.port);
        let shell = Shell {
            name: name.clone(),
            device: raw.device.map(|device| Placed::of(device, source)),
            restores: lines(raw.restores, "restores", source)?,
            hwicap: raw.hwicap.map(|table| table.check(source)).transpose()?,
            regions: parsed,
            digest: Digest::of(bytes),
            file: file_name,
        };
        agree(&shell)?;
        Ok(shell)
    }

    /// The region with this number.
    #[must_use]
    pub fn region(&self, port: u16) -> Option<&Region> {
        self.regions.iter().find(|region| region.port == port)
    }

    /// The region in which this user function ends.
    #[must_use]
    pub fn region_of(&self, function: &FunctionAddress) -> Option<&Region> {
        self.regions
            .iter()
            .find(|region| region.user_functions.contains(function))
    }
}

/// What was seen so far, with the line: a number, name or function that
/// stands twice is refused.
struct Regions<'a> {
    source: Source<'a>,
    ports: BTreeMap<u16, u32>,
    names: BTreeMap<RegionName, u32>,
    functions: BTreeMap<FunctionAddress, u32>,
    registers: BTreeMap<u64, u32>,
}

impl Regions<'_> {
    fn add(&mut self, table: RegionTable, base: &Path) -> Result<Region, FileError> {
        let source = self.source;
        let (line, _) = source.place(table.name.span().start);
        once(&mut self.names, &table.name, "region", source)?;
        once(&mut self.ports, &table.port, "port", source)?;
        for function in table.user_functions.get_ref() {
            once(&mut self.functions, function, "user function", source)?;
        }
        if table.user_functions.get_ref().is_empty() {
            let why = "a region that no user function ends in serves nobody".to_owned();
            return Err(source.error(table.user_functions.span(), Problem::Value(why)));
        }
        let decoupler = self.register(table.decoupler)?;
        let identity = self.register(table.identity)?;
        Ok(Region {
            name: table.name.into_inner(),
            port: table.port.into_inner(),
            interface_id: table.interface_id,
            region_type: table.region_type,
            user_functions: table
                .user_functions
                .into_inner()
                .into_iter()
                .map(Spanned::into_inner)
                .collect(),
            blank: table.blank.map(|blank| Blank {
                path: base.join(blank.path),
                sha256: blank.sha256,
                function_id: blank.function_id,
            }),
            rate: table.rate.map(|rate| rate.0),
            bitstream_max: table.bitstream_max.map(|size| size.0),
            development: table.development,
            answers_while_shut: table.answers_while_shut,
            fence: table.fence,
            frames: lines(table.frames, "frames", source)?,
            decoupler,
            identity,
            line,
        })
    }

    /// An offset that no other register of the file has.
    fn register(&mut self, offset: Option<Spanned<u64>>) -> Result<Option<u64>, FileError> {
        let Some(offset) = offset else {
            return Ok(None);
        };
        once(&mut self.registers, &offset, "offset", self.source)?;
        aligned(&offset, self.source).map(Some)
    }
}

fn lines(
    stated: Option<Spanned<Vec<Spanned<String>>>>,
    key: &str,
    source: Source<'_>,
) -> Result<Vec<Placed>, FileError> {
    let Some(stated) = stated else {
        return Ok(Vec::new());
    };
    if stated.get_ref().is_empty() {
        let why = format!("`{key}` has no line; leave it out, or state some");
        return Err(source.error(stated.span(), Problem::Value(why)));
    }
    let lines = stated.into_inner().into_iter();
    Ok(lines.map(|line| Placed::of(line, source)).collect())
}

fn once<T: Ord + Clone + std::fmt::Display>(
    seen: &mut BTreeMap<T, u32>,
    value: &Spanned<T>,
    what: &str,
    source: Source<'_>,
) -> Result<(), FileError> {
    let (line, _) = source.place(value.span().start);
    match seen.insert(value.get_ref().clone(), line) {
        None => Ok(()),
        Some(first) => {
            let why = format!(
                "the {what} {} stands at line {first} already",
                value.get_ref()
            );
            Err(source.error(value.span(), Problem::Conflict(why)))
        }
    }
}
