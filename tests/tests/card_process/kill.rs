//! The process dies like by kill -9, at every named step, while the card lives
//! on; the next one reconciles without an operator (D1).

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use daemon::card_process::{Options, Process, Step, Steps};
use daemon::ipc::{Content, FromCard, Packet, ToCard};

use crate::client::{Client, new_job, tag};
use crate::stage::{Stage, guest_reaches, take_card};

const STEP: &str = "RECONF_TEST_DIE_AT";
const TIMES: &str = "RECONF_TEST_DIE_AFTER";
const HOST: &str = "RECONF_TEST_HOST_FILE";
const CARD: &str = "RECONF_TEST_CARD";
const SOCKET: &str = "RECONF_TEST_SOCKET";
const ROOM: &str = "RECONF_TEST_ROOM";

/// Ends the process without a word: no destructor, no flush.
struct Die {
    at: Step,
    after: AtomicU32,
}

impl Steps for Die {
    fn reached(&self, step: Step) {
        if step == self.at && self.after.fetch_sub(1, Ordering::Relaxed) == 1 {
            std::process::abort();
        }
    }
}

/// The child; as a test it does nothing.
#[test]
fn child() {
    let Ok(step) = std::env::var(STEP) else {
        return;
    };
    let at = Step::ALL
        .into_iter()
        .find(|at| format!("{at:?}") == step)
        .unwrap();
    let after = std::env::var(TIMES).unwrap().parse().unwrap();
    let options = Options {
        host_file: std::env::var_os(HOST).unwrap().into(),
        card: std::env::var(CARD).unwrap(),
        socket: std::env::var_os(SOCKET).map(Into::into),
        state_dir: None,
        peer: None,
    };
    let die = || {
        let after = AtomicU32::new(after);
        Box::new(Die { at, after })
    };
    let process = take_card(|| Process::start(&options, die())).unwrap();
    if let Ok(room) = std::env::var(ROOM) {
        let limit = rustix::process::Rlimit {
            current: Some(room.parse().unwrap()),
            maximum: None,
        };
        rustix::process::setrlimit(rustix::process::Resource::Fsize, limit).unwrap();
    }
    process.run().unwrap();
}

/// A process whose files may not grow beyond `room` bytes once it has started: a full disk.
/// It gets an error as on one, since it inherits that the signal for it is ignored.
pub(crate) fn without_room(stage: &Stage, room: u64) -> Child {
    let mut child = Command::new("sh");
    child
        .args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"])
        .arg(std::env::current_exe().unwrap())
        .env(ROOM, room.to_string());
    prepared(child, stage, Step::BlankDurable, u32::MAX)
}

/// A process that dies when it reaches `at` for the `after`th time.
fn dying(stage: &Stage, at: Step, after: u32) -> Child {
    let child = Command::new(std::env::current_exe().unwrap());
    prepared(child, stage, at, after)
}

