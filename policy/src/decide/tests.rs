//! The decision: deny by default, one path, and nothing more for a guest than
//! it may know.

use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::files::{Grants, Host, Shell};
use crate::ids::{CardAddress, Family, ImagePattern, ImageRef, Role, TenantName, VmId};
use crate::publish::{self, SigningKey};
use crate::testing::{NOW, image_list, shared};
use crate::time::UnixTime;
use crate::trust::list::{ImageList, RevokedEntry};
use crate::trust::{Catalogue, Floor, Root, verify};

pub(super) const GRANTS: &str = "[[tenant]]\nname = \"blue\"\n[[tenant]]\nname = \"green\"\n\
    vms = [\"22222222-2222-2222-2222-222222222222\"]\n\
    [[grant]]\ntenant = \"blue\"\nimages = [\"acme/*\"]\n";
pub(super) const HOST: &str =
    "[[card]]\naddress = \"vfio-user:/run/card0\"\nengine = \"dfl\"\nshell = \"s.toml\"\n";
pub(super) const SHELL: &str = "name = \"test\"\n\
    [[region]]\nname = \"left\"\nport = 0\ninterface_id = \"6d1f0a3c-94be-4c27-8a15-5e0f77c2b9d4\"\n\
    region_type = \"small\"\nuser_functions = [\"vfio-user:/run/fn0\"]\n\
    [[region]]\nname = \"right\"\nport = 1\ninterface_id = \"0e5b7a90-11d2-4f6e-b3a8-7c4d2e1f9a60\"\n\
    region_type = \"large\"\nuser_functions = [\"vfio-user:/run/fn1\"]\n";

pub(super) fn catalogue(list: &ImageList) -> Arc<Catalogue> {
    let key = SigningKey::generate().unwrap();
    let root = Root::parse(&publish::root(1, &[key.public_key()], 1).unwrap()).unwrap();
    let bytes = publish::list(list).unwrap();
    let signature = publish::sign(&bytes, &[&key]).unwrap();
    Arc::new(verify(&root, &Floor::enrol(&root, None), &bytes, &signature, NOW).unwrap())
}

pub(super) fn inputs(grants: &str, list: &ImageList) -> PolicyInputs {
    PolicyInputs {
        host: Host::parse(Path::new("host.toml"), HOST.as_bytes()).unwrap(),
        shells: vec![Shell::parse(Path::new("s.toml"), SHELL.as_bytes()).unwrap()],
        grants: Grants::parse(Path::new("grants.toml"), grants.as_bytes()).unwrap(),
        catalogue: Ok(catalogue(list)),
        loads: Loads::Decided,
    }
}

pub(super) fn policy(grants: &str, list: &ImageList) -> Policy {
    Policy::new(inputs(grants, list)).unwrap()
}

pub(super) fn region(port: u16) -> RegionKey {
    RegionKey {
        card: CardAddress::parse("vfio-user:/run/card0").unwrap(),
        port,
    }
}

fn tenant(name: &str) -> TenantName {
    TenantName::parse(name).unwrap()
}

pub(super) fn vm(digit: u128) -> VmId {
    VmId(uuid::Uuid::from_u128(
        0x1111_1111_1111_1111_1111_1111_1111_1111u128.wrapping_mul(digit),
    ))
}

pub(super) fn ask(who: &str, image: &str) -> Ask {
    Ask {
        vm: vm(1),
        tenant: Some(tenant(who)),
        region: region(0),
        image: ImageRef::parse(image).unwrap(),
    }
}

fn denied(policy: &Policy, ask: &Ask) -> &'static str {
    decide(policy, ask, NOW).unwrap_err().code()
}

