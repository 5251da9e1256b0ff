//! The steps in which something is wrong: with a file, the card, or a process.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::stage::{Stage, expect, expect_exit};
use super::story::ALICE;
use crate::process::wait_for;
use crate::world::World;
use crate::world::setup::INTERFACE;

/// The job of the load that is interrupted.
const KEY: &str = "00112233445566778899aabbccddeeff";

/// How long the slow card may take for anything.
const SOON: Duration = Duration::from_secs(15);

pub(super) fn planted(stage: &mut Stage, world: &mut World) -> Result<()> {
    let source = world.publisher.target("acme/counter:1.0", INTERFACE);
    let planted = world.publisher.target("acme/planted:1.0", INTERFACE);
    fs::create_dir_all(planted.parent().context("a folder")?)?;
    fs::copy(&source, &planted)?;
    stage.say("host# cp targets/acme/counter-1.0/*.gbs targets/acme/planted-1.0/")?;
    expect_exit(
        &stage.guest(world, ALICE, &["load", "acme/planted:1.0"])?,
        3,
    )?;
    adder_still_adds(stage, world)
}

pub(super) fn flipped(stage: &mut Stage, world: &mut World) -> Result<()> {
    let path = world.publisher.target("acme/counter:1.0", INTERFACE);
    let good = fs::read(&path)?;
    let mut bad = good.clone();
    *bad.last_mut().context("an empty file")? ^= 1;
    fs::write(&path, &bad)?;
    stage.say("one bit of targets/acme/counter-1.0/*.gbs is flipped")?;
    expect_exit(&stage.guest(world, ALICE, &["load", "acme/counter"])?, 1)?;
    adder_still_adds(stage, world)?;
    fs::write(&path, &good)?;
    stage.say("the file is repaired")
}

fn adder_still_adds(stage: &mut Stage, world: &World) -> Result<()> {
    let sum = world.user_function(ALICE, 0)?.add(20, 22)?;
    ensure!(sum == 42, "the adder was disturbed: 20 + 22 = {sum}");
    stage.say("the function that runs is not disturbed: 20 + 22 = 42")
}

pub(super) fn programming_error(stage: &mut Stage, world: &mut World) -> Result<()> {
    let card = world.card(0)?;
    let before = card.stats(0)?;
    card.control(&json!({"fault": "pr-error", "bits": ["crc"], "at": "data", "region": 0}))?;
    // So slow that a person sees the quarantine before the scrub ends it.
    let slow = json!({"fault": "slow-rate", "bytes_per_second": 40_000, "times": "until-cleared"});
    card.control(&slow)?;
    stage.say("the card is told to fail the next load with a CRC error, and to be slow")?;
    expect_exit(&stage.guest(world, ALICE, &["load", "acme/counter"])?, 1)?;
    let seen = world.user_function(ALICE, 0)?.id()?;
    ensure!(
        seen.is_none(),
        "the guest reaches {seen:?} in a quarantined region"
    );
    let regions = stage.operator(world, &["regions"])?;
    ensure!(
        regions.stdout.contains("quarantined"),
        "the region was not quarantined"
    );
    card.control(&json!({"clear": "faults"}))?;
    world.wait_content(ALICE, 0, "blank")?;
    stage.say("some moments later, without anybody's help:")?;
    expect_exit(&stage.operator(world, &["regions"])?, 0)?;
    expect_exit(&stage.guest(world, ALICE, &["load", "acme/counter"])?, 0)?;
    let after = world.card(0)?.stats(0)?;
    let opened = after.handovers.saturating_sub(before.handovers);
    ensure!(opened == 1, "the region was opened {opened} times");
    // The failed load, the scrub, the good load.
    let begun = after.pr_starts.saturating_sub(before.pr_starts);
    ensure!(begun == 3, "{begun} reconfigurations were begun");
    Ok(())
}

pub(super) fn killed(stage: &mut Stage, world: &mut World) -> Result<()> {
    let before = world.card(0)?.stats(0)?;
    let load = ["load", "acme/adder", "--no-wait", "--key", KEY];
    expect_exit(&stage.guest(world, ALICE, &load)?, 0)?;
    wait_for("the card to take words", SOON, || {
        let words = world.card(0)?.stats(0)?.data_words;
        Ok((words > before.data_words).then_some(()))
    })?;
    world.kill_daemon()?;
    stage.say("host# kill -9 $(pidof reconfd)")?;
    let seen = world.user_function(ALICE, 0)?.id()?;
    ensure!(seen.is_none(), "the guest reaches {seen:?}");
    stage.say("the guest's function reads all-ones: the region is shut")?;

    world.start_daemon()?;
    stage.say("host# systemctl start reconfd")?;
    world.wait_content(ALICE, 0, "blank")?;
    stage.say("reconf-card saw its reconfd go and made the region blank")?;
    let after = world.card(0)?.stats(0)?;
    ensure!(
        after.handovers == before.handovers,
        "the guest got access without a commit"
    );

    let job = stage.guest(world, ALICE, &["job", KEY])?;
    ensure!(job.code <= 1, "exit code {}", job.code);
    let job = world.ask(ALICE, &["job", KEY])?;
    expect(
        &job,
        &[
            ("/job/stage", json!("done")),
            ("/job/result/status", json!("failed")),
            ("/job/result/detail", json!("interrupted")),
            ("/job/result/function_id", Value::Null),
        ],
    )?;
    expect_exit(&stage.guest(world, ALICE, &["load", "acme/adder"])?, 0)?;
    adder_still_adds(stage, world)
}
