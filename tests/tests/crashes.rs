//! Processes that die, cards that hang, clients that leave: at no moment does a
//! guest reach what was not committed, and nothing that runs is disturbed.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use reconf_tests::process::{READY_WITHIN, wait_for};
use reconf_tests::world::{CardSetup, ImageSetup, Setup, VmSetup, World};
use serde_json::{Value, json};

const ALICE: usize = 0;
const BOB: usize = 1;
const SOON: Duration = Duration::from_secs(20);

fn at<'a>(object: &'a Value, pointer: &str) -> &'a Value {
    object.pointer(pointer).unwrap_or(&Value::Null)
}

/// One slow card for both VMs, and an image that takes about `milliseconds`.
fn slow(milliseconds: usize) -> Setup {
    let card = CardSetup {
        rate: "400k".to_owned(),
        ..CardSetup::default()
    };
    let mut setup = Setup {
        cards: vec![card],
        ..Setup::default()
    };
    setup.vms = vec![
        VmSetup::new("alice", "blue", 0, 0),
        VmSetup::new("bob", "green", 0, 1),
    ];
    let bytes = milliseconds.saturating_mul(400);
    setup.images.push(ImageSetup::new(
        "acme/big:1.0",
        simcard::functions::CRC32,
        bytes,
    ));
    setup
}

fn begin(world: &World, key: &str) -> Result<()> {
    world.must(ALICE, &["load", "acme/big", "--no-wait", "--key", key])?;
    Ok(())
}

fn wait_words(world: &World, more_than: u64) -> Result<()> {
    wait_for("the card to take words", SOON, || {
        Ok((world.card(0)?.stats(0)?.data_words > more_than).then_some(()))
    })
}

/// How long the tests go on dying, and when within a load.
fn moments() -> Vec<Duration> {
    let rounds: u64 = if std::env::var_os("RECONF_TEST_LONG").is_some() {
        60
    } else {
        6
    };
    // From before the first word until after the commit: 300 ms in all.
    let moment = |round: u64| round.saturating_mul(300).checked_div(rounds);
    (0..rounds)
        .filter_map(moment)
        .map(Duration::from_millis)
        .collect()
}

/// What must hold after any crash: either the whole new function and access,
/// by a commit, or no access at all.
fn whole_or_shut(world: &World) -> Result<()> {
    match world.user_function(ALICE, 0)?.id()? {
        None => ensure!(!world.card(0)?.guest_has_access(0)?, "access to nothing"),
        Some(id) => ensure!(id == simcard::functions::CRC32, "the guest reaches {id}"),
    }
    Ok(())
}

/// D1, INV1: `reconf-card` dies at many moments of a load; after its restart the
/// region is as committed, or shut and made blank, without anybody's help.
#[test]
fn d1_inv1_reconf_card_is_killed_at_any_moment() -> Result<()> {
    let mut world = World::start(slow(200))?;
    for (round, moment) in moments().into_iter().enumerate() {
        let before = world.card(0)?.stats(0)?;
        let key = format!("d1{round:030x}");
        begin(&world, &key)?;
        std::thread::sleep(moment);
        let card = world.cards.get_mut(0).context("no card")?;
        card.process.as_mut().context("no process")?.kill()?;
        whole_or_shut(&world)?;
        world.start_card_process(0)?;
        world.settle()?;
        whole_or_shut(&world)?;
        let job = world.ask(ALICE, &["job", &key, "--wait"])?;
        let status = at(&job, "/job/result/status").clone();
        let after = world.card(0)?.stats(0)?;
        if status == "ok" {
            ensure!(after.handovers > before.handovers, "{job}");
        }
        world.must(ALICE, &["clear"])?;
    }
    world.close()
}

