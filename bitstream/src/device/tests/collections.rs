//! The tables against the collections that they were made from, and against
//! numbers that vendors publish.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use super::*;

fn shared(file: &str) -> Option<PathBuf> {
    let root = PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../shared/facts/geometry"
    ));
    let path = root.join(file);
    if !path.is_file() {
        eprintln!("SKIPPED: {file}: no such file in {}", root.display());
        return None;
    }
    Some(path)
}

const SERIES7: &str = "7series_from_prjxray_db_CC0.json";
const ULTRASCALE: &str = "us_usplus_from_bitfiltrator_MIT.json";

fn read(path: &PathBuf) -> serde_json::Map<String, Value> {
    let text = std::fs::read_to_string(path).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn numbers(value: &Value) -> Vec<u32> {
    let all = value.as_array().unwrap().iter();
    all.map(|number| u32::try_from(number.as_u64().unwrap()).unwrap())
        .collect()
}

fn idcode(text: &str) -> u32 {
    u32::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
}

/// The columns of a row: frames of each.
fn frames(geometry: &Geometry, block: Block, half: Option<Half>, row: u32) -> Vec<u32> {
    geometry
        .row(block, half, row)
        .map(|row| geometry.row_columns(row).iter().map(|c| c.frames).collect())
        .unwrap_or_default()
}

#[test]
fn every_column_of_every_7_series_die() {
    let Some(path) = shared(SERIES7) else { return };
    let collection = read(&path);
    assert_eq!(collection.len(), 16);
    for (code, die) in &collection {
        let device = Device::find(idcode(code)).expect("a device");
        let geometry = device.geometry().expect("its geometry");
        let rows = die["columns"].as_object().unwrap();
        for (place, columns) in rows {
            let place: Vec<u32> = place.split(',').map(|n| n.parse().unwrap()).collect();
            let &[block, half, row] = place.as_slice() else {
                panic!("{place:?}")
            };
            let block = [Block::Logic, Block::Bram][usize::try_from(block).unwrap()];
            let half = [Half::Top, Half::Bottom][usize::try_from(half).unwrap()];
            let found = frames(geometry, block, Some(half), row);
            assert_eq!(found, numbers(columns), "{code} {place:?}");
        }
        assert_eq!(geometry.rows().len(), rows.len(), "{code}");
    }
}

#[test]
fn every_column_of_every_ultrascale_device() {
    let Some(path) = shared(ULTRASCALE) else {
        return;
    };
    let collection = read(&path);
    assert_eq!(collection.len(), 40);
    for (name, part) in &collection {
        let device = Device::named(name).expect("a device");
        let slrs: BTreeMap<&String, &Value> = part["slrs"].as_object().unwrap().iter().collect();
        let only = (*slrs.keys().next().unwrap()).clone();
        let single = device
            .geometry()
            .map(|geometry| (only, (device.idcode(), geometry)));
        let several = device.dies().into_iter();
        let dies: BTreeMap<String, (u32, &Geometry)> = several
            .map(|die| (die.name.to_owned(), (die.idcode, die.geometry)))
            .chain(single)
            .collect();
        assert_eq!(dies.len(), slrs.len(), "{name}");
        for (slr, value) in slrs {
            let (code, geometry) = dies[slr];
            let stated = idcode(value["idcode"].as_str().unwrap());
            assert_eq!(code, stated & 0x0fff_ffff, "{name} {slr}");
            let mut count = 0;
            for (row, columns) in value["rows"].as_object().unwrap() {
                let row: u32 = row.parse().unwrap();
                for (block, key) in [(Block::Logic, "std"), (Block::Bram, "bram")] {
                    let columns = numbers(&columns[key]);
                    count += columns.iter().sum::<u32>();
                    let found = frames(geometry, block, None, row);
                    assert_eq!(found, columns, "{name} {slr} row {row} {key}");
                }
            }
            assert_eq!(geometry.frame_count(), count, "{name} {slr}");
        }
    }
}

#[test]
fn the_generator_writes_the_very_tables() {
    let (Some(series7), Some(ultrascale)) = (shared(SERIES7), shared(ULTRASCALE)) else {
        return;
    };
    let tables = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/geometry"));
    let out = std::env::temp_dir().join(format!("reconf-geometry-{}", std::process::id()));
    std::fs::create_dir_all(&out).unwrap();
    let ran = Command::new("python3")
        .arg(tables.join("generate.py"))
        .args([&series7, &ultrascale, &out])
        .status();
    match ran {
        Err(error) => eprintln!("SKIPPED: python3: {error}"),
        Ok(status) => {
            assert!(status.success());
            for file in ["series7.txt", "ultrascale.txt"] {
                let made = std::fs::read(out.join(file)).unwrap();
                assert!(made == std::fs::read(tables.join(file)).unwrap(), "{file}");
            }
        }
    }
    std::fs::remove_dir_all(&out).unwrap();
}

/// Frames, pads counted, are the frames of a full bitstream.
fn with_pads(geometry: &Geometry) -> u32 {
    let rows = u32::try_from(geometry.rows().len()).unwrap();
    geometry.frame_count() + rows * geometry.family().row_pads()
}

#[test]
fn counts_are_those_of_full_bitstreams() {
    for (name, frames, full) in [
        ("xc7a35t", 5408, 5420),
        ("xc7a50t", 5408, 5420),
        ("xc7a100t", 9448, 9464),
        ("xc7z020", 9996, 10008),
        ("xcku025", 32510, 32530),
        ("xcku035", 32510, 32530),
    ] {
        let geometry = geometry(name);
        assert_eq!(geometry.frame_count(), frames, "{name}");
        assert_eq!(with_pads(geometry), full, "{name}");
    }
    for (name, full) in [("xc7a35t", 132), ("xc7a100t", 228), ("xc7z020", 228)] {
        let mask = geometry(name).clb_mask().unwrap();
        let rows = (0..mask.count()).filter(|at| mask.row_end(*at)).count();
        assert_eq!(mask.count() + 2 * rows, full, "{name}");
    }
}
