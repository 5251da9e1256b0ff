//! The one path through the checks.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::explain::{Check, Trail};
use super::{Denial, Loads, Policy, RegionKey, Revision, judge};
use crate::files::RegionFacts;
use crate::ids::{
    Digest, FunctionId, ImageName, ImagePattern, ImageRef, InterfaceId, Role, TargetPath,
    TenantName, VmId,
};
use crate::time::UnixTime;
use crate::trust::{Catalogue, Format, Image};

/// A load that is asked for. Who asks is what the channel says, never what a
/// message says; which region, what the registrar says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ask {
    /// The VM.
    pub vm: VmId,
    /// Its tenant, if the registrar named one.
    pub tenant: Option<TenantName>,
    /// The region.
    pub region: RegionKey,
    /// The image.
    pub image: ImageRef,
}

/// The bitstream to load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GrantedVariant {
    /// Where it lies, below `targets` in the repository.
    pub path: TargetPath,
    /// SHA-256 of the file.
    pub sha256: Digest,
    /// Bytes in the file.
    pub size: u64,
    /// The container.
    pub format: Format,
    /// Which regions it fits.
    pub interface_id: InterfaceId,
}

/// Which line of `grants.toml` allowed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// The line of the `[[grant]]`.
    pub line: u32,
    /// Its tenant.
    pub tenant: TenantName,
    /// The pattern that matched.
    pub images: ImagePattern,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the grant of {} to {} (line {})",
            self.images, self.tenant, self.line
        )
    }
}

/// A load that is allowed, as of this policy and this moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Grant {
    /// The image, as resolved.
    pub image: ImageName,
    /// Over its set of variants.
    pub image_digest: Digest,
    /// The bitstream for this region.
    pub variant: GrantedVariant,
    /// The function that appears.
    pub function_id: FunctionId,
    /// Who vouches for it.
    pub role: Role,
    /// The version of the signed list.
    pub list_version: u64,
    /// The policy.
    pub revision: Revision,
    /// The rule.
    pub rule: Rule,
}

/// An image that a VM may load into a region.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// The image.
    pub name: ImageName,
    /// Over its set of variants.
    pub digest: Digest,
    /// The function that appears.
    pub function_id: FunctionId,
    /// Bytes of the bitstream for this region.
    pub size: u64,
}

/// May this VM load this image into this region?
///
/// # Errors
///
/// [`Denial`], with the reason. For a name without version: that of the
/// newest version.
pub fn decide(policy: &Policy, ask: &Ask, now: UnixTime) -> Result<Grant, Denial> {
    evaluate(policy, ask, now, &mut Trail::silent())
}

/// What may this VM load into this region? By name, old versions before new ones.
///
/// # Errors
///
/// [`Denial`] where the answer is "nothing, whatever it is": stopped, no
/// tenant, no list, an expired one.
pub fn list(
    policy: &Policy,
    vm: VmId,
    tenant: Option<&TenantName>,
    region: &RegionKey,
    now: UnixTime,
) -> Result<Vec<Listed>, Denial> {
    let trail = &mut Trail::silent();
    let scene = Scene::set(policy, vm, tenant, region, now, trail)?;
    let listed = scene.catalogue.images().filter_map(|image| {
        let grant = scene.judge(image, trail).ok()?;
        Some(Listed {
            name: grant.image,
            digest: grant.image_digest,
            function_id: grant.function_id,
            size: grant.variant.size,
        })
    });
    Ok(listed.collect())
}

pub(super) fn evaluate(
    policy: &Policy,
    ask: &Ask,
    now: UnixTime,
    trail: &mut Trail<'_>,
) -> Result<Grant, Denial> {
    let scene = Scene::set(policy, ask.vm, ask.tenant.as_ref(), &ask.region, now, trail)?;
    let images = scene.find(&ask.image, trail)?;
    let mut first_denial = None;
    for image in &images {
        match scene.judge(image, trail) {
            Ok(grant) => return Ok(grant),
            Err(denial) => first_denial = first_denial.or(Some(denial)),
        }
    }
    Err(first_denial.unwrap_or_else(|| scene.unknown(&ask.image)))
}

/// Who asks, for where, by which list: what is checked before any image.
pub(super) struct Scene<'a> {
    policy: &'a Policy,
    pub(super) tenant: &'a TenantName,
    pub(super) facts: RegionFacts,
    pub(super) catalogue: &'a Arc<Catalogue>,
}