#[test]
fn b6_a_container_of_another_engine_has_a_reason_of_its_own() {
    let mut list = image_list(1);
    let variant = &mut list.images[0].variants[0];
    variant.format = crate::trust::Format::Bit;
    let (path, digest) = (variant.path.clone(), variant.sha256);
    let policy = policy(GRANTS, &list);
    let denial = decide(&policy, &ask("blue", "acme/aes:1.9"), NOW).unwrap_err();
    assert_eq!(denial.code(), "wrong-format");
    let text = denial.to_string();
    assert!(text.contains("bit") && text.contains("dfl"), "{text}");
    assert_eq!(denial.guest_view(OwnList::Foreign), GuestView::Denied);
    assert_eq!(denial.guest_view(OwnList::Listed), GuestView::WrongSlot);
    // The card's process says the same, whoever asks it.
    let facts = policy.facts(&region(0)).unwrap();
    let second = check_target(&catalogue(&list), &facts, &path, digest, &[], NOW);
    assert_eq!(second.unwrap_err().code(), "wrong-format");
    // Nothing of it is in the list that the guest sees, so it learns nothing of it.
    let blue = tenant("blue");
    let listed = super::list(&policy, vm(1), Some(&blue), &region(0), NOW).unwrap();
    assert!(
        listed
            .iter()
            .all(|image| image.name.to_string() != "acme/aes:1.9")
    );
    let own = own_list(
        &policy,
        vm(1),
        Some(&blue),
        &[region(0)],
        &ask("blue", "acme/aes:1.9").image,
        NOW,
    );
    assert_eq!(own, OwnList::Foreign);
}

#[test]
fn a_shell_file_must_serve_the_engine_of_its_card() {
    let mut inputs = inputs(GRANTS, &image_list(1));
    inputs.host.cards[0].engine = crate::files::Engine::Hwicap;
    assert_eq!(Policy::new(inputs).unwrap_err().code(), "missing-key");
}

#[test]
fn a_grant_says_all_that_the_audit_needs() {
    let policy = policy(GRANTS, &image_list(3));
    let grant = decide(&policy, &ask("blue", "acme/aes:1.9"), NOW).unwrap();
    assert_eq!(grant.image.to_string(), "acme/aes:1.9");
    assert_eq!(grant.variant.path.as_str(), "acme/left.gbs");
    assert_eq!(grant.list_version, 3);
    assert_eq!(grant.revision, policy.revision());
    assert_eq!(
        grant.rule.to_string(),
        "the grant of acme/* to blue (line 7)"
    );
    let by_digest = ask("blue", &grant.image_digest.to_string());
    assert_eq!(decide(&policy, &by_digest, NOW).unwrap().image, grant.image);
}

#[test]
fn cyb_01_deny_by_default() {
    for grants in ["", "# nothing here\n", "[[tenant]]\nname = \"blue\"\n"] {
        let policy = policy(grants, &image_list(1));
        for image in ["acme/aes:1.9", "acme/aes", "globex/fft:1"] {
            assert_eq!(
                denied(&policy, &ask("blue", image)),
                "not-granted",
                "{grants:?}"
            );
        }
        assert_eq!(
            list(&policy, vm(1), Some(&tenant("blue")), &region(0), NOW),
            Ok(Vec::new())
        );
    }
    let missing = PolicyInputs {
        grants: Grants::none(),
        ..inputs("", &image_list(1))
    };
    assert_eq!(
        denied(&Policy::new(missing).unwrap(), &ask("blue", "acme/aes:1.9")),
        "not-granted"
    );
    // The case's own request: a VM for which there is no rule.
    let Some(_) = shared("cases/CYB-01/request.jsonl") else {
        return;
    };
    let nobody = Ask {
        tenant: None,
        ..ask("blue", "acme/aes:1.9")
    };
    assert_eq!(
        denied(&policy(GRANTS, &image_list(1)), &nobody),
        "no-tenant"
    );
}

