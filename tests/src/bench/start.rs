//! How long `reconfd` needs from its start to its readiness.
//!
//! The yardstick is `true`: what starting any program costs here.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::host::{self, Bench};
use super::report::{Report, median, time};

/// How often it is started.
const ROUNDS: u32 = 20;

/// Measures starts of a host with one card and no VM.
pub(super) fn measure(report: &mut Report) -> Result<()> {
    let mut world = host::start(&Bench {
        rate: "instant",
        images: vec!["bench/only:1"],
        bytes: 4096,
        vms: 1,
    })?;
    let (mut ready, mut nothing) = (Vec::new(), Vec::new());
    for _round in 0..ROUNDS {
        world.daemon()?.stop()?;
        nothing.push(run_true()?);
        let begin = Instant::now();
        world.start_daemon()?;
        ready.push(begin.elapsed());
    }
    report.figure("`true`, from its start to its end", &time(median(nothing)));
    report.figure(
        "reconfd, from its start to its readiness",
        &time(median(ready)),
    );
    Ok(())
}

fn run_true() -> Result<Duration> {
    let mut command = Command::new("true");
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let begin = Instant::now();
    let output = command.output()?;
    let took = begin.elapsed();
    ensure!(output.status.success(), "`true` failed");
    Ok(took)
}