fn prepared(mut child: Command, stage: &Stage, at: Step, after: u32) -> Child {
    let options = stage.options();
    child
        .args(["kill::child", "--exact"])
        .env(STEP, format!("{at:?}"))
        .env(TIMES, after.to_string())
        .env(HOST, options.host_file)
        .env(CARD, options.card)
        .env(SOCKET, options.socket.unwrap())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Loads as an honest `reconfd` until the process is dead.
fn load_until_death(client: &mut Client, stage: &Stage) {
    let (job, image) = (new_job(), &stage.images[1]);
    let offer = Client::offer_message(job, 0, image, tag(1));
    client.say_with(&offer, Some(&image.sealed()));
    // From here on it may be dead at any word.
    let say = |client: &Client, message: &ToCard| {
        drop(client.say_bytes(&Packet::from(message).to_bytes(), None));
    };
    say(client, &ToCard::Go { job });
    while let Some(message) = client.hear() {
        if matches!(message, FromCard::Written { .. }) {
            say(client, &ToCard::Commit { job });
        }
    }
}

/// What must hold after a death at `at` in the middle of a reload of region 0, and after the
/// next start.
fn dies(stage: &Stage, at: Step, after: u32) {
    let mut child = dying(stage, at, after);
    let mut client = stage.connect();
    load_until_death(&mut client, stage);
    child.wait().unwrap();

    let committed = matches!(at, Step::CommitDurable | Step::Opened);
    let untouched = matches!(at, Step::Verified);
    let before = stage.region(0);
    // INV1, with nobody alive to help: the guest is only where it was before the load had
    // touched anything, or after COMMIT.
    let reaches = guest_reaches(&before);
    match at {
        Step::Verified | Step::IntentDurable | Step::Opened => assert!(reaches, "{at:?}"),
        _ => assert!(!reaches, "{at:?}"),
    }

    let running = stage.start();
    let mut client = stage.connect();
    if untouched {
        assert_eq!(client.report(0).content, Content::Active);
        assert_eq!(client.report(0).digest, stage.images[0].digest());
        assert!(client.report(0).guest_access);
    } else if committed {
        let digest = stage.images[1].digest();
        assert_eq!(client.report(0).content, Content::Active, "{at:?}");
        assert_eq!(client.report(0).digest, digest);
        assert_eq!(client.report(0).guest_access, at == Step::Opened);
        client.reopen(0, tag(1), digest).done();
        assert!(guest_reaches(&stage.region(0)));
        assert_eq!(stage.region(0).function, Some(stage.images[1].function));
    } else {
        let report = client.until(0, Content::Blank);
        assert_eq!(report.tag, Some(tag(1)), "{at:?}");
        assert_eq!(stage.region(0).name, "blank");
        assert!(!guest_reaches(&stage.region(0)));
    }
    // And the world goes on: the same region, the first image again.
    client.load(0, &stage.images[0], tag(1)).done();
    running.stop().unwrap();
}

#[test]
fn d1_killed_at_every_step_of_a_load() {
    let (stage, running, mut client) = Stage::ready();
    client.load(0, &stage.images[0], tag(1)).done();
    client.load(1, &stage.images[1], tag(2)).done();
    running.stop().unwrap();
    let neighbour = (stage.stats(1), stage.region(1));
    let of_a_load = |step: &Step| {
        !matches!(
            step,
            Step::QuarantineDurable | Step::BlankWritten | Step::BlankDurable
        )
    };
    for at in Step::ALL.into_iter().filter(of_a_load) {
        dies(&stage, at, 1);
    }
    // In the middle and near the end of the words.
    for after in 2..=3 {
        dies(&stage, Step::PartWritten, after);
    }
    assert_eq!(
        neighbour,
        (stage.stats(1), stage.region(1)),
        "INV6: the other region never noticed"
    );
}

#[test]
fn d1_killed_at_every_step_of_a_scrub() {
    let (stage, running, client) = Stage::ready();
    drop(client);
    running.stop().unwrap();
    for at in [
        Step::QuarantineDurable,
        Step::Begun,
        Step::AllWritten,
        Step::Finished,
        Step::Identified,
        Step::BlankWritten,
        Step::BlankDurable,
    ] {
        let running = stage.start();
        let mut client = stage.connect();
        client.load(0, &stage.images[0], tag(1)).done();
        running.stop().unwrap();

        let mut child = dying(&stage, at, 1);
        let mut client = stage.connect();
        client.say(&ToCard::Scrub {
            job: new_job(),
            region: daemon::ipc::RegionIndex(0),
            keep: None,
        });
        assert!(client.hung_up());
        child.wait().unwrap();
        assert!(!guest_reaches(&stage.region(0)), "{at:?}");

        let running = stage.start();
        let mut client = stage.connect();
        let report = client.until(0, Content::Blank);
        assert_eq!(report.tag, None, "{at:?}: the ownership ended");
        assert_eq!(stage.region(0).name, "blank");
        running.stop().unwrap();
    }
}

#[test]
fn cyb_08_what_is_reopened_is_what_was_committed_not_what_is_there() {
    let (stage, running, mut client) = Stage::ready();
    client.load(0, &stage.images[0], tag(1)).done();
    running.stop().unwrap();
    // The journal of a moment ago says adder; behind its back the region becomes a counter,
    // with a COMMIT of its own and no access yet.
    let journal = stage.card_dir().join("journal");
    let before = std::fs::read(&journal).unwrap();
    let mut child = dying(&stage, Step::CommitDurable, 1);
    load_until_death(&mut stage.connect(), &stage);
    child.wait().unwrap();
    std::fs::write(&journal, before).unwrap();

    let _running = stage.start();
    let mut client = stage.connect();
    assert_eq!(client.report(0).digest, stage.images[0].digest());
    let end = client.reopen(0, tag(1), stage.images[0].digest());
    end.is(daemon::ipc::Outcome::Identity);
    client.until(0, Content::Blank);
    assert_eq!(stage.stats(0).handovers, 1, "the first load's");
}

#[test]
fn d1_killed_while_it_cleans_up_after_a_death() {
    let (stage, running, mut client) = Stage::ready();
    client.load(0, &stage.images[0], tag(1)).done();
    running.stop().unwrap();
    let mut child = dying(&stage, Step::PartWritten, 1);
    client = stage.connect();
    load_until_death(&mut client, &stage);
    child.wait().unwrap();
    for at in [
        Step::QuarantineDurable,
        Step::Begun,
        Step::AllWritten,
        Step::BlankWritten,
    ] {
        let mut child = dying(&stage, at, 1);
        child.wait().unwrap();
        assert!(!guest_reaches(&stage.region(0)));
    }
    let _running = stage.start();
    let mut client = stage.connect();
    assert_eq!(client.until(0, Content::Blank).tag, Some(tag(1)));
}
