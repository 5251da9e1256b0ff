//! Does the guest know this image already?

use super::evaluate::Scene;
use super::explain::Trail;
use super::{OwnList, Policy, RegionKey, judge};
use crate::ids::{ImageRef, TenantName, VmId};
use crate::time::UnixTime;

/// Whether an image is, or before its revocation was, in the list of one of
/// the VM's slots: granted, in an accepted role, and with a bitstream that
/// fits. Only of such an image may a guest learn that it was revoked, or that
/// it fits another slot; `slots` are all the regions that the VM has.
#[must_use]
pub fn own_list(
    policy: &Policy,
    vm: VmId,
    tenant: Option<&TenantName>,
    slots: &[RegionKey],
    image: &ImageRef,
    now: UnixTime,
) -> OwnList {
    let known = slots.iter().any(|slot| {
        let scene = Scene::set(policy, vm, tenant, slot, now, &mut Trail::silent());
        scene.is_ok_and(|scene| {
            scene.catalogue.find(image).iter().any(|image| {
                scene.rule(image).is_ok()
                    && judge::role(image, scene.accepted_roles()).is_ok()
                    && image
                        .variants
                        .iter()
                        .any(|variant| judge::fits(variant, &scene.facts))
            })
        })
    });
    if known {
        OwnList::Listed
    } else {
        OwnList::Foreign
    }
}
