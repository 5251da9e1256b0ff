//! `grants.toml`: which tenant may load which images.
//!
//! Deny by default: an empty file, or none, permits nothing. There is no rule
//! that denies and no order: a request is allowed when one grant allows it.
//! The sample is `docs/samples/grants.toml`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::read::Source;
use super::{FileError, Problem};
use crate::ids::{Digest, ImageName, ImagePattern, RegionType, TenantName, VmId};

/// The parsed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grants {
    tenants: BTreeSet<TenantName>,
    vms: BTreeMap<VmId, TenantName>,
    rules: Vec<GrantRule>,
    digest: Digest,
}

/// One `[[grant]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantRule {
    /// Who may.
    pub tenant: TenantName,
    /// Load which images.
    pub images: Vec<ImagePattern>,
    /// In regions of which types; none stated: of any.
    pub region_types: Option<Vec<RegionType>>,
    /// Its line in the file.
    pub line: u32,
}

/// What a grant permits. A slot's owner may clear and reset it without a
/// grant, so that those are no operations here; a file that names them is
/// refused, for leaving them out would not forbid them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Operation {
    /// Load an image of the signed list.
    Load,
}

impl<'de> Deserialize<'de> for Operation {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Operation, D::Error> {
        use serde::de::Error as _;
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        match &*text {
            "load" => Ok(Operation::Load),
            "clear" | "reset" => Err(D::Error::custom(format_args!(
                "`{text}` needs no grant: whoever has a slot may always clear and reset it"
            ))),
            other => Err(D::Error::unknown_variant(other, &["load"])),
        }
    }
}

pub(super) const SECTIONS: [(&str, &[&str]); 2] = [
    ("[[tenant]]", &["name", "vms"]),
    (
        "[[grant]]",
        &["tenant", "images", "operations", "region_types"],
    ),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    tenant: Vec<TenantTable>,
    #[serde(default)]
    grant: Vec<GrantTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TenantTable {
    name: Spanned<TenantName>,
    #[serde(default)]
    vms: Vec<Spanned<VmId>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GrantTable {
    tenant: Spanned<TenantName>,
    images: Spanned<Vec<ImagePattern>>,
    operations: Option<Spanned<Vec<Operation>>>,
    region_types: Option<Spanned<Vec<RegionType>>>,
}

impl Grants {
    /// What a host without the file has: nothing is permitted.
    #[must_use]
    pub fn none() -> Grants {
        Grants {
            tenants: BTreeSet::new(),
            vms: BTreeMap::new(),
            rules: Vec::new(),
            digest: Digest::of(b""),
        }
    }

    /// Reads the file.
    ///
    /// # Errors
    ///
    /// [`FileError`] with line and column.
    pub fn parse(file: &Path, bytes: &[u8]) -> Result<Grants, FileError> {
        let name = file.display().to_string();
        let source = Source::new(&name, bytes)?;
        let raw: File = source.read(&SECTIONS)?;
        let mut grants = Grants {
            digest: Digest::of(bytes),
            ..Grants::none()
        };
        let mut spellings = BTreeMap::new();
        for tenant in raw.tenant {
            grants.add_tenant(tenant, &mut spellings, source)?;
        }
        for grant in raw.grant {
            grants.add_rule(grant, source)?;
        }
        Ok(grants)
    }

    /// The tenant that the file says owns this VM.
    #[must_use]
    pub fn tenant_of(&self, vm: VmId) -> Option<&TenantName> {
        self.vms.get(&vm)
    }

    /// The rules, in the order of the file.
    #[must_use]
    pub fn rules(&self) -> &[GrantRule] {
        &self.rules
    }

    /// The tenants that the file declares, by name.
    pub fn tenants(&self) -> impl Iterator<Item = &TenantName> {
        self.tenants.iter()
    }

    /// SHA-256 of the file.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    fn add_tenant(
        &mut self,
        table: TenantTable,
        spellings: &mut BTreeMap<String, u32>,
        source: Source<'_>,
    ) -> Result<(), FileError> {
        let span = table.name.span();
        let (line, _) = source.place(span.start);
        let name = table.name.into_inner();
        if let Some(first) = spellings.insert(name.as_str().to_lowercase(), line) {
            let why =
                format!("the tenant {name} stands at line {first} already, if case is set aside");
            return Err(source.error(span, Problem::Conflict(why)));
        }
        for vm in table.vms {
            if let Some(other) = self.vms.insert(*vm.get_ref(), name.clone()) {
                let why = format!("the VM {} is {other}'s already", vm.get_ref());
                return Err(source.error(vm.span(), Problem::Conflict(why)));
            }
        }
        self.tenants.insert(name);
        Ok(())
    }

    fn add_rule(&mut self, table: GrantTable, source: Source<'_>) -> Result<(), FileError> {
        let span = table.tenant.span();
        let (line, _) = source.place(span.start);
        let tenant = table.tenant.into_inner();
        if !self.tenants.contains(&tenant) {
            let why = format!("no [[tenant]] is named `{tenant}`");
            return Err(source.error(span, Problem::Value(why)));
        }
        let empty = |span| {
            source.error(
                span,
                Problem::Value("an empty list permits nothing: take the grant out".to_owned()),
            )
        };
        if table.images.get_ref().is_empty() {
            return Err(empty(table.images.span()));
        }
        if let Some(operations) = table.operations.filter(|list| list.get_ref().is_empty()) {
            return Err(empty(operations.span()));
        }
        let region_types = match table.region_types {
            Some(types) if types.get_ref().is_empty() => return Err(empty(types.span())),
            other => other.map(Spanned::into_inner),
        };
        self.rules.push(GrantRule {
            tenant,
            images: table.images.into_inner(),
            region_types,
            line,
        });
        Ok(())
    }
}

impl GrantRule {
    /// The pattern by which this rule lets `tenant` load this image into a
    /// region of this type.
    #[must_use]
    pub fn allows(
        &self,
        tenant: &TenantName,
        image: (&ImageName, &Digest),
        region_type: &RegionType,
    ) -> Option<&ImagePattern> {
        let types = self.region_types.as_ref();
        if self.tenant != *tenant || types.is_some_and(|types| !types.contains(region_type)) {
            return None;
        }
        self.images
            .iter()
            .find(|pattern| pattern.matches(image.0, image.1))
    }
}
