//! Who sees what of a decision: the guest, the operator, the card's process;
//! and what a policy is put together from.

use std::path::Path;

use super::tests::{GRANTS, HOST, SHELL, ask, catalogue, inputs, policy, region};
use super::*;
use crate::files::{Host, Shell};
use crate::ids::{CardAddress, Digest, ImagePattern, RolePattern, TargetPath};
use crate::testing::{NOW, image_list};
use crate::time::UnixTime;
use crate::trust::list::RevokedEntry;

#[test]
fn aws_04_unknown_and_forbidden_are_one_for_the_guest_and_two_for_the_audit() {
    let policy = policy(GRANTS, &image_list(1));
    let mut seen = Vec::new();
    for (image, code) in [
        ("acme/nothing:1", "unknown-image"),
        ("globex/fft:1", "not-granted"),
    ] {
        let ask = ask("blue", image);
        let denial = decide(&policy, &ask, NOW).unwrap_err();
        assert_eq!(denial.code(), code);
        let own = own_list(
            &policy,
            ask.vm,
            ask.tenant.as_ref(),
            &[region(0)],
            &ask.image,
            NOW,
        );
        assert_eq!(own, OwnList::Foreign);
        seen.push(denial.guest_view(own));
    }
    assert_eq!(seen, [GuestView::Denied, GuestView::Denied]);
}

#[test]
fn inv3_a_guest_learns_of_its_own_images_only() {
    let mut list = image_list(1);
    let image = Some(ImagePattern::parse("acme/aes:1.9").unwrap());
    list.revoked.push(RevokedEntry {
        image,
        ..RevokedEntry::default()
    });
    let policy = policy(GRANTS, &list);
    let view = |who: &str, image: &str, port: u16, slots: &[RegionKey]| {
        let ask = Ask {
            region: region(port),
            ..ask(who, image)
        };
        let own = own_list(&policy, ask.vm, ask.tenant.as_ref(), slots, &ask.image, NOW);
        decide(&policy, &ask, NOW).unwrap_err().guest_view(own)
    };
    let (left, both) = ([region(0)], [region(0), region(1)]);
    assert_eq!(view("blue", "acme/aes:1.9", 0, &left), GuestView::Revoked);
    assert_eq!(
        view("green", "acme/aes:1.9", 0, &left),
        GuestView::Denied,
        "not granted"
    );
    assert_eq!(
        view("blue", "acme/aes:1.10", 1, &both),
        GuestView::WrongSlot
    );
    let right = [region(1)];
    assert_eq!(
        view("blue", "acme/aes:1.10", 1, &right),
        GuestView::Denied,
        "fits none it has"
    );
    assert_eq!(
        view("blue", "acme/aes:1.9", 1, &right),
        GuestView::Denied,
        "fits none it has"
    );
}

#[test]
fn h6_inv5_the_second_verification_judges_for_itself() {
    let list = image_list(1);
    let catalogue = catalogue(&list);
    let policy = policy("", &list);
    let facts = policy.facts(&region(0)).unwrap();
    let path = TargetPath::parse("acme/left.gbs").unwrap();
    let digest = list.images[0].variants[0].sha256;
    let check = |facts, path: &TargetPath, digest, accepted: &[RolePattern], now| {
        check_target(&catalogue, facts, path, digest, accepted, now).map_err(|denial| denial.code())
    };
    let verdict = check(&facts, &path, digest, &[], NOW).unwrap();
    assert_eq!(verdict.image.to_string(), "acme/aes:1.9");
    assert_eq!((verdict.size, verdict.digest), (1000, digest));

    let elsewhere = policy.facts(&region(1)).unwrap();
    let tested = [RolePattern::parse("tested:*").unwrap()];
    let planted = TargetPath::parse("acme/planted.gbs").unwrap();
    let small = crate::files::RegionFacts {
        bitstream_max: 999,
        ..facts.clone()
    };
    for (result, code) in [
        (check(&facts, &planted, digest, &[], NOW), "unknown-target"),
        (
            check(&facts, &path, Digest::of(b"flipped"), &[], NOW),
            "digest-mismatch",
        ),
        (
            check(&elsewhere, &path, digest, &[], NOW),
            "no-variant-for-region",
        ),
        (check(&small, &path, digest, &[], NOW), "too-large"),
        (check(&facts, &path, digest, &tested, NOW), "role-missing"),
        (
            check(&facts, &path, digest, &[], UnixTime::MAX),
            "catalogue-expired",
        ),
    ] {
        assert_eq!(result.err(), Some(code));
    }
}

