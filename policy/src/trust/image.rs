//! Images and variants of a verified list.

use serde::{Deserialize, Serialize};

use super::list::{ImageEntry, VariantEntry};
use crate::ids::{
    Digest, Family, FunctionId, ImageName, InterfaceId, RegionType, Role, TargetPath,
};

/// The container of a bitstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Format {
    /// Intel's GBS.
    Gbs,
    /// AMD's `.bit`: a header for people, and configuration words.
    Bit,
    /// AMD's `.bin`: configuration words alone.
    Bin,
}

impl Format {
    /// How it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Format::Gbs => "gbs",
            Format::Bit => "bit",
            Format::Bin => "bin",
        }
    }
}

/// A signed, named set of variants.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Image {
    /// `publisher/name:version`.
    pub name: ImageName,
    /// Over its set of variants; see [`image_digest`].
    pub digest: Digest,
    /// Who vouches for it.
    pub role: Role,
    /// Images that replace one another.
    pub family: Family,
    /// Its generation in the family.
    pub epoch: u64,
    /// The function that appears.
    pub function_id: FunctionId,
    /// Its bitstreams.
    pub variants: Vec<Variant>,
}

/// One bitstream, for one interface id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Variant {
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
    /// Only regions of this type, if stated.
    pub region_type: Option<RegionType>,
}

/// An image's digest: SHA-256 of this text, whose lines end with a line feed.
///
/// ```text
/// reconf image 1
/// function FUNCTION-ID
/// variant FORMAT INTERFACE-ID REGION-TYPE SHA256 SIZE
/// ```
///
/// One `variant` line a variant, sorted by their bytes; ids in lower case with
/// dashes, `-` where no region type is stated, the digest as `sha256:…`, the
/// size in decimal. Name, role, epoch and path are left out: the digest says
/// what would be loaded, not what it is called.
#[must_use]
pub fn image_digest(entry: &ImageEntry) -> Digest {
    let mut lines: Vec<String> = entry.variants.iter().map(line).collect();
    lines.sort_unstable();
    let head = format!("reconf image 1\nfunction {}\n", entry.function_id);
    Digest::of((head + &lines.concat()).as_bytes())
}

fn line(variant: &VariantEntry) -> String {
    let region_type = variant
        .region_type
        .as_ref()
        .map_or("-", |region_type| region_type.as_str());
    let VariantEntry {
        format,
        interface_id,
        sha256,
        size,
        ..
    } = variant;
    format!(
        "variant {} {interface_id} {region_type} {sha256} {size}\n",
        format.name()
    )
}

impl Image {
    pub(super) fn new(entry: ImageEntry) -> Image {
        Image {
            digest: image_digest(&entry),
            name: entry.name,
            role: entry.role,
            family: entry.family,
            epoch: entry.epoch,
            function_id: entry.function_id,
            variants: entry.variants.into_iter().map(Variant::new).collect(),
        }
    }
}

impl Variant {
    fn new(entry: VariantEntry) -> Variant {
        let VariantEntry {
            path,
            sha256,
            size,
            format,
            interface_id,
            region_type,
        } = entry;
        Variant {
            path,
            sha256,
            size,
            format,
            interface_id,
            region_type,
        }
    }
}
