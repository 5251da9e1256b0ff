//! The journal against crashes at every operation, failing operations, and
//! damage of every byte.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "a test may fail where a number does not fit"
)]

use std::collections::BTreeMap;
use std::io;

use proptest::prelude::*;

use super::record::{RECORD_SIZE, Record};
use super::*;

mod simulated;

use simulated::{Files, Loss};

const NAME: &str = "card0.journal";
const COMPACT: usize = 8;

fn owner(n: u8) -> Option<OwnerTag> {
    Some(OwnerTag([n; 32]))
}

fn intent(n: u8) -> Entry {
    Entry::Intent {
        owner: owner(n),
        job: Job([n; 16]),
        digest: Sha256([n; 32]),
    }
}

fn commit(n: u8) -> Entry {
    Entry::Commit {
        owner: owner(n),
        job: Job([n; 16]),
        digest: Sha256([n; 32]),
        function: FunctionId::from_u128(u128::from(n)),
    }
}

/// What a day on two regions writes down; more than one compaction.
fn script() -> Vec<(RegionId, Entry)> {
    let (a, b) = (RegionId(0), RegionId(1));
    let mut steps = Vec::new();
    for n in 1..4 {
        steps.push((a, intent(n)));
        steps.push((a, commit(n)));
        steps.push((b, intent(n + 100)));
        let failures = n;
        steps.push((
            b,
            Entry::Quarantined {
                owner: owner(n + 100),
                failures,
            },
        ));
        steps.push((b, Entry::Blank { owner: None }));
        steps.push((a, Entry::Released));
    }
    steps
}

fn open(files: &Files) -> (Journal<Files>, Recovered) {
    // An operation that is to fail once may be one of these.
    Journal::with_files(files.clone(), NAME, COMPACT)
        .or_else(|_failed| Journal::with_files(files.clone(), NAME, COMPACT))
        .unwrap()
}

/// The whole journal of the script, never compacted.
fn full() -> Vec<u8> {
    let files = Files::default();
    let (mut journal, _) = Journal::with_files(files.clone(), NAME, usize::MAX).unwrap();
    for (at, (region, entry)) in script().iter().enumerate() {
        journal.append(*region, entry, at as u64).unwrap();
    }
    files.content(NAME).unwrap()
}

/// The states after the first `steps` of the script.
fn truth(steps: usize) -> BTreeMap<RegionId, RegionState> {
    let mut states = BTreeMap::new();
    for (at, (region, entry)) in script().iter().take(steps).enumerate() {
        states.insert(*region, entry.state(at as u64));
    }
    states
}

#[test]
fn what_was_written_is_read_back_across_compactions() {
    let files = Files::default();
    let (mut journal, recovered) = open(&files);
    assert_eq!(recovered.found, Found::Missing);
    assert!(recovered.regions.is_empty());
    for (at, (region, entry)) in script().iter().enumerate() {
        journal.append(*region, entry, at as u64).unwrap();
        assert_eq!(journal.state(*region), entry.state(at as u64));
        let (again, recovered) = open(&files);
        assert_eq!(recovered.found, Found::Whole);
        assert_eq!(recovered.regions, truth(at + 1));
        drop(again);
    }
    assert!(files.content(NAME).unwrap().len() < COMPACT * RECORD_SIZE);
    assert_eq!(journal.state(RegionId(9)), RegionState::UNKNOWN);
}

#[test]
fn on_a_real_disk_as_well() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(NAME);
    let (directory_files, name) = (Directory::open(directory.path()).unwrap(), NAME);
    let (mut journal, _) = Journal::with_files(directory_files, name, COMPACT).unwrap();
    for (at, (region, entry)) in script().iter().enumerate() {
        journal.append(*region, entry, at as u64).unwrap();
    }
    let (_journal, recovered) = Journal::open(&path).unwrap();
    assert_eq!(recovered.regions, truth(script().len()));
    // Damage, so that links and renames are used too.
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[60] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    for number in 1..=20 {
        let (_journal, recovered) = Journal::open(&path).unwrap();
        let Found::Damaged { kept_as, .. } = recovered.found else {
            panic!("{:?}", recovered.found);
        };
        assert_eq!(kept_as, format!("{NAME}.damaged-{}", number.min(16)));
        assert_eq!(
            std::fs::read(directory.path().join(&kept_as)).unwrap(),
            bytes
        );
        assert_eq!(Journal::open(&path).unwrap().1.found, Found::Whole);
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, &bytes).unwrap();
    }
}

