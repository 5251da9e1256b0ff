//! What the host trusts, and what it does where files are missing, old, changed
//! or forged, end to end.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use reconf_tests::process::{READY_WITHIN, wait_for};
use reconf_tests::world::setup::INTERFACE;
use reconf_tests::world::{CardSetup, ImageSetup, Setup, World};
use serde_json::{Value, json};
use uuid::Uuid;

const ALICE: usize = 0;
const BOB: usize = 1;
const HOUR: Duration = Duration::from_secs(3600);

fn at<'a>(object: &'a Value, pointer: &str) -> &'a Value {
    object.pointer(pointer).unwrap_or(&Value::Null)
}

/// Whether Alice may load, and what the guest is told if not.
fn load(world: &World) -> Result<Value> {
    let answer = world.ask(ALICE, &["load", "acme/adder", "--force"])?;
    Ok(match at(&answer, "/error/code") {
        Value::Null => at(&answer, "/job/result/status").clone(),
        code => code.clone(),
    })
}

/// An empty grants file, one with comments only, one without a grant, and none
/// at all permit nothing.
#[test]
fn cyb_01_empty_policy_permits_nothing() -> Result<()> {
    let world = World::start(Setup::default())?;
    ensure!(load(&world)? == "ok");
    for text in ["", "# nothing here\n", "[[tenant]]\nname = \"blue\"\n"] {
        fs::write(world.places.grants(), text)?;
        world.reconfctl(&["reload"])?.good()?;
        ensure!(load(&world)? == "denied", "{text:?}");
        let list = world.must(ALICE, &["list"])?;
        ensure!(at(&list, "/images") == &json!([]), "{list}");
    }
    fs::remove_file(world.places.grants())?;
    let reload = world.reconfctl(&["reload"])?;
    ensure!(
        load(&world)? != "ok",
        "no grants file, and allowed: {reload:?}"
    );
    // What runs goes on, and its owner may always clear it.
    ensure!(world.user_function(ALICE, 0)?.add(2, 3)? == 5);
    world.must(ALICE, &["clear"])?;
    world.close()
}

/// Restarted offline: the same answers. One byte of the list changed, an older
/// genuine list, no list, no root, and an expired list: nothing is loaded, and
/// the operator is told why.
#[test]
fn db_04_inv4_signed_bytes_are_verified_at_every_start() -> Result<()> {
    let mut world = World::start(Setup::default())?;
    let older = world.publisher.signed(1, HOUR)?;
    world.publisher.publish(HOUR)?;
    world.reconfctl(&["reload"])?.good()?;
    ensure!(load(&world)? == "ok");
    restart(&mut world)?;
    ensure!(load(&world)? == "ok", "not the same answer after a restart");

    let list = world.places.repository().join("images.json");
    let good = fs::read(&list)?;
    let signature = fs::read(world.places.repository().join("images.json.sig"))?;
    let mut edited = good.clone();
    let middle = good.len() / 2;
    *edited.get_mut(middle).context("an empty list")? ^= 0x20;
    world.publisher.write(&edited, &signature)?;
    refuses(&mut world, "an edited list")?;

    world.publisher.write(&older.0, &older.1)?;
    refuses(&mut world, "an older list")?;

    fs::remove_file(&list)?;
    refuses(&mut world, "no list")?;

    world.publisher.write(&good, &signature)?;
    restart(&mut world)?;
    ensure!(load(&world)? == "ok", "the good list is not believed again");

    let root = world.places.state().join("trust/root.json");
    let kept = fs::read(&root)?;
    fs::remove_file(&root)?;
    refuses(&mut world, "no root")?;
    fs::write(&root, kept)?;
    world.close()
}

fn restart(world: &mut World) -> Result<()> {
    world.kill_daemon()?;
    world.start_daemon()?;
    world.settle()
}

