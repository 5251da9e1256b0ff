//! From the operator's files to regions: what the shell file says, held
//! against what the card says.
//!
//! Knows files and facts. Must not change anything: neither card nor journal.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use card::device::Bar;
use card::engine::{Declared, IdentityCheck};
use card::hwicap::{Layout, RegionLayout};
use card::journal::{Recovered, RegionState};
use card::{CardAddress, Engine, RegionId, SealedMemfd};
use policy::files::{self, Capability, Fence, Host, Limits, Problem, Shell};
use policy::ids::Digest;

use super::fitted::Fitted;
use super::image::{Image, ImageError};
use super::region::{Blank, Fit, Gate, Pace, Region};
use crate::files::{FileError, open_beneath, read_trusted};
use crate::frames::{Demand, demands};
use crate::ipc::RegionIndex;

/// What the operator's files say of one card.
#[derive(Debug)]
pub(super) struct Setup {
    /// `host.toml`.
    pub host: Host,
    /// Its entry for this card.
    pub card: files::CardEntry,
    /// Where the card is.
    pub address: CardAddress,
    /// The card's shell file.
    pub shell: Shell,
    /// What it demands of the bytes for each region, in its order.
    pub demands: Vec<Demand>,
}

/// Why the files do not make a card.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A file could not be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file is wrong.
    #[error(transparent)]
    Content(#[from] files::FileError),
    /// The address makes no sense.
    #[error("{address}: {why}")]
    Address {
        /// As it was given.
        address: String,
        /// Why not.
        why: String,
    },
    /// The host file does not opt this card in.
    #[error("{host_file} has no card {address}; it has: {known}")]
    NoSuchCard {
        /// The host file.
        host_file: String,
        /// The card asked for.
        address: String,
        /// The cards that it has.
        known: String,
    },
}

impl Setup {
    /// Reads `host.toml` and the shell file of the card at `address`.
    ///
    /// # Errors
    /// See [`SetupError`].
    pub(super) fn read(host_file: &Path, address: &str) -> Result<Self, SetupError> {
        let max = u64::try_from(files::FILE_MAX).unwrap_or(u64::MAX);
        let host = Host::parse(host_file, &read_trusted(host_file, max)?)?;
        let wrong = |why: String| SetupError::Address {
            address: address.to_owned(),
            why,
        };
        let named = policy::ids::CardAddress::parse(address).map_err(|e| wrong(e.to_string()))?;
        let card = host.card(&named).cloned();
        let card = card.ok_or_else(|| {
            let known: Vec<String> = host.cards.iter().map(|c| c.address.to_string()).collect();
            SetupError::NoSuchCard {
                host_file: host_file.display().to_string(),
                address: address.to_owned(),
                known: known.join(", "),
            }
        })?;
        let address = address
            .parse()
            .map_err(|e: card::AddressError| wrong(e.to_string()))?;
        let shell = Shell::parse(&card.shell, &read_trusted(&card.shell, max)?)?;
        shell.serves(card.engine)?;
        let demands = demands(&shell)?;
        Ok(Self {
            host,
            card,
            address,
            shell,
            demands,
        })
    }

    /// Where the static design of an AMD device put what its engine needs. The reader of the
    /// shell file has seen to it that all of it is there.
    ///
    /// # Errors
    /// It is not: this file is for another engine.
    pub(super) fn layout(&self) -> Result<Layout, SetupError> {
        let lacking = |key: &str, line| {
            SetupError::Content(files::FileError {
                file: self.shell.file.clone(),
                line,
                column: 1,
                problem: Problem::MissingKey(key.to_owned()),
            })
        };
        let hwicap = self.shell.hwicap.ok_or_else(|| lacking("[hwicap]", 1))?;
        let bar = Bar::new(hwicap.bar).ok_or_else(|| lacking("bar", hwicap.line))?;
        let device = self.demands.iter().find_map(Demand::device);
        let device = device.ok_or_else(|| lacking("device", 1))?;
        let regions = self.shell.regions.iter().map(|region| {
            Ok(RegionLayout {
                id: RegionId(region.port),
                interface_id: region.interface_id.0,
                decoupler: region
                    .decoupler
                    .ok_or_else(|| lacking("decoupler", region.line))?,
                identity: region.identity,
            })
        });
        Ok(Layout {
            bar,
            core: hwicap.offset,
            idcode: device.idcode(),
            regions: regions.collect::<Result<_, SetupError>>()?,
        })
    }

