//! Hostile and unlucky bytes on a channel, end to end: what a dead guest left
//! behind, what a recorder plays again, what a prober can tell apart.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use protocol::message::{Describe, ImageRef, JobKey, List, Load, Ping};
use protocol::{Detail, Kind, Reply, Request, Status};
use reconf_tests::raw::{Heard, RawGuest, load, refusal};
use reconf_tests::world::{CardSetup, ImageSetup, Setup, VmSetup, World};

const ALICE: usize = 0;
const BOB: usize = 1;
const MOMENT: Duration = Duration::from_millis(200);

fn guest(world: &World, vm: usize) -> Result<RawGuest> {
    RawGuest::open(&world.vm(vm)?.port)
}

fn ping(payload: u64) -> Request {
    Request::Ping(Ping { payload })
}

fn pong(guest: &mut RawGuest, payload: u64) -> Result<()> {
    let reply = guest.ask(&ping(payload))?;
    ensure!(
        matches!(&reply, Reply::Ping(pong) if pong.payload == payload),
        "{reply:?}"
    );
    Ok(())
}

/// A guest dies in the middle of a frame, at any byte; the next one's session opens.
#[test]
fn g4_half_frame_of_the_boot_before() -> Result<()> {
    let world = World::start(Setup::default())?;
    let mut frame = {
        let mut guest = guest(&world, ALICE)?;
        guest.handshake()?;
        guest.frame(&load(4, "acme/adder:1.0"))?
    };
    let last = frame.pop().context("an empty frame")?;
    for length in (0..=frame.len()).step_by(if long() { 1 } else { 7 }) {
        let mut dead = guest(&world, ALICE)?;
        dead.send(frame.get(..length).unwrap_or_default())?;
        drop(dead);
        let mut alive = guest(&world, ALICE)?;
        alive
            .handshake()
            .with_context(|| format!("after {length} bytes of a frame"))?;
        pong(&mut alive, 4)?;
    }
    // The whole frame, too: it is of another session, so nothing is loaded.
    frame.push(last);
    let mut dead = guest(&world, ALICE)?;
    dead.send(&frame)?;
    drop(dead);
    pong_after(&world, ALICE)?;
    ensure!(
        world.card(0)?.stats(0)?.handovers == 0,
        "an old load was carried out"
    );
    world.close()
}

fn pong_after(world: &World, vm: usize) -> Result<()> {
    let mut guest = guest(world, vm)?;
    guest.handshake()?;
    pong(&mut guest, 1)
}

/// Whether the long form of the tests was asked for.
fn long() -> bool {
    std::env::var_os("RECONF_TEST_LONG").is_some()
}

/// Recorded bytes of a good session, played again on the same channel, on a new
/// connection and after a restart of `reconfd`, change nothing.
#[test]
fn g7_replayed_session_changes_nothing() -> Result<()> {
    let mut world = World::start(Setup::default())?;
    let recorded = {
        let mut guest = guest(&world, ALICE)?;
        guest.handshake()?;
        let frame = guest.frame(&load(7, "acme/adder:1.0"))?;
        guest.send(&frame)?;
        ensure!(matches!(guest.hear()?.reply, Some(Reply::Load(_))));
        // Its sequence number has been used.
        guest.send(&frame)?;
        let again = guest.hear()?.reply.context("no reply")?;
        ensure!(refusal(again)?.status == Status::Stale);
        frame
    };
    world.must(ALICE, &["job", &"07".repeat(16), "--wait"])?;
    world.must(ALICE, &["clear"])?;
    let before = world.card(0)?.stats(0)?;
    replay(&world, &recorded)?;
    world.kill_daemon()?;
    world.start_daemon()?;
    replay(&world, &recorded)?;
    ensure!(
        world.card(0)?.stats(0)? == before,
        "the replay reached the card"
    );
    world.close()
}

fn replay(world: &World, recorded: &[u8]) -> Result<()> {
    let mut before_any_session = guest(world, ALICE)?;
    before_any_session.send(recorded)?;
    drop(before_any_session);
    let mut guest = guest(world, ALICE)?;
    guest.handshake()?;
    guest.send(recorded)?;
    let reply = guest.hear()?.reply.context("no reply")?;
    ensure!(refusal(reply)?.status == Status::Stale);
    pong(&mut guest, 7)
}

