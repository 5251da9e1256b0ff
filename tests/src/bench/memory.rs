//! What the processes hold in memory: `reconfd` with many idle channels, and
//! both processes while a large bitstream is on its way.
//!
//! Bytes of a bitstream can be held in two ways: in memory that a process maps,
//! which the kernel divides fairly among those who map it (PSS), and in an
//! anonymous file that nobody maps. Both are counted.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use anyhow::{Context, Result};
use protocol::message::Stage;

use super::host::{self, Bench};
use super::report::{Report, Verdict, mebibytes, number};
use crate::memory::{self, Memory};
use crate::raw::RawGuest;
use crate::world::World;

/// Channels with an open session on which nothing is said.
const CHANNELS: u32 = 100;
/// Bytes of the bitstream on its way: two seconds at the card's rate.
const BYTES: usize = 16 << 20;
const RATE: &str = "8M";
/// What a load may need beside the bitstream's own bytes.
const SMALL: u64 = 2 << 20;
/// How often memory is looked at while the card writes.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Measures both.
pub(super) fn measure(report: &mut Report) -> Result<()> {
    let mut world = host::start(&Bench {
        rate: RATE,
        images: vec!["bench/large:1"],
        bytes: BYTES,
        vms: usize::try_from(CHANNELS)?,
    })?;
    let mut first = host::guest(&world, 0)?;
    at_work(report, &mut world, &mut first)?;
    channels(report, &mut world)
}

/// `reconfd` with one channel, and with many.
fn channels(report: &mut Report, world: &mut World) -> Result<()> {
    // A daemon that has done nothing yet. The VM of before comes back with its channel.
    world.daemon()?.stop()?;
    world.start_daemon()?;
    let mut guests = vec![host::session(world, 0)?];
    let one = memory::of(world.daemon()?.pid())?;
    for vm in 1..usize::try_from(CHANNELS)? {
        guests.push(host::guest(world, vm)?);
    }
    let all = memory::of(world.daemon()?.pid())?;
    report.figure("reconfd with 1 idle channel, RSS", &bytes(one.resident));
    report.figure("  PSS", &bytes(one.proportional));
    report.figure(
        &format!("reconfd with {CHANNELS} idle channels, RSS"),
        &bytes(all.resident),
    );
    report.figure("  PSS", &bytes(all.proportional));
    let more = number(all.proportional) - number(one.proportional);
    let each = more / f64::from(CHANNELS.saturating_sub(1)) / 1024.0;
    report.figure("each channel, PSS", &format!("{each:.1} KiB"));
    drop(guests);
    Ok(())
}

/// Both processes, and the anonymous files between them.
#[derive(Debug, Clone, Copy)]
struct Both {
    daemon: Memory,
    card: Memory,
    /// Bytes in anonymous files, each file counted once.
    files: u64,
}

impl Both {
    fn of(daemon: u32, card: u32) -> Result<Self> {
        Ok(Self {
            daemon: memory::of(daemon)?,
            card: memory::of(card)?,
            files: anonymous_files(&[daemon, card])?,
        })
    }

    fn proportional(&self) -> u64 {
        self.daemon
            .proportional
            .saturating_add(self.card.proportional)
    }
}

/// Both at rest, and the most while a load is on its way.
fn at_work(report: &mut Report, world: &mut World, guest: &mut RawGuest) -> Result<()> {
    host::watch(guest)?;
    let daemon = world.daemon()?.pid();
    let card = world
        .card(0)?
        .process
        .as_ref()
        .context("no reconf-card")?
        .pid();
    let rest = Both::of(daemon, card)?;
    let file = fs::metadata(
        world
            .publisher
            .target("bench/large:1", crate::world::setup::INTERFACE),
    )?
    .len();

    let frame = guest.frame(&host::load("bench/large:1"))?;
    guest.send(&frame)?;
    let (mut most, mut files, mut looks) = (rest, 0, 0_u32);
    let end = loop {
        // Progress is told more often than this, so looking waits for nobody.
        let Some(job) = host::news(guest)? else {
            continue;
        };
        if job.stage == Stage::Done {
            break job;
        }
        if job.stage == Stage::Writing {
            let now = Both::of(daemon, card)?;
            if now.proportional() > most.proportional() {
                most = now;
            }
            files = now.files.max(files);
            looks = looks.saturating_add(1);
            std::thread::sleep(LOOK_EVERY);
        }
    };
    host::insist(&end)?;
    anyhow::ensure!(looks > 3, "the load was too fast to be looked at");

    report.figure("reconf-card at rest, RSS", &bytes(rest.card.resident));
    report.figure("  PSS", &bytes(rest.card.proportional));
    report.figure(
        "reconf-card while it writes 16 MiB, RSS",
        &bytes(most.card.resident),
    );
    report.figure("  PSS", &bytes(most.card.proportional));
    report.figure("reconfd meanwhile, RSS", &bytes(most.daemon.resident));
    report.figure("  PSS", &bytes(most.daemon.proportional));
    report.note(&format!(
        "nothing holds the bitstream twice: it has {}",
        bytes(file)
    ));
    let more = most.proportional().saturating_sub(rest.proportional());
    let goal = format!("that and {}", bytes(SMALL));
    let limit = number(file.saturating_add(SMALL));
    for (what, figure) in [
        ("PSS of both processes, more than at rest", more),
        ("anonymous files of both, each counted once", files),
    ] {
        report.judged(
            what,
            &bytes(figure),
            &goal,
            Verdict::at_most(number(figure), limit),
        );
    }
    Ok(())
}

/// Bytes in the anonymous files that these processes have open.
fn anonymous_files(pids: &[u32]) -> Result<u64> {
    let mut files = BTreeMap::new();
    for pid in pids {
        for entry in fs::read_dir(format!("/proc/{pid}/fd"))? {
            let path = entry?.path();
            // Closed since the directory was read: no longer held.
            let Ok(target) = fs::read_link(&path) else {
                continue;
            };
            if !target.to_string_lossy().starts_with("/memfd:") {
                continue;
            }
            let Ok(found) = fs::metadata(&path) else {
                continue;
            };
            files.insert(
                (found.dev(), found.ino()),
                found.blocks().saturating_mul(512),
            );
        }
    }
    Ok(files.values().sum())
}

fn bytes(count: u64) -> String {
    mebibytes(number(count))
}
