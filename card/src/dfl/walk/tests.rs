//! The walk against sound cards, lacking cards and hostile ones.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::device::DeviceError;
use crate::dfl::{DflEngine, NotProgrammable, Waits};
use crate::fuzz::{ByteDevice, dfl_walk};
use crate::testing::{Kind as Card, Model, ModelDevice, VirtualClock};

/// Walks a card with some registers overlaid.
fn walked(kind: Card, overlay: &[(u64, u64)]) -> Result<Topology, WalkError> {
    let clock = VirtualClock::new();
    let model = Model::new(kind, &clock);
    model.lock().unwrap().fixed = overlay.iter().copied().collect::<HashMap<_, _>>();
    let topology = walk(&mut ModelDevice::new(&model));
    let stored = model
        .lock()
        .unwrap()
        .trace
        .iter()
        .any(|(_, value)| value.is_some());
    assert!(!stored, "a walk writes nothing");
    topology
}

fn lacks(overlay: &[(u64, u64)]) -> NotProgrammable {
    let clock = VirtualClock::new();
    let topology = walked(Card::Classic, overlay).unwrap();
    let device = ModelDevice::new(&Model::new(Card::Classic, &clock));
    DflEngine::new(Box::new(device), &topology, Waits::default(), clock).unwrap_err()
}

const PR_DFH: u64 = 3 << 60 | 1 << 40 | 5;
const PORT_DFH: u64 = 4 << 60 | 1 << 40 | 1;

#[test]
fn a_classic_card_and_an_ofs_card() {
    let classic = walked(Card::Classic, &[]).unwrap();
    assert_eq!(classic.ports.len(), 2);
    assert_eq!(classic.ports[1].place, Place::new(Bar::ZERO, 0x20000));
    assert_eq!(classic.ports[1].afu.unwrap().place.offset, 0x21000);
    assert_eq!(classic.ports[1].switch.unwrap().place.offset, 0x40);
    let pr = classic.programming.unwrap();
    assert_eq!(
        (pr.revision, pr.interface_id),
        (0, Some(Model::interface_id()))
    );

    let ofs = walked(Card::Ofs, &[]).unwrap();
    assert_eq!(ofs.ports.len(), 1);
    assert_eq!(ofs.ports[0].place.offset, 0x3000);
    assert_eq!(ofs.programming.unwrap().revision, 1);
}

#[test]
fn opae_07_a_card_without_pr_or_interface_id_is_sound_and_not_programmable() {
    assert_eq!(
        lacks(&[(0x2000, 3 << 60 | 1 << 40 | 6)]),
        NotProgrammable::NoPrFeature
    );
    assert_eq!(
        lacks(&[(0x20a8, 0), (0x20b0, 0)]),
        NotProgrammable::NoInterfaceId
    );
    let ones = [(0x20a8, u64::MAX), (0x20b0, u64::MAX)];
    assert_eq!(lacks(&ones), NotProgrammable::NoInterfaceId);
    let revision = NotProgrammable::PrRevision { revision: 2 };
    assert_eq!(lacks(&[(0x2000, PR_DFH | 2 << 12)]), revision);
    let version = NotProgrammable::PrVersion { version: 1 };
    assert_eq!(lacks(&[(0x2000, PR_DFH | 1 << 52)]), version);
    // Not a feature list at all.
    assert_eq!(lacks(&[(0, 0)]), NotProgrammable::NoFme);
    // Both ports are not implemented, or stand nowhere.
    assert_eq!(lacks(&[(0x38, 0), (0x40, 0)]), NotProgrammable::NoRegion);
    let skip = 1 << 60 | 7 << 32;
    assert_eq!(
        lacks(&[(0x38, skip), (0x40, skip)]),
        NotProgrammable::NoRegion
    );
}

#[test]
fn damaged_lists_are_refused() {
    type Case<'a> = (&'a str, &'a [(u64, u64)], fn(&WalkError) -> bool);
    let cases: [Case<'_>; 14] = [
        (
            "next beyond the BAR",
            &[(0, 4 << 60 | 0xff_fff8 << 16)],
            |e| matches!(e, WalkError::BeyondBar(_)),
        ),
        (
            "next beyond the BAR at the end of the list",
            &[(0x2000, PR_DFH | 0x80000 << 16)],
            |e| matches!(e, WalkError::BeyondBar(_)),
        ),
        (
            "next off eight bytes",
            &[(0, 4 << 60 | 0x1004 << 16)],
            |e| matches!(e, WalkError::Unaligned(_)),
        ),
        ("a header of all ones", &[(0x1000, u64::MAX)], |e| {
            matches!(e, WalkError::AllOnes(_))
        }),
        ("a port in BAR 6", &[(0x38, 1 << 60 | 6 << 32)], |e| {
            matches!(e, WalkError::NoSuchBar(6))
        }),
        (
            "a port in an empty BAR",
            &[(0x38, 1 << 60 | 2 << 32)],
            |e| matches!(e, WalkError::BeyondBar(_)),
        ),
        (
            "both ports at one place",
            &[(0x40, 1 << 60 | 0x10000)],
            |e| matches!(e, WalkError::Overlap(_)),
        ),
        (
            "a port that is none",
            &[(0x10000, 3 << 60 | 1 << 40 | 9)],
            |e| matches!(e, WalkError::NoPort(_)),
        ),
        ("the list leads back to the root", &[(0x38, 1 << 60)], |e| {
            matches!(e, WalkError::Overlap(_))
        }),
        ("another number", &[(0x10030, 3 | 4 << 8)], |e| {
            matches!(
                e,
                WalkError::PortNumber {
                    expected: 0,
                    found: 3,
                    ..
                }
            )
        }),
        ("the same number twice", &[(0x20030, 4 << 8)], |e| {
            matches!(e, WalkError::DuplicatePort(0))
        }),
        ("no room for the function", &[(0x20018, 0x7f000)], |e| {
            matches!(e, WalkError::AfuPlace(_))
        }),
        ("a function of no size", &[(0x10030, 0)], |e| {
            matches!(e, WalkError::AfuPlace(_))
        }),
        (
            "a function that reaches into the next port",
            &[(0x10030, 64 << 8)],
            |e| matches!(e, WalkError::AfuPlace(_)),
        ),
    ];
    for (name, overlay, check) in cases {
        let error = walked(Card::Classic, overlay).expect_err(name);
        assert!(check(&error), "{name}: {error}");
    }
}