#[test]
fn an_explanation_tells_each_check() {
    let policy = policy(GRANTS, &image_list(1));
    let explanation = explain(&policy, &ask("blue", "acme/aes"), NOW);
    let checks: Vec<Check> = explanation.steps.iter().map(|step| step.check).collect();
    assert_eq!(
        checks,
        [
            Check::Loads,
            Check::Region,
            Check::Tenant,
            Check::Catalogue,
            Check::Fresh,
            Check::Image,
            Check::Grant,
            Check::Role,
            Check::Revocation,
            Check::Epoch,
            Check::Fit,
            Check::Size,
        ]
    );
    let text = explanation.to_string();
    assert!(
        text.ends_with(
            "ALLOWED: acme/aes:1.10 from acme/aes-1.10.gbs, by the grant of acme/* to blue (line 7)"
        ),
        "{text}"
    );
    let denied = explain(&policy, &ask("green", "acme/aes:1.9"), NOW);
    assert!(denied.to_string().contains("FAIL  grant"), "{denied}");
    let json = serde_json::to_value(&denied).unwrap();
    assert_eq!(json["verdict"]["denied"]["code"], "not-granted");
    assert_eq!(json["steps"][6]["outcome"], "fail");
}

#[test]
fn k8s_02_one_interface_id_on_two_cards_is_still_two_regions() {
    let two = format!("{HOST}{}", HOST.replace("card0", "card1"));
    let shells = [SHELL.to_owned(), SHELL.replace("/fn", "/card1-fn")];
    let parse =
        |(name, text): (&str, &String)| Shell::parse(Path::new(name), text.as_bytes()).unwrap();
    let build = |shells: Vec<Shell>| {
        let host = Host::parse(Path::new("host.toml"), two.as_bytes()).unwrap();
        Policy::new(PolicyInputs {
            host,
            shells,
            ..inputs(GRANTS, &image_list(1))
        })
    };
    let policy = build(
        ["a.toml", "b.toml"]
            .into_iter()
            .zip(&shells)
            .map(parse)
            .collect(),
    )
    .unwrap();
    let at = |function: &str| {
        policy
            .region_of(&CardAddress::parse(function).unwrap())
            .unwrap()
    };
    assert_eq!(
        at("vfio-user:/run/fn0").card.to_string(),
        "vfio-user:/run/card0"
    );
    assert_eq!(
        at("vfio-user:/run/card1-fn0").card.to_string(),
        "vfio-user:/run/card1"
    );
    assert_eq!(policy.regions().count(), 4);

    // I9: one function that both claim; and a card whose shell was not read.
    let same = build(
        ["a.toml", "b.toml"]
            .into_iter()
            .zip([&shells[0]; 2])
            .map(parse)
            .collect(),
    );
    let error = same.unwrap_err();
    assert_eq!(
        (error.code(), error.file.as_str()),
        ("conflict", "b.toml"),
        "{error}"
    );
    assert!(build(vec![parse(("a.toml", &shells[0]))]).is_err());
}

#[test]
fn revisions_follow_what_they_name() {
    let base = policy(GRANTS, &image_list(1));
    let grants = policy(&format!("{GRANTS}# changed\n"), &image_list(1));
    assert_eq!(base.files_revision(), grants.files_revision());
    assert_ne!(base.revision(), grants.revision());
    assert_ne!(base.revision(), policy(GRANTS, &image_list(2)).revision());
    assert_eq!(
        base.revision(),
        policy(GRANTS, &image_list(1)).revision(),
        "not the signature"
    );
    let shell = Shell::parse(Path::new("s"), format!("{SHELL}\n").as_bytes()).unwrap();
    let shells = PolicyInputs {
        shells: vec![shell],
        ..inputs(GRANTS, &image_list(1))
    };
    assert_ne!(
        base.files_revision(),
        Policy::new(shells).unwrap().files_revision()
    );
    let stopped = PolicyInputs {
        loads: Loads::Stopped,
        ..inputs(GRANTS, &image_list(1))
    };
    assert_ne!(base.revision(), Policy::new(stopped).unwrap().revision());
}