#[test]
fn something_else_in_the_journals_place_is_not_followed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(NAME);
    std::os::unix::fs::symlink("/dev/null", &path).unwrap();
    assert!(matches!(Journal::open(&path), Err(JournalError::Io { .. })));
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert!(matches!(Journal::open(&path), Err(JournalError::Io { .. })));
    assert!(matches!(
        Journal::open(".".as_ref()),
        Err(JournalError::NoName)
    ));
}

/// D3: the power goes at any operation, and any part of what was not synced
/// is lost. What was acknowledged is there; what was under way may be.
#[test]
fn d3_a_crash_at_any_operation_loses_nothing_that_was_acknowledged() {
    for crash_at in 0.. {
        let files = Files::default();
        files.crash_at(crash_at);
        let acknowledged = run_until_failure(&files);
        if acknowledged == script().len() {
            assert!(crash_at > 50);
            return;
        }
        for loss in Loss::all() {
            let disk = files.after_crash(loss);
            let (_journal, recovered) = open(&disk);
            let held = [truth(acknowledged), truth(acknowledged + 1)];
            assert!(
                held.contains(&recovered.regions),
                "crash at {crash_at}, {loss:?}: {recovered:?}"
            );
            assert!(
                !matches!(recovered.found, Found::Damaged { .. }),
                "{loss:?}"
            );
            // And it goes on from there.
            let (mut journal, _) = open(&disk);
            journal.append(RegionId(7), &Entry::Released, 0).unwrap();
        }
    }
}

/// Plays the script until something fails; returns the acknowledged steps.
fn run_until_failure(files: &Files) -> usize {
    let Ok((mut journal, _)) = Journal::with_files(files.clone(), NAME, COMPACT) else {
        return 0;
    };
    for (at, (region, entry)) in script().iter().enumerate() {
        if journal.append(*region, entry, at as u64).is_err() {
            return at;
        }
    }
    script().len()
}

/// The system fails once, at any operation, and goes on: no space, an error of
/// the disk, half a write. What was acknowledged is there.
#[test]
fn d3_no_failing_operation_loses_what_was_acknowledged() {
    for error in [io::ErrorKind::StorageFull, io::ErrorKind::Other] {
        for fail_at in 0.. {
            let files = Files::default();
            files.fail_at(fail_at, error);
            let mut states = BTreeMap::new();
            let mut journal = match Journal::with_files(files.clone(), NAME, COMPACT) {
                Ok((journal, _)) => journal,
                Err(JournalError::Io { .. }) => open(&files).0,
                Err(other) => panic!("{other}"),
            };
            for (at, (region, entry)) in script().iter().enumerate() {
                let now = at as u64;
                match journal.append(*region, entry, now) {
                    Ok(()) => {}
                    Err(JournalError::Io { .. } | JournalError::Poisoned) => {
                        // Whether the step is down is open; nothing else is.
                        let (again, recovered) = open(&files);
                        let mut with = states.clone();
                        with.insert(*region, entry.state(now));
                        assert!([&states, &with].contains(&&recovered.regions), "{fail_at}");
                        journal = again;
                        if journal.append(*region, entry, now).is_err() {
                            journal = open(&files).0;
                            journal.append(*region, entry, now).unwrap();
                        }
                    }
                    Err(other) => panic!("{other}"),
                }
                states.insert(*region, entry.state(now));
            }
            assert_eq!(open(&files).1.regions, states, "{error:?} at {fail_at}");
            if !files.failed() {
                assert!(fail_at > 50);
                break;
            }
        }
    }
}

