//! What is in the trail after good days and bad ones.

use std::io::Write as _;

use super::trail::{WAITING_MAX, lock};
use super::*;

#[test]
fn a_note_comes_before_what_is_written_after_it() {
    let dir = tempfile::tempdir().unwrap();
    let audit = Audit::open(&dir.path().join("audit.jsonl")).unwrap();
    for _round in 0..50 {
        audit.note(&event("detach"));
        audit
            .write(&event("load"), &mut SyncCost::default())
            .unwrap();
    }
    audit.note(&event("stop"));
    let events: Vec<String> = audit
        .last(1000)
        .unwrap()
        .iter()
        .map(|line| line["event"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(events.len(), 101);
    assert!(
        events
            .chunks(2)
            .take(50)
            .all(|two| two == ["detach", "load"])
    );
    assert_eq!(events[100], "stop", "what was noted is read");
}

#[test]
fn g11_notes_that_nobody_writes_are_bounded_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let audit = Audit::open(&dir.path().join("audit.jsonl")).unwrap();
    {
        // A disk that hangs: whoever notes does not wait for it.
        let _hangs = lock(&audit.shared.trail);
        for _note in 0..10_000 {
            audit.note(&event("detach"));
        }
        assert_eq!(lock(&audit.shared.waiting).lines.len(), WAITING_MAX);
        // `status` asks under the host's lock.
        assert!(audit.trouble().is_none());
    }
    let all = audit.last(100_000).unwrap();
    assert_eq!(all.len(), WAITING_MAX + 1);
    let lost = all.last().unwrap();
    assert_eq!(lost["outcome"], "lost");
    assert!(lost["reason"].as_str().unwrap().starts_with("8976 "));
}

#[test]
fn p16_a_full_disk_is_told_and_tears_no_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.jsonl");
    let audit = Audit::open(&path).unwrap();
    audit
        .write(&event("stop"), &mut SyncCost::default())
        .unwrap();
    // A file that takes nothing, in place of the real one.
    let good = std::mem::replace(
        &mut lock(&audit.shared.trail).file,
        File::options().append(true).open("/dev/full").unwrap(),
    );
    let full = audit.write(&event("load"), &mut SyncCost::default());
    assert_eq!(full.unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert!(audit.trouble().is_some());
    // A part of the line got through, and could not be taken back.
    let mut trail = lock(&audit.shared.trail);
    trail.file = good;
    trail.file.write_all(b"{\"torn").unwrap();
    assert!(trail.torn, "/dev/full cannot be cut");
    drop(trail);
    audit
        .write(&event("resume"), &mut SyncCost::default())
        .unwrap();
    assert!(audit.trouble().is_none());
    let all = audit.last(10).unwrap();
    assert_eq!(all.len(), 3);
    assert_eq!(all[2]["event"], "resume", "a line of its own");
}

fn event(event: &'static str) -> Record {
    Record {
        event,
        ..Record::default()
    }
}

#[test]
fn what_is_written_is_read_and_a_torn_line_stands_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.jsonl");
    let mut cost = SyncCost::default();
    let record = Record {
        event: "stop",
        reason: Some("a\nb\u{1b}[31m".into()),
        ..Record::default()
    };
    Audit::open(&path)
        .unwrap()
        .write(&record, &mut cost)
        .unwrap();
    std::fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .unwrap()
        .write_all(b"{\"torn")
        .unwrap();
    let audit = Audit::open(&path).unwrap();
    audit.write(&record, &mut cost).unwrap();
    let all = audit.last(10).unwrap();
    assert_eq!(all.len(), 3);
    assert_eq!(all[0]["reason"], "a\nb\u{1b}[31m");
    assert!(all[1]["unreadable"].is_string());
    assert_eq!(all[2]["event"], "stop");
    assert_eq!(audit.last(1).unwrap().len(), 1);
    assert_eq!(cost.count, 2);
    // G10: whatever a guest names, a record is one line without control characters.
    let raw = std::fs::read(&path).unwrap();
    assert!(
        raw.iter()
            .all(|byte| *byte == b'\n' || !byte.is_ascii_control())
    );
}
