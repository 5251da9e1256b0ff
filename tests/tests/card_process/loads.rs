//! Loads, from the offer to the guest's access, and what is refused on the way.

use std::time::Duration;

use daemon::ipc::{CardStage, Content, IdentityCheck, Outcome, ToCard};
use serde_json::json;

use crate::client::{Client, new_job, tag};
use crate::stage::{INTERFACE, Stage, entry, gbs, guest_reaches, seal};

#[test]
fn a_load_ends_with_the_guest_in_the_signed_function() {
    let (stage, _running, mut client) = Stage::ready();
    let adder = &stage.images[0];
    let job = client.begin(0, adder, tag(1));
    assert_eq!(client.written(job).unwrap(), IdentityCheck::Checked);
    assert!(
        !guest_reaches(&stage.region(0)),
        "INV1: not before the consent"
    );
    client.say(&ToCard::Commit { job });
    let end = client.end_of(job).done();
    assert!(end.device_ns > 0);
    assert_eq!(end.syncs, 2, "INTENT and COMMIT, and nothing else");
    assert!(end.sync_ns > 0);
    for stage in [
        CardStage::Verifying,
        CardStage::Isolating,
        CardStage::Writing,
        CardStage::Checking,
    ] {
        assert!(client.stages.contains(&stage), "{:?}", client.stages);
    }
    let card = stage.region(0);
    assert!(guest_reaches(&card));
    assert_eq!(card.function, Some(adder.function));
    let report = client.report(0);
    assert_eq!(report.content, Content::Active);
    assert_eq!(report.digest, adder.digest());
    assert_eq!(report.tag, Some(tag(1)));
    assert_eq!(report.function, Some(adder.function.into_bytes()));
    assert!(report.guest_access && report.since > 1_700_000_000);
    assert_eq!(stage.stats(1).isolations, stage.stats(1).pr_starts - 1);
}

#[test]
fn the_owner_loads_again_without_a_scrub_and_without_a_second_hash() {
    let (stage, _running, mut client) = Stage::ready();
    client.load(0, &stage.images[0], tag(1)).done();
    client.load(0, &stage.images[1], tag(1)).done();
    assert_eq!(stage.region(0).function, Some(stage.images[1].function));
    // The same sealed memory again: known, and still loaded and checked.
    let sealed = stage.images[0].sealed();
    for _again in 0..2 {
        let job = new_job();
        let offer = Client::offer_message(job, 0, &stage.images[0], tag(1));
        client.say_with(&offer, Some(&sealed));
        client.say(&ToCard::Go { job });
        client.written(job).unwrap();
        client.say(&ToCard::Commit { job });
        client.end_of(job).done();
    }
    // Known bytes with another digest are still refused.
    let job = new_job();
    let lie = Client::offer_message(job, 0, &stage.images[1], tag(1));
    client.say_with(&lie, Some(&sealed));
    client.end_of(job).is(Outcome::Refused);
    assert_eq!(stage.region(0).function, Some(stage.images[0].function));
}

#[test]
fn inv2_another_owner_waits_for_a_scrub() {
    let (stage, _running, mut client) = Stage::ready();
    client.load(0, &stage.images[0], tag(1)).done();
    client
        .load(0, &stage.images[1], tag(2))
        .is(Outcome::NotScrubbed);
    assert_eq!(stage.region(0).function, Some(stage.images[0].function));
    assert!(guest_reaches(&stage.region(0)), "the owner is undisturbed");
    // Blank, but still the owner's.
    client.scrub(0, Some(tag(1))).done();
    assert_eq!(client.report(0).tag, Some(tag(1)));
    client
        .load(0, &stage.images[1], tag(2))
        .is(Outcome::NotScrubbed);
    client.scrub(0, Some(tag(2))).is(Outcome::NotScrubbed);
    client.scrub(0, None).done();
    assert_eq!(client.report(0).tag, None);
    client.load(0, &stage.images[1], tag(2)).done();
}

#[test]
fn inv2_unknown_content_is_nobodys() {
    let stage = Stage::new();
    let _running = stage.start();
    let mut client = stage.connect();
    assert_eq!(client.report(0).content, Content::Unknown);
    client
        .load(0, &stage.images[0], tag(1))
        .is(Outcome::WrongState);
    assert_eq!(stage.stats(0).pr_starts, 0);
}