    /// The regions, with what the journal knew of them.
    pub(super) fn regions(&self, engine: &dyn Engine, recovered: &Recovered) -> Vec<Region> {
        let mut blanks = Blanks {
            engine: self.card.engine,
            held: BTreeMap::new(),
        };
        let of = u16::try_from(self.shell.regions.len()).unwrap_or(u16::MAX);
        let indexes = (0..of).map(RegionIndex);
        let stated = self.shell.regions.iter().zip(&self.demands);
        indexes
            .zip(stated)
            .map(|(index, (stated, demand))| {
                let id = RegionId(stated.port);
                let known = recovered.regions.get(&id).copied();
                let state = known.unwrap_or(RegionState::UNKNOWN);
                let facts = stated.facts(self.card.engine, self.host.limits.bitstream_max);
                let blank = blanks.hold(index, stated, demand, facts.bitstream_max);
                Region {
                    index,
                    of,
                    id,
                    name: stated.name.to_string(),
                    fit: self.fit(stated, engine, &blank),
                    facts,
                    blank,
                    demand: demand.clone(),
                    pace: pace(stated, &self.host.limits),
                    state,
                    recorded: state,
                    // Taken for open until the card was asked.
                    gate: Gate::Guest,
                }
            })
            .collect()
    }

    fn fit(&self, stated: &files::Region, engine: &dyn Engine, blank: &Blank) -> Fit {
        let id = RegionId(stated.port);
        let Some(facts) = engine.regions().iter().find(|facts| facts.id == id) else {
            return Fit::Not(format!("the card has no port {id}"));
        };
        let stated_id = stated.interface_id.0;
        if facts.interface_id != stated_id {
            return Fit::Not(format!(
                "the card's interface id is {}, the shell file says {stated_id}",
                facts.interface_id
            ));
        }
        let can = engine.capabilities();
        // What must be fenced is never loaded by an engine that cannot check it (INV5).
        if stated.fence == Fence::Required && can.fenced == Declared::No {
            return Fit::NoLoads("its fence is required, and cannot be checked".to_owned());
        }
        if let Blank::Unusable(why) = blank {
            return Fit::NoLoads(format!("its blank image cannot be used: {why}"));
        }
        let lacks = |wanted: &&Capability| match wanted {
            Capability::HoldsIsolated => can.holds_isolated == Declared::No,
            Capability::IdentityChecked => facts.identity != IdentityCheck::Checked,
            Capability::Drains => can.drains == Declared::No,
            Capability::AnswersWhileShut => {
                can.answers_while_shut == Declared::No && !stated.answers_while_shut
            }
            Capability::Fenced => can.fenced == Declared::No,
        };
        match self.host.require.capabilities.iter().find(lacks) {
            None => Fit::Programmable,
            Some(lacking) => Fit::NoLoads(format!("host.toml requires {lacking:?}")),
        }
    }
}

fn pace(stated: &files::Region, limits: &Limits) -> Pace {
    Pace {
        base: limits.load_base,
        rate: stated.rate.unwrap_or(limits.load_rate),
    }
}

/// Blank images, each held once however many regions use it.
#[derive(Debug)]
struct Blanks {
    engine: files::Engine,
    held: BTreeMap<Digest, Arc<Image>>,
}

impl Blanks {
    fn hold(
        &mut self,
        index: RegionIndex,
        stated: &files::Region,
        demand: &Demand,
        max: u64,
    ) -> Blank {
        match &stated.blank {
            None => Blank::None,
            Some(pinned) => self
                .held(index, stated, pinned, demand, max)
                .unwrap_or_else(Blank::Unusable),
        }
    }

    fn held(
        &mut self,
        index: RegionIndex,
        stated: &files::Region,
        pinned: &files::Blank,
        demand: &Demand,
        max: u64,
    ) -> Result<Blank, String> {
        let image = match self.held.get(&pinned.sha256) {
            Some(image) => Arc::clone(image),
            None => Arc::new(read_blank(&pinned.path, pinned.sha256, max)?),
        };
        image
            .check_interface(stated.interface_id.0)
            .map_err(|mismatch| mismatch.to_string())?;
        if let Some(function) = pinned.function_id {
            image
                .check_function(function.0)
                .map_err(|mismatch| mismatch.to_string())?;
        }
        if !self.engine.takes(image.format()) {
            let (engine, format) = (self.engine.name(), image.format().name());
            return Err(format!("the engine {engine} does not load a {format}"));
        }
        // A scrub must not leave the region either.
        let fitted = Fitted::hold(&image, index, demand).map_err(|unfit| unfit.story())?;
        let function = image
            .function_id()
            .or(pinned.function_id.map(|function| function.0));
        self.held.insert(pinned.sha256, image);
        Ok(Blank::Held {
            fitted: Arc::new(fitted),
            function,
        })
    }
}

fn read_blank(path: &Path, pinned: Digest, max: u64) -> Result<Image, String> {
    let named = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let parent = path.parent().unwrap_or(Path::new("/"));
    let name = path.file_name().unwrap_or_default();
    let (file, _size) = open_beneath(parent, Path::new(name)).map_err(|error| error.to_string())?;
    SealedMemfd::from_reader(file, max)
        .map_err(ImageError::from)
        .and_then(|memory| Image::read(memory, pinned.0, max))
        .map_err(|error| named(&error))
}
