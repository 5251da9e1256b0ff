//! Why not: the whole story for the operator, a closed word for the guest.

use serde::Serialize;
use thiserror::Error;

use crate::files::Engine;
use crate::ids::{
    Digest, Family, ImageName, ImageRef, InterfaceId, RegionType, Role, RolePattern, TargetPath,
    TenantName, VmId,
};
use crate::time::UnixTime;
use crate::trust::{Format, Revocation, TrustError};

use super::RegionKey;

/// Why there is no catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize)]
#[serde(tag = "trouble", rename_all = "kebab-case")]
pub enum CatalogueTrouble {
    /// No root, or no floor of it: nobody said whom to believe.
    #[error("no root of trust is enrolled on this host ({why})")]
    NotEnrolled {
        /// What is missing.
        why: String,
    },
    /// The repository's folder holds no list, or it cannot be read.
    #[error("the signed list cannot be read ({why})")]
    Unreadable {
        /// What the system said.
        why: String,
    },
    /// There is one, and it is not believed.
    #[error("the signed list is not believed: {0}")]
    Refused(TrustError),
}

/// A load that is not allowed.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize)]
#[serde(tag = "code", rename_all = "kebab-case")]
pub enum Denial {
    /// An operator stopped new loads.
    #[error("an operator stopped new loads on this host")]
    Stopped,
    /// No shell file has this region.
    #[error("no shell file has the region {region}")]
    UnknownRegion {
        /// The region.
        region: RegionKey,
    },
    /// Nobody says whose the VM is.
    #[error("neither its registrar nor the grants file says which tenant owns the VM {vm}")]
    NoTenant {
        /// The VM.
        vm: VmId,
    },
    /// Two say it, and differ.
    #[error(
        "the VM {vm} is {registered}'s for its registrar, and {configured}'s in the grants file"
    )]
    TenantConflict {
        /// The VM.
        vm: VmId,
        /// What the registrar says.
        registered: TenantName,
        /// What the file says.
        configured: TenantName,
    },
    /// There is nothing to decide by.
    #[error("{trouble}")]
    NoCatalogue {
        /// Why.
        trouble: CatalogueTrouble,
    },
    /// What there is has run out.
    #[error("the signed list, version {version}, expired at {expired}, and it is {now}")]
    CatalogueExpired {
        /// Its version.
        version: u64,
        /// When.
        expired: UnixTime,
        /// The time of the decision.
        now: UnixTime,
    },
    /// The list has no such image.
    #[error("the signed list, version {version}, has no image {image}")]
    UnknownImage {
        /// What was asked for.
        image: ImageRef,
        /// The list's version.
        version: u64,
    },
    /// No grant.
    #[error("no grant lets the tenant {tenant} load {image} into a region of type {region_type}")]
    NotGranted {
        /// The tenant.
        tenant: TenantName,
        /// The image.
        image: ImageName,
        /// The region's type.
        region_type: RegionType,
    },
    /// The host demands more than the publisher's word.
    #[error("{image} has the role {role}, and this host accepts {}", words(.accepted))]
    RoleMissing {
        /// The image.
        image: ImageName,
        /// Its role.
        role: Role,
        /// What the host accepts.
        accepted: Vec<RolePattern>,
    },
    /// Taken back.
    #[error("{image} was revoked, by {by}")]
    Revoked {
        /// The image.
        image: ImageName,
        /// What was revoked.
        by: Revocation,
    },
    /// Of a generation that is no longer safe.
    #[error("{image} has epoch {epoch}, and the family {family} starts at {minimum}")]
    EpochTooLow {
        /// The image.
        image: ImageName,
        /// Its family.
        family: Family,
        /// Its epoch.
        epoch: u64,
        /// The lowest that is allowed.
        minimum: u64,
    },
    /// None of its bitstreams fits.
    #[error("{image} fits {}, and the region is {want} of type {region_type}", words(.have))]
    NoVariantForRegion {
        /// The image.
        image: ImageName,
        /// The region's interface id.
        want: InterfaceId,
        /// The region's type.
        region_type: RegionType,
        /// What the image has.
        have: Vec<InterfaceId>,
    },
    /// The bitstream for the region's interface is in a container of another engine.
    #[error("the bitstream of {image} for this region is a {}, which the engine {} does not load", .format.name(), .engine.name())]
    WrongFormat {
        /// The image.
        image: ImageName,
        /// The container.
        format: Format,
        /// The card's engine.
        engine: Engine,
    },
    /// The bitstream that fits is too long.
    #[error("the bitstream of {image} has {size} bytes, above the region's limit of {max}")]
    TooLarge {
        /// The image.
        image: ImageName,
        /// Its size, in bytes.
        size: u64,
        /// The limit, in bytes.
        max: u64,
    },
    /// Second verification: nothing signed lies at this path.
    #[error("the signed list, version {version}, has nothing at the path {path}")]
    UnknownTarget {
        /// The path.
        path: TargetPath,
        /// The list's version.
        version: u64,
    },
    /// Second verification: other bytes were signed for this path.
    #[error("the bytes for {path} are {given}, and {signed} was signed")]
    DigestMismatch {
        /// The path.
        path: TargetPath,
        /// What was signed.
        signed: Digest,
        /// What is to be loaded.
        given: Digest,
    },
}

