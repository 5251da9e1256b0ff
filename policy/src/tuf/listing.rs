//! What timestamp and snapshot say: which versions of other documents count.
//!
//! Knows names, versions, lengths and hashes. The rules about them over time are
//! in `anchor`.

use std::collections::BTreeMap;

use super::document::sealed::Read;
use super::document::{Document, longest};
use super::error::{Bad, Differs, TufError};
use super::fields::{Fields, number};
use super::hashes::Hashes;
use super::json::Json;
use super::limits::{SNAPSHOT_MAX, TIMESTAMP_MAX};
use super::name::{Role, RoleName};
use crate::time::UnixTime;

/// One line of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    version: u64,
    length: Option<u64>,
    hashes: Option<Hashes>,
}

impl Listed {
    fn read(json: Json) -> Result<Listed, Bad> {
        let mut fields = Fields::of(json)?;
        let version = fields.number("version")?;
        if version == 0 {
            return Err(Bad::new("version: 0; the first is 1"));
        }
        let length = fields.optional("length").map(|json| number(&json));
        let hashes = match fields.optional("hashes") {
            None => None,
            Some(Json::Map(map)) => Some(Hashes::read(map)?),
            Some(_) => return Err(Bad::new("hashes: not an object")),
        };
        Ok(Listed {
            version,
            length: length.transpose().map_err(|bad| bad.within("length"))?,
            hashes,
        })
    }

    /// The version that counts.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The most bytes that are worth fetching.
    #[must_use]
    pub fn longest(&self, role: &Role) -> usize {
        let most = longest(role);
        let listed = self.length.and_then(|length| usize::try_from(length).ok());
        listed.map_or(most, |length| length.min(most))
    }

    /// Holds bytes against length and hashes, where they are listed.
    pub(super) fn check_bytes(&self, role: &Role, by: &Role, bytes: &[u8]) -> Result<(), TufError> {
        let mixed = |what| TufError::Mixed {
            role: role.clone(),
            what,
            by: by.clone(),
        };
        let len = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if self.length.is_some_and(|length| length != len) {
            return Err(mixed(Differs::Length));
        }
        if let Some(hashes) = &self.hashes
            && !hashes.match_bytes(bytes)
        {
            return Err(mixed(Differs::Hash));
        }
        Ok(())
    }

    pub(super) fn check_version(&self, role: &Role, by: &Role, got: u64) -> Result<(), TufError> {
        if got == self.version {
            return Ok(());
        }
        Err(TufError::Mixed {
            role: role.clone(),
            what: Differs::Version,
            by: by.clone(),
        })
    }
}

/// What a timestamp says.
#[derive(Debug, Clone)]
pub struct Timestamp {
    snapshot: Listed,
    issued: Option<UnixTime>,
}

impl Document for Timestamp {}

impl Read for Timestamp {
    const TYPE: &'static str = "timestamp";
    const MAX: usize = TIMESTAMP_MAX;

    #[expect(private_interfaces, reason = "as the trait's")]
    fn read(fields: &mut Fields) -> Result<Timestamp, Bad> {
        let mut meta = fields.map("meta")?;
        let snapshot = meta.remove("snapshot.json");
        let snapshot = snapshot.ok_or_else(|| Bad::new("meta: no `snapshot.json`"))?;
        if !meta.is_empty() {
            return Err(Bad::new("meta: more than `snapshot.json`"));
        }
        let issued = match fields.optional("x-reconf-issued") {
            None => None,
            Some(json) => {
                let time = super::fields::text(json).ok();
                let time = time.and_then(|text| UnixTime::parse(&text));
                Some(time.ok_or_else(|| Bad::new("x-reconf-issued: not a time"))?)
            }
        };
        Ok(Timestamp {
            snapshot: Listed::read(snapshot).map_err(|bad| bad.within("snapshot.json"))?,
            issued,
        })
    }
}

impl Timestamp {
    /// The snapshot that counts.
    #[must_use]
    pub fn snapshot(&self) -> &Listed {
        &self.snapshot
    }

    /// When it was signed, where it says so (`x-reconf-issued`).
    #[must_use]
    pub fn issued(&self) -> Option<UnixTime> {
        self.issued
    }
}

/// What a snapshot says.
#[derive(Debug, Clone)]
pub struct Snapshot {
    meta: BTreeMap<Role, Listed>,
}

impl Document for Snapshot {}

impl Read for Snapshot {
    const TYPE: &'static str = "snapshot";
    const MAX: usize = SNAPSHOT_MAX;

    #[expect(private_interfaces, reason = "as the trait's")]
    fn read(fields: &mut Fields) -> Result<Snapshot, Bad> {
        let mut meta = BTreeMap::new();
        for (file, json) in fields.map("meta")? {
            let name = file
                .strip_suffix(".json")
                .ok_or_else(|| Bad::new("meta: a name that does not end in `.json`"))?;
            let role = match name {
                "targets" => Role::Targets,
                // Old repositories list these; who follows the rules needs no such line.
                "root" | "timestamp" | "snapshot" | "mirrors" => continue,
                name => Role::Delegated(RoleName::parse(name).map_err(|bad| bad.within("meta"))?),
            };
            let listed = Listed::read(json).map_err(|bad| bad.within("meta"))?;
            meta.insert(role, listed);
        }
        if !meta.contains_key(&Role::Targets) {
            return Err(Bad::new("meta: no `targets.json`"));
        }
        Ok(Snapshot { meta })
    }
}

impl Snapshot {
    /// The document of a role that counts.
    ///
    /// # Errors
    ///
    /// [`TufError::NotInSnapshot`].
    pub fn listed(&self, role: &Role) -> Result<&Listed, TufError> {
        self.meta
            .get(role)
            .ok_or_else(|| TufError::NotInSnapshot { role: role.clone() })
    }

    /// Nothing that `old` listed may be older here, or missing.
    pub(super) fn check_not_behind(&self, old: &Snapshot) -> Result<(), TufError> {
        for (role, old) in &old.meta {
            let new = self
                .meta
                .get(role)
                .ok_or_else(|| TufError::Vanished { role: role.clone() })?;
            if new.version < old.version {
                return Err(TufError::Rollback {
                    role: role.clone(),
                    have: old.version,
                    got: new.version,
                });
            }
        }
        Ok(())
    }
}
