//! What a targets document says: targets, and the roles it delegates to.
//!
//! Knows one document. Where several speak about one target is `lookup`'s matter.

use std::collections::BTreeMap;

use super::delegation::Delegations;
use super::document::sealed::Read;
use super::document::{Document, Trusted, admit};
use super::error::{Bad, TufError};
use super::fields::Fields;
use super::hashes::Hashes;
use super::json::Json;
use super::limits::TARGETS_MAX;
use super::name::{Role, RoleName, TargetPath};

/// What a targets document says.
#[derive(Debug, Clone)]
pub struct Targets {
    targets: BTreeMap<TargetPath, Facts>,
    delegations: Delegations,
}

/// What is signed about one target.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Facts {
    pub(super) length: u64,
    pub(super) hashes: Hashes,
    pub(super) custom: Option<serde_json::Value>,
}

impl Document for Targets {}

impl Read for Targets {
    const TYPE: &'static str = "targets";
    const MAX: usize = TARGETS_MAX;

    #[expect(private_interfaces, reason = "as the trait's")]
    fn read(fields: &mut Fields) -> Result<Targets, Bad> {
        let mut targets = BTreeMap::new();
        for (path, json) in fields.map("targets")? {
            let path = TargetPath::parse(&path).map_err(|error| Bad::new(error.to_string()))?;
            let facts = read_facts(json).map_err(|bad| bad.within(path.as_str()))?;
            targets.insert(path, facts);
        }
        let delegations = match fields.optional("delegations") {
            None => Delegations::default(),
            Some(json) => Delegations::read(json).map_err(|bad| bad.within("delegations"))?,
        };
        Ok(Targets {
            targets,
            delegations,
        })
    }
}

fn read_facts(json: Json) -> Result<Facts, Bad> {
    let mut fields = Fields::of(json)?;
    Ok(Facts {
        length: fields.number("length")?,
        hashes: Hashes::read(fields.map("hashes")?)?,
        custom: match fields.optional("custom") {
            None => None,
            Some(map @ Json::Map(_)) => Some(map.into()),
            Some(_) => return Err(Bad::new("custom: not an object")),
        },
    })
}

impl Targets {
    /// The paths of its own targets, in order.
    pub fn paths(&self) -> impl Iterator<Item = &TargetPath> {
        self.targets.keys()
    }

    pub(super) fn facts(&self, path: &TargetPath) -> Option<&Facts> {
        self.targets.get(path)
    }

    pub(super) fn delegations(&self) -> &Delegations {
        &self.delegations
    }
}

impl Trusted<Targets> {
    /// Believes the document of a role that this one delegates to: with the keys
    /// and the threshold that *this* document gives, whoever else delegates to it.
    pub(super) fn admit(
        &self,
        name: &RoleName,
        bytes: &[u8],
    ) -> Result<Trusted<Targets>, TufError> {
        let role = Role::Delegated(name.clone());
        let delegations = self.delegations();
        let quorum = delegations
            .quorum(name)
            .ok_or_else(|| TufError::NotDelegated {
                role: role.clone(),
                by: self.role().clone(),
            })?;
        admit(&role, bytes, self.role(), delegations.keys(), quorum)
    }
}