fn words<T: std::fmt::Display>(items: &[T]) -> String {
    items
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Whether a guest knows an image already: one that it is granted and that
/// fits one of its slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnList {
    /// It does.
    Listed,
    /// It does not, and must not learn of it.
    Foreign,
}

/// All that a guest learns of a denial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GuestView {
    /// Unknown, forbidden and foreign are one.
    Denied,
    /// An image of its own list was revoked, or is of a revoked generation.
    Revoked,
    /// An image of its own list fits another of its slots.
    WrongSlot,
    /// The host cannot decide now, whoever asks for whatever.
    Unavailable,
    /// The operator stopped new loads, whoever asks for whatever.
    Stopped,
}

impl Denial {
    /// What the guest may be told.
    #[must_use]
    pub fn guest_view(&self, own: OwnList) -> GuestView {
        match (self, own) {
            (Denial::Stopped, _) => GuestView::Stopped,
            (Denial::NoCatalogue { .. } | Denial::CatalogueExpired { .. }, _) => {
                GuestView::Unavailable
            }
            (Denial::Revoked { .. } | Denial::EpochTooLow { .. }, OwnList::Listed) => {
                GuestView::Revoked
            }
            (Denial::NoVariantForRegion { .. } | Denial::WrongFormat { .. }, OwnList::Listed) => {
                GuestView::WrongSlot
            }
            _ => GuestView::Denied,
        }
    }

    /// A stable name, the same as in JSON.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Denial::Stopped => "stopped",
            Denial::UnknownRegion { .. } => "unknown-region",
            Denial::NoTenant { .. } => "no-tenant",
            Denial::TenantConflict { .. } => "tenant-conflict",
            Denial::NoCatalogue { .. } => "no-catalogue",
            Denial::CatalogueExpired { .. } => "catalogue-expired",
            Denial::UnknownImage { .. } => "unknown-image",
            Denial::NotGranted { .. } => "not-granted",
            Denial::RoleMissing { .. } => "role-missing",
            Denial::Revoked { .. } => "revoked",
            Denial::EpochTooLow { .. } => "epoch-too-low",
            Denial::NoVariantForRegion { .. } => "no-variant-for-region",
            Denial::WrongFormat { .. } => "wrong-format",
            Denial::TooLarge { .. } => "too-large",
            Denial::UnknownTarget { .. } => "unknown-target",
            Denial::DigestMismatch { .. } => "digest-mismatch",
        }
    }

    /// What an operator can do about it, in one sentence.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Denial::Stopped => "Run `reconfctl resume` when loads may go on.",
            Denial::UnknownRegion { .. } => {
                "Check the card's shell file; then attach the VM again."
            }
            Denial::NoTenant { .. } => {
                "Name the tenant in `reconfctl vm attach`, or the VM under a [[tenant]] of the grants file."
            }
            Denial::TenantConflict { .. } => "Correct the registration or the grants file.",
            Denial::NoCatalogue { trouble } => match trouble {
                CatalogueTrouble::NotEnrolled { .. } => "Run `reconfctl trust enrol ROOT`.",
                CatalogueTrouble::Unreadable { .. } => {
                    "Put images.json and images.json.sig into the repository's folder."
                }
                CatalogueTrouble::Refused(error) => error.remedy(),
            },
            Denial::CatalogueExpired { .. } => {
                "Publish a list that expires later, with a higher version."
            }
            Denial::UnknownImage { .. } => "Publish the image, or ask for one that `list` shows.",
            Denial::NotGranted { .. } => "Add a [[grant]] for this tenant and image.",
            Denial::RoleMissing { .. } => {
                "Have the image tested and listed in a role that the host accepts, or change [require]."
            }
            Denial::Revoked { .. } | Denial::EpochTooLow { .. } => "Load a newer version.",
            Denial::NoVariantForRegion { .. } => "Publish a bitstream of it for this interface id.",
            Denial::WrongFormat { .. } => {
                "Publish a bitstream of it in a format that this card's engine loads."
            }
            Denial::TooLarge { .. } => "Raise bitstream_max in the shell or host file.",
            Denial::UnknownTarget { .. } => "Check that both processes read the same repository.",
            Denial::DigestMismatch { .. } => "Fetch the repository again.",
        }
    }
}