/// D2, INV1: `reconfd` dies at many moments of a load; the card's process ends the
/// job safely, and the new `reconfd` tells the guest what became of it.
#[test]
fn d2_inv1_reconfd_is_killed_at_any_moment() -> Result<()> {
    let mut world = World::start(slow(200))?;
    for (round, moment) in moments().into_iter().enumerate() {
        let key = format!("d2{round:030x}");
        begin(&world, &key)?;
        std::thread::sleep(moment);
        world.kill_daemon()?;
        whole_or_shut(&world)?;
        world.start_daemon()?;
        world.settle()?;
        whole_or_shut(&world)?;
        let job = world.ask(ALICE, &["job", &key, "--wait"])?;
        ensure!(at(&job, "/job/stage") == &json!("done"), "{job}");
        let active = world.user_function(ALICE, 0)?.id()?.is_some();
        let told = at(&job, "/job/result/status") == &json!("ok");
        ensure!(active == told, "the guest is told {job}, and has {active}");
        world.must(ALICE, &["clear"])?;
    }
    world.close()
}

/// G13: the client leaves in the middle of a load, or cancels what runs; the
/// load goes on to its end and the result is kept.
#[test]
fn g13_client_leaves_or_cancels_in_the_middle() -> Result<()> {
    let world = World::start(slow(400))?;
    let words = world.card(0)?.stats(0)?.data_words;
    let key = "13131313131313131313131313131313";
    begin(&world, key)?;
    wait_words(&world, words)?;
    let late = world.ask(ALICE, &["cancel", key])?;
    ensure!(at(&late, "/error/detail") == &json!("too-late"), "{late}");
    let job = world.must(ALICE, &["job", key, "--wait"])?;
    ensure!(at(&job, "/job/result/status") == &json!("ok"), "{job}");
    ensure!(world.user_function(ALICE, 0)?.id()? == Some(simcard::functions::CRC32));
    world.close()
}

/// D5: the card hangs for ever; the load ends at its deadline in a region that
/// is shut, made blank once the card answers again; other cards notice nothing.
#[test]
fn d5_hanging_card_ends_at_the_deadline() -> Result<()> {
    let limits = ["load_base_ms = 500", "wait_max_ms = 500"].map(str::to_owned);
    let world = World::start(Setup {
        limits: limits.to_vec(),
        ..Setup::default()
    })?;
    world
        .card(0)?
        .control(&json!({"fault": "hang", "region": 0}))?;
    world.must(
        ALICE,
        &["load", "acme/adder", "--no-wait", "--key", &"d5".repeat(16)],
    )?;
    world.must(BOB, &["load", "globex/cipher"])?;
    let job = world.ask(ALICE, &["job", &"d5".repeat(16), "--wait"])?;
    ensure!(
        at(&job, "/job/result/detail") == &json!("deadline"),
        "{job}"
    );
    whole_or_shut(&world)?;
    world.wait_content(ALICE, 0, "blank")?;
    world.must(ALICE, &["load", "acme/adder"])?;
    ensure!(world.user_function(ALICE, 0)?.add(2, 3)? == 5);
    world.close()
}

/// D12, INV6: every process of ours is restarted, by a stop and by a kill, while a
/// guest uses its function: the card sees no reset, no isolation, no load.
#[test]
fn d12_inv6_restarts_do_not_disturb_what_runs() -> Result<()> {
    let mut world = World::start(Setup::default())?;
    world.must(ALICE, &["load", "acme/adder"])?;
    let mut function = world.user_function(ALICE, 0)?;
    ensure!(function.add(1, 1)? == 2);
    let before = world.card(0)?.stats(0)?;
    for round in 0..4_u64 {
        let gently = round % 2 == 0;
        if gently {
            world.daemon()?.stop()?;
        }
        world.kill_daemon()?;
        ensure!(function.add(round, 2)? == round.saturating_add(2));
        let process = &mut world.cards.get_mut(0).context("no card")?.process;
        let process = process.as_mut().context("no process")?;
        if gently {
            process.stop()?;
        } else {
            process.kill()?;
        }
        ensure!(function.add(round, 3)? == round.saturating_add(3));
        world.start_card_process(0)?;
        world.start_daemon()?;
        world.settle()?;
        ensure!(function.add(round, 4)? == round.saturating_add(4));
        let seen = world.must(ALICE, &["describe"])?;
        ensure!(
            at(&seen, "/slots/0/image") == &json!("acme/adder:1.0"),
            "{seen}"
        );
    }
    let after = world.card(0)?.stats(0)?;
    ensure!(after == before, "disturbed: {before:?} became {after:?}");
    world.close()
}