/// Everything that a guest may not load is refused with the same bytes.
#[test]
fn g8_every_denial_is_the_same_bytes() -> Result<()> {
    let mut world = World::start(Setup::default())?;
    let revoked = serde_json::json!({"image": "globex/gone"});
    world.publisher.add(
        &ImageSetup::new("globex/gone:1.0", simcard::functions::COUNTER, 64),
        &[reconf_tests::world::setup::INTERFACE],
    )?;
    world.publisher.revoked.push(revoked);
    world.publisher.publish(Duration::from_secs(3600))?;
    world.reconfctl(&["reload"])?.good()?;
    let refused = [
        ("forbidden", ImageRef::Name("acme/adder:1.0".to_owned())),
        (
            "forbidden, newest",
            ImageRef::Name("acme/counter".to_owned()),
        ),
        (
            "unknown publisher",
            ImageRef::Name("nobody/nothing:1.0".to_owned()),
        ),
        (
            "unknown version",
            ImageRef::Name("globex/cipher:9.9".to_owned()),
        ),
        (
            "unknown digest",
            ImageRef::Digest(protocol::message::Digest([8; 32])),
        ),
        (
            "longest name",
            ImageRef::Name(format!("a{}/b", "x".repeat(63))),
        ),
    ];
    let mut guest = guest(&world, BOB)?;
    guest.handshake()?;
    let mut bodies = Vec::new();
    for (number, (why, image)) in refused.into_iter().enumerate() {
        let key = JobKey([u8::try_from(number)?; 16]);
        let request = Load {
            key,
            slot: None,
            image,
            if_not_loaded: false,
            force: false,
        };
        let frame = guest.frame(&Request::Load(request))?;
        guest.send(&frame)?;
        let heard = guest.hear()?;
        ensure!(heard.kind == Kind::ERROR, "{why}: {heard:?}");
        bodies.push((why, heard.body));
    }
    let (_, first) = bodies.first().context("no refusal")?;
    for (why, body) in &bodies {
        ensure!(body == first, "{why}: {body:?} is not {first:?}");
    }
    world.close()
}

/// Slots that a VM does not have, and slots of others, are one answer.
#[test]
fn g9_a_foreign_slot_is_no_slot() -> Result<()> {
    let world = World::start(Setup::default())?;
    let mut guest = guest(&world, ALICE)?;
    let ready = guest.handshake()?;
    ensure!(ready.slots.len() == 1, "{ready:?}");
    for slot in [1, 2, 7, u16::MAX] {
        let slot = Some(protocol::message::Slot(slot));
        let error = refusal(guest.ask(&Request::Describe(Describe { slot }))?)?;
        ensure!(error.detail == Detail::NoSuchSlot, "{error:?}");
    }
    world.close()
}

/// INV3: one script, two placements of the same VM on other cards and regions,
/// with other images loaded by others: byte-identical transcripts, times,
/// nonces and session ids aside.
#[test]
fn inv3_transcripts_do_not_depend_on_the_place() -> Result<()> {
    let here = transcript(Setup::default())?;
    let other = uuid::Uuid::from_u128(0x0dd1_0001_2222_4333_8444_5555_6666_7777);
    let there = transcript(Setup {
        vms: vec![
            VmSetup::new("alice", "blue", 1, 1),
            VmSetup::new("bob", "green", 0, 0),
        ],
        cards: vec![
            CardSetup::default(),
            CardSetup {
                interface_id: other,
                ..CardSetup::default()
            },
        ],
        ..Setup::default()
    })?;
    ensure!(
        here.len() == there.len(),
        "{} and {} frames",
        here.len(),
        there.len()
    );
    for (left, right) in here.iter().zip(&there) {
        ensure!(left == right, "{left:?}\nis not\n{right:?}");
    }
    Ok(())
}

fn transcript(setup: Setup) -> Result<Vec<Heard>> {
    let world = World::start(setup)?;
    let mut guest = guest(&world, ALICE)?;
    guest.handshake()?;
    let script = [
        Request::List(List {
            slot: None,
            cursor: 0,
        }),
        Request::Describe(Describe { slot: None }),
        load(1, "acme/nothing:1.0"),
        load(2, "globex/cipher:2.1"),
        load(3, "acme/adder:1.0"),
        ping(5),
    ];
    let mut heard = Vec::new();
    for request in &script {
        let frame = guest.frame(request)?;
        guest.send(&frame)?;
        let mut frame = guest.hear()?;
        frame.session = 0;
        if let Some(Reply::List(list)) = &mut frame.reply {
            // An image's digest covers all its variants, which differ between the two lists.
            for entry in &mut list.entries {
                entry.digest = protocol::message::Digest([0; 32]);
            }
            frame.body.clear();
        }
        if let Some(Reply::Describe(describe)) = &mut frame.reply {
            for slot in &mut describe.slots {
                slot.since = None;
            }
            frame.body.clear();
        }
        heard.push(frame);
    }
    drop(guest);
    world.must(ALICE, &["job", &"03".repeat(16), "--wait"])?;
    world.close()?;
    Ok(heard)
}