fn refuses(world: &mut World, what: &str) -> Result<()> {
    restart(world)?;
    let answer = load(world)?;
    ensure!(
        answer == "unavailable" || answer == "denied",
        "{what}: {answer}"
    );
    let status = world.operator(&["status"])?;
    ensure!(
        at(&status, "/status/healthy") == &json!(false),
        "{what}: {status}"
    );
    ensure!(
        !at(&status, "/status/list/problem").is_null(),
        "{what}: {status}"
    );
    ensure!(
        world.user_function(ALICE, 0)?.add(2, 3)? == 5,
        "{what}: what runs was disturbed"
    );
    Ok(())
}

/// A list expires while everything runs: from that second on nothing is loaded;
/// clear and scrub still work.
#[test]
fn p2_expired_list_allows_nothing_and_clear_still_works() -> Result<()> {
    let mut world = World::start(Setup::default())?;
    ensure!(load(&world)? == "ok");
    world.publisher.publish(Duration::from_secs(2))?;
    world.reconfctl(&["reload"])?.good()?;
    wait_for("the list to expire", READY_WITHIN, || {
        Ok((load(&world)? != "ok").then_some(()))
    })?;
    ensure!(load(&world)? == "unavailable");
    world.must(ALICE, &["clear"])?;
    world.close()
}

/// The job store is damaged in every way: `reconfd` starts, and jobs are forgotten.
#[test]
fn db_01_damaged_job_store_is_put_aside() -> Result<()> {
    let mut world = World::start(Setup::default())?;
    ensure!(load(&world)? == "ok");
    for way in ["empty", "half", "zero", "flip", "tail"] {
        world.kill_daemon()?;
        let jobs = world.places.state().join("reconfd/jobs");
        for entry in fs::read_dir(&jobs)? {
            let path = entry?.path();
            if path.is_file() {
                hurt(&path, way)?;
            }
        }
        world.start_daemon()?;
        world.settle()?;
        ensure!(
            world.user_function(ALICE, 0)?.add(2, 3)? == 5,
            "{way}: disturbed"
        );
        ensure!(load(&world)? == "ok", "{way}");
    }
    world.close()
}

fn hurt(path: &std::path::Path, way: &str) -> Result<()> {
    let mut bytes = fs::read(path)?;
    match way {
        "empty" => bytes.clear(),
        "half" => bytes.truncate(bytes.len() / 2),
        "zero" => bytes.iter_mut().take(512).for_each(|byte| *byte = 0),
        "flip" => bytes
            .iter_mut()
            .skip(100)
            .take(1)
            .for_each(|byte| *byte = !*byte),
        _ => bytes.extend_from_slice(&[0xa5; 4096]),
    }
    Ok(fs::write(path, bytes)?)
}

/// Registrations lost: no grants until the VM is attached again, its region is
/// held meanwhile and not disturbed.
#[test]
fn loss_of_registrations_grants_nothing_until_attached_again() -> Result<()> {
    let mut world = World::start(Setup::default())?;
    ensure!(load(&world)? == "ok");
    let before = world.card(0)?.stats(0)?;
    world.kill_daemon()?;
    fs::remove_file(world.places.state().join("reconfd/registrations.json"))?;
    world.start_daemon()?;
    let alone = world.reconf(ALICE, &["ping", "--timeout", "1"])?;
    ensure!(alone.code != 0, "a VM that nobody attached was answered");
    ensure!(
        world.user_function(ALICE, 0)?.add(2, 3)? == 5,
        "the region was disturbed"
    );
    ensure!(world.card(0)?.stats(0)? == before, "the region was touched");
    world.close()
}

/// The operator's stop: nothing new is loaded, what runs goes on, resume ends it.
#[test]
fn operator_stops_and_resumes() -> Result<()> {
    let mut world = World::start(Setup::default())?;
    ensure!(load(&world)? == "ok");
    world.reconfctl(&["stop", "--reason", "an audit"])?.good()?;
    let stopped = world.ask(ALICE, &["load", "acme/counter"])?;
    ensure!(
        at(&stopped, "/error/detail") == &json!("stopped"),
        "{stopped}"
    );
    restart(&mut world)?;
    ensure!(load(&world)? == "unavailable", "the stop was forgotten");
    ensure!(world.user_function(ALICE, 0)?.add(2, 3)? == 5);
    world.reconfctl(&["resume"])?.good()?;
    ensure!(load(&world)? == "ok");
    world.close()
}

