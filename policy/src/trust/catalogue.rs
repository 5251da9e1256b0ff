//! The verified view: what may be loaded at all, by name, digest and path.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;

use super::list::ImageList;
use super::{Floor, Image, Variant};
use crate::ids::{
    Digest, Family, ImageName, ImagePattern, ImageRef, ImageTitle, Role, TargetPath, Version,
};
use crate::time::UnixTime;

/// A list that was verified. Immutable; only [`verify`](super::verify()) makes one.
#[derive(Debug, Clone)]
pub struct Catalogue {
    digest: Digest,
    expires: UnixTime,
    floor: Floor,
    by_title: BTreeMap<ImageTitle, BTreeMap<Version, Arc<Image>>>,
    by_digest: BTreeMap<Digest, Vec<Arc<Image>>>,
    by_path: BTreeMap<TargetPath, Vec<Arc<Image>>>,
    revoked_digests: BTreeSet<Digest>,
    revoked_images: Vec<ImagePattern>,
    revoked_roles: BTreeSet<Role>,
}

/// Whether a catalogue may still allow anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Freshness {
    /// Until then.
    Fresh {
        /// When it expires.
        until: UnixTime,
    },
    /// Since then it allows nothing.
    Expired {
        /// When it expired.
        since: UnixTime,
    },
}

/// What a revocation struck.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Revocation {
    /// The image or the bitstream with this digest.
    Digest(Digest),
    /// The images of this name.
    Image(ImagePattern),
    /// All that this role vouches for.
    Role(Role),
}

impl std::fmt::Display for Revocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Revocation::Digest(digest) => write!(f, "the digest {digest}"),
            Revocation::Image(pattern) => write!(f, "the image {pattern}"),
            Revocation::Role(role) => write!(f, "the role {role}"),
        }
    }
}

impl Catalogue {
    /// Only for the verifier, which has checked the list.
    pub(super) fn new(list: ImageList, digest: Digest, floor: Floor) -> Catalogue {
        let mut catalogue = Catalogue {
            digest,
            expires: list.expires,
            floor,
            by_title: BTreeMap::new(),
            by_digest: BTreeMap::new(),
            by_path: BTreeMap::new(),
            revoked_digests: BTreeSet::new(),
            revoked_images: Vec::new(),
            revoked_roles: BTreeSet::new(),
        };
        for entry in list.images {
            catalogue.insert(Arc::new(Image::new(entry)));
        }
        for entry in list.revoked {
            catalogue.revoked_digests.extend(entry.digest);
            catalogue.revoked_images.extend(entry.image);
            catalogue.revoked_roles.extend(entry.role);
        }
        catalogue
    }

    fn insert(&mut self, image: Arc<Image>) {
        let ImageName { title, version } = image.name.clone();
        let paths: BTreeSet<&TargetPath> =
            image.variants.iter().map(|variant| &variant.path).collect();
        for path in paths {
            self.by_path
                .entry(path.clone())
                .or_default()
                .push(Arc::clone(&image));
        }
        self.by_digest
            .entry(image.digest)
            .or_default()
            .push(Arc::clone(&image));
        self.by_title
            .entry(title)
            .or_default()
            .insert(version, image);
    }

    /// The list's version.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.floor.version()
    }

    /// SHA-256 of the list's bytes.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The floor that this list raises: to be made durable before it is used.
    #[must_use]
    pub fn floor(&self) -> &Floor {
        &self.floor
    }

    /// May it still allow anything at this time of the wall clock?
    #[must_use]
    pub fn freshness(&self, wall: UnixTime) -> Freshness {
        if self.floor.now(wall) < self.expires {
            Freshness::Fresh {
                until: self.expires,
            }
        } else {
            Freshness::Expired {
                since: self.expires,
            }
        }
    }

    /// The images that a reference can mean, the newest first.
    #[must_use]
    pub fn find(&self, image: &ImageRef) -> Vec<Arc<Image>> {
        match image {
            ImageRef::Name(ImageName { title, version }) => self
                .by_title
                .get(title)
                .and_then(|images| images.get(version))
                .cloned()
                .into_iter()
                .collect(),
            ImageRef::Newest(title) => self
                .by_title
                .get(title)
                .into_iter()
                .flat_map(|images| images.values().rev())
                .cloned()
                .collect(),
            ImageRef::Digest(digest) => {
                let mut images = self.by_digest.get(digest).cloned().unwrap_or_default();
                images.sort_by(|a, b| b.name.cmp(&a.name));
                images
            }
        }
    }

    /// All images, by name, old versions before new ones.
    pub fn images(&self) -> impl Iterator<Item = &Arc<Image>> {
        self.by_title.values().flat_map(BTreeMap::values)
    }

    /// The images that have a variant at this path, each with that variant.
    pub fn targets<'a>(
        &'a self,
        path: &'a TargetPath,
    ) -> impl Iterator<Item = (&'a Arc<Image>, &'a Variant)> {
        self.by_path
            .get(path)
            .into_iter()
            .flatten()
            .flat_map(move |image| {
                let here = image
                    .variants
                    .iter()
                    .filter(move |variant| variant.path == *path);
                here.map(move |variant| (image, variant))
            })
    }

    /// What struck this image, if anything did: itself, its name, its role, or
    /// any one of its bitstreams.
    #[must_use]
    pub fn revocation(&self, image: &Image) -> Option<Revocation> {
        let digests = std::iter::once(image.digest).chain(image.variants.iter().map(|v| v.sha256));
        let by_digest = || {
            digests
                .into_iter()
                .find(|digest| self.revoked_digests.contains(digest))
        };
        let by_name = || {
            self.revoked_images
                .iter()
                .find(|p| p.matches(&image.name, &image.digest))
                .cloned()
        };
        by_digest()
            .map(Revocation::Digest)
            .or_else(|| by_name().map(Revocation::Image))
            .or_else(|| {
                self.revoked_roles
                    .get(&image.role)
                    .cloned()
                    .map(Revocation::Role)
            })
    }

    /// The lowest epoch of a family that is allowed: the highest that any
    /// list ever demanded.
    #[must_use]
    pub fn minimum_epoch(&self, family: &Family) -> u64 {
        self.floor.minimum_epoch(family)
    }
}
