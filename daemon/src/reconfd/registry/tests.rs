//! Who may hold what, and how a guest sees it.

use super::*;
use crate::reconfd::plan::tests::two_cards;

pub(crate) fn registration(functions: &[(&str, Option<&str>)]) -> Registration {
    let boot = BootId::current().unwrap();
    Registration {
        vm: Uuid::new_v4(),
        name: "one".into(),
        tenant: "acme".into(),
        generation: Generation::new(&boot),
        boot,
        functions: functions
            .iter()
            .map(|(address, guest)| AttachedFunction {
                address: (*address).into(),
                guest_pci: guest.map(Into::into),
            })
            .collect(),
        channel: ChannelSpec::Listen { path: None },
        process: None,
    }
}

#[test]
fn i9_a_function_has_one_holder() {
    let plan = two_cards();
    let mut registry = Registry::default();
    let one = registration(&[("vf:0.0", None)]);
    registry.attach(&plan, one.clone()).unwrap();
    let two = registration(&[("vf:0.0", None)]);
    assert!(
        matches!(registry.attach(&plan, two.clone()), Err(AttachError::Held { vm, .. }) if vm == one.vm)
    );
    assert!(registry.get(two.vm).is_none());
    registry.detach(one.vm).unwrap();
    registry.attach(&plan, two).unwrap();
}

#[test]
fn a_region_of_two_holders_is_nobodys_to_program() {
    let plan = two_cards();
    let mut registry = Registry::default();
    let one = registration(&[("vf:0.0", None)]);
    let region = plan.region_of("vf:0.0").unwrap();
    registry.attach(&plan, one.clone()).unwrap();
    assert!(registry.sole_holder(&plan, region, one.vm));
    registry
        .attach(&plan, registration(&[("vf:0.0b", None)]))
        .unwrap();
    assert!(!registry.sole_holder(&plan, region, one.vm));
}

#[test]
fn slots_follow_the_guests_addresses() {
    let plan = two_cards();
    let vm = registration(&[
        ("vf:1.0", Some("0000:00:07.0")),
        ("vf:0.1", Some("0000:00:05.0")),
    ]);
    let slots = Registry::slots(&plan, &vm);
    assert_eq!(plan.label(slots[0].region), "card0/r1");
    assert_eq!(slots[1].slot, 1);
    let shared = registration(&[("vf:0.0", None), ("vf:0.0b", None), ("vf:1.1", None)]);
    let slots = Registry::slots(&plan, &shared);
    assert_eq!(slots.len(), 2, "two functions of one region make one slot");
    assert_eq!(slots[0].functions.len(), 2);
}

#[test]
fn i3_the_same_name_is_not_the_same_vm() {
    let plan = two_cards();
    let mut registry = Registry::default();
    let one = registration(&[("vf:0.0", None)]);
    registry.attach(&plan, one.clone()).unwrap();
    let later = registration(&[("vf:0.1", None)]);
    assert_eq!(one.name, later.name);
    registry.attach(&plan, later.clone()).unwrap();
    assert_ne!(one.tag(), later.tag());
    assert!(registry.alive(one.vm, &later.generation).is_none());
}

#[test]
fn what_could_mean_two_things_is_refused() {
    let plan = two_cards();
    let mut registry = Registry::default();
    for guest in [
        "0000:00:5.0",
        "0000:00:05:0",
        "0000.00.05.0",
        "",
        "0000:00:0A.0",
        "0000:00:05.0\n",
    ] {
        let refused = registry.attach(&plan, registration(&[("vf:0.0", Some(guest))]));
        assert_eq!(refused, Err(AttachError::GuestAddress(guest.into())));
    }
    let twice = [
        ("vf:0.0", Some("0000:00:05.0")),
        ("vf:0.1", Some("0000:00:05.0")),
    ];
    let refused = registry.attach(&plan, registration(&twice));
    assert_eq!(refused, Err(AttachError::Twice("0000:00:05.0".into())));
    let at = |path: &str, function| Registration {
        channel: ChannelSpec::Listen {
            path: Some(path.into()),
        },
        ..registration(&[(function, None)])
    };
    for path in ["run/x", "/run/../run/x", ""] {
        assert_eq!(
            check_named_path(&at(path, "vf:0.0").channel),
            Err(AttachError::ChannelPath(path.into()))
        );
    }
    registry.attach(&plan, at("/run/x", "vf:0.0")).unwrap();
    assert!(matches!(
        registry.attach(&plan, at("//run/./x", "vf:0.1")),
        Err(AttachError::ChannelTaken { .. })
    ));
}
