//! The card misbehaves in every way that the simulated one knows.

use daemon::ipc::{Content, Outcome};
use simcard::{Kind, PrError, Stage as At, Times};

use crate::client::tag;
use crate::stage::{Stage, guest_reaches};

/// One second at most for any wait of the engine's.
const SHORT: &str = "wait_max_ms = 300";

/// Injects `kind` once, loads, and expects the outcome, a quarantine, and a region that was
/// scrubbed by itself and kept for its owner.
fn fails(kind: Kind, outcome: Outcome) {
    let (stage, _running, mut client) = Stage::with_limits(SHORT).into_ready();
    // What runs in the other region is not disturbed.
    client.load(1, &stage.images[1], tag(2)).done();
    client.load(0, &stage.images[1], tag(1)).done();
    let handovers = stage.stats(0).handovers;
    let other = (stage.stats(1), stage.region(1));
    stage.inject(kind, Times::Once);
    let end = client.load(0, &stage.images[0], tag(1)).is(outcome);
    assert!(!end.text.is_empty());
    assert_eq!(client.report(0).content, Content::Quarantined, "{kind:?}");
    stage.clear_faults();
    let report = client.until(0, Content::Blank);
    assert_eq!(report.tag, Some(tag(1)), "its owner keeps it");
    assert_eq!(stage.region(0).name, "blank");
    assert_eq!(stage.stats(0).handovers, handovers, "INV1");
    assert_eq!(other, (stage.stats(1), stage.region(1)));
    client.load(0, &stage.images[0], tag(1)).done();
    assert!(guest_reaches(&stage.region(0)));
}

#[test]
fn krn_01_every_error_of_the_card_is_told_with_its_words() {
    for error in [
        PrError::Operation,
        PrError::Crc,
        PrError::Incompatible,
        PrError::Protocol,
        PrError::FifoOverflow,
    ] {
        let bits = error.bit();
        let (stage, _running, mut client) = Stage::with_limits(SHORT).into_ready();
        let at = At::Complete;
        stage.inject(Kind::PrError { bits, at }, Times::Once);
        let end = client
            .load(0, &stage.images[0], tag(1))
            .is(Outcome::ProgramError);
        assert_eq!(end.words.error, bits);
        client.until(0, Content::Blank);
    }
    fails(
        Kind::PrError {
            bits: 1,
            at: At::Data,
        },
        Outcome::ProgramError,
    );
}

#[test]
fn krn_01_a_stale_error_is_not_blamed_on_the_next_load() {
    let (stage, _running, mut client) = Stage::ready();
    stage.inject(Kind::StickyError { bits: 2 }, Times::Once);
    client.load(0, &stage.images[0], tag(1)).done();
}

#[test]
fn d5_a_card_that_hangs_ends_in_a_deadline_and_a_quarantine() {
    fails(Kind::Hang, Outcome::Deadline);
}

#[test]
fn krn_02_credits_that_never_return() {
    fails(Kind::CreditsStuck { credit: Some(1) }, Outcome::Deadline);
}

#[test]
fn d6_a_gate_that_does_not_move_stops_the_load_before_any_word() {
    let (stage, _running, mut client) = Stage::with_limits(SHORT).into_ready();
    client.load(0, &stage.images[0], tag(1)).done();
    let words = stage.stats(0).data_words;
    stage.inject(Kind::AccessIgnored, Times::UntilCleared);
    client
        .load(0, &stage.images[1], tag(1))
        .is(Outcome::DecoupleFailed);
    assert_eq!(stage.stats(0).data_words, words, "nothing was written");
    let report = client.report(0);
    assert_eq!(report.content, Content::Quarantined);
    assert!(report.guest_access, "the truth, for the operator's alarm");
    while client.report(0).scrub_failures < 3 {
        client.hear().unwrap();
    }
    assert_eq!(stage.stats(0).data_words, words, "nor by any scrub");
    stage.clear_faults();
    client.scrub(0, None).done();
    assert!(!guest_reaches(&stage.region(0)));
}

#[test]
fn d6_a_reset_that_is_not_acknowledged() {
    fails(Kind::PortNoAck, Outcome::DecoupleFailed);
}

#[test]
fn b13_another_function_than_the_signed_one_never_meets_the_guest() {
    fails(Kind::WrongIdentity, Outcome::Identity);
}

#[test]
fn d4_a_card_that_vanishes_ends_the_process_and_leaves_a_quarantine() {
    let (stage, mut running, mut client) = Stage::with_limits(SHORT).into_ready();
    stage.inject(Kind::CardGone { after_words: 1000 }, Times::UntilCleared);
    client
        .load(0, &stage.images[0], tag(1))
        .is(Outcome::DeviceGone);
    assert!(client.hung_up());
    assert!(running.join().is_err());
    // While it is away there is nothing to open; no harm is done by trying.
    assert!(stage.try_start().is_err());
    stage.clear_faults();
    let _running = stage.start();
    let mut client = stage.connect();
    let report = client.until(0, Content::Blank);
    assert_eq!(report.tag, Some(tag(1)));
    assert!(!guest_reaches(&stage.region(0)));
}

#[test]
fn d5_other_cards_do_not_notice() {
    let (slow, _running, mut waits) = Stage::with_limits(SHORT).into_ready();
    let (other, _other_running, mut quick) = Stage::ready();
    slow.inject(Kind::Hang, Times::UntilCleared);
    let job = waits.begin(0, &slow.images[0], tag(1));
    quick.load(0, &other.images[0], tag(1)).done();
    waits.end_of(job).is(Outcome::Deadline);
}