/// I6: a process that is not the registered one connects to a VM's channel: it is
/// closed unread.
#[test]
fn i6_only_the_registered_process_is_the_peer() -> Result<()> {
    use std::io::{Read, Write};
    let mut world = World::start(Setup::default())?;
    // The stand-in for QEMU goes; its place is taken by this very process.
    let path = world.vm(ALICE)?.host_end.clone();
    let vm = world.vms.get_mut(ALICE).context("no VM")?;
    vm.qemu.kill()?;
    let connected = std::os::unix::net::UnixStream::connect(&path);
    if let Ok(mut stream) = connected {
        stream.set_read_timeout(Some(READY_WITHIN))?;
        let hello = protocol::message::Hello {
            nonce: [6; 16],
            minor: 0,
        };
        let hello = protocol::encode(protocol::Kind::HELLO, 0, 0, &hello)?;
        // It may be closed before we write.
        let written = stream.write_all(&hello);
        let mut answer = Vec::new();
        let read = stream.read_to_end(&mut answer);
        ensure!(
            answer.is_empty(),
            "answered {answer:?} after {written:?} {read:?}"
        );
    }
    world.must(BOB, &["ping"])?;
    world.close()
}

/// A real GBS, made by the vendor's tools, goes through the whole pipeline. Its
/// payload is one byte; the card knows it by its digest.
#[test]
fn real_gbs_goes_through_the_whole_pipeline() -> Result<()> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../shared/bitstreams/intel_k8s_nlb.gbs");
    let Ok(file) = fs::read(&path) else {
        println!("SKIPPED: {} is not here", path.display());
        return Ok(());
    };
    let container = bitstream::parse(&file)?;
    let bitstream::Container::Gbs(gbs) = &container else {
        anyhow::bail!("not a GBS");
    };
    let (interface, function) = (gbs.interface_id, gbs.accelerator);
    let mut payload = container.payload().to_vec();
    payload.resize(payload.len().next_multiple_of(4), 0);
    let digest = policy::ids::Digest::of(&payload);
    let card = CardSetup {
        interface_id: interface,
        table: format!("{} {function}\n", digest.hex()),
        ..CardSetup::default()
    };
    let mut image = ImageSetup::new("intel/nlb:1.0", function, 0);
    image.file = Some(file);
    image.interface_id = Some(interface);
    let mut setup = Setup {
        cards: vec![card.clone(), card],
        ..Setup::default()
    };
    setup.images = vec![image];
    setup.grants = vec![("blue", &["intel/nlb"]), ("green", &["globex/*"])];
    let world = World::start(setup)?;
    world.must(ALICE, &["load", "intel/nlb"])?;
    let id = world.user_function(ALICE, 0)?.id()?;
    ensure!(id == Some(function), "{id:?}");
    world.close()
}

/// A signed image for another kind of card is not loaded here, and the list does
/// not offer it.
#[test]
fn opae_01_signed_for_another_card_is_not_loaded() -> Result<()> {
    let foreign = Uuid::from_u128(0x0dd1_0001_2222_4333_8444_5555_6666_7777);
    let mut setup = Setup::default();
    let mut image = ImageSetup::new("acme/foreign:1.0", simcard::functions::COUNTER, 64);
    image.interface_id = Some(foreign);
    image.file = Some(reconf_tests::world::bitstream_file(
        foreign,
        image.function,
        image.name,
        64,
    )?);
    setup.images.push(image);
    let world = World::start(setup)?;
    let list = world.must(ALICE, &["list"])?.to_string();
    ensure!(!list.contains("foreign"), "{list}");
    let refused = world.reconf(ALICE, &["load", "acme/foreign:1.0", "--json"])?;
    ensure!(refused.code == 3, "{}", refused.stdout);
    ensure!(world.publisher.target("acme/adder:1.0", INTERFACE).exists());
    world.close()
}
