//! Scrubs: the way out of a quarantine, and what happens when it fails.

use std::time::{Duration, Instant};

use daemon::ipc::{Content, Outcome};
use simcard::{Kind, PrError, Stage as At, Times};

use crate::client::tag;
use crate::stage::{INTERFACE, Stage, guest_reaches};

fn pr_error() -> Kind {
    Kind::PrError {
        bits: PrError::Crc.bit(),
        at: At::Complete,
    }
}

#[test]
fn a_scrub_takes_the_region_from_its_guest_and_says_blank_when_it_is() {
    let (stage, _running, mut client) = Stage::ready();
    client.load(0, &stage.images[0], tag(1)).done();
    let end = client.scrub(0, None).done();
    assert_eq!(end.syncs, 2, "out of trust first, blank last");
    assert!(end.device_ns > 0);
    let card = stage.region(0);
    assert_eq!(card.name, "blank");
    assert!(!guest_reaches(&card) && card.in_reset);
    let report = client.report(0);
    assert_eq!((report.content, report.tag), (Content::Blank, None));
    assert!(!report.guest_access && report.function.is_none());
}

#[test]
fn d9_three_failed_scrubs_wait_for_the_operator_also_across_restarts() {
    let (stage, running, mut client) = Stage::ready();
    client.load(0, &stage.images[0], tag(1)).done();
    stage.inject(pr_error(), Times::UntilCleared);
    client.scrub(0, None).is(Outcome::ScrubFailed);
    while client.report(0).scrub_failures < 3 {
        client.hear().unwrap();
    }
    let starts = stage.stats(0).pr_starts;
    client
        .load(0, &stage.images[0], tag(1))
        .is(Outcome::WrongState);
    running.stop().unwrap();
    let _running = stage.start();
    let mut client = stage.connect();
    assert_eq!(client.report(0).scrub_failures, 3);
    assert_eq!(client.report(0).content, Content::Quarantined);
    std::thread::sleep(Duration::from_millis(800));
    assert_eq!(stage.stats(0).pr_starts, starts, "nothing tries again");
    // The operator's word starts one more, each time.
    client.scrub(0, None).is(Outcome::ScrubFailed);
    assert_eq!(client.report(0).scrub_failures, 4);
    stage.clear_faults();
    client.scrub(0, None).done();
    assert_eq!(client.report(0).scrub_failures, 0);
    assert_eq!(client.report(0).tag, None);
}

#[test]
fn a_scrub_that_fails_once_is_tried_again_and_ownership_still_ends() {
    let (stage, _running, mut client) = Stage::ready();
    client.load(0, &stage.images[0], tag(1)).done();
    stage.inject(pr_error(), Times::Once);
    client.scrub(0, None).is(Outcome::ScrubFailed);
    let report = client.until(0, Content::Blank);
    assert_eq!(report.tag, None);
}

#[test]
fn a_scrub_is_proven_by_the_blank_function_itself() {
    let (stage, _running, mut client) = Stage::ready();
    stage.inject(Kind::WrongIdentity, Times::Once);
    client.scrub(0, None).is(Outcome::ScrubFailed);
    client.until(0, Content::Blank);
}

#[test]
fn stop_ends_a_scrub_in_the_middle_without_blaming_the_region() {
    let stage = Stage::new();
    // A slow card, and a blank image that takes it long.
    let blank = crate::stage::gbs(INTERFACE, simcard::functions::BLANK, 4 << 20);
    std::fs::write(stage.path("blank.gbs"), &blank).unwrap();
    stage.write_shell(&policy::ids::Digest::of(&blank).to_string(), INTERFACE);
    let running = stage.start();
    let mut client = stage.connect();
    let bytes_per_second = 1_000_000;
    stage.inject(Kind::SlowRate { bytes_per_second }, Times::Once);
    client.say(&daemon::ipc::ToCard::Scrub {
        job: crate::client::new_job(),
        region: daemon::ipc::RegionIndex(0),
        keep: None,
    });
    while !client.stages.contains(&daemon::ipc::CardStage::Writing) {
        client.hear().unwrap();
    }
    let begun = Instant::now();
    running.stop().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(3), "not to the end");
    let _running = stage.start();
    let mut client = stage.connect();
    assert_eq!(client.report(0).scrub_failures, 0);
    client.until(0, Content::Blank);
}

#[test]
fn a_blank_image_that_is_not_the_pinned_one_is_never_loaded() {
    let stage = Stage::new();
    let wrong = crate::stage::gbs(INTERFACE, simcard::functions::COUNTER, 64);
    std::fs::write(stage.path("blank.gbs"), wrong).unwrap();
    let _running = stage.start();
    let mut client = stage.connect();
    client.scrub(0, None).is(Outcome::ScrubFailed);
    client
        .load(0, &stage.images[0], tag(1))
        .is(Outcome::Refused);
    assert_eq!(stage.stats(0).pr_starts, 0);
}

#[test]
fn inv5_a_fence_that_is_required_and_cannot_be_checked_refuses_every_load() {
    let stage = Stage::new();
    let shell = std::fs::read_to_string(stage.path("shell.toml")).unwrap();
    let fence = "port = 0\nfence = \"required\"\nframes = [\"logic top row 0 column 2\"]";
    let fenced = shell.replacen("port = 0", fence, 1);
    let fenced = format!("device = \"xc7z020\"\n{fenced}");
    std::fs::write(stage.path("shell.toml"), fenced).unwrap();
    let _running = stage.start();
    let mut client = stage.connect();
    let end = client
        .load(0, &stage.images[0], tag(1))
        .is(Outcome::Refused);
    assert!(end.text.contains("fence"), "{}", end.text);
    // The blank image is held to the same rule.
    client.scrub(0, None).is(Outcome::ScrubFailed);
    assert_eq!(stage.stats(0).pr_starts, 0);
    client.scrub(1, None).done();
    client.load(1, &stage.images[0], tag(1)).done();
}

#[test]
fn opae_07_a_shell_file_of_another_card_programs_nothing() {
    let mut stage = Stage::new();
    stage.insert_card(uuid::Uuid::from_u128(INTERFACE.as_u128() ^ 1));
    let _running = stage.start();
    let mut client = stage.connect();
    let end = client.scrub(0, None).is(Outcome::Refused);
    assert!(end.text.contains("not programmable"), "{}", end.text);
    client
        .load(1, &stage.images[0], tag(1))
        .is(Outcome::Refused);
    assert_eq!(stage.stats(0).pr_starts + stage.stats(1).pr_starts, 0);
}
