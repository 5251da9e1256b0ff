//! What guests may and may not do to each other and to themselves, end to end:
//! real processes, two simulated cards, two VMs. Each test is named after the
//! failure of another product, or the threat, that it answers.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use reconf_tests::process::wait_for;
use reconf_tests::world::{CardSetup, ImageSetup, Setup, VmSetup, World};
use serde_json::{Value, json};

const ALICE: usize = 0;
const BOB: usize = 1;
const SOON: Duration = Duration::from_secs(20);

/// A world whose cards take their time, so that a load can be met half-way.
fn slow(rate: &str, bytes: usize) -> Setup {
    let card = CardSetup {
        rate: rate.to_owned(),
        ..CardSetup::default()
    };
    let mut setup = Setup {
        cards: vec![card.clone(), card],
        ..Setup::default()
    };
    setup.images.push(ImageSetup::new(
        "acme/big:1.0",
        simcard::functions::CRC32,
        bytes,
    ));
    setup
}

/// Waits until the card takes words of a load that was just begun.
fn wait_writing(world: &World, card: usize, region: usize, before: u64) -> Result<()> {
    wait_for("the card to take words", SOON, || {
        Ok((world.card(card)?.stats(region)?.data_words > before).then_some(()))
    })
}

fn at<'a>(object: &'a Value, pointer: &str) -> &'a Value {
    object.pointer(pointer).unwrap_or(&Value::Null)
}

/// A load that failed half-way is written in full the next time, and never
/// answered with "loaded already".
#[test]
fn xrt_01_failed_load_is_written_again() -> Result<()> {
    let world = World::start(Setup::default())?;
    let fault = json!({"fault": "pr-error", "bits": ["crc"], "at": "data", "region": 0});
    world.card(0)?.control(&fault)?;
    let failed = world.ask(ALICE, &["load", "acme/adder"])?;
    ensure!(at(&failed, "/ok") == &json!(false), "{failed}");
    world.wait_content(ALICE, 0, "blank")?;
    let before = world.card(0)?.stats(0)?;
    let loaded = world.must(ALICE, &["load", "acme/adder", "--if-not-loaded"])?;
    ensure!(
        at(&loaded, "/job/result/unchanged") == &json!(false),
        "{loaded}"
    );
    let after = world.card(0)?.stats(0)?;
    ensure!(
        after.pr_successes == before.pr_successes.saturating_add(1),
        "{after:?}"
    );
    ensure!(world.user_function(ALICE, 0)?.add(2, 3)? == 5);
    world.close()
}

/// A client that goes away and comes back with the same key finds the same
/// job: one write, one result.
#[test]
fn xrt_07_same_key_after_reconnect_is_one_write() -> Result<()> {
    let world = World::start(slow("200k", 300_000))?;
    let key = "0707070707070707070707070707aaaa";
    let before = world.card(0)?.stats(0)?;
    world.must(ALICE, &["load", "acme/big", "--no-wait", "--key", key])?;
    wait_writing(&world, 0, 0, before.data_words)?;
    let again = world.must(ALICE, &["load", "acme/big", "--key", key])?;
    ensure!(at(&again, "/job/result/status") == &json!("ok"), "{again}");
    ensure!(
        at(&again, "/job/result/unchanged") == &json!(false),
        "{again}"
    );
    let once_more = world.must(ALICE, &["load", "acme/big", "--key", key])?;
    ensure!(
        at(&once_more, "/job/result") == at(&again, "/job/result"),
        "{once_more}"
    );
    let after = world.card(0)?.stats(0)?;
    ensure!(
        after.pr_starts == before.pr_starts.saturating_add(1),
        "{after:?}"
    );
    // The same key for something else is refused.
    let other = world.ask(ALICE, &["load", "acme/adder", "--key", key])?;
    ensure!(
        at(&other, "/error/detail") == &json!("key-reused"),
        "{other}"
    );
    world.close()
}

