//! The figures: what the product costs, each measured against something else
//! in the same run.
//!
//! Knows what is measured, and the goals. A goal that is missed is told and is
//! no failure: timing is no test. Only what does not run at all is one.

mod fence;
mod host;
mod load;
mod memory;
mod report;
mod start;
mod wire;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, ValueEnum};

use report::Report;

/// Measures reconf on this machine, with a simulated card. Without NAME: everything.
#[derive(Debug, Parser)]
#[command(name = "reconf-bench")]
struct Args {
    /// What to measure.
    #[arg(value_name = "NAME")]
    names: Vec<Name>,
}

/// A group of figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Name {
    /// The frame fence beside the hash of the same bytes.
    Fence,
    /// What the host adds to the card's own time for a load of 4 MiB.
    Load,
    /// What the processes hold in memory.
    Memory,
    /// From the start of reconfd to its readiness.
    Start,
    /// Round trips through a session.
    Wire,
}

impl Name {
    const ALL: [Self; 5] = [
        Self::Fence,
        Self::Load,
        Self::Memory,
        Self::Start,
        Self::Wire,
    ];

    fn measure(self, report: &mut Report) -> Result<()> {
        match self {
            Self::Fence => fence::measure(report),
            Self::Load => load::measure(report),
            Self::Memory => memory::measure(report),
            Self::Start => start::measure(report),
            Self::Wire => wire::measure(report),
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Fence => "fence",
            Self::Load => "load",
            Self::Memory => "memory",
            Self::Start => "start",
            Self::Wire => "wire",
        }
    }
}

/// Measures and prints. The exit code is 0 unless something could not be measured.
#[must_use]
pub fn main() -> ExitCode {
    let args = Args::parse();
    crate::process::end_on_signals();
    let names = if args.names.is_empty() {
        Name::ALL.to_vec()
    } else {
        args.names
    };
    let mut code = ExitCode::SUCCESS;
    let mut report = Report::begin();
    for name in names {
        report.group(name.word());
        if let Err(error) = name.measure(&mut report) {
            eprintln!(
                "reconf-bench: {} could not be measured: {error:#}",
                name.word()
            );
            code = ExitCode::FAILURE;
        }
    }
    report.end();
    code
}
