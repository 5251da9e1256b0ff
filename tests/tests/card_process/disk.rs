//! The disk is full when the journal must grow: nothing begins that was not
//! written down, and nothing opens.

use daemon::ipc::{Content, Outcome};

use crate::client::tag;
use crate::kill::without_room;
use crate::stage::{Stage, guest_reaches};

const RECORD: u64 = 128;

/// A stage whose region 0 runs the adder for tag 1, stopped, and the length of its journal.
fn stopped() -> (Stage, u64) {
    let (stage, running, mut client) = Stage::ready();
    client.load(0, &stage.images[0], tag(1)).done();
    running.stop().unwrap();
    let journal = std::fs::metadata(stage.card_dir().join("journal")).unwrap();
    (stage, journal.len())
}

#[test]
fn d3_without_room_for_an_intent_nothing_is_touched() {
    let (stage, length) = stopped();
    let before = (stage.stats(0), stage.region(0));
    // Half a record fits: a short write, and then none.
    let mut child = without_room(&stage, length + RECORD / 2);
    let mut client = stage.connect();
    for _again in 0..3 {
        client
            .load(0, &stage.images[1], tag(1))
            .is(Outcome::Journal);
    }
    assert_eq!(before, (stage.stats(0), stage.region(0)));
    assert_eq!(client.report(0).content, Content::Active);
    child.kill().unwrap();
    child.wait().unwrap();
    let _running = stage.start();
    let mut client = stage.connect();
    assert_eq!(client.report(0).content, Content::Active);
    assert_eq!(before, (stage.stats(0), stage.region(0)));
    client.load(0, &stage.images[1], tag(1)).done();
}

#[test]
fn d3_without_room_for_a_commit_nothing_is_opened() {
    let (stage, length) = stopped();
    let handovers = stage.stats(0).handovers;
    let mut child = without_room(&stage, length + RECORD);
    let mut client = stage.connect();
    client
        .load(0, &stage.images[1], tag(1))
        .is(Outcome::Journal);
    assert_eq!(client.report(0).content, Content::Quarantined);
    assert!(!guest_reaches(&stage.region(0)));
    // A scrub needs the journal, too: what is blank must be known to be.
    client.scrub(0, None).is(Outcome::Journal);
    assert!(!guest_reaches(&stage.region(0)));
    child.kill().unwrap();
    child.wait().unwrap();
    let _running = stage.start();
    let mut client = stage.connect();
    assert_eq!(client.until(0, Content::Blank).tag, Some(tag(1)));
    assert_eq!(stage.stats(0).handovers, handovers, "INV1");
}
