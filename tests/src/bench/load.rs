//! What the host adds to the card's own time for a load of 4 MiB.
//!
//! The stopwatch is the guest's: from the sending of the request to the word
//! that the job is done. The card's time, from the first data store to its
//! verdict, is measured by `reconf-card` and told in the audit; so is what
//! durable writes cost, by both processes. The yardstick is one SHA-256 of the
//! same bytes in memory, measured beside each load.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use protocol::message::Stage;
use ring::digest::{SHA256, digest};
use serde_json::Value;

use super::host::{self, Bench};
use super::report::{
    Report, Verdict, median, milliseconds, part, ratio, tenth_best, tenth_worst, time,
};
use crate::raw::RawGuest;
use crate::world::setup::INTERFACE;
use crate::world::{UserFunction, World};

/// Bytes of each image's payload.
const BYTES: usize = 4 << 20;
/// Each is loaded for the first time once; the card's process remembers sixteen.
const IMAGES: [&str; 15] = [
    "bench/a:1",
    "bench/b:1",
    "bench/c:1",
    "bench/d:1",
    "bench/e:1",
    "bench/f:1",
    "bench/g:1",
    "bench/h:1",
    "bench/i:1",
    "bench/j:1",
    "bench/k:1",
    "bench/l:1",
    "bench/m:1",
    "bench/n:1",
    "bench/o:1",
];
/// How often the last of them is loaded again.
const REPEATS: usize = 41;

/// Most that a first load may take, in times of the hash.
const FIRST_GOAL: f64 = 1.5;
/// Most that a repeat may take beside its syncs, in milliseconds.
const REPEAT_GOAL: f64 = 0.5;

/// One load.
#[derive(Debug, Clone)]
struct Load {
    /// From the request to the word that it is done.
    total: Duration,
    /// The card's part.
    device: Duration,
    /// Durable writes.
    syncs: Syncs,
    /// When the guest first heard of each stage.
    stages: Vec<(Stage, Duration)>,
}

/// Durable writes of one load, in both processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Syncs {
    count: u64,
    time: Duration,
}

impl Load {
    /// Everything but the card.
    fn overhead(&self) -> Duration {
        self.total.saturating_sub(self.device)
    }

    /// Everything but the card and the durable writes.
    fn own(&self) -> Duration {
        self.overhead().saturating_sub(self.syncs.time)
    }
}

/// Measures first loads and repeats.
pub(super) fn measure(report: &mut Report) -> Result<()> {
    let world = host::start(&Bench {
        rate: "instant",
        images: IMAGES.to_vec(),
        bytes: BYTES,
        vms: 1,
    })?;
    let mut guest = host::guest(&world, 0)?;
    host::watch(&mut guest)?;
    let mut hashes = Vec::new();
    let mut first = Vec::new();
    for image in IMAGES {
        hashes.push(hash(&world.publisher.target(image, INTERFACE))?);
        first.push(load(&world, &mut guest, image)?);
    }
    let last = IMAGES.last().copied().unwrap_or_default();
    let repeats = (0..REPEATS)
        .map(|_round| load(&world, &mut guest, last))
        .collect::<Result<Vec<Load>>>()?;
    let register = register_round_trip(&world)?;
    report.figure(
        "one register read over vfio-user",
        &format!("{:.1} us", milliseconds(register) * 1e3),
    );
    tell_first(report, median(hashes), &first);
    tell_repeats(report, &repeats);
    Ok(())
}

fn tell_first(report: &mut Report, hash: Duration, loads: &[Load]) {
    report.note(&format!(
        "first loads of {} images of 4 MiB, medians",
        loads.len()
    ));
    report.figure("SHA-256 of the same bytes, once", &time(hash));
    tell(report, loads);
    let each: Vec<_> = loads.iter().map(Load::own).collect();
    let own = median(each.clone());
    let all = median(loads.iter().map(Load::overhead).collect());
    let goal = format!("{FIRST_GOAL} × the hash");
    for (what, took) in [
        ("overhead without the syncs", own),
        ("overhead with the syncs", all),
    ] {
        let times = ratio(took, hash);
        let value = format!("{times:.2} ×");
        report.judged(what, &value, &goal, Verdict::at_most(times, FIRST_GOAL));
    }
    tell_spread(report, each);
}

/// How far the loads were apart: on a machine that does other things the best is the truest.
fn tell_spread(report: &mut Report, own: Vec<Duration>) {
    let (best, worst) = (tenth_best(own.clone()), tenth_worst(own));
    report.figure(
        "  the fastest but one in ten, without the syncs",
        &time(best),
    );
    report.figure(
        "  the slowest but one in ten, without the syncs",
        &time(worst),
    );
}

fn tell_repeats(report: &mut Report, loads: &[Load]) {
    report.note(&format!(
        "{} loads of the same image again (force), medians",
        loads.len()
    ));
    tell(report, loads);
    let own: Vec<_> = loads.iter().map(Load::own).collect();
    let took = median(own.clone());
    report.judged(
        "overhead without the syncs",
        &time(took),
        &format!("{REPEAT_GOAL} ms"),
        Verdict::at_most(milliseconds(took), REPEAT_GOAL),
    );
    tell_spread(report, own);
}

