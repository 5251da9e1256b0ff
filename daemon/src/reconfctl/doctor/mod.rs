//! `doctor`: what is wrong on this machine so that a card cannot be served, and what
//! mends it.
//!
//! Knows host.toml, the shell files and sysfs. Opens no card and changes nothing: opening
//! one would reset it. What files say is `check`'s; this looks at the machine.

mod group;
mod machine;

use std::path::Path;

use ::card::CardAddress;
use policy::files::{Host, Shell};
use serde::Serialize;

use super::args::{Doctor, Global};
use super::exit::{Exit, Failure};
use super::place::{absolute, file_max, unreadable};
use super::show::{Paint, clean};
use super::{Stopped, Streams};
use crate::files::read_trusted;

/// What was looked at, and how it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// What it is about: a PCI function, a socket, or the machine.
    pub(super) about: String,
    /// A stable name.
    pub(super) code: &'static str,
    pub(super) grade: Grade,
    /// What is so.
    pub(super) what: String,
    /// What mends it; empty where nothing has to be.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) remedy: String,
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Grade {
    /// As it should be.
    Well,
    /// It works, and may not tomorrow, or is less safe than it could be.
    Odd,
    /// A card cannot be served, or must not be.
    Wrong,
}

/// A card, as far as the machine is concerned.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) address: CardAddress,
    /// As host.toml states it.
    pub(super) serial: Option<String>,
    /// The user functions of each region, by the region's name.
    pub(super) regions: Vec<(String, Vec<CardAddress>)>,
}

pub(super) fn run(
    asked: &Doctor,
    global: &Global,
    streams: &mut Streams<'_>,
) -> Result<Exit, Stopped> {
    let plans = plans(&absolute(&global.host_file)?)?;
    let machine = machine::Machine::under(&asked.root);
    let mut found = machine.examine();
    for plan in &plans {
        found.extend(machine.card(plan));
    }
    found.extend(group::examine(&machine, &plans));
    let worst = found.iter().any(|finding| finding.grade == Grade::Wrong);
    if global.json {
        let value = serde_json::json!({ "ok": !worst, "findings": found });
        writeln!(streams.out, "{value}")?;
    } else {
        page(&found, streams)?;
    }
    Ok(if worst { Exit::No } else { Exit::Done })
}

/// Which cards there should be. Files that are wrong are `check`'s to explain.
fn plans(host_file: &Path) -> Result<Vec<Plan>, Failure> {
    let wrong = |error: policy::files::FileError| {
        Failure::files(error.to_string(), "run `reconfctl check`, and correct it")
    };
    let read = |path: &Path| read_trusted(path, file_max()).map_err(|error| unreadable(&error));
    let host = Host::parse(host_file, &read(host_file)?).map_err(wrong)?;
    let mut plans = Vec::new();
    for card in host.cards {
        let shell = Shell::parse(&card.shell, &read(&card.shell)?).map_err(wrong)?;
        let place = |text: String| {
            text.parse::<CardAddress>().map_err(|error| {
                Failure::files(format!("{text}: {error}"), "run `reconfctl check`")
            })
        };
        let mut regions = Vec::new();
        for region in &shell.regions {
            let functions = region.user_functions.iter();
            let functions: Result<_, _> = functions.map(|f| place(f.to_string())).collect();
            regions.push((region.name.to_string(), functions?));
        }
        plans.push(Plan {
            address: place(card.address.to_string())?,
            serial: card.serial,
            regions,
        });
    }
    Ok(plans)
}

fn page(found: &[Finding], streams: &mut Streams<'_>) -> Result<(), Stopped> {
    let paint = Paint::new(streams.colour);
    let out = &mut streams.out;
    for finding in found {
        let word = match finding.grade {
            Grade::Well => paint.good("well "),
            Grade::Odd => paint.bold("odd  "),
            Grade::Wrong => paint.bad("wrong"),
        };
        let (about, what) = (clean(&finding.about), clean(&finding.what));
        writeln!(out, "{word}  {about}: {what}")?;
        if !finding.remedy.is_empty() {
            writeln!(out, "       {}", clean(&finding.remedy))?;
        }
    }
    let count = |grade| found.iter().filter(|f| f.grade == grade).count();
    let (wrong, odd) = (count(Grade::Wrong), count(Grade::Odd));
    writeln!(
        out,
        "\n{wrong} wrong, {odd} odd, {} well",
        count(Grade::Well)
    )?;
    Ok(())
}

/// A finding that something is as it should be.
fn well(about: impl Into<String>, code: &'static str, what: impl Into<String>) -> Finding {
    Finding {
        about: about.into(),
        code,
        grade: Grade::Well,
        what: what.into(),
        remedy: String::new(),
    }
}

fn odd(
    about: impl Into<String>,
    code: &'static str,
    what: impl Into<String>,
    remedy: impl Into<String>,
) -> Finding {
    Finding {
        grade: Grade::Odd,
        remedy: remedy.into(),
        ..well(about, code, what)
    }
}

fn wrong(
    about: impl Into<String>,
    code: &'static str,
    what: impl Into<String>,
    remedy: impl Into<String>,
) -> Finding {
    Finding {
        grade: Grade::Wrong,
        ..odd(about, code, what, remedy)
    }
}
