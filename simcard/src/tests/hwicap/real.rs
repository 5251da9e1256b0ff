//! Real partial bitstreams, where they are at hand.

use super::*;

/// The data of a `.bit` file: what follows its header.
fn data(name: &str) -> Option<Vec<u8>> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../shared/bitstreams")
        .join(name);
    let Ok(file) = std::fs::read(&path) else {
        eprintln!("SKIPPED: {} is not there", path.display());
        return None;
    };
    // Key 'e', then the length of all that follows.
    let at = (0..file.len() - 5).find(|at| {
        let length = u32::from_be_bytes(file[at + 1..at + 5].try_into().unwrap());
        file[*at] == b'e' && usize::try_from(length).unwrap() == file.len() - at - 5
    });
    Some(file[at.unwrap() + 5..].to_vec())
}

/// Loads a real file with the words that a driver sends around it.
fn load(table: &str, device: &str, name: &str) -> Option<Icap> {
    let data = data(name)?;
    let mut known = Table::default();
    known.insert_payload(&data, ADDER);
    let mut card = Icap::with(table, device, |config| config.table = known);
    card.decouple(0);
    card.w(CR, 8);
    card.send(&[0xffff_ffff, 0xaa99_5566]);
    card.send(&DESYNC);
    card.send(&data_words(&data));
    card.send(&DESYNC);
    assert_eq!(card.r(SR), IDLE);
    assert_eq!(card.identity(0), ADDER);
    let stats = card.stats();
    assert_eq!(stats.dangers, crate::Dangers::default());
    assert_eq!((stats.config_errors, stats.unclean_pads), (0, 0));
    assert_eq!((stats.frames_lost, stats.frames_while_coupled), (0, 0));
    Some(card)
}

/// Blocks as `expected.json` tells them: address, words with the last pad.
fn frames(card: &mut Icap, blocks: &[(&str, u32)], words: u32, pads_in_all: u32) {
    let written = card.bench.card.written().unwrap();
    let fars: Vec<&str> = written.ranges.iter().map(|range| &*range.far).collect();
    for (far, _) in blocks {
        assert!(fars.contains(far), "{far} in {fars:?}");
    }
    let frames: u32 = blocks.iter().map(|(_, length)| length / words).sum();
    assert_eq!(written.frames, frames - pads_in_all);
}

#[test]
fn a_z7020_partial_of_logic_only_lands_where_its_blocks_say() {
    let name = "byu_z7020_gscreen_mux_partial.bit";
    let Some(mut card) = load(SERIES7, "xc7z020", name) else {
        return;
    };
    frames(&mut card, &[("00421800", 14039)], 101, 1);
    assert_eq!(card.stats().crc_checks, 3);
    assert_eq!(card.stats().restores, 1);
    // 228 mask frames: one a column of three rows, and two pads a row.
    let masks = card.bench.card.written().unwrap().mask_ranges;
    assert_eq!(masks.iter().map(|range| range.count).sum::<u32>(), 228 - 6);
}

#[test]
fn z7020_partials_with_block_ram_land_where_their_blocks_say() {
    let name = "byu_z7020_ascii_s0_partial.bit";
    if let Some(mut card) = load(SERIES7, "xc7z020", name) {
        let blocks = [("00420100", 27573), ("00c20000", 13029)];
        frames(&mut card, &blocks, 101, 2);
    }
}

#[test]
fn a_zu7ev_partial_of_four_parts_is_taken_whole() {
    let name = "yunqu_zu7ev_led_0_partial.bit";
    let Some(mut card) = load(ULTRASCALE, "xczu7ev", name) else {
        return;
    };
    let blocks = [("000c7b00", 88443), ("010c0200", 23901)];
    frames(&mut card, &blocks, 93, 2);
    assert_eq!(card.stats().crc_checks, 6);
    assert_eq!(card.stats().syncs, 5);
}

#[test]
fn a_partial_for_another_device_stops_at_its_idcode() {
    let Some(data) = data("yunqu_zu7ev_led_0_partial.bit") else {
        return;
    };
    let mut card = Icap::new(SERIES7, "xc7z020");
    card.decouple(0);
    card.send(&data_words(&data));
    assert_eq!(card.r(SR), IDLE & !CFGERR_N);
    assert_eq!(card.stats().last_error, Some(crate::Trouble::Idcode));
    assert_eq!(card.bench.card.written().unwrap().frames, 0);
}