/// XRT-08: the card is not there when `reconfd` starts; it comes later, and its
/// regions are served without a restart.
#[test]
fn xrt_08_card_that_comes_late_is_served() -> Result<()> {
    let mut world = World::start(Setup::default())?;
    world.kill_daemon()?;
    for card in &mut world.cards {
        card.process.as_mut().context("no process")?.stop()?;
    }
    world.start_daemon()?;
    let early = world.reconf(ALICE, &["load", "acme/adder", "--json"])?;
    ensure!(
        early.code == 5,
        "exit code {}: {}",
        early.code,
        early.stdout
    );
    world.start_card_process(1)?;
    world.start_card_process(0)?;
    world.settle()?;
    world.must(ALICE, &["load", "acme/adder"])?;
    world.close()
}

/// INV2: a region goes to another tenant only after a scrub.
#[test]
fn inv2_a_new_owner_gets_a_scrubbed_region() -> Result<()> {
    let vms = vec![
        VmSetup::new("alice", "blue", 0, 0),
        VmSetup::new("bob", "green", 0, 0),
    ];
    let mut world = World::make(Setup {
        vms,
        ..Setup::default()
    })?;
    for card in 0..2 {
        world.start_card_process(card)?;
    }
    world.start_daemon()?;
    world.attach(ALICE)?;
    world.settle()?;
    world.must(ALICE, &["load", "acme/adder"])?;
    // Two owners of one region at once are refused.
    ensure!(world.attach(BOB).is_err(), "two VMs got one region");
    let alice = world.vm(ALICE)?.uuid.to_string();
    let before = world.card(0)?.stats(0)?;
    world.reconfctl(&["vm", "detach", &alice])?.good()?;
    wait_for("bob's turn", READY_WITHIN, || {
        Ok(world.attach(BOB).is_ok().then_some(()))
    })?;
    world.settle()?;
    let after = world.card(0)?.stats(0)?;
    ensure!(after.isolations > before.isolations && after.pr_successes > before.pr_successes);
    let content = world.card(0)?.region(0)?;
    ensure!(
        at(&content, "/function") == &json!(simcard::functions::BLANK),
        "{content}"
    );
    world.must(BOB, &["load", "globex/cipher"])?;
    world.close()
}

/// CYB-10: loads that fail leave nothing behind: no file, no descriptor.
#[test]
fn cyb_10_failed_loads_leave_nothing_behind() -> Result<()> {
    let mut world = World::start(Setup::default())?;
    let fail = json!({"fault": "pr-error", "bits": ["crc"], "at": "data", "region": 0});
    let rounds = if std::env::var_os("RECONF_TEST_LONG").is_some() {
        100
    } else {
        12
    };
    let mut counts = Vec::new();
    for round in 0..rounds {
        world.card(0)?.control(&fail)?;
        let failed = world.ask(ALICE, &["load", "acme/adder"])?;
        ensure!(at(&failed, "/ok") == &json!(false), "{failed}");
        world.wait_content(ALICE, 0, "blank")?;
        world.settle()?;
        if round == 2 || round + 1 == rounds {
            counts.push((descriptors(world.daemon()?.pid())?, files(&world.dir())?));
        }
    }
    let (first, last) = (
        counts.first().context("none")?,
        counts.last().context("none")?,
    );
    ensure!(
        last.0 <= first.0.saturating_add(2),
        "descriptors: {counts:?}"
    );
    ensure!(last.1 <= first.1.saturating_add(2), "files: {counts:?}");
    world.close()
}

fn descriptors(pid: u32) -> Result<usize> {
    Ok(std::fs::read_dir(format!("/proc/{pid}/fd"))?.count())
}

fn files(dir: &std::path::Path) -> Result<usize> {
    let mut count = 0_usize;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        count = count.saturating_add(match entry.file_type()?.is_dir() {
            true => files(&entry.path())?,
            false => 1,
        });
    }
    Ok(count)
}
