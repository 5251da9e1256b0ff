//! Genuine partial bitstreams, loaded into a card of their device.

use anyhow::{Context, Result, ensure};
use bitstream::device::Device;
use reconf_tests::process::wait_for;
use reconf_tests::world::{ImageSetup, World};
use serde_json::json;
use simcard::functions::{ADDER, BLANK, COUNTER};

use crate::stage::{
    ALICE, BOB, NORTH, PATIENCE, SOUTH, Site, at, load_and_compare, outcome_of, setup, shared,
    words,
};

/// Genuine partials of two regions of one XC7Z020 design, each into its own and into the other's.
#[test]
fn b4_genuine_partials_of_a_z7020_stay_within_their_regions() -> Result<()> {
    let (Some(mux), Some(ascii)) = (
        shared("byu_z7020_gscreen_mux_partial.bit"),
        shared("byu_z7020_ascii_s0_partial.bit"),
    ) else {
        return Ok(());
    };
    let sites = [Site::learnt(&mux)?, Site::learnt(&ascii)?];
    let images = vec![
        ImageSetup::bit("acme/mux:1.0", ADDER, NORTH, mux.clone()),
        ImageSetup::bit("acme/ascii:1.0", COUNTER, SOUTH, ascii.clone()),
        // Signed for the region that is gscreen_mux's.
        ImageSetup::bit("acme/astray:1.0", COUNTER, NORTH, ascii.clone()),
    ];
    let known = [
        (mux.clone(), ADDER),
        (ascii.clone(), COUNTER),
        (sites[0].blank.clone(), BLANK),
        (sites[1].blank.clone(), BLANK),
    ];
    let world = World::start(setup("xc7z020", sites, images, &known)?)?;
    load_and_compare(&world, ALICE, "acme/mux:1.0", &mux, ADDER)?;
    load_and_compare(&world, BOB, "acme/ascii:1.0", &ascii, COUNTER)?;

    let before = words(&world)?;
    let refused = world.ask(ALICE, &["load", "acme/astray:1.0"])?;
    ensure!(
        at(&refused, "/job/result/detail") == &json!("unfit"),
        "{refused}"
    );
    ensure!(words(&world)? == before, "the card was given words");
    let finding = at(&outcome_of(&world, "acme/astray:1.0")?, "/finding/frame").clone();
    ensure!(
        finding
            .as_str()
            .is_some_and(|frame| frame.contains("00420100")),
        "{finding}"
    );
    ensure!(world.user_function(ALICE, 0)?.id()? == Some(ADDER));
    world.close()
}

/// A genuine partial over both halves of the device, with block memory.
#[test]
fn b4_a_genuine_partial_over_both_halves_of_a_z7020() -> Result<()> {
    genuine(
        "xc7z020",
        "yunqu_z7020_led_0_partial.bit",
        &["logic bottom row 1 columns 48-51"],
    )
}

/// UltraScale+: four synchronised parts in one file.
#[test]
fn b4_a_genuine_partial_of_a_zu7ev() -> Result<()> {
    genuine("xczu7ev", "yunqu_zu7ev_led_0_partial.bit", &[])
}

/// Loads a genuine partial into the north region; the south one has other frames, or, where none
/// are given, the card's second tenant is left out.
fn genuine(device: &str, name: &str, south: &[&str]) -> Result<()> {
    let Some(file) = shared(name) else {
        return Ok(());
    };
    let north = Site::learnt(&file)?;
    let known = Device::named(device).context("the device")?;
    let other = if south.is_empty() {
        // Of no use but to be there: never loaded, and its blank image is the other one's.
        Site {
            frames: vec!["logic row 0 column 0 minor 0".to_owned()],
            blank: north.blank.clone(),
        }
    } else {
        Site::made(known, south)?
    };
    let table = [(file.clone(), ADDER), (north.blank.clone(), BLANK)];
    let images = vec![ImageSetup::bit("acme/led:0", ADDER, NORTH, file.clone())];
    let mut setup = setup(device, [north, other], images, &table)?;
    setup.vms.truncate(1);
    let mut world = World::make(setup)?;
    world.start_card_process(0)?;
    world.start_daemon()?;
    // A scrub of the other region that came later would write frames of its own.
    let scrubbed = if south.is_empty() { 0..1 } else { 0..2 };
    wait_for("the regions to be blank", PATIENCE, || {
        let answer = world.operator(&["regions"])?;
        let blank =
            |number: usize| at(&answer, &format!("/regions/{number}/content")) == &json!("blank");
        Ok(scrubbed.clone().all(blank).then_some(()))
    })?;
    world.attach(ALICE)?;
    load_and_compare(&world, ALICE, "acme/led:0", &file, ADDER)?;
    world.close()
}
