//! The operator's files, read into a policy, and the plan that they make.
//!
//! Knows files, and keeps beside the policy what it cannot hold: the frames of
//! each region. Must not know requests.

use std::path::Path;
use std::sync::Arc;

use policy::decide::{CatalogueTrouble, Loads, Policy, PolicyInputs};
use policy::files::{FILE_MAX, Grants, Host as HostFile, Shell};
use policy::ids::CardAddress;
use policy::trust::Catalogue;
use thiserror::Error;

use super::plan::{CardPlan, HostPlan, RegionKey, RegionPlan};
use crate::files::{FileError, read_trusted};
use crate::frames::{Demand, demands};
use crate::layout::card_name;

/// The operator's files are wrong.
#[derive(Debug, Error)]
pub enum FilesError {
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file is wrong, and where.
    #[error(transparent)]
    Content(#[from] policy::files::FileError),
}

/// What is in force: a snapshot that decides, and what it demands of bytes.
#[derive(Debug, Clone)]
pub(super) struct Standing {
    /// Decides.
    pub(super) policy: Arc<Policy>,
    /// For each region of each card, in the order of the files.
    demands: Arc<Vec<Vec<Demand>>>,
}

impl Standing {
    /// What is demanded of the bytes for a region; nothing of one that there is not.
    pub(super) fn demand(&self, key: RegionKey) -> Demand {
        self.demands
            .get(key.card)
            .and_then(|card| card.get(usize::from(key.region.0)))
            .cloned()
            .unwrap_or(Demand::Nothing)
    }

    /// The same files beside another policy made of them.
    pub(super) fn with(&self, policy: Policy) -> Self {
        Self {
            policy: Arc::new(policy),
            demands: Arc::clone(&self.demands),
        }
    }
}

pub(super) fn read_policy(
    host_file: &Path,
    catalogue: Result<Arc<Catalogue>, CatalogueTrouble>,
) -> Result<Standing, FilesError> {
    let host = HostFile::parse(host_file, &read_trusted(host_file, bound())?)?;
    let mut shells = Vec::new();
    let mut demanded = Vec::new();
    for card in &host.cards {
        let shell = Shell::parse(&card.shell, &read_trusted(&card.shell, bound())?)?;
        demanded.push(demands(&shell)?);
        shells.push(shell);
    }
    let grants = match read_trusted(&host.grants, bound()) {
        Ok(bytes) => Grants::parse(&host.grants, &bytes)?,
        // Nothing is granted then (CYB-01), which is a state and no mistake.
        Err(error) if error.is_missing() => {
            tracing::warn!(file = %host.grants.display(), "there is no grants file: nothing is granted");
            Grants::none()
        }
        Err(error) => return Err(error.into()),
    };
    let policy = Policy::new(PolicyInputs {
        host,
        shells,
        grants,
        catalogue,
        loads: Loads::Decided,
    })?;
    Ok(Standing {
        policy: Arc::new(policy),
        demands: Arc::new(demanded),
    })
}

/// Each card, and the port of each of its regions.
pub(super) fn places_of(policy: &Policy) -> Vec<(CardAddress, Vec<u16>)> {
    let cards = policy.host().cards.iter().map(|card| {
        let shell = policy.shell(&card.address);
        let ports = shell.map(|shell| shell.regions.iter().map(|region| region.port));
        (card.address.clone(), ports.into_iter().flatten().collect())
    });
    cards.collect()
}

pub(super) fn plan_of(policy: &Policy) -> HostPlan {
    let cards = policy.host().cards.iter().map(|card| {
        let address = card.address.to_string();
        let regions = policy.shell(&card.address).map(|shell| {
            shell.regions.iter().map(|region| RegionPlan {
                name: region.name.to_string(),
                functions: region
                    .user_functions
                    .iter()
                    .map(ToString::to_string)
                    .collect(),
                rate: region.rate.unwrap_or(policy.host().limits.load_rate),
            })
        });
        CardPlan {
            name: card_name(&address),
            address,
            regions: regions.into_iter().flatten().collect(),
        }
    });
    HostPlan::new(cards.collect())
}

fn bound() -> u64 {
    u64::try_from(FILE_MAX).unwrap_or(u64::MAX)
}
