//! The snapshot that a decision is made against.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::CatalogueTrouble;
use crate::files::{FileError, Grants, Host, Problem, Region, RegionFacts, Shell};
use crate::ids::{CardAddress, Digest, FunctionAddress};
use crate::trust::Catalogue;

/// A region of this host.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct RegionKey {
    /// Its card.
    pub card: CardAddress,
    /// Its number on the card: `port` in the shell file.
    pub port: u16,
}

impl fmt::Display for RegionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} port {}", self.card, self.port)
    }
}

/// Whether an operator has stopped new loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loads {
    /// They are decided one by one.
    Decided,
    /// All new ones are denied; what runs keeps running.
    Stopped,
}

/// Names a state of what decisions depend on: equal revisions, equal inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct Revision(pub Digest);

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// What a policy is made of.
#[derive(Debug)]
pub struct PolicyInputs {
    /// `host.toml`.
    pub host: Host,
    /// The shell file of each card of `host`, in the same order.
    pub shells: Vec<Shell>,
    /// `grants.toml`, or [`Grants::none`].
    pub grants: Grants,
    /// The verified list, or why there is none.
    pub catalogue: Result<Arc<Catalogue>, CatalogueTrouble>,
    /// Whether an operator has stopped new loads.
    pub loads: Loads,
}

/// An immutable snapshot of all that decides. Made anew for every change,
/// pinned for the length of a request, and asked again before COMMIT.
#[derive(Debug)]
pub struct Policy {
    host: Host,
    shells: BTreeMap<CardAddress, Shell>,
    grants: Grants,
    catalogue: Result<Arc<Catalogue>, CatalogueTrouble>,
    loads: Loads,
    files_revision: Revision,
    revision: Revision,
}

impl Policy {
    /// Puts the inputs together, and checks what no file can check alone.
    ///
    /// # Errors
    ///
    /// [`FileError`]: a card without its shell file, a shell file that does not
    /// say what the card's engine needs, or a user function that two regions
    /// claim.
    pub fn new(inputs: PolicyInputs) -> Result<Policy, FileError> {
        let PolicyInputs {
            host,
            shells,
            grants,
            catalogue,
            loads,
        } = inputs;
        if let Some(card) = host.cards.get(shells.len()) {
            let why = format!("the shell file of the card {} was not read", card.address);
            return Err(conflict("host.toml", card.line, why));
        }
        for (card, shell) in host.cards.iter().zip(&shells) {
            shell.serves(card.engine)?;
        }
        check_functions(&shells)?;
        let parts = std::iter::once(host.digest).chain(shells.iter().map(|shell| shell.digest));
        let files_revision = revision("files", parts);
        let list = catalogue
            .as_ref()
            .map_or(Digest([0; 32]), |catalogue| catalogue.digest());
        let loads_mark = match loads {
            Loads::Decided => Digest([0; 32]),
            Loads::Stopped => Digest([1; 32]),
        };
        let all = [files_revision.0, grants.digest(), list, loads_mark];
        let addresses = host.cards.iter().map(|card| card.address.clone());
        Ok(Policy {
            shells: addresses.zip(shells).collect(),
            host,
            grants,
            catalogue,
            loads,
            files_revision,
            revision: revision("all", all.into_iter()),
        })
    }

    /// `host.toml`.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The shell file of a card.
    #[must_use]
    pub fn shell(&self, card: &CardAddress) -> Option<&Shell> {
        self.shells.get(card)
    }

    /// `grants.toml`.
    #[must_use]
    pub fn grants(&self) -> &Grants {
        &self.grants
    }

    /// The verified list, or why there is none.
    ///
    /// # Errors
    ///
    /// [`CatalogueTrouble`].
    pub fn catalogue(&self) -> Result<&Arc<Catalogue>, &CatalogueTrouble> {
        self.catalogue.as_ref()
    }

    /// Whether an operator has stopped new loads.
    #[must_use]
    pub fn loads(&self) -> Loads {
        self.loads
    }

    /// Names all inputs together: what a decision was made against.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Names `host.toml` and the shell files alone: what a verdict about bytes
    /// (container, fit, fence) was made against.
    #[must_use]
    pub fn files_revision(&self) -> Revision {
        self.files_revision
    }

    /// A region of this host.
    #[must_use]
    pub fn region(&self, key: &RegionKey) -> Option<&Region> {
        self.shells.get(&key.card)?.region(key.port)
    }

    /// What a bitstream for this region must fit.
    #[must_use]
    pub fn facts(&self, key: &RegionKey) -> Option<RegionFacts> {
        let engine = self.host.card(&key.card)?.engine;
        self.region(key)
            .map(|region| region.facts(engine, self.host.limits.bitstream_max))
    }

    /// The region in which a user function ends.
    #[must_use]
    pub fn region_of(&self, function: &FunctionAddress) -> Option<RegionKey> {
        self.shells.iter().find_map(|(card, shell)| {
            let region = shell.region_of(function)?;
            Some(RegionKey {
                card: card.clone(),
                port: region.port,
            })
        })
    }

    /// Every region, by card and port.
    pub fn regions(&self) -> impl Iterator<Item = (RegionKey, &Region)> {
        self.shells.iter().flat_map(|(card, shell)| {
            shell.regions.iter().map(|region| {
                (
                    RegionKey {
                        card: card.clone(),
                        port: region.port,
                    },
                    region,
                )
            })
        })
    }
}

/// A function ends in one region of one card.
fn check_functions(shells: &[Shell]) -> Result<(), FileError> {
    let mut seen: BTreeMap<&FunctionAddress, (&str, &Region)> = BTreeMap::new();
    for shell in shells {
        for region in &shell.regions {
            for function in &region.user_functions {
                if let Some((file, other)) = seen.insert(function, (&shell.file, region)) {
                    let why = format!(
                        "the user function {function} ends in the region {} of {file} already (line {})",
                        other.name, other.line
                    );
                    return Err(conflict(&shell.file, region.line, why));
                }
            }
        }
    }
    Ok(())
}

fn conflict(file: &str, line: u32, why: String) -> FileError {
    FileError {
        file: file.to_owned(),
        line,
        column: 1,
        problem: Problem::Conflict(why),
    }
}

fn revision(what: &str, parts: impl Iterator<Item = Digest>) -> Revision {
    let text = parts.fold(format!("reconf revision {what}\n"), |text, part| {
        text + &part.hex() + "\n"
    });
    Revision(Digest::of(text.as_bytes()))
}
