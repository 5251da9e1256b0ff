//! What leaves its region: refused, whoever signed it and whoever offers it.

use anyhow::{Context, Result, ensure};
use bitstream::device::RegionFrames;
use daemon::ipc::Outcome;
use daemon::layout::card_name;
use reconf_tests::process::wait_for;
use reconf_tests::world::World;
use serde_json::json;
use simcard::functions::{ADDER, COUNTER};

use crate::impostor::Impostor;
use crate::stage::{
    ALICE, BOB, NORTH, PATIENCE, SOUTH, addresses, at, made, outcome_of, setup, sites, words,
    written, z7020,
};

/// A signed image whose bitstream leaves its region: refused before any word reaches the card,
/// the operator told the frame, the guest told nothing of frames.
#[test]
fn inv5_b4_a_signed_image_that_leaves_its_region_is_refused_before_the_card() -> Result<()> {
    let sites = sites()?;
    let images = vec![
        // Signed for the north region, made for the south one.
        made("acme/astray:1.0", ADDER, NORTH, &sites[1].frames)?,
        made("acme/adder:1.0", ADDER, NORTH, &sites[0].frames)?,
    ];
    let world = World::start(setup("xc7z020", sites, images, &[])?)?;
    let before = words(&world)?;
    world.card(0)?.forget_frames()?;
    let refused = world.ask(ALICE, &["load", "acme/astray:1.0"])?;
    ensure!(
        at(&refused, "/job/result/status") == &json!("failed"),
        "{refused}"
    );
    ensure!(
        at(&refused, "/job/result/detail") == &json!("unfit"),
        "{refused}"
    );
    ensure!(words(&world)? == before, "the card was given words");
    ensure!(written(&world)?.is_empty());

    let record = outcome_of(&world, "acme/astray:1.0")?;
    ensure!(at(&record, "/outcome") == &json!("unfit"), "{record}");
    let finding = at(&record, "/finding");
    let frame = at(finding, "/frame").as_str().context("the frame")?;
    ensure!(
        frame.contains("bottom row 1") && frame.contains("column 48"),
        "{record}"
    );
    ensure!(at(finding, "/offset").as_u64().is_some(), "{record}");
    let code = at(finding, "/code").as_str().context("the code")?;
    let reason = at(&record, "/reason").as_str().context("the reason")?;
    ensure!(reason.contains(frame) && reason.contains(code), "{record}");

    // Nothing was touched: the region is not in quarantine, and takes what stays within it.
    ensure!(at(&world.region_of(ALICE, 0)?, "/content") == &json!("blank"));
    world.must(ALICE, &["load", "acme/adder:1.0"])?;
    // A repeat is refused as well, verdict kept or not.
    let again = world.ask(ALICE, &["load", "acme/astray:1.0"])?;
    ensure!(
        at(&again, "/job/result/detail") == &json!("unfit"),
        "{again}"
    );
    ensure!(
        world.user_function(ALICE, 0)?.id()? == Some(ADDER),
        "what ran runs on"
    );
    world.close()
}

/// A `reconfd` that is wholly taken over offers the same bytes straight to the card's process.
#[test]
fn inv5_a_taken_over_reconfd_gets_no_foreign_frame_written() -> Result<()> {
    let sites = sites()?;
    let images = vec![made("acme/astray:1.0", ADDER, NORTH, &sites[1].frames)?];
    let file = images[0].file.clone().context("the file")?;
    let target = format!("acme/astray-1.0/{NORTH}.bit");
    let mut world = World::start(setup("xc7z020", sites, images, &[])?)?;
    world.kill_daemon()?;
    let before = words(&world)?;
    world.card(0)?.forget_frames()?;

    let socket = world
        .places
        .run()
        .join("cards")
        .join(format!("{}.sock", card_name(&world.card(0)?.address())));
    let reconfd = Impostor::connect(&socket)?;
    // The bytes are signed: for the right region, for the wrong one, and for one that is not there.
    for region in 0..3 {
        let end = reconfd.load(region, &file, &target)?;
        ensure!(
            matches!(end.outcome, Outcome::Unfit | Outcome::Refused),
            "{end:?}"
        );
        if region == 0 {
            ensure!(end.outcome == Outcome::Unfit, "{end:?}");
            ensure!(
                end.text.contains("column 48") && end.text.contains("FAR"),
                "{end:?}"
            );
        }
    }
    ensure!(words(&world)? == before, "the card was given words");
    ensure!(written(&world)?.is_empty());
    Ok(())
}

/// A blank image that leaves its region is never written: the region cannot be scrubbed, so that
/// nothing can be loaded into it, and its neighbour is as usable as ever.
#[test]
fn inv5_a_blank_image_outside_its_region_makes_the_region_unloadable() -> Result<()> {
    let [mut north, south] = sites()?;
    north.blank.clone_from(&south.blank);
    let images = vec![
        made("acme/adder:1.0", ADDER, NORTH, &north.frames)?,
        made("acme/counter:1.0", COUNTER, SOUTH, &south.frames)?,
    ];
    let own = addresses(z7020()?, &RegionFrames::parse(z7020()?, &north.frames)?)?;
    let mut world = World::make(setup("xc7z020", [north, south], images, &[])?)?;
    let checked = world.reconfctl(&["check"])?;
    ensure!(
        checked.code == 1 && checked.stdout.contains("blank image"),
        "{}",
        checked.stdout
    );
    world.start_card_process(0)?;
    world.start_daemon()?;
    let regions = wait_for("the south region", PATIENCE, || {
        let answer = world.operator(&["regions"])?;
        let regions = at(&answer, "/regions")
            .as_array()
            .cloned()
            .unwrap_or_default();
        let is = |name: &str, content: &str| {
            regions.iter().any(|region| {
                at(region, "/region")
                    .as_str()
                    .is_some_and(|label| label.ends_with(name))
                    && at(region, "/content") == &json!(content)
            })
        };
        Ok(is("south", "blank").then_some(regions.clone()))
    })?;
    ensure!(regions.len() == 2, "{regions:?}");
    world.attach(ALICE)?;
    world.attach(BOB)?;
    world.must(BOB, &["load", "acme/counter:1.0"])?;
    let refused = world.ask(ALICE, &["load", "acme/adder:1.0"])?;
    ensure!(at(&refused, "/ok") == &json!(false), "{refused}");
    ensure!(
        written(&world)?.is_disjoint(&own),
        "not one frame of the north region"
    );
    world.close()
}