#[test]
fn a_name_without_version_is_the_newest_that_is_allowed_and_fits() {
    let newest = ask("blue", "acme/aes");
    let resolved = |list: &ImageList, grants: &str| {
        decide(&policy(grants, list), &newest, NOW).map(|grant| grant.image.to_string())
    };
    assert_eq!(resolved(&image_list(1), GRANTS).unwrap(), "acme/aes:1.10");
    // The newest fits another region only, or is revoked, or is not granted.
    let mut elsewhere = image_list(1);
    elsewhere.images[1].variants[0].interface_id.0 = uuid::Uuid::from_u128(9);
    assert_eq!(resolved(&elsewhere, GRANTS).unwrap(), "acme/aes:1.9");
    let mut revoked = image_list(1);
    let image = Some(ImagePattern::parse("acme/aes:1.10").unwrap());
    revoked.revoked.push(RevokedEntry {
        image,
        ..RevokedEntry::default()
    });
    assert_eq!(resolved(&revoked, GRANTS).unwrap(), "acme/aes:1.9");
    let old_only = GRANTS.replace("acme/*", "acme/aes:1.9");
    assert_eq!(resolved(&image_list(1), &old_only).unwrap(), "acme/aes:1.9");
    // Nothing is left: the reason is that of the newest.
    let image = Some(ImagePattern::parse("acme/aes").unwrap());
    revoked.revoked.push(RevokedEntry {
        image,
        ..RevokedEntry::default()
    });
    assert_eq!(resolved(&revoked, GRANTS).unwrap_err().code(), "revoked");
}

#[test]
fn the_region_decides_which_bitstream_fits() {
    let mut list = image_list(1);
    let policy_of = |list: &ImageList| policy(GRANTS, list);
    let right = Ask {
        region: region(1),
        ..ask("blue", "acme/aes:1.9")
    };
    let denial = decide(&policy_of(&list), &right, NOW).unwrap_err();
    assert_eq!(denial.code(), "no-variant-for-region");
    assert!(
        denial.to_string().contains("0e5b7a90"),
        "what the region is: {denial}"
    );
    assert!(
        denial.to_string().contains("6d1f0a3c"),
        "what there is: {denial}"
    );
    // The interface id fits, the stated region type does not.
    list.images[0].variants[0].region_type = Some("large".parse().unwrap());
    assert_eq!(
        denied(&policy_of(&list), &ask("blue", "acme/aes:1.9")),
        "no-variant-for-region"
    );
    list.images[0].variants[0].region_type = Some("small".parse().unwrap());
    assert!(decide(&policy_of(&list), &ask("blue", "acme/aes:1.9"), NOW).is_ok());
    list.images[0].variants[0].size = (256 << 20) + 1;
    assert_eq!(
        denied(&policy_of(&list), &ask("blue", "acme/aes:1.9")),
        "too-large"
    );
    let gone = Ask {
        region: region(5),
        ..ask("blue", "acme/aes:1.9")
    };
    assert_eq!(denied(&policy_of(&list), &gone), "unknown-region");
}

#[test]
fn a_grant_can_be_held_to_region_types() {
    let only = |region_type| format!("{GRANTS}region_types = [\"{region_type}\"]\n");
    assert!(
        decide(
            &policy(&only("small"), &image_list(1)),
            &ask("blue", "acme/aes"),
            NOW
        )
        .is_ok()
    );
    assert_eq!(
        denied(
            &policy(&only("large"), &image_list(1)),
            &ask("blue", "acme/aes")
        ),
        "not-granted"
    );
}

#[test]
fn whose_a_vm_is_must_be_known_and_undisputed() {
    let grants = GRANTS.replace("tenant = \"blue\"", "tenant = \"green\"");
    let policy = policy(&grants, &image_list(1));
    let by_file = Ask {
        vm: vm(2),
        tenant: None,
        ..ask("blue", "acme/aes:1.9")
    };
    assert_eq!(
        decide(&policy, &by_file, NOW).unwrap().rule.tenant,
        tenant("green")
    );
    let agreed = Ask {
        tenant: Some(tenant("green")),
        ..by_file.clone()
    };
    assert!(decide(&policy, &agreed, NOW).is_ok());
    let disputed = Ask {
        tenant: Some(tenant("blue")),
        ..by_file
    };
    assert_eq!(denied(&policy, &disputed), "tenant-conflict");
    assert_eq!(
        denied(
            &policy,
            &Ask {
                tenant: None,
                ..ask("blue", "acme/aes")
            }
        ),
        "no-tenant"
    );
}