/// Two loads for one region at once: one runs, the other is told busy and by
/// which job. Never a silent swap.
#[test]
fn xrt_11_second_load_for_a_region_is_told_busy() -> Result<()> {
    let world = World::start(slow("200k", 300_000))?;
    let key = "11111111111111111111111111111111";
    let before = world.card(0)?.stats(0)?;
    world.must(ALICE, &["load", "acme/big", "--no-wait", "--key", key])?;
    wait_writing(&world, 0, 0, before.data_words)?;
    let second = world.reconf(ALICE, &["load", "acme/adder", "--json"])?;
    ensure!(second.code == 4, "exit code {}", second.code);
    let second = second.json()?;
    ensure!(at(&second, "/error/code") == &json!("busy"), "{second}");
    ensure!(at(&second, "/error/job_key") == &json!(key), "{second}");
    let first = world.must(ALICE, &["job", key, "--wait"])?;
    ensure!(at(&first, "/job/result/status") == &json!("ok"), "{first}");
    let id = world.user_function(ALICE, 0)?.id()?;
    ensure!(id == Some(simcard::functions::CRC32), "{id:?}");
    world.close()
}

/// A client that gave up early looks before it writes again: the card was only
/// slow, and the load is found done.
#[test]
fn aws_01_timeout_is_followed_by_a_look_not_by_a_write() -> Result<()> {
    let world = World::start(slow("200k", 300_000))?;
    let key = "a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1";
    let before = world.card(0)?.stats(0)?;
    let late = world.reconf(
        ALICE,
        &[
            "load",
            "acme/big",
            "--key",
            key,
            "--timeout",
            "0.5",
            "--json",
        ],
    )?;
    ensure!(
        late.code == 7,
        "exit code {}: {}{}",
        late.code,
        late.stdout,
        late.stderr
    );
    ensure!(
        late.stdout.contains(key),
        "the key is not told: {}",
        late.stdout
    );
    let found = world.must(ALICE, &["job", key, "--wait"])?;
    ensure!(at(&found, "/job/result/status") == &json!("ok"), "{found}");
    let after = world.card(0)?.stats(0)?;
    ensure!(
        after.pr_starts == before.pr_starts.saturating_add(1),
        "{after:?}"
    );
    world.close()
}

/// Two VMs program two regions of one card at the same time: a card has one
/// configuration engine, so both succeed, one after the other.
#[test]
fn aws_02_two_regions_of_one_card_take_turns() -> Result<()> {
    let mut setup = slow("400k", 200_000);
    setup.vms = vec![
        VmSetup::new("alice", "blue", 0, 0),
        VmSetup::new("bob", "blue", 0, 1),
    ];
    let world = World::start(setup)?;
    let keys = [
        "02020202020202020202020202020201",
        "02020202020202020202020202020202",
    ];
    for (vm, key) in keys.iter().enumerate() {
        world.must(vm, &["load", "acme/big", "--no-wait", "--key", key])?;
    }
    for (vm, key) in keys.iter().enumerate() {
        let job = world.must(vm, &["job", key, "--wait"])?;
        ensure!(at(&job, "/job/result/status") == &json!("ok"), "{job}");
        let stats = world.card(0)?.stats(vm)?;
        ensure!(stats.handovers == 1 && stats.pr_failures == 0, "{stats:?}");
    }
    world.close()
}

/// Unknown and forbidden look the same to a guest; the audit tells them apart.
#[test]
fn aws_04_unknown_and_forbidden_are_one_answer() -> Result<()> {
    let world = World::start(Setup::default())?;
    let forbidden = world.reconf(BOB, &["load", "acme/adder:1.0", "--json"])?;
    let unknown = world.reconf(BOB, &["load", "nobody/nothing:9", "--json"])?;
    ensure!(
        (forbidden.code, unknown.code) == (3, 3),
        "{} {}",
        forbidden.code,
        unknown.code
    );
    ensure!(
        forbidden.stdout == unknown.stdout,
        "{} {}",
        forbidden.stdout,
        unknown.stdout
    );
    let trail = world.audit()?;
    let told = |outcome: &str| trail.iter().any(|record| at(record, "/outcome") == outcome);
    ensure!(told("not-granted") && told("unknown-image"), "{trail:?}");
    world.close()
}