/// What both kinds of load have in common.
fn tell(report: &mut Report, loads: &[Load]) {
    let mut of = |what: &str, part: fn(&Load) -> Duration| {
        report.figure(what, &time(median(loads.iter().map(part).collect())));
    };
    of("a load, as its guest sees it", |load| load.total);
    of("the card's own time", |load| load.device);
    of("overhead: everything but the card", Load::overhead);
    of("syncs", |load| load.syncs.time);
    let counts = loads.iter().map(|load| load.syncs.count);
    let (least, most) = (counts.clone().min(), counts.max());
    let count = match (least, most) {
        (Some(least), Some(most)) if least < most => format!("{least} to {most}"),
        (_, most) => most.unwrap_or_default().to_string(),
    };
    report.figure("number of syncs", &count);
    let heard = [
        (Stage::Accepted, "accepted"),
        (Stage::Verifying, "verifying"),
        (Stage::Queued, "sealed"),
        (Stage::Isolating, "verified, region being shut"),
        (Stage::Writing, "writing"),
        (Stage::Checking, "written"),
        (Stage::Committing, "identified"),
        (Stage::Done, "done"),
    ];
    for (stage, name) in heard {
        let at = |load: &Load| {
            load.stages
                .iter()
                .find(|(heard, _)| *heard == stage)
                .copied()
        };
        let times: Vec<_> = loads.iter().filter_map(at).map(|(_, at)| at).collect();
        report.figure(
            &format!("    the guest hears: {name}"),
            &time(median(times)),
        );
    }
}

/// What one register of the simulated card costs: the load makes some three dozen such accesses
/// outside the card's own time, which are a microsecond each on a real bus.
fn register_round_trip(world: &World) -> Result<Duration> {
    const READS: u32 = 2000;
    let mut function = UserFunction::open(&world.card(0)?.function(0))?;
    let begin = Instant::now();
    for _read in 0..READS {
        function.read(0)?;
    }
    // Each asks for the place of the function first.
    Ok(part(begin.elapsed(), READS.saturating_mul(2)))
}

/// One SHA-256 of a file's bytes in memory.
fn hash(path: &Path) -> Result<Duration> {
    let bytes = fs::read(path)?;
    let begin = Instant::now();
    let digest = digest(&SHA256, &bytes);
    let took = begin.elapsed();
    // Used, so that it is reckoned.
    anyhow::ensure!(digest.as_ref().len() == 32, "a strange hash");
    Ok(took)
}

fn load(world: &World, guest: &mut RawGuest, image: &str) -> Result<Load> {
    let log = world.places.logs().join("reconfd.log");
    let logged = fs::metadata(&log)?.len();
    let frame = guest.frame(&host::load(image))?;
    let mut stages: Vec<(Stage, Duration)> = Vec::new();
    let begin = Instant::now();
    guest.send(&frame)?;
    let total = loop {
        let Some(job) = host::news(guest)? else {
            continue;
        };
        let at = begin.elapsed();
        if stages.iter().all(|(stage, _)| *stage != job.stage) {
            stages.push((job.stage, at));
        }
        if job.stage == Stage::Done {
            host::insist(&job)?;
            break at;
        }
    };
    let (device, card) = told_by_the_card(world)?;
    let daemon = told_by_the_daemon(&log, logged)?;
    Ok(Load {
        total,
        device,
        syncs: Syncs {
            count: card.count.saturating_add(daemon.count),
            time: card.time.saturating_add(daemon.time),
        },
        stages,
    })
}

/// The card's time and the syncs of its process, from the last record of the audit.
fn told_by_the_card(world: &World) -> Result<(Duration, Syncs)> {
    let trail = fs::read_to_string(world.places.state().join("reconfd/audit.jsonl"))?;
    let record: Value = serde_json::from_str(trail.lines().last().context("an empty audit")?)?;
    let story = record.get("reason").and_then(Value::as_str);
    card_story(story.unwrap_or_default()).with_context(|| format!("the audit ends with {record}"))
}

/// "…; device 8123 us, 2 syncs in 955 us"
fn card_story(story: &str) -> Option<(Duration, Syncs)> {
    let (_, figures) = story.split_once("device ")?;
    let numbers: Vec<u64> = figures
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|word| word.parse().ok())
        .collect();
    let [device, count, time] = numbers.as_slice() else {
        return None;
    };
    let syncs = Syncs {
        count: *count,
        time: Duration::from_micros(*time),
    };
    Some((Duration::from_micros(*device), syncs))
}

/// The syncs of `reconfd`, from what it logged since.
fn told_by_the_daemon(log: &Path, since: u64) -> Result<Syncs> {
    let text = fs::read_to_string(log)?;
    let new = text.get(usize::try_from(since)?..).unwrap_or_default();
    let line = new.lines().rfind(|line| line.contains("a job ended"));
    let line = line.context("reconfd logged no end of a job")?;
    let field = |name: &str| -> Result<u64> {
        let word = line
            .split_whitespace()
            .find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        Ok(word
            .with_context(|| format!("no {name} in: {line}"))?
            .parse()?)
    };
    Ok(Syncs {
        count: field("syncs")?,
        time: Duration::from_nanos(field("sync_ns")?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_story_in_the_audit_is_understood() {
        let story = "written and committed; identity checked; device 8123 us, 2 syncs in 955 us";
        let (device, syncs) = card_story(story).unwrap();
        assert_eq!(device, Duration::from_micros(8123));
        assert_eq!((syncs.count, syncs.time), (2, Duration::from_micros(955)));
        assert!(card_story("active already").is_none());
        assert!(card_story("device 1 us").is_none());
    }
}
