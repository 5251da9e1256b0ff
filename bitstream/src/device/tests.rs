//! Tests of the devices, their frames, and sets of them.

mod collections;
mod frames;
mod sets;
mod tables;
mod text;

use super::table::{Table, table};
use super::*;

fn device(name: &str) -> Device {
    Device::named(name).expect("a device")
}

fn geometry(name: &str) -> &'static Geometry {
    device(name).geometry().expect("its geometry")
}

#[test]
fn the_tables_are_whole() {
    let own = Table::own().expect("a table is damaged");
    assert_eq!(own.layouts.len(), 23);
    assert_eq!(table().parts.len(), own.parts.len());
}

#[test]
fn devices_are_found_by_any_of_their_names() {
    for (text, name) in [
        ("xc7z020", "xc7z020"),
        ("7z020clg400", "xc7z020"),
        ("XC7Z020", "xc7z020"),
        ("xczu7ev-ffvc1156-2-e", "xczu7ev"),
        ("xck26-sfvc784-2LV-c", "xck26"),
        ("0x03727093", "xc7z020"),
        ("0x13727093", "xc7z020"),
        ("xcu250-figd2104-2l-e", "xcu250"),
        ("xcu25-x", "xcu25"),
    ] {
        assert_eq!(Device::named(text).map(Device::name), Some(name), "{text}");
    }
    for text in [
        "",
        "xc",
        "xc7z02",
        "xc7z0200",
        "7z020!",
        "0x",
        "0x00000000",
        "0x037270931",
        "xczu7ev-",
        "\u{fc}",
    ] {
        assert!(Device::named(text).is_none(), "{text}");
    }
    assert!(Device::named(&"x".repeat(10_000)).is_none());
}

#[test]
fn families_devices_and_dies() {
    assert_eq!(device("xc7z020").family(), Family::Series7);
    assert_eq!(device("xcku035").family(), Family::UltraScale);
    assert_eq!(device("xczu7ev").family(), Family::UltraScalePlus);
    assert!(device("xcu250").is_multi_die());
    assert_eq!(device("xcu250").dies().len(), 4);
    assert!(device("xcu250").geometry().is_none());
    // Known by its IDCODE alone.
    let unknown = Device::find(0x0484_a093).expect("ZU9");
    assert!(unknown.geometry().is_none() && !unknown.is_multi_die());
}