#[test]
fn after_a_failed_sync_nothing_is_written_until_the_file_was_read_again() {
    let files = Files::default();
    let (mut journal, _) = open(&files);
    journal.append(RegionId(0), &intent(1), 0).unwrap();
    // Three short writes, and then the sync.
    files.fail_at(files.operations() + 3, io::ErrorKind::Other);
    let error = journal.append(RegionId(0), &commit(1), 1).unwrap_err();
    assert!(matches!(error, JournalError::Io { .. }), "{error}");
    let error = journal.append(RegionId(0), &commit(1), 1).unwrap_err();
    assert!(matches!(error, JournalError::Poisoned), "{error}");
}

/// Every prefix of the file: whole records count, the rest is taken back.
#[test]
fn d3_every_prefix_is_a_journal() {
    let bytes = full();
    for length in 0..=bytes.len() {
        let files = Files::with(NAME, &bytes[..length]);
        let (_journal, recovered) = open(&files);
        let (whole, over) = (length / RECORD_SIZE, length % RECORD_SIZE);
        assert_eq!(recovered.regions, truth(whole));
        let found = match over {
            0 => Found::Whole,
            bytes => Found::TornTail {
                bytes: bytes as u64,
            },
        };
        assert_eq!(recovered.found, found);
        assert_eq!(files.content(NAME).unwrap().len(), whole * RECORD_SIZE);
    }
}

#[test]
fn d3_room_that_was_never_written_is_taken_back() {
    let mut bytes = full();
    bytes.extend_from_slice(&[0; RECORD_SIZE + 17]);
    let (_journal, recovered) = open(&Files::with(NAME, &bytes));
    assert_eq!(recovered.regions, truth(script().len()));
    let torn = RECORD_SIZE as u64 + 17;
    assert_eq!(recovered.found, Found::TornTail { bytes: torn });
}

/// D13: each byte flipped in each way. No region is ever better than it was:
/// it is as the last record says, quarantined, or unknown; and the other one
/// goes on as long as the damaged record tells that it is not about it.
#[test]
fn d13_each_flipped_byte_hurts_its_region_only_and_the_file_is_kept() {
    let bytes = full();
    let sound = truth(script().len());
    let places = script();
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        let files = Files::with(NAME, &damaged);
        let (_journal, recovered) = open(&files);
        let Found::Damaged { kept_as, .. } = &recovered.found else {
            panic!("byte {at} went unseen");
        };
        assert_eq!(files.content(kept_as).unwrap(), damaged);
        let record = at / RECORD_SIZE;
        let hurt = places[record].0;
        for (region, state) in &sound {
            let later = places
                .iter()
                .skip(record + 1)
                .any(|(other, _)| other == region);
            let now = recovered.regions.get(region);
            if later {
                assert_eq!(now, Some(state), "byte {at}: a later record tells all");
            } else if *region == hurt {
                let quarantined = RegionState {
                    content: Content::Quarantined { failures: 0 },
                    ..RegionState::UNKNOWN
                };
                assert!(
                    now.is_none() || now == Some(&quarantined),
                    "byte {at}: {now:?}"
                );
            } else {
                assert!(now.is_none() || now == Some(state), "byte {at}: {now:?}");
            }
        }
        // What the damage did is itself written down.
        let (_journal, again) = open(&files);
        assert_eq!(
            (again.found, again.regions),
            (Found::Whole, recovered.regions)
        );
    }
}

#[test]
fn d13_most_flips_leave_the_neighbour_alone() {
    let bytes = full();
    let last = bytes.len() - RECORD_SIZE;
    let (hurt, other) = (script().last().unwrap().0, RegionId(1));
    let mut spared = 0;
    for at in last..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x40;
        let (_journal, recovered) = open(&Files::with(NAME, &damaged));
        assert!(
            !recovered.regions.contains_key(&hurt) || {
                let content = recovered.regions[&hurt].content;
                content == Content::Quarantined { failures: 0 }
            }
        );
        spared += usize::from(recovered.regions.contains_key(&other));
    }
    // All but the region's own number, twice two bytes.
    assert_eq!(spared, RECORD_SIZE - 4);
}

