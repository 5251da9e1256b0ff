//! The demo: one story, told step by step, with the real commands and their
//! real output, and each step checked to be as told.
//!
//! Knows what a reader should see. Must not know how a world is made.

mod faults;
mod keep;
mod stage;
mod story;

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;

use crate::world::{CardSetup, ImageSetup, Setup, World};
use stage::{Form, Stage};

/// Shows reconf at work: two simulated cards, two VMs, from the first list to
/// the audit trail. Everything runs in a temporary directory and ends with it.
#[derive(Debug, Parser)]
#[command(name = "reconf-demo")]
pub struct Args {
    /// One JSON object a step, with "step", "what" and "ok".
    #[arg(long)]
    json: bool,
    /// Leave everything running at the end, and print what to type next.
    #[arg(long)]
    keep: bool,
}

/// A step of the story.
struct Step {
    what: &'static str,
    why: &'static str,
    play: fn(&mut Stage, &mut World) -> Result<()>,
}

const STEPS: &[Step] = &[
    Step {
        what: "list",
        why: "Alice's VM has one region and asks what it may load there. It sees a slot number, never a place.",
        play: story::list,
    },
    Step {
        what: "load with progress",
        why: "It names an image. The host checks it against the signed list, twice, and programs the region.",
        play: story::load,
    },
    Step {
        what: "the function works",
        why: "The new function is there, in the guest's own PCI device. It is an adder: two registers in, one out.",
        play: story::works,
    },
    Step {
        what: "the other VM is denied the same image",
        why: "Bob's region would take the very same bitstream. No grant allows him that image, so it does not exist for him.",
        play: story::denied,
    },
    Step {
        what: "a planted file is denied",
        why: "Somebody copies a good bitstream into the image directory. Nobody signed an entry for it.",
        play: faults::planted,
    },
    Step {
        what: "a flipped bit fails",
        why: "One bit of a listed file changes on the disk. What is loaded is what was hashed, so it is not loaded.",
        play: faults::flipped,
    },
    Step {
        what: "a programming error is scrubbed and loaded again",
        why: "The card reports a CRC error in the middle. The region is shut, quarantined, made blank, and serves again.",
        play: faults::programming_error,
    },
    Step {
        what: "reconfd is killed in the middle of a load",
        why: "The guest must never reach half a function, and must learn what became of its job.",
        play: faults::killed,
    },
    Step {
        what: "clear",
        why: "Alice is done. The slot is hers and empty; nothing of her function is left.",
        play: story::clear,
    },
    Step {
        what: "the audit trail",
        why: "The guests got short answers. The operator gets the whole story.",
        play: story::audit,
    },
];

/// The world of the story: slow cards, so that progress can be seen and interrupted.
fn setup() -> Setup {
    let card = CardSetup {
        rate: "400k".to_owned(),
        blank: 64_000,
        ..CardSetup::default()
    };
    Setup {
        cards: vec![card.clone(), card],
        images: vec![
            ImageSetup::new("acme/adder:1.0", simcard::functions::ADDER, 800_000),
            ImageSetup::new("acme/counter:1.0", simcard::functions::COUNTER, 100_000),
        ],
        grants: vec![("blue", &["acme/*"]), ("green", &["globex/*"])],
        good_for: Duration::from_secs(86_400),
        ..Setup::default()
    }
}

/// Plays the whole story. The exit code is 0 only if every step was as told.
#[must_use]
pub fn main() -> ExitCode {
    let args = Args::parse();
    crate::process::end_on_signals();
    match play(&args) {
        Ok(Verdict::AsTold) => ExitCode::SUCCESS,
        Ok(Verdict::NotAsTold) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("reconf-demo: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    AsTold,
    NotAsTold,
}

fn play(args: &Args) -> Result<Verdict> {
    let form = if args.json { Form::Json } else { Form::Story };
    let mut stage = Stage::new(form);
    let mut world = None;
    let mut good = stage.step(
        "a host comes up",
        "A publisher's key and two signed images; two cards, a process for each, reconfd; two VMs with their channels.",
        |stage| {
            let made = World::start(setup())?;
            story::introduce(stage, &made)?;
            world = Some(made);
            Ok(())
        },
    )?;
    if let Some(world) = &mut world {
        for step in STEPS {
            good &= stage.step(step.what, step.why, |stage| (step.play)(stage, world))?;
        }
        if args.keep {
            keep::until_told(world, stage::out())?;
        }
    }
    if let Some(world) = world {
        good &= stage.step(
            "nothing leaked",
            "Every byte that the two guests received is searched for card addresses, region names, host paths, interface ids and each other's ids.",
            |_| world.close(),
        )?;
    }
    stage.finish(good)?;
    stage::out().flush()?;
    Ok(if good {
        Verdict::AsTold
    } else {
        Verdict::NotAsTold
    })
}