#[test]
fn b1_any_changed_bit_is_refused_before_the_card_is_touched() {
    let (stage, _running, mut client) = Stage::ready();
    let adder = stage.images[0].clone();
    let before = (stage.stats(0), stage.region(0));
    let step = adder.bytes.len() / 25;
    for at in (0..adder.bytes.len()).step_by(step) {
        let mut flipped = adder.bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        let job = new_job();
        let offer = Client::offer_message(job, 0, &adder, tag(1));
        client.say_with(&offer, Some(&seal(&flipped)));
        client.say(&ToCard::Go { job });
        client.end_of(job).is(Outcome::Refused);
    }
    assert_eq!(before, (stage.stats(0), stage.region(0)));
}

#[test]
fn b3_sizes_around_the_bound() {
    let cap = gbs(INTERFACE, simcard::functions::ADDER, 16 << 10).len();
    let stage = Stage::with_filler(&format!("bitstream_max = {cap}"), 64);
    let (mut stage, _running, mut client) = stage.into_ready();
    for (more, want) in [
        (0, Outcome::Done),
        (4, Outcome::Refused),
        (8, Outcome::Refused),
    ] {
        let mut image = stage.images[0].clone();
        image.bytes = gbs(INTERFACE, image.function, (16 << 10) + more);
        assert_eq!(image.bytes.len(), cap + more);
        image.path = format!("acme/more{more}.gbs");
        let name = format!("acme/more{more}:1.0");
        image.entry = entry(&name, &image.path, &image.bytes, image.function);
        stage.images.push(image.clone());
        stage.publish();
        client.load(0, &image, tag(1)).is(want);
    }
    let mut empty = stage.images[0].clone();
    empty.bytes.clear();
    client.load(0, &empty, tag(1)).is(Outcome::Refused);
    // The list says another size than the file has.
    let mut image = stage.images[0].clone();
    image.entry["variants"][0]["size"] = json!(image.bytes.len() + 1);
    image.entry["name"] = json!("acme/wrong:1.0");
    image.path = "acme/wrong.gbs".to_owned();
    image.entry["variants"][0]["path"] = json!(image.path);
    stage.images.push(image.clone());
    stage.publish();
    client.load(0, &image, tag(1)).is(Outcome::Refused);
}

#[test]
fn opae_01_container_region_and_list_must_agree() {
    let mut stage = Stage::new();
    let other = uuid::Uuid::from_u128(INTERFACE.as_u128() ^ 1);
    let function = stage.images[0].function;
    // Listed for this region, but the file is for another, or holds another function.
    for (name, bytes) in [
        ("interface", gbs(other, function, 64)),
        ("function", gbs(INTERFACE, simcard::functions::COUNTER, 64)),
    ] {
        let mut image = stage.images[0].clone();
        image.path = format!("acme/{name}.gbs");
        image.bytes = bytes;
        let full = format!("acme/{name}:1.0");
        image.entry = entry(&full, &image.path, &image.bytes, function);
        stage.images.push(image);
    }
    stage.publish();
    let (stage, _running, mut client) = stage.into_ready();
    let before = stage.stats(0);
    for image in &stage.images[2..] {
        let end = client.load(0, image, tag(1)).is(Outcome::Refused);
        assert!(end.text.contains("id of the file"), "{}", end.text);
    }
    assert_eq!(stage.stats(0), before);
}

#[test]
fn d7_silence_abort_and_hang_up_instead_of_the_consent() {
    let stage = Stage::with_limits("commit_wait_ms = 100");
    let (stage, _running, mut client) = stage.into_ready();
    // Silence.
    let job = client.begin(0, &stage.images[0], tag(1));
    client.written(job).unwrap();
    client.end_of(job).is(Outcome::NotCommitted);
    assert_eq!(client.report(0).content, Content::Quarantined);
    assert_eq!(client.until(0, Content::Blank).tag, Some(tag(1)), "kept");
    assert_eq!(stage.region(0).name, "blank");
    // Abort.
    let job = client.begin(0, &stage.images[0], tag(1));
    client.written(job).unwrap();
    client.say(&ToCard::Abort { job });
    client.end_of(job).is(Outcome::NotCommitted);
    client.until(0, Content::Blank);
    // Hang up.
    let job = client.begin(0, &stage.images[0], tag(1));
    client.written(job).unwrap();
    drop(client);
    let mut client = stage.connect();
    client.until(0, Content::Blank);
    assert!(!guest_reaches(&stage.region(0)));
    assert_eq!(stage.region(0).name, "blank");
    client.load(0, &stage.images[0], tag(1)).done();
}

#[test]
fn d2_reconfd_dies_in_the_middle_of_a_write() {
    let stage = Stage::with_filler("", 3 << 20);
    let (stage, _running, mut client) = stage.into_ready();
    let kind = simcard::Kind::SlowRate {
        bytes_per_second: 2_000_000,
    };
    stage.inject(kind, simcard::Times::Once);
    client.begin(0, &stage.images[0], tag(1));
    while !client.stages.contains(&CardStage::Writing) {
        client.hear().unwrap();
    }
    drop(client);
    let mut client = stage.connect();
    client.until(0, Content::Blank);
    assert!(!guest_reaches(&stage.region(0)));
    assert_eq!(stage.stats(0).pr_aborted, 1, "not written to the end");
}

