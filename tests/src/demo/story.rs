//! The steps in which all goes well, or is denied as it should be.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::stage::{Stage, expect, expect_exit};
use crate::world::World;

pub(super) const ALICE: usize = 0;
pub(super) const BOB: usize = 1;

pub(super) fn introduce(stage: &mut Stage, world: &World) -> Result<()> {
    stage.say(&format!("in {}", world.dir().display()))?;
    expect_exit(&stage.operator(world, &["trust", "show"])?, 0)?;
    expect_exit(&stage.operator(world, &["status"])?, 0)?;
    expect(
        &world.operator(&["status"])?,
        &[
            ("/status/healthy", json!(true)),
            ("/status/vms", json!(2)),
            ("/status/list/images", json!(2)),
        ],
    )
}

pub(super) fn list(stage: &mut Stage, world: &mut World) -> Result<()> {
    expect_exit(&stage.guest(world, ALICE, &["list"])?, 0)?;
    expect(
        &world.must(ALICE, &["list"])?,
        &[
            ("/images/0/name", json!("acme/adder:1.0")),
            ("/images/1/name", json!("acme/counter:1.0")),
            ("/images/2", Value::Null),
        ],
    )
}

pub(super) fn load(stage: &mut Stage, world: &mut World) -> Result<()> {
    expect_exit(&stage.guest(world, ALICE, &["load", "acme/adder"])?, 0)?;
    expect_exit(&stage.guest(world, ALICE, &["describe"])?, 0)?;
    expect(
        &world.must(ALICE, &["describe"])?,
        &[
            ("/slots/0/state", json!("active")),
            ("/slots/0/image", json!("acme/adder:1.0")),
            ("/slots/0/guest_pci", json!("0000:00:05.0")),
        ],
    )
}

pub(super) fn works(stage: &mut Stage, world: &mut World) -> Result<()> {
    let mut function = world.user_function(ALICE, 0)?;
    let id = function.id()?.context("the region is shut")?;
    ensure!(id == simcard::functions::ADDER, "the function is {id}");
    let sum = function.add(2, 3)?;
    stage.say(&format!("function {id}"))?;
    stage.say("write 2 to register 0, 3 to register 1")?;
    stage.say(&format!("read register 2: {sum}"))?;
    ensure!(sum == 5, "2 + 3 = {sum}");
    Ok(())
}

pub(super) fn denied(stage: &mut Stage, world: &mut World) -> Result<()> {
    let bob = world.vm(BOB)?.uuid.to_string();
    expect_exit(&stage.guest(world, BOB, &["load", "acme/adder:1.0"])?, 3)?;
    stage.say("only the operator learns why:")?;
    expect_exit(
        &stage.operator(world, &["explain", &bob, "acme/adder:1.0"])?,
        1,
    )?;
    let forbidden = world.ask(BOB, &["load", "acme/adder:1.0"])?;
    let unknown = world.ask(BOB, &["load", "acme/no-such-image:1.0"])?;
    ensure!(
        forbidden == unknown,
        "forbidden and unknown differ: {forbidden} {unknown}"
    );
    stage.say("and an image that does not exist gets the same answer, byte for byte")?;
    let stats = world.card(1)?.stats(0)?;
    ensure!(stats.handovers == 0, "Bob's region was opened");
    Ok(())
}

pub(super) fn clear(stage: &mut Stage, world: &mut World) -> Result<()> {
    expect_exit(&stage.guest(world, ALICE, &["clear"])?, 0)?;
    expect_exit(&stage.guest(world, ALICE, &["describe"])?, 0)?;
    expect(
        &world.must(ALICE, &["describe"])?,
        &[
            ("/slots/0/state", json!("empty")),
            ("/slots/0/image", Value::Null),
        ],
    )?;
    let seen = world.user_function(ALICE, 0)?.id()?;
    ensure!(seen.is_none(), "the guest still reaches {seen:?}");
    let function = world.card(0)?.region(0)?;
    expect(
        &function,
        &[("/function", json!(simcard::functions::BLANK))],
    )
}

pub(super) fn audit(stage: &mut Stage, world: &mut World) -> Result<()> {
    expect_exit(&stage.operator(world, &["audit", "--last", "30"])?, 0)?;
    let trail = world.audit()?;
    ensure!(trail.len() > 8, "only {} records", trail.len());
    expect_exit(&stage.operator(world, &["status"])?, 0)
}