#[test]
fn a_unit_of_another_layout_or_a_second_one_is_refused() {
    let unit = [(0x10000, PORT_DFH | 1 << 52)];
    let error = walked(Card::Classic, &unit).unwrap_err();
    assert!(
        matches!(error, WalkError::Version { version: 1, .. }),
        "{error}"
    );
    // A second PR feature: which of them programs?
    let second = [(0x1000, 3 << 60 | 0x1000 << 16 | 5)];
    let error = walked(Card::Classic, &second).unwrap_err();
    assert!(
        matches!(error, WalkError::SecondPrFeature(place) if place == Place::new(Bar::ZERO, 0x2000))
    );
}

#[test]
fn a_card_that_is_gone_is_not_a_damaged_one() {
    let clock = VirtualClock::new();
    let model = Model::new(Card::Classic, &clock);
    model.lock().unwrap().trouble.gone = true;
    let error = walk(&mut ModelDevice::new(&model)).unwrap_err();
    assert!(
        matches!(error, WalkError::Device(DeviceError::Gone(_))),
        "{error}"
    );
}

#[test]
fn an_interface_id_that_comes_late_is_waited_for() {
    let clock = VirtualClock::new();
    let model = Model::new(Card::Classic, &clock);
    model.lock().unwrap().trouble.late_id = 3;
    let topology = walk(&mut ModelDevice::new(&model)).unwrap();
    assert_eq!(
        topology.programming.unwrap().interface_id,
        Some(Model::interface_id())
    );
}

#[test]
fn version_1_headers_are_read_within_bounds() {
    let feature = 3 << 60 | 1 << 52 | 0x1000 << 16 | 0x99;
    let parameter = |id: u64, words: u64, last: u64| words << 35 | last << 32 | id;
    let base = [(0x1000, feature), (0x1020, 1 << 31 | 0x100 << 32)];
    let with = |more: &[(u64, u64)]| {
        let mut all = base.to_vec();
        all.extend_from_slice(more);
        walked(Card::Classic, &all)
    };
    let topology = with(&[(0x1028, parameter(1, 2, 0)), (0x1038, parameter(7, 2, 1))]).unwrap();
    let ids: Vec<u16> = topology.features[0]
        .parameters
        .iter()
        .map(|p| p.id)
        .collect();
    assert_eq!(ids, [1, 7]);

    let damaged: [&[(u64, u64)]; 4] = [
        // No length: it would stay where it is.
        &[(0x1028, parameter(1, 0, 0))],
        // Beyond the feature.
        &[(0x1028, parameter(1, 0x1000, 1))],
        // Never the last.
        &[(0x1028, parameter(1, 2, 0)), (0x1038, 0)],
        // Registers beyond the BAR.
        &[(0x1018, 0x80000), (0x1028, parameter(1, 2, 1))],
    ];
    for overlay in damaged {
        let error = with(overlay).unwrap_err();
        assert!(matches!(error, WalkError::Parameters { .. }), "{error}");
    }
}

/// A device of bytes with a table of feature lists in its configuration space.
fn vsec(count: u32, entries: &[u32]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [0x000b_u32 | 1 << 16, 0x43 | 0x20 << 20, count] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    for entry in entries {
        bytes.extend_from_slice(&entry.to_le_bytes());
    }
    bytes.resize(512 + 0x1000, 0);
    bytes
}

#[test]
fn a_table_of_lists_is_followed_within_bounds() {
    let mut bytes = vsec(1, &[0x800]);
    bytes[512 + 0x800..512 + 0x808].copy_from_slice(&PORT_DFH.to_le_bytes());
    assert_eq!(dfl_walk(&bytes), 1);

    let error = walk(&mut ByteDevice::new(&vsec(33, &[]))).unwrap_err();
    assert!(
        matches!(error, WalkError::Device(DeviceError::Protocol(_))),
        "{error}"
    );
    let error = walk(&mut ByteDevice::new(&vsec(1, &[6]))).unwrap_err();
    assert!(matches!(error, WalkError::NoSuchBar(6)), "{error}");
    let error = walk(&mut ByteDevice::new(&vsec(1, &[0x1000]))).unwrap_err();
    assert!(matches!(error, WalkError::BeyondBar(_)), "{error}");
    let error = walk(&mut ByteDevice::new(&vsec(2, &[0x800, 0x800]))).unwrap_err();
    assert!(matches!(error, WalkError::Overlap(_)), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn bytes_of_any_kind_end_the_walk(data in proptest::collection::vec(any::<u8>(), 0..2048)) {
        dfl_walk(&data);
    }

    #[test]
    fn registers_of_any_kind_end_the_walk(
        overlay in proptest::collection::vec(
            (prop::sample::select(vec![
                0u64, 0x30, 0x38, 0x40, 0x1000, 0x2000, 0x10000, 0x10018, 0x10030, 0x20000, 0x20018,
            ]), any::<u64>()),
            1..5,
        ),
    ) {
        drop(walked(Card::Classic, &overlay));
    }
}
