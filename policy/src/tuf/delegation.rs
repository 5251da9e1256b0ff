//! Whom a targets document trusts, and with which targets.
//!
//! Knows names, patterns, keys. The order of roles is the order of trust. Hash
//! bins come in both forms: roles with `path_hash_prefixes`, and the short form
//! of TAP 15 (`succinct_roles`).

use std::collections::BTreeSet;

use super::error::Bad;
use super::fields::{Fields, list, text};
use super::json::Json;
use super::key::Keyring;
use super::limits::{DELEGATIONS_MAX, PATTERNS_MAX, ROLE_NAME_MAX};
use super::name::{RoleName, TargetPath};
use super::pattern::{HashPrefix, PathPattern, path_hash};
use super::signature::Quorum;

/// The delegations of one document; none by default.
#[derive(Debug, Clone, Default)]
pub(super) struct Delegations {
    keys: Keyring,
    roles: Roles,
}

#[derive(Debug, Clone)]
enum Roles {
    Named(Vec<Delegation>),
    Bins(Bins),
}

impl Default for Roles {
    fn default() -> Roles {
        Roles::Named(Vec::new())
    }
}

/// Whether later delegations are asked where this one's role is silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    GoOn,
    /// A terminating delegation.
    Stop,
}

#[derive(Debug, Clone)]
struct Delegation {
    name: RoleName,
    quorum: Quorum,
    then: Then,
    covers: Covers,
}

#[derive(Debug, Clone)]
enum Covers {
    Nothing,
    Paths(Vec<PathPattern>),
    Hashes(Vec<HashPrefix>),
}

impl Covers {
    fn covers(&self, path: &TargetPath) -> bool {
        match self {
            Covers::Nothing => false,
            Covers::Paths(patterns) => patterns.iter().any(|pattern| pattern.covers(path)),
            Covers::Hashes(prefixes) => prefixes.iter().any(|prefix| prefix.covers(path)),
        }
    }
}

/// `2^bits` roles, `PREFIX-00` and on, each for one part of all hashes.
#[derive(Debug, Clone)]
struct Bins {
    prefix: String,
    bits: u32,
    quorum: Quorum,
}

impl Bins {
    fn read(json: Json) -> Result<Bins, Bad> {
        let mut fields = Fields::of(json)?;
        let quorum = Quorum::read(&mut fields)?;
        let bits = fields.number("bit_length")?;
        let bits = u32::try_from(bits)
            .ok()
            .filter(|bits| (1..=32).contains(bits));
        let bins = Bins {
            prefix: fields.text("name_prefix")?,
            bits: bits.ok_or_else(|| Bad::new("bit_length: not 1 to 32"))?,
            quorum,
        };
        // The dash and at most eight digits.
        if bins.prefix.len().saturating_add(9) > ROLE_NAME_MAX {
            return Err(Bad::new("name_prefix: too long"));
        }
        Ok(bins)
    }

    fn name(&self, bin: u32) -> Option<RoleName> {
        let digits = usize::try_from(self.bits.div_ceil(4)).ok()?;
        RoleName::parse(&format!("{}-{bin:0digits$x}", self.prefix)).ok()
    }

    fn of(&self, path: &TargetPath) -> Option<RoleName> {
        let start = *path_hash(path).first_chunk::<4>()?;
        let unused = 32u32.checked_sub(self.bits)?;
        self.name(u32::from_be_bytes(start).checked_shr(unused)?)
    }

    fn has(&self, name: &RoleName) -> bool {
        let bin = name.as_str().rsplit_once('-');
        let bin = bin.and_then(|(_, digits)| u32::from_str_radix(digits, 16).ok());
        // Spelled exactly so, and below 2^bits.
        bin.is_some_and(|bin| {
            self.name(bin).as_ref() == Some(name) && u64::from(bin) >> self.bits == 0
        })
    }
}

impl Delegations {
    pub(super) fn read(json: Json) -> Result<Delegations, Bad> {
        let mut fields = Fields::of(json)?;
        let keys = Keyring::read(fields.map("keys")?).map_err(|bad| bad.within("keys"))?;
        let roles = match (fields.optional("roles"), fields.optional("succinct_roles")) {
            (Some(roles), None) => {
                Roles::Named(read_roles(roles).map_err(|bad| bad.within("roles"))?)
            }
            (None, Some(bins)) => {
                Roles::Bins(Bins::read(bins).map_err(|bad| bad.within("succinct_roles"))?)
            }
            _ => {
                return Err(Bad::new(
                    "exactly one of `roles` and `succinct_roles` must be",
                ));
            }
        };
        Ok(Delegations { keys, roles })
    }

    pub(super) fn keys(&self) -> &Keyring {
        &self.keys
    }

    pub(super) fn quorum(&self, name: &RoleName) -> Option<&Quorum> {
        match &self.roles {
            Roles::Named(roles) => roles
                .iter()
                .find(|role| role.name == *name)
                .map(|role| &role.quorum),
            Roles::Bins(bins) => bins.has(name).then_some(&bins.quorum),
        }
    }

    /// The roles that may speak about a target, the most trusted first, none
    /// after a terminating one; and whether such a one was met.
    pub(super) fn covering(&self, path: &TargetPath) -> (Vec<RoleName>, Then) {
        match &self.roles {
            Roles::Named(roles) => {
                let mut names = Vec::new();
                for role in roles.iter().filter(|role| role.covers.covers(path)) {
                    names.push(role.name.clone());
                    if role.then == Then::Stop {
                        return (names, Then::Stop);
                    }
                }
                (names, Then::GoOn)
            }
            // TAP 15: every bin is a terminating delegation.
            Roles::Bins(bins) => (bins.of(path).into_iter().collect(), Then::Stop),
        }
    }
}

fn read_roles(json: Json) -> Result<Vec<Delegation>, Bad> {
    let mut names = BTreeSet::new();
    let mut roles = Vec::new();
    for json in list(json, DELEGATIONS_MAX)? {
        let role = read_role(json)?;
        if !names.insert(role.name.clone()) {
            return Err(Bad::new(format!("`{}` comes twice", role.name)));
        }
        roles.push(role);
    }
    Ok(roles)
}

fn read_role(json: Json) -> Result<Delegation, Bad> {
    let mut fields = Fields::of(json)?;
    let name = RoleName::parse(&fields.text("name")?)?;
    let rest = |mut fields: Fields| {
        Ok((
            Quorum::read(&mut fields)?,
            match fields.flag("terminating")? {
                Some(true) => Then::Stop,
                Some(false) | None => Then::GoOn,
            },
            read_covers(&mut fields)?,
        ))
    };
    let (quorum, then, covers) = rest(fields).map_err(|bad: Bad| bad.within(&name.to_string()))?;
    Ok(Delegation {
        name,
        quorum,
        then,
        covers,
    })
}

fn read_covers(fields: &mut Fields) -> Result<Covers, Bad> {
    let paths = fields.optional("paths");
    let hashes = fields.optional("path_hash_prefixes");
    match (paths, hashes) {
        (None, None) => Ok(Covers::Nothing),
        (Some(json), None) => Ok(Covers::Paths(each(json, PathPattern::parse)?)),
        (None, Some(json)) => Ok(Covers::Hashes(each(json, HashPrefix::parse)?)),
        (Some(_), Some(_)) => Err(Bad::new("both `paths` and `path_hash_prefixes`")),
    }
}

fn each<T>(json: Json, parse: impl Fn(String) -> Result<T, Bad>) -> Result<Vec<T>, Bad> {
    let list = list(json, PATTERNS_MAX)?;
    list.into_iter().map(|json| parse(text(json)?)).collect()
}