#[test]
fn p13_the_list_expires_or_revokes_between_offer_and_go() {
    let (mut stage, _running, mut client) = Stage::ready();
    let adder = stage.images[0].clone();
    for revoke in [false, true] {
        let job = new_job();
        let offer = Client::offer_message(job, 0, &adder, tag(1));
        client.say_with(&offer, Some(&adder.sealed()));
        // A refusal would end it: it is verified and waits.
        std::thread::sleep(Duration::from_millis(300));
        stage.version += 1;
        if revoke {
            let revoked = [json!({ "image": "acme/adder:1.0" })];
            stage.publish_as(stage.version, Duration::from_secs(3600), &revoked);
        } else {
            stage.publish_as(stage.version, Duration::ZERO, &[]);
        }
        let before = stage.stats(0);
        client.say(&ToCard::Go { job });
        client.end_of(job).is(Outcome::Refused);
        assert_eq!(stage.stats(0), before);
        stage.publish();
    }
    client.load(0, &adder, tag(1)).done();
}

#[test]
fn p14_revoked_before_the_consent_never_reaches_the_guest() {
    let (mut stage, _running, mut client) = Stage::ready();
    let job = client.begin(0, &stage.images[0], tag(1));
    client.written(job).unwrap();
    stage.version += 1;
    let revoked = [json!({ "role": "publisher:acme" })];
    stage.publish_as(stage.version, Duration::from_secs(3600), &revoked);
    client.say(&ToCard::Commit { job });
    client.end_of(job).is(Outcome::Refused);
    client.until(0, Content::Blank);
    assert_eq!(stage.stats(0).handovers, 0);
}

#[test]
fn p1_an_older_list_changes_nothing_also_after_a_restart() {
    let (mut stage, running, mut client) = Stage::ready();
    stage.publish_as(7, Duration::from_secs(3600), &[]);
    client.load(0, &stage.images[0], tag(1)).done();
    // The older list lacks the image: were it believed, the load would be refused.
    let adder = stage.images.remove(0);
    stage.publish_as(6, Duration::from_secs(3600), &[]);
    client.load(0, &adder, tag(1)).done();
    running.stop().unwrap();
    let _running = stage.start();
    let mut client = stage.connect();
    let end = client.load(0, &adder, tag(1)).is(Outcome::Refused);
    assert!(end.text.contains("version 6"), "{}", end.text);
}

#[test]
fn p17_without_enrolment_nothing_loads_and_everything_scrubs() {
    let (stage, running, mut client) = Stage::ready();
    std::fs::remove_file(stage.card_dir().join("floor.json")).unwrap();
    client
        .load(0, &stage.images[0], tag(1))
        .is(Outcome::Refused);
    running.stop().unwrap();
    let running = stage.start();
    let mut client = stage.connect();
    let end = client
        .load(0, &stage.images[0], tag(1))
        .is(Outcome::Refused);
    assert!(end.text.contains("enrolled"), "{}", end.text);
    client.scrub(0, None).done();
    // Enrolled while it runs.
    stage.enrol();
    running.reload();
    client.load(0, &stage.images[0], tag(1)).done();
}

#[test]
fn aws_02_two_regions_at_once_are_done_in_turn() {
    let (stage, _running, mut client) = Stage::ready();
    let one = client.begin(0, &stage.images[0], tag(1));
    let two = client.begin(1, &stage.images[1], tag(2));
    for job in [one, two] {
        client.written(job).unwrap();
        client.say(&ToCard::Commit { job });
        client.end_of(job).done();
    }
    assert!(guest_reaches(&stage.region(0)) && guest_reaches(&stage.region(1)));
}

#[test]
fn a_guests_reset_restarts_its_function_and_nothing_else() {
    let (stage, _running, mut client) = Stage::ready();
    client.reset(0, tag(1)).is(Outcome::WrongState);
    client.load(0, &stage.images[1], tag(1)).done();
    client.reset(0, tag(2)).is(Outcome::NotScrubbed);
    let (before, neighbour) = (stage.stats(0), stage.stats(1));
    client.reset(0, tag(1)).done();
    let after = stage.stats(0);
    assert_eq!(after.resets_by_host, before.resets_by_host + 1);
    assert_eq!(after.pr_starts, before.pr_starts);
    assert!(guest_reaches(&stage.region(0)));
    assert_eq!(stage.stats(1), neighbour);
}
