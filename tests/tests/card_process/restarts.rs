//! Restarts: what is active is not disturbed, and what the files of the last
//! life say, or no longer say, is reconciled with the card.

use std::fs;

use daemon::ipc::{Content, Outcome};

use crate::client::{Client, tag};
use crate::stage::{Stage, guest_reaches};

/// An active region 0 of tag 1, and a stopped process.
fn stopped() -> Stage {
    let (stage, running, mut client) = Stage::ready();
    client.load(0, &stage.images[0], tag(1)).done();
    running.stop().unwrap();
    stage
}

#[test]
fn d12_an_active_region_is_not_even_written_to() {
    let stage = stopped();
    let before = (stage.stats(0), stage.region(0));
    for _restart in 0..5 {
        let running = stage.start();
        let mut client = stage.connect();
        assert_eq!(client.report(0).content, Content::Active);
        assert!(client.report(0).guest_access);
        // Asked to reopen what is open: nothing to do.
        client.reopen(0, tag(1), stage.images[0].digest()).done();
        running.stop().unwrap();
    }
    assert_eq!(before, (stage.stats(0), stage.region(0)));
}

#[test]
fn d3_after_a_power_cut_nothing_is_opened_that_is_not_there() {
    let stage = stopped();
    stage.card.as_ref().unwrap().card().power_cycle();
    let _running = stage.start();
    let mut client = stage.connect();
    // The journal says active, the card is empty and out of reset: shut, and waiting.
    assert_eq!(client.report(0).content, Content::Active);
    assert!(!client.report(0).guest_access);
    assert!(!guest_reaches(&stage.region(0)));
    assert!(stage.region(0).in_reset, "a power cycle releases it");
    client
        .reopen(0, tag(1), stage.images[0].digest())
        .is(Outcome::Identity);
    assert_eq!(client.until(0, Content::Blank).tag, Some(tag(1)));
}

#[test]
fn reopening_needs_the_same_owner_and_the_same_image() {
    let stage = stopped();
    let _running = stage.start();
    let mut client = stage.connect();
    let right = stage.images[0].digest();
    client.reopen(0, tag(2), right).is(Outcome::NotScrubbed);
    client
        .reopen(0, tag(1), stage.images[1].digest())
        .is(Outcome::WrongState);
    client.reopen(1, tag(1), right).is(Outcome::WrongState);
    assert!(client.report(0).guest_access);
}

/// Loss of the journal: an empty region may be scrubbed, a running one is held.
#[test]
fn d13_without_a_journal_running_regions_are_held_and_others_shut() {
    let stage = stopped();
    fs::remove_file(stage.card_dir().join("journal")).unwrap();
    let before = (stage.stats(0), stage.region(0));
    let _running = stage.start();
    let mut client = stage.connect();
    assert_eq!(client.report(0).content, Content::Unknown);
    assert!(client.report(0).guest_access);
    assert_eq!(client.report(1).content, Content::Unknown);
    assert!(!client.report(1).guest_access);
    assert_eq!(before, (stage.stats(0), stage.region(0)), "held");
    assert!(stage.region(1).in_reset);
    client
        .load(0, &stage.images[0], tag(1))
        .is(Outcome::WrongState);
    client.scrub(0, None).done();
    client.load(0, &stage.images[0], tag(1)).done();
}

#[test]
fn d13_any_flipped_byte_of_the_journal_gives_a_region_to_nobody_new_without_a_scrub() {
    let stage = stopped();
    let path = stage.card_dir().join("journal");
    let whole = fs::read(&path).unwrap();
    for at in (0..whole.len()).step_by(29) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        fs::write(&path, damaged).unwrap();
        let starts = stage.stats(0).pr_starts;
        let successes = stage.stats(0).pr_successes;
        let Ok(running) = stage.try_start() else {
            // A format that is too new: not touched, not used.
            continue;
        };
        let mut client = stage.connect();
        let report = client.report(0).clone();
        // Whatever is known of it, it is not another's, who gets it after a scrub only (INV2).
        if report.content == Content::Active {
            assert_eq!(report.tag, Some(tag(1)), "byte {at}");
        }
        let end = client.load(0, &stage.images[1], tag(9));
        let writes = stage.stats(0).pr_successes - successes;
        if end.0.outcome == Outcome::Done {
            assert_eq!(writes, 2, "byte {at}: {report:?}");
        }
        running.stop().unwrap();
        if stage.stats(0).pr_starts != starts {
            // Put back what the damage cost, for the next byte.
            fs::remove_file(&path).unwrap();
            let running = stage.start();
            let mut client: Client = stage.connect();
            client.scrub(0, None).done();
            client.load(0, &stage.images[0], tag(1)).done();
            running.stop().unwrap();
        }
        for file in fs::read_dir(stage.card_dir()).unwrap() {
            let file = file.unwrap();
            let name = file.file_name().into_string().unwrap();
            if name.starts_with("journal") {
                fs::remove_file(file.path()).unwrap();
            }
        }
    }
}

#[test]
fn d9_the_lock_keeps_a_second_process_out() {
    let stage = Stage::new();
    let _running = stage.start();
    let second = stage.try_start();
    assert!(
        matches!(
            second,
            Err(daemon::card_process::StartError::Lock(
                daemon::card_process::LockError::Held(_)
            ))
        ),
        "another process holds it"
    );
}

#[test]
fn d10_another_card_at_the_same_address_is_refused() {
    let stage = Stage::new();
    stage.write_host(&stage.address(), "serial = \"00-0a-35-ff-ff-00-12-35\"");
    assert!(matches!(
        stage.try_start(),
        Err(daemon::card_process::StartError::Serial { .. })
    ));
    stage.write_host(&stage.address(), "serial = \"00-0a-35-ff-ff-00-12-34\"");
    drop(stage.start());
}

#[test]
fn h1_only_our_own_stale_socket_gives_way() {
    let stage = Stage::new();
    let link = stage.path("link.sock");
    // A file, a link and a directory: left alone.
    fs::write(&link, "precious").unwrap();
    assert!(stage.try_start().is_err());
    assert_eq!(fs::read_to_string(&link).unwrap(), "precious");
    fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(stage.path("host.toml"), &link).unwrap();
    assert!(stage.try_start().is_err());
    assert!(stage.path("host.toml").exists());
    fs::remove_file(&link).unwrap();
    fs::create_dir(&link).unwrap();
    assert!(stage.try_start().is_err());
    fs::remove_dir(&link).unwrap();
    // Somebody listens: left alone. Nobody any more: replaced.
    let listener = daemon::ipc::socket::Listener::bind(&link).unwrap();
    assert!(stage.try_start().is_err());
    drop(listener);
    let running = stage.start();
    drop(stage.connect());
    running.stop().unwrap();
    assert!(!link.exists(), "removed at the end");
}