#[test]
fn d13_a_lost_or_repeated_record_makes_the_regions_before_it_unknown() {
    let bytes = full();
    let records: Vec<&[u8]> = bytes.chunks(RECORD_SIZE).collect();
    let without: Vec<u8> = [&records[..9], &records[10..]].concat().concat();
    let twice: Vec<u8> = [&records[..9], &records[8..]].concat().concat();
    for damaged in [without, twice] {
        let (_journal, recovered) = open(&Files::with(NAME, &damaged));
        assert!(matches!(recovered.found, Found::Damaged { places: 1, .. }));
        // Both regions have later records.
        assert_eq!(recovered.regions, truth(script().len()));
    }
    // Region 1 has no record after the gap.
    let missing: Vec<u8> = [&records[..16], &records[17..]].concat().concat();
    let (_journal, recovered) = open(&Files::with(NAME, &missing));
    assert_eq!(recovered.regions.keys().collect::<Vec<_>>(), [&RegionId(0)]);
}

#[test]
fn h8_a_newer_format_is_left_alone() {
    let mut bytes = full();
    let mut record = [0; RECORD_SIZE];
    record.copy_from_slice(&bytes[..RECORD_SIZE]);
    record[4] = 2;
    let sum = crc32c::crc32c(&record[..124]);
    record[124..].copy_from_slice(&sum.to_le_bytes());
    bytes[..RECORD_SIZE].copy_from_slice(&record);
    let files = Files::with(NAME, &bytes);
    let error = Journal::with_files(files.clone(), NAME, COMPACT).unwrap_err();
    assert!(
        matches!(error, JournalError::StateTooNew { found: 2, known: 1 }),
        "{error}"
    );
    assert_eq!(files.content(NAME).unwrap(), bytes);
}

#[test]
fn d9_failed_scrubs_are_counted_across_restarts() {
    let files = Files::default();
    for failures in 1..=3 {
        let (mut journal, _) = open(&files);
        let entry = Entry::Quarantined {
            owner: owner(1),
            failures,
        };
        journal.append(RegionId(0), &entry, 0).unwrap();
        let (_journal, recovered) = open(&files);
        let content = recovered.regions[&RegionId(0)].content;
        assert_eq!(content, Content::Quarantined { failures });
    }
}

#[test]
fn d1_intent_without_commit_is_seen_as_such() {
    let files = Files::default();
    let (mut journal, _) = open(&files);
    journal.append(RegionId(0), &commit(1), 0).unwrap();
    journal.append(RegionId(0), &intent(2), 1).unwrap();
    let (_journal, recovered) = open(&files);
    let content = recovered.regions[&RegionId(0)].content;
    let (job, digest) = (Job([2; 16]), Sha256([2; 32]));
    assert_eq!(content, Content::Writing { job, digest });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn bytes_of_any_kind_are_read(data in proptest::collection::vec(any::<u8>(), 0..1000)) {
        crate::fuzz::journal(&data);
    }

    #[test]
    fn a_record_is_read_back_as_written(
        sequence in any::<u64>(),
        region in any::<u16>(),
        since in any::<u64>(),
        with_owner in any::<bool>(),
        bytes in any::<[u8; 32]>(),
        which in 0..4u8,
    ) {
        let (job, digest) = (Job([bytes[0]; 16]), Sha256(bytes));
        let function = FunctionId::from_u128(u128::from(bytes[1]));
        let content = match which {
            0 => Content::Writing { job, digest },
            1 => Content::Active { job, digest, function },
            2 => Content::Blank,
            _ => Content::Quarantined { failures: bytes[2] },
        };
        let owner = with_owner.then_some(OwnerTag(bytes));
        let state = RegionState { owner, content, since };
        let record = Record { sequence, region: RegionId(region), state };
        prop_assert_eq!(Record::decode(&record.encode(), None), Ok(record));
    }
}