#[test]
fn p2_p13_an_expired_list_allows_nothing_also_at_the_second_asking() {
    let policy = policy(GRANTS, &image_list(1));
    let ask = ask("blue", "acme/aes:1.9");
    let expires = UnixTime(NOW.0 + 86_400);
    assert!(decide(&policy, &ask, UnixTime(expires.0 - 1)).is_ok());
    let denial = decide(&policy, &ask, expires).unwrap_err();
    assert_eq!(denial.code(), "catalogue-expired");
    for own in [OwnList::Listed, OwnList::Foreign] {
        assert_eq!(denial.guest_view(own), GuestView::Unavailable);
    }
    assert!(list(&policy, ask.vm, ask.tenant.as_ref(), &ask.region, expires).is_err());
}

#[test]
fn p14_p20_p22_role_revocation_and_epoch() {
    let mut list = image_list(1);
    let revoke = |entry| ImageList {
        revoked: vec![entry],
        ..image_list(2)
    };
    let by_role = RevokedEntry {
        role: Some(Role::parse("publisher:acme").unwrap()),
        ..RevokedEntry::default()
    };
    assert_eq!(
        denied(&policy(GRANTS, &revoke(by_role)), &ask("blue", "acme/aes")),
        "revoked"
    );
    for (epoch, verdict) in [(1, Some("epoch-too-low")), (2, None), (3, None)] {
        let below = RevokedEntry {
            family: Some(Family::parse("aes").unwrap()),
            below_epoch: Some(2),
            ..RevokedEntry::default()
        };
        let mut list = revoke(below);
        list.images[0].epoch = epoch;
        let result = decide(&policy(GRANTS, &list), &ask("blue", "acme/aes:1.9"), NOW);
        assert_eq!(
            result.err().map(|denial| denial.code()),
            verdict,
            "epoch {epoch}"
        );
    }
    let demand = |list: &ImageList| {
        let host = format!("[require]\nroles = [\"tested:*\"]\n{HOST}");
        let host = Host::parse(Path::new("h"), host.as_bytes()).unwrap();
        Policy::new(PolicyInputs {
            host,
            ..inputs(GRANTS, list)
        })
        .unwrap()
    };
    assert_eq!(
        denied(&demand(&list), &ask("blue", "acme/aes:1.9")),
        "role-missing"
    );
    list.images[0].role = Role::parse("tested:acme").unwrap();
    assert!(decide(&demand(&list), &ask("blue", "acme/aes:1.9"), NOW).is_ok());
}

#[test]
fn p23_without_a_root_or_a_list_nothing_is_granted() {
    for trouble in [
        CatalogueTrouble::NotEnrolled {
            why: "no root.json".to_owned(),
        },
        CatalogueTrouble::Unreadable {
            why: "no images.json".to_owned(),
        },
    ] {
        let inputs = PolicyInputs {
            catalogue: Err(trouble),
            ..inputs(GRANTS, &image_list(1))
        };
        let denial =
            decide(&Policy::new(inputs).unwrap(), &ask("blue", "acme/aes"), NOW).unwrap_err();
        assert_eq!(denial.code(), "no-catalogue");
        assert_eq!(denial.guest_view(OwnList::Listed), GuestView::Unavailable);
    }
}

#[test]
fn a_stop_denies_all_and_is_told_openly() {
    let inputs = PolicyInputs {
        loads: Loads::Stopped,
        ..inputs(GRANTS, &image_list(1))
    };
    let policy = Policy::new(inputs).unwrap();
    let denial = decide(&policy, &ask("blue", "acme/aes"), NOW).unwrap_err();
    assert_eq!(denial.guest_view(OwnList::Foreign), GuestView::Stopped);
}
