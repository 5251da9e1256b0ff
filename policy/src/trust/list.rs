//! `images.json`: the list as publishers write it.
//!
//! Knows the shape and what contradicts itself. Bytes of this shape are worth
//! nothing before their signature was checked: [`verify`](super::verify()) reads
//! them only after that, [`publish`](crate::publish) before it signs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::error::{Document, TrustError, read};
use super::{Format, LIST_MAX};
use crate::ids::{
    Digest, Family, FunctionId, ImageName, ImagePattern, InterfaceId, RegionType, Role, TargetPath,
};
use crate::time::UnixTime;

/// The format that is known.
pub const FORMAT: u32 = 1;
/// Most variants of one image.
const VARIANTS_MAX: usize = 64;

/// The whole list. A field that is not known refuses it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageList {
    /// The format: [`FORMAT`].
    pub reconf_images: u32,
    /// Rises with every list that is published; from 1.
    pub version: u64,
    /// When the list was made. Optional; the host's time is never taken to be before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issued: Option<UnixTime>,
    /// From then on the list allows nothing.
    pub expires: UnixTime,
    /// The images.
    pub images: Vec<ImageEntry>,
    /// What is no longer allowed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revoked: Vec<RevokedEntry>,
}

/// One image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageEntry {
    /// `publisher/name:version`.
    pub name: ImageName,
    /// Who vouches for it: a role of the same publisher.
    pub role: Role,
    /// Images that replace one another.
    pub family: Family,
    /// Counts the generations of a family; raised when older ones are unsafe.
    pub epoch: u64,
    /// The function that appears.
    pub function_id: FunctionId,
    /// Its bitstreams: at least one.
    pub variants: Vec<VariantEntry>,
}

/// One bitstream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VariantEntry {
    /// Where it lies, below `targets`.
    pub path: TargetPath,
    /// SHA-256 of the file, container and all.
    pub sha256: Digest,
    /// Bytes in the file.
    pub size: u64,
    /// The container.
    pub format: Format,
    /// Which regions it fits.
    pub interface_id: InterfaceId,
    /// Only regions of this type, if stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region_type: Option<RegionType>,
}

/// What is no longer allowed: exactly one of the four.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RevokedEntry {
    /// An image, or one bitstream wherever it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// Images by name: `publisher/name:version`, `publisher/name` or `publisher/*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImagePattern>,
    /// All that a role vouches for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// With `below_epoch`: the older images of a family.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<Family>,
    /// The lowest epoch that is still allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below_epoch: Option<u64>,
}

fn bad(why: impl std::fmt::Display) -> TrustError {
    TrustError::malformed(Document::List, why)
}

/// Reads and checks the shape; says nothing about trust.
pub(crate) fn parse(bytes: &[u8]) -> Result<ImageList, TrustError> {
    let list: ImageList = read(Document::List, bytes, LIST_MAX)?;
    check(&list)?;
    Ok(list)
}

fn check(list: &ImageList) -> Result<(), TrustError> {
    if list.reconf_images != FORMAT {
        return Err(bad("`reconf_images` is not 1, the format that is known"));
    }
    if list.version == 0 {
        return Err(bad("`version` counts from 1"));
    }
    let mut names = BTreeMap::new();
    let mut targets: BTreeMap<&TargetPath, &VariantEntry> = BTreeMap::new();
    for image in &list.images {
        if names.insert(&image.name, ()).is_some() {
            return Err(bad(format_args!(
                "the image {} is listed twice",
                image.name
            )));
        }
        if image.role.publisher != image.name.title.publisher {
            return Err(TrustError::RoleScope {
                image: image.name.clone(),
                role: image.role.clone(),
            });
        }
        check_variants(image)?;
        for variant in &image.variants {
            let first = targets.entry(&variant.path).or_insert(variant);
            if (first.sha256, first.size) != (variant.sha256, variant.size) {
                return Err(bad(format_args!(
                    "the path {} is given to two files",
                    variant.path
                )));
            }
        }
    }
    list.revoked.iter().try_for_each(check_revoked)
}

fn check_variants(image: &ImageEntry) -> Result<(), TrustError> {
    let name = &image.name;
    if image.variants.is_empty() || image.variants.len() > VARIANTS_MAX {
        return Err(bad(format_args!(
            "the image {name} needs 1 to {VARIANTS_MAX} variants"
        )));
    }
    for (index, variant) in image.variants.iter().enumerate() {
        if variant.size == 0 {
            return Err(bad(format_args!(
                "the variant {} of {name} has no bytes",
                variant.path
            )));
        }
        // Two that fit one region would leave the choice to chance.
        let clash = image.variants.iter().take(index).find(|other| {
            let types = (&other.region_type, &variant.region_type);
            let overlap = match types {
                (Some(one), Some(two)) => one == two,
                (None, _) | (_, None) => true,
            };
            other.interface_id == variant.interface_id && overlap
        });
        if let Some(other) = clash {
            let (a, b) = (&other.path, &variant.path);
            return Err(bad(format_args!(
                "the variants {a} and {b} of {name} fit the same regions"
            )));
        }
    }
    Ok(())
}

fn check_revoked(entry: &RevokedEntry) -> Result<(), TrustError> {
    let RevokedEntry {
        digest,
        image,
        role,
        family,
        below_epoch,
    } = entry;
    let parts = [
        digest.is_some(),
        image.is_some(),
        role.is_some(),
        family.is_some(),
    ];
    if parts.iter().filter(|given| **given).count() != 1 {
        return Err(bad(
            "a revocation names one of `digest`, `image`, `role` and `family`",
        ));
    }
    if family.is_some() != below_epoch.is_some() {
        return Err(bad("`family` and `below_epoch` go together"));
    }
    if matches!(image, Some(ImagePattern::Digest(_))) {
        return Err(bad("a revocation by digest is written as `digest`"));
    }
    Ok(())
}
