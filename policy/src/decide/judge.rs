//! The checks that the first and the second verification share: is this image
//! fit to be loaded into a region like that, whoever asks?

use super::Denial;
use super::explain::{Check, Trail};
use crate::files::RegionFacts;
use crate::ids::{InterfaceId, RolePattern};
use crate::time::UnixTime;
use crate::trust::{Catalogue, Freshness, Image, Variant};

/// Nothing is taken from an expired list.
pub(super) fn fresh(
    catalogue: &Catalogue,
    wall: UnixTime,
    trail: &mut Trail<'_>,
) -> Result<(), Denial> {
    let verdict = match catalogue.freshness(wall) {
        Freshness::Fresh { .. } => Ok(()),
        Freshness::Expired { since } => Err(Denial::CatalogueExpired {
            version: catalogue.version(),
            expired: since,
            now: catalogue.floor().now(wall),
        }),
    };
    trail.step(Check::Fresh, None, verdict, |()| {
        match catalogue.freshness(wall) {
            Freshness::Fresh { until } | Freshness::Expired { since: until } => {
                format!(
                    "the signed list, version {}, is valid until {until}",
                    catalogue.version()
                )
            }
        }
    })
}

/// Role, revocation, epoch.
pub(super) fn standing(
    catalogue: &Catalogue,
    image: &Image,
    accepted: &[RolePattern],
    trail: &mut Trail<'_>,
) -> Result<(), Denial> {
    trail.step(Check::Role, Some(image), role(image, accepted), |()| {
        format!("its role is {}", image.role)
    })?;
    let revoked = match catalogue.revocation(image) {
        None => Ok(()),
        Some(by) => Err(Denial::Revoked {
            image: image.name.clone(),
            by,
        }),
    };
    trail.step(Check::Revocation, Some(image), revoked, |()| {
        "nothing revokes it".to_owned()
    })?;
    let minimum = catalogue.minimum_epoch(&image.family);
    let epoch = if image.epoch >= minimum {
        Ok(())
    } else {
        let (name, family) = (image.name.clone(), image.family.clone());
        Err(Denial::EpochTooLow {
            image: name,
            family,
            epoch: image.epoch,
            minimum,
        })
    };
    trail.step(Check::Epoch, Some(image), epoch, |()| {
        format!(
            "its epoch is {}, and {} starts at {minimum}",
            image.epoch, image.family
        )
    })
}

/// No accepted role named: any that is in the signed list.
pub(super) fn role(image: &Image, accepted: &[RolePattern]) -> Result<(), Denial> {
    if accepted.is_empty() || accepted.iter().any(|pattern| pattern.accepts(&image.role)) {
        return Ok(());
    }
    Err(Denial::RoleMissing {
        image: image.name.clone(),
        role: image.role.clone(),
        accepted: accepted.to_vec(),
    })
}

/// The variant for this region, and that it is not too long.
pub(super) fn fit<'a>(
    image: &'a Image,
    candidates: impl Iterator<Item = &'a Variant>,
    region: &RegionFacts,
    trail: &mut Trail<'_>,
) -> Result<&'a Variant, Denial> {
    let mut have: Vec<InterfaceId> = Vec::new();
    let mut found = None;
    for variant in candidates {
        have.push(variant.interface_id);
        if made_for(variant, region) {
            found = Some(variant);
        }
    }
    let verdict = match found {
        None => Err(Denial::NoVariantForRegion {
            image: image.name.clone(),
            want: region.interface_id,
            region_type: region.region_type.clone(),
            have,
        }),
        Some(variant) if !region.engine.takes(variant.format) => Err(Denial::WrongFormat {
            image: image.name.clone(),
            format: variant.format,
            engine: region.engine,
        }),
        Some(variant) => Ok(variant),
    };
    let variant = trail.step(Check::Fit, Some(image), verdict, |variant| {
        format!(
            "{} is for {}, as the region is",
            variant.path, variant.interface_id
        )
    })?;
    let max = region.bitstream_max;
    let size = if variant.size <= max {
        Ok(())
    } else {
        Err(Denial::TooLarge {
            image: image.name.clone(),
            size: variant.size,
            max,
        })
    };
    trail.step(Check::Size, Some(image), size, |()| {
        format!("{} bytes of at most {max}", variant.size)
    })?;
    Ok(variant)
}

/// Made for the region, and in a container that its engine loads.
pub(super) fn fits(variant: &Variant, region: &RegionFacts) -> bool {
    made_for(variant, region) && region.engine.takes(variant.format)
}

/// Interface id equal, and the type too where the variant states one.
fn made_for(variant: &Variant, region: &RegionFacts) -> bool {
    variant.interface_id == region.interface_id
        && variant
            .region_type
            .as_ref()
            .is_none_or(|region_type| *region_type == region.region_type)
}