/// Job keys are scoped to the VM: another VM's key is no job, to ask or to cancel.
#[test]
fn cyb_05_g17_another_vms_job_is_no_job() -> Result<()> {
    let world = World::start(Setup::default())?;
    let key = "05050505050505050505050505050505";
    world.must(ALICE, &["load", "acme/adder", "--key", key])?;
    let unknown = "05050505050505050505050505050506";
    for command in ["job", "cancel"] {
        let foreign = world.reconf(BOB, &[command, key, "--json"])?;
        let absent = world.reconf(BOB, &[command, unknown, "--json"])?;
        ensure!(
            foreign.code == absent.code && foreign.code != 0,
            "{}",
            foreign.code
        );
        let (foreign, absent) = (foreign.json()?, absent.json()?);
        ensure!(
            at(&foreign, "/error/detail") == &json!("no-such-job"),
            "{foreign}"
        );
        ensure!(
            at(&foreign, "/error/code") == at(&absent, "/error/code"),
            "{foreign} and {absent} differ"
        );
    }
    // The same key in another VM is another job.
    world.must(BOB, &["load", "globex/cipher", "--key", key])?;
    world.close()
}

/// "Loaded already" comes from our own journal: after the region was scrubbed
/// behind the guest's back, the same request is a real write.
#[test]
fn cyb_08_change_behind_our_back_is_a_real_write() -> Result<()> {
    let world = World::start(Setup::default())?;
    world.must(ALICE, &["load", "acme/adder"])?;
    let same = world.must(ALICE, &["load", "acme/adder", "--if-not-loaded"])?;
    ensure!(at(&same, "/job/result/unchanged") == &json!(true), "{same}");
    let region = world.region_of(ALICE, 0)?;
    let name = at(&region, "/region")
        .as_str()
        .context("a name")?
        .to_owned();
    world.reconfctl(&["region", "scrub", &name])?.good()?;
    world.wait_content(ALICE, 0, "blank")?;
    let before = world.card(0)?.stats(0)?;
    let again = world.must(ALICE, &["load", "acme/adder", "--if-not-loaded"])?;
    ensure!(
        at(&again, "/job/result/unchanged") == &json!(false),
        "{again}"
    );
    let after = world.card(0)?.stats(0)?;
    ensure!(
        after.pr_starts == before.pr_starts.saturating_add(1),
        "{after:?}"
    );
    world.close()
}

/// One VM with a region of each of two cards of one kind: each slot is exactly
/// one region, and a slot that is loaded already does not hide the other.
#[test]
fn k8s_01_k8s_02_each_slot_is_one_region() -> Result<()> {
    let mut alice = VmSetup::new("alice", "blue", 0, 0);
    alice.regions = vec![(0, 0), (1, 1)];
    let world = World::start(Setup {
        vms: vec![alice],
        ..Setup::default()
    })?;
    let unnamed = world.ask(ALICE, &["load", "acme/adder"])?;
    ensure!(at(&unnamed, "/error/slots") == &json!([0, 1]), "{unnamed}");
    world.must(ALICE, &["load", "acme/adder", "--slot", "0"])?;
    let first = world.must(
        ALICE,
        &["load", "acme/adder", "--slot", "0", "--if-not-loaded"],
    )?;
    ensure!(
        at(&first, "/job/result/unchanged") == &json!(true),
        "{first}"
    );
    let second = world.must(
        ALICE,
        &["load", "acme/counter", "--slot", "1", "--if-not-loaded"],
    )?;
    ensure!(
        at(&second, "/job/result/unchanged") == &json!(false),
        "{second}"
    );
    let ids = [
        world.user_function(ALICE, 0)?.id()?,
        world.user_function(ALICE, 1)?.id()?,
    ];
    let wanted = [simcard::functions::ADDER, simcard::functions::COUNTER].map(Some);
    ensure!(ids == wanted, "{ids:?}");
    for (card, region, opened) in [(0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 1, 1)] {
        let stats = world.card(card)?.stats(region)?;
        ensure!(
            stats.handovers == opened,
            "card {card} region {region}: {stats:?}"
        );
    }
    world.close()
}
