//! Addresses and numbers of frames.

use super::*;
use proptest::prelude::*;

/// Every layout once.
fn geometries() -> Vec<&'static Geometry> {
    let mut all: Vec<&'static Geometry> = Vec::new();
    for device in Device::all() {
        let dies = device.dies().into_iter().map(|die| die.geometry);
        for geometry in device.geometry().into_iter().chain(dies) {
            if !all.iter().any(|known| std::ptr::eq(*known, geometry)) {
                all.push(geometry);
            }
        }
    }
    all
}

#[test]
fn number_and_address_are_each_others_inverse_for_every_frame() {
    let all = geometries();
    assert_eq!(all.len(), 23);
    for geometry in all {
        let mut before = None;
        for number in 0..geometry.frame_count() {
            let address = geometry.address(FrameIndex(number)).unwrap();
            assert_eq!(geometry.index(address), Some(FrameIndex(number)));
            // Configuration order is the order of addresses.
            assert!(before < Some(address), "{address}");
            before = Some(address);
        }
        let end = FrameIndex(geometry.frame_count());
        assert_eq!(geometry.address(end), None);
        assert!(!geometry.row_end(end));
        let last = FrameIndex(geometry.frame_count() - 1);
        assert_eq!(geometry.next(last), None);
        assert_eq!(geometry.next(FrameIndex(0)), Some(FrameIndex(1)));
    }
}

#[test]
fn each_row_ends_once_and_at_its_last_frame() {
    for geometry in geometries() {
        let ends = (0..geometry.frame_count()).filter(|n| geometry.row_end(FrameIndex(*n)));
        let rows = geometry.rows().iter().map(|row| row.frames.end.0 - 1);
        assert!(ends.eq(rows));
    }
}

#[test]
fn masks_and_addresses_are_each_others_inverse() {
    let mask = geometry("xc7z020").clb_mask().unwrap();
    for position in 0..mask.count() {
        let address = mask.address(position).unwrap();
        assert_eq!(address.block(), Block::ClbMask);
        assert_eq!(mask.position(address), Some(position));
        assert_eq!(geometry("xc7z020").index(address), None);
    }
    assert_eq!(mask.address(mask.count()), None);
    assert!(geometry("xczu7ev").clb_mask().is_none());
}

#[test]
fn reserved_bits_are_refused_and_parking_is_no_frame() {
    for (family, defined) in [
        (Family::Series7, 0x03ff_ffff),
        (Family::UltraScale, 0x03ff_ffff),
        (Family::UltraScalePlus, 0x07ff_ffff),
    ] {
        for bit in 0..32 {
            let raw = 1_u32 << bit;
            let parsed = FrameAddress::parse(family, raw);
            assert_eq!(parsed.is_ok(), raw & defined != 0, "{family} bit {bit}");
        }
        let park = FrameAddress::parse(family, family.park()).unwrap();
        assert!(park.is_park());
        for geometry in geometries().iter().filter(|g| g.family() == family) {
            assert_eq!(geometry.index(park), None);
        }
    }
}

#[test]
fn fields_of_known_addresses() {
    let address = FrameAddress::parse(Family::Series7, 0x0042_0105).unwrap();
    assert_eq!(
        (
            address.half(),
            address.row(),
            address.column(),
            address.minor()
        ),
        (Some(Half::Bottom), 1, 2, 5)
    );
    assert_eq!(
        address.to_string(),
        "logic, bottom row 1, column 2, minor 5 (FAR 00420105)"
    );
    let address = FrameAddress::parse(Family::UltraScalePlus, 0x0108_1b0d).unwrap();
    assert_eq!(
        (
            address.block(),
            address.row(),
            address.column(),
            address.minor()
        ),
        (Block::Bram, 2, 27, 13)
    );
}

proptest! {
    #[test]
    fn any_address_is_told_and_never_breaks(raw: u32) {
        for family in Family::ALL {
            if let Ok(address) = FrameAddress::parse(family, raw) {
                let again = FrameAddress::new(
                    family,
                    address.block(),
                    address.half(),
                    address.row(),
                    address.column(),
                    address.minor(),
                );
                prop_assert_eq!(again, Some(address));
                for geometry in geometries().iter().filter(|g| g.family() == family) {
                    if let Some(index) = geometry.index(address) {
                        prop_assert_eq!(geometry.address(index), Some(address));
                    }
                }
            }
        }
    }
}
