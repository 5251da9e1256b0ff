//! The second verification, made by a card's process from its own reading of
//! the signed list. It trusts nothing that `reconfd` said, and does not judge
//! tenants: it cannot know them.

use super::explain::Trail;
use super::{Denial, judge};
use crate::files::RegionFacts;
use crate::ids::{Digest, FunctionId, ImageName, InterfaceId, Role, RolePattern, TargetPath};
use crate::time::UnixTime;
use crate::trust::{Catalogue, Format};

/// What was signed for the bytes that are to be loaded: for the container,
/// and for what is read back from the card, to be compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecondVerdict {
    /// The image they belong to.
    pub image: ImageName,
    /// SHA-256 of the file.
    pub digest: Digest,
    /// Bytes in the file.
    pub size: u64,
    /// The container.
    pub format: Format,
    /// The interface id that the container must state.
    pub interface_id: InterfaceId,
    /// The function that the container must state and that must appear.
    pub function_id: FunctionId,
    /// Who vouches for it.
    pub role: Role,
    /// The version of the signed list.
    pub list_version: u64,
}

/// May the bytes with this digest be loaded into a region like this one, for
/// this target path?
///
/// `digest` is what the caller computed over the bytes that it will load,
/// `accepted` the roles of its own `host.toml`. The caller then holds the
/// bytes' length and container against the verdict.
///
/// # Errors
///
/// [`Denial`]: expired list, unknown path, other bytes than were signed, role,
/// revocation, epoch, fit or size. Where several images share the path, one
/// that passes suffices; else the reason is that of the first.
pub fn check_target(
    catalogue: &Catalogue,
    region: &RegionFacts,
    path: &TargetPath,
    digest: Digest,
    accepted: &[RolePattern],
    now: UnixTime,
) -> Result<SecondVerdict, Denial> {
    let trail = &mut Trail::silent();
    judge::fresh(catalogue, now, trail)?;
    let mut first_denial = None;
    for (image, variant) in catalogue.targets(path) {
        let signed = variant.sha256;
        let verdict = if signed == digest {
            judge::standing(catalogue, image, accepted, trail)
                .and_then(|()| judge::fit(image, std::iter::once(variant), region, trail))
        } else {
            Err(Denial::DigestMismatch {
                path: path.clone(),
                signed,
                given: digest,
            })
        };
        match verdict {
            Ok(variant) => {
                return Ok(SecondVerdict {
                    image: image.name.clone(),
                    digest: variant.sha256,
                    size: variant.size,
                    format: variant.format,
                    interface_id: variant.interface_id,
                    function_id: image.function_id,
                    role: image.role.clone(),
                    list_version: catalogue.version(),
                });
            }
            Err(denial) => first_denial = first_denial.or(Some(denial)),
        }
    }
    let unknown = || Denial::UnknownTarget {
        path: path.clone(),
        version: catalogue.version(),
    };
    Err(first_denial.unwrap_or_else(unknown))
}
