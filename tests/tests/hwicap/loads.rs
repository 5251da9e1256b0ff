//! Loads and clears of partials that are made here.

use anyhow::{Context, Result, ensure};
use reconf_tests::world::{ImageSetup, Partial, World};
use serde_json::json;
use simcard::functions::{ADDER, COUNTER};

use crate::stage::{
    ALICE, BOB, NORTH, SOUTH, addresses, at, fenced, load_and_compare, made, setup, sites, written,
    z7020,
};

/// Everything that a guest does with a slot, over made partials of two regions.
#[test]
fn b4_a_load_writes_the_frames_of_its_region_and_no_other() -> Result<()> {
    let sites = sites()?;
    let images = vec![
        made("acme/adder:1.0", ADDER, NORTH, &sites[0].frames)?,
        made("acme/counter:1.0", COUNTER, SOUTH, &sites[1].frames)?,
    ];
    let files: Vec<Vec<u8>> = images
        .iter()
        .filter_map(|image| image.file.clone())
        .collect();
    let world = World::start(setup("xc7z020", sites, images, &[])?)?;
    load_and_compare(&world, ALICE, "acme/adder:1.0", &files[0], ADDER)?;
    load_and_compare(&world, BOB, "acme/counter:1.0", &files[1], COUNTER)?;
    ensure!(
        world.user_function(ALICE, 0)?.add(2, 3)? == 5,
        "Alice's is as it was"
    );

    world.card(0)?.forget_frames()?;
    world.must(ALICE, &["clear"])?;
    let (_, blank) = fenced(&Partial::read(&files[0])?.blank()?.to_bytes())?;
    ensure!(
        written(&world)? == addresses(z7020()?, &blank)?,
        "a clear writes the region, too"
    );
    ensure!(
        world.user_function(BOB, 0)?.id()? == Some(COUNTER),
        "Bob's is as it was"
    );
    // An image of another slot's interface is not in the guest's list.
    let denied = world.ask(ALICE, &["load", "acme/counter:1.0"])?;
    ensure!(at(&denied, "/error/code") == &json!("denied"), "{denied}");
    ensure!(
        world.card(0)?.hwicap_count("frames_while_coupled")? == 0,
        "every frame was written behind a shut decoupler"
    );
    world.close()
}

/// A card that reports a configuration error, or hangs: the region is shut and scrubbed.
#[test]
fn a_card_that_fails_in_the_middle_ends_in_a_scrub() -> Result<()> {
    let sites = sites()?;
    let images = vec![made("acme/adder:1.0", ADDER, NORTH, &sites[0].frames)?];
    let world = World::start(setup("xc7z020", sites, images, &[])?)?;
    world
        .card(0)?
        .control(&json!({"fault": "config-error", "region": 0, "after_words": 1000}))?;
    let failed = world.ask(ALICE, &["load", "acme/adder:1.0"])?;
    ensure!(
        at(&failed, "/job/result/status") == &json!("failed"),
        "{failed}"
    );
    ensure!(
        world
            .user_function(ALICE, 0)?
            .id()?
            .is_none_or(|id| id != ADDER)
    );
    world.wait_content(ALICE, 0, "blank")?;
    world.must(ALICE, &["load", "acme/adder:1.0"])?;
    ensure!(world.user_function(ALICE, 0)?.add(2, 3)? == 5);
    world.close()
}

/// Bare words in either order are the same load: the card is given the same words.
#[test]
fn a_bin_of_either_word_order_is_loaded() -> Result<()> {
    let sites = sites()?;
    let [north, _] = &sites;
    let file = made("acme/adder:1.0", ADDER, NORTH, &north.frames)?.file;
    let payload = Partial::read(&file.context("the file")?)?.payload();
    let (words, _) = payload.as_chunks::<4>();
    let swapped = words
        .iter()
        .flat_map(|[a, b, c, d]| [*d, *c, *b, *a])
        .collect();
    let bin = |name, file| ImageSetup {
        format: "bin",
        ..ImageSetup::bit(name, ADDER, NORTH, file)
    };
    let images = vec![
        bin("acme/big:1.0", payload.clone()),
        bin("acme/little:1.0", swapped),
    ];
    let world = World::start(setup("xc7z020", sites, images, &[])?)?;
    for image in ["acme/big:1.0", "acme/little:1.0"] {
        load_and_compare(&world, ALICE, image, &payload, ADDER)?;
    }
    world.close()
}

/// The static design has no reset for a region: the guest is told, and its function runs on.
#[test]
fn a_reset_that_the_static_design_lacks_disturbs_nothing() -> Result<()> {
    let sites = sites()?;
    let images = vec![made("acme/adder:1.0", ADDER, NORTH, &sites[0].frames)?];
    let world = World::start(setup("xc7z020", sites, images, &[])?)?;
    world.must(ALICE, &["load", "acme/adder:1.0"])?;
    let reset = world.ask(ALICE, &["reset"])?;
    ensure!(
        at(&reset, "/error/code") == &json!("unsupported"),
        "{reset}"
    );
    ensure!(world.user_function(ALICE, 0)?.add(2, 3)? == 5);
    ensure!(at(&world.region_of(ALICE, 0)?, "/content") == &json!("active"));
    world.close()
}

/// A restart of the card's process leaves a function that is in use alone, words and all.
#[test]
fn inv6_a_restart_of_the_cards_process_disturbs_no_function() -> Result<()> {
    let sites = sites()?;
    let images = vec![made("acme/adder:1.0", ADDER, NORTH, &sites[0].frames)?];
    let mut world = World::start(setup("xc7z020", sites, images, &[])?)?;
    world.must(ALICE, &["load", "acme/adder:1.0"])?;
    world.card(0)?.forget_frames()?;
    let process = world.cards.get_mut(0).and_then(|card| card.process.take());
    process.context("the card's process")?.kill()?;
    world.start_card_process(0)?;
    world.wait_content(ALICE, 0, "active")?;
    ensure!(world.user_function(ALICE, 0)?.add(2, 3)? == 5);
    ensure!(written(&world)?.is_empty(), "a probe writes no frame");
    ensure!(world.card(0)?.guest_has_access(0)?);
    world.close()
}