impl<'a> Scene<'a> {
    pub(super) fn set(
        policy: &'a Policy,
        vm: VmId,
        registered: Option<&'a TenantName>,
        region: &RegionKey,
        now: UnixTime,
        trail: &mut Trail<'_>,
    ) -> Result<Scene<'a>, Denial> {
        let loads = match policy.loads() {
            Loads::Decided => Ok(()),
            Loads::Stopped => Err(Denial::Stopped),
        };
        trail.step(Check::Loads, None, loads, |()| {
            "no operator stopped them".to_owned()
        })?;
        let facts = policy.facts(region).ok_or_else(|| Denial::UnknownRegion {
            region: region.clone(),
        });
        let facts = trail.step(Check::Region, None, facts, |facts| {
            format!(
                "{region} is {} of type {}",
                facts.interface_id, facts.region_type
            )
        })?;
        let configured = policy.grants().tenant_of(vm);
        let tenant = trail.step(
            Check::Tenant,
            None,
            tenant(vm, registered, configured),
            |tenant| format!("the VM is {tenant}'s"),
        )?;
        let catalogue = policy.catalogue().map_err(|trouble| Denial::NoCatalogue {
            trouble: trouble.clone(),
        });
        let catalogue = trail.step(Check::Catalogue, None, catalogue, |catalogue| {
            format!(
                "the signed list, version {}, is believed",
                catalogue.version()
            )
        })?;
        judge::fresh(catalogue, now, trail)?;
        Ok(Scene {
            policy,
            tenant,
            facts,
            catalogue,
        })
    }

    fn find(&self, image: &ImageRef, trail: &mut Trail<'_>) -> Result<Vec<Arc<Image>>, Denial> {
        let found = self.catalogue.find(image);
        let found = if found.is_empty() {
            Err(self.unknown(image))
        } else {
            Ok(found)
        };
        trail.step(Check::Image, None, found, |found| {
            let names: Vec<String> = found.iter().map(|image| image.name.to_string()).collect();
            format!("{image} can be {}", names.join(", "))
        })
    }

    fn unknown(&self, image: &ImageRef) -> Denial {
        Denial::UnknownImage {
            image: image.clone(),
            version: self.catalogue.version(),
        }
    }

    /// The rule that lets the tenant load this image.
    pub(super) fn rule(&self, image: &Image) -> Result<Rule, Denial> {
        let region_type = &self.facts.region_type;
        let allowed = self.policy.grants().rules().iter().find_map(|rule| {
            let pattern = rule.allows(self.tenant, (&image.name, &image.digest), region_type)?;
            Some(Rule {
                line: rule.line,
                tenant: rule.tenant.clone(),
                images: pattern.clone(),
            })
        });
        allowed.ok_or_else(|| Denial::NotGranted {
            tenant: self.tenant.clone(),
            image: image.name.clone(),
            region_type: region_type.clone(),
        })
    }

    pub(super) fn accepted_roles(&self) -> &'a [crate::ids::RolePattern] {
        &self.policy.host().require.roles
    }

    fn judge(&self, image: &Image, trail: &mut Trail<'_>) -> Result<Grant, Denial> {
        let rule = trail.step(Check::Grant, Some(image), self.rule(image), Rule::to_string)?;
        judge::standing(self.catalogue, image, self.accepted_roles(), trail)?;
        let variant = judge::fit(image, image.variants.iter(), &self.facts, trail)?;
        Ok(Grant {
            image: image.name.clone(),
            image_digest: image.digest,
            variant: GrantedVariant {
                path: variant.path.clone(),
                sha256: variant.sha256,
                size: variant.size,
                format: variant.format,
                interface_id: variant.interface_id,
            },
            function_id: image.function_id,
            role: image.role.clone(),
            list_version: self.catalogue.version(),
            revision: self.policy.revision(),
            rule,
        })
    }
}

/// Registrar and grants file may both say whose a VM is; they must not differ.
fn tenant<'a>(
    vm: VmId,
    registered: Option<&'a TenantName>,
    configured: Option<&'a TenantName>,
) -> Result<&'a TenantName, Denial> {
    match (registered, configured) {
        (Some(registered), Some(configured)) if registered != configured => {
            Err(Denial::TenantConflict {
                vm,
                registered: registered.clone(),
                configured: configured.clone(),
            })
        }
        (Some(tenant), _) | (None, Some(tenant)) => Ok(tenant),
        (None, None) => Err(Denial::NoTenant { vm }),
    }
}
