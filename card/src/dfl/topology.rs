//! What a card has, as its feature lists tell.

use uuid::Uuid;

use super::damage::Place;
use super::features::Feature;
use super::header::small;

/// What the walk found on a card.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Topology {
    /// The static design, where the card has a management unit (FME).
    pub fme: Option<Fme>,
    /// The feature that programs regions.
    pub programming: Option<PrFeature>,
    /// The ports, by rising number.
    pub ports: Vec<Port>,
    /// All private features that were met, in the order of the walk.
    pub features: Vec<Feature>,
}

/// The management unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fme {
    /// Where its header is.
    pub place: Place,
    /// Ports it says it has; not all need be there.
    pub ports: u8,
    /// Which static design this is.
    pub bitstream_id: u64,
    /// Its metadata.
    pub bitstream_metadata: u64,
}

/// The partial reconfiguration feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrFeature {
    /// Where its registers are.
    pub place: Place,
    /// 0 on classic cards, 1 on OFS cards.
    pub revision: u8,
    /// Version of its header.
    pub version: u8,
    /// Which partial bitstreams fit; `None` where it holds no id.
    pub interface_id: Option<Uuid>,
}

/// A port: a region, seen from the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Port {
    /// Its number, as its own registers say.
    pub number: u8,
    /// Revision of its header.
    pub revision: u8,
    /// Where its registers are.
    pub place: Place,
    /// The function behind it, where the port leads to one.
    pub afu: Option<Afu>,
    /// The switch between host and guest, where the card has one.
    pub switch: Option<AccessSwitch>,
}

/// The registers of the function in a region. Their place is the card's, what
/// they mean is the function's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Afu {
    /// Where they are.
    pub place: Place,
    /// Bytes.
    pub size: u64,
}

/// The register whose bit 55 says who reaches a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessSwitch {
    /// Where it is.
    pub place: Place,
}

/// What a sound card lacks to be programmed through its PR feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotProgrammable {
    /// No management unit.
    #[error("it has no management unit (FME)")]
    NoFme,
    /// No PR feature.
    #[error("it has no partial reconfiguration feature")]
    NoPrFeature,
    /// A PR feature of a later layout.
    #[error("its PR feature has header version {version}, which is not known")]
    PrVersion {
        /// The version.
        version: u8,
    },
    /// A PR feature of a later revision, with registers that are not known.
    #[error("its PR feature is of revision {revision}; up to 1 is known")]
    PrRevision {
        /// The revision.
        revision: u8,
    },
    /// No interface id, so nothing is known to fit.
    #[error("it shows no interface id")]
    NoInterfaceId,
    /// No port that can be shut.
    #[error("it has no port that can be isolated")]
    NoRegion,
}

/// The two ways in which PR features behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Revision 0: COMPLETE always ends a load; the region is in `[9:7]`.
    Classic,
    /// Revision 1: as the vendor's RTL; the region is in `[9:8]`.
    Ofs,
}

impl Shape {
    /// The region's number where `PR_CTRL` wants it.
    pub(super) fn region_field(self, port: u8) -> u64 {
        let low = match self {
            Self::Classic => 7,
            Self::Ofs => 8,
        };
        u64::from(port).wrapping_shl(low)
    }
}

impl Topology {
    /// The feature and the shape to program with.
    pub(super) fn programmable(&self) -> Result<(PrFeature, Shape, Uuid), NotProgrammable> {
        if self.fme.is_none() {
            return Err(NotProgrammable::NoFme);
        }
        let feature = self.programming.ok_or(NotProgrammable::NoPrFeature)?;
        if feature.version != 0 {
            let version = feature.version;
            return Err(NotProgrammable::PrVersion { version });
        }
        let shape = match feature.revision {
            0 => Shape::Classic,
            1 => Shape::Ofs,
            revision => return Err(NotProgrammable::PrRevision { revision }),
        };
        let id = feature.interface_id.ok_or(NotProgrammable::NoInterfaceId)?;
        Ok((feature, shape, id))
    }
}

impl Port {
    /// Number and AFU size, as `PORT_CAP` has them.
    pub(super) fn capability(word: u64) -> (u8, u64) {
        let kib = super::header::field(word, 8, 16);
        (small(word, 0, 2), kib.saturating_mul(1024))
    }
}