/// Junk within the budget is drained, and what comes after it is answered at once.
/// A flood of junk costs its sender the channel for a while, and nobody else anything.
#[test]
fn vser_01_junk_is_drained() -> Result<()> {
    let mut world = World::start(Setup::default())?;
    let mut careless = guest(&world, ALICE)?;
    careless.send(&vec![0; 60 * 1024])?;
    drop(careless);
    pong_after(&world, ALICE)?;

    let port = world.vm(ALICE)?.port.clone();
    let flood = std::thread::spawn(move || -> Result<()> {
        let mut flooder = RawGuest::open(&port)?;
        flooder.give_up_after(Duration::from_secs(1))?;
        // 64 MiB, as far as they are taken.
        for _ in 0..1024 {
            if flooder.send(&[0; 64 * 1024]).is_err() {
                break;
            }
        }
        Ok(())
    });
    while !flood.is_finished() {
        pong_after(&world, BOB)?;
    }
    flood.join().ok().context("the flood panicked")??;
    let memory = reconf_tests::memory::of(world.daemon()?.pid())?;
    ensure!(
        memory.resident < 64 << 20,
        "reconfd has {} bytes",
        memory.resident
    );
    world.close()
}

/// Half a frame, an old reply and noise precede a new session; the guest finds
/// its own answer, and the host the guest's.
#[test]
fn vser_03_stale_bytes_both_ways() -> Result<()> {
    let world = World::start(Setup::default())?;
    let mut before = guest(&world, ALICE)?;
    before.handshake()?;
    // Requests whose answers nobody reads: they go to the next opener.
    for number in 0..8 {
        let frame = before.frame(&ping(number))?;
        before.send(&frame)?;
    }
    let half = before.frame(&Request::List(List {
        slot: None,
        cursor: 0,
    }))?;
    before.send(half.get(..20).unwrap_or_default())?;
    before.send(&(0..=255).collect::<Vec<u8>>())?;
    drop(before);
    let mut after = guest(&world, ALICE)?;
    after.handshake()?;
    pong(&mut after, 77)?;
    drop(after);
    world.must(ALICE, &["ping"])?;
    world.close()
}

/// A flood of requests of one VM, and requests that no version knows: that VM is
/// slowed or told so, another one is served.
#[test]
fn xrt_05_flood_and_unknown_kinds() -> Result<()> {
    let world = World::start(Setup::default())?;
    let mut flooder = guest(&world, ALICE)?;
    flooder.handshake()?;
    let mut frames = Vec::new();
    for number in 0..2000 {
        frames.extend(flooder.frame(&ping(number))?);
    }
    flooder.send(&frames)?;
    let mut bob = guest(&world, BOB)?;
    bob.handshake()?;
    pong(&mut bob, 5)?;
    for _ in 0..20 {
        let heard = flooder.hear()?;
        let fine = match &heard.reply {
            Some(Reply::Ping(_)) => true,
            Some(Reply::Error(error)) => matches!(error.status, Status::Rate | Status::Busy),
            _ => false,
        };
        ensure!(fine, "{heard:?}");
    }
    drop(flooder);
    let mut alice = guest(&world, ALICE)?;
    let session = {
        alice.handshake()?;
        alice.session().context("no session")?
    };
    let unknown = protocol::encode(Kind(0x7f), session, 1, &Ping { payload: 0 })?;
    alice.send(&unknown)?;
    let reply = alice.hear()?.reply.context("no reply")?;
    ensure!(refusal(reply)?.status == Status::Unsupported);
    world.close()
}

/// The host speaks only in answer: a session that asks nothing hears nothing,
/// whatever happens to its neighbours.
#[test]
fn inv3_the_host_speaks_only_in_answer() -> Result<()> {
    let world = World::start(Setup::default())?;
    let mut silent = guest(&world, ALICE)?;
    silent.handshake()?;
    world.must(BOB, &["load", "globex/cipher"])?;
    world.reconfctl(&["stop"])?.good()?;
    world.reconfctl(&["resume"])?.good()?;
    let heard = silent.is_quiet(MOMENT)?;
    ensure!(heard.is_none(), "{heard:?}");
    world.close()
}
