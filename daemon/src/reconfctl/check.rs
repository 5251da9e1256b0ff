//! `check`: every file of this host, read as the processes read them.
//!
//! Goes on after a problem where it can: one run tells one problem of each file, and all
//! that only shows when the files are put together.

use std::path::Path;
use std::sync::Arc;

use policy::decide::{CatalogueTrouble, Loads, Policy, PolicyInputs};
use policy::files::{
    Blank, CardEntry, Engine, Fence, FileError as PolicyError, Grants, Host, Region, Shell,
};
use policy::ids::Digest;
use policy::time::UnixTime;
use serde::Serialize;

use super::args::Global;
use super::exit::Exit;
use super::place::{Place, absolute, file_max, unreadable};
use super::show::{Paint, clean};
use super::time::now;
use super::{Stopped, Streams, trust};
use crate::contents::Contents;
use crate::fence::hold;
use crate::files::{FileError, read_bounded, read_trusted};
use crate::frames::{Demand, demands};
use crate::layout::Layout;

pub(super) fn run(global: &Global, streams: &mut Streams<'_>) -> Result<Exit, Stopped> {
    let mut report = Report::default();
    examine(&absolute(&global.host_file)?, &mut report);
    let fine = report.problems.is_empty();
    if global.json {
        let value = serde_json::json!({
            "ok": fine, "read": report.read, "problems": report.problems,
        });
        writeln!(streams.out, "{value}")?;
    } else {
        report.write(streams)?;
    }
    Ok(if fine { Exit::Done } else { Exit::No })
}

/// What was found.
#[derive(Debug, Default)]
struct Report {
    /// Files that are in order by themselves.
    read: Vec<String>,
    problems: Vec<Found>,
}

#[derive(Debug, Serialize)]
struct Found {
    file: String,
    /// From 1; none where the problem is the file as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<u32>,
    code: String,
    /// As it is told to people, place and remedy included.
    problem: String,
}

fn examine(host_file: &Path, report: &mut Report) {
    let Some(host) = report.parse(host_file, Host::parse) else {
        return;
    };
    let layout = Layout::of(&host, host_file);
    let place = Place { host, layout };
    let host = &place.host;

    let shells: Vec<Option<Shell>> = host
        .cards
        .iter()
        .map(|card: &CardEntry| report.parse(&card.shell, Shell::parse))
        .collect();
    for (card, shell) in host.cards.iter().zip(&shells) {
        let Some(shell) = shell else { continue };
        match demands(shell) {
            Ok(demands) => {
                regions(shell, card.engine, &demands, report);
            }
            Err(error) => report.policy(&error),
        }
    }
    let grants = grants(&host.grants, report);
    together(host, shells, grants, report);
    trusted(&place, report);
}

impl Report {
    /// Reads and parses one file that people write.
    fn parse<T>(
        &mut self,
        file: &Path,
        parse: fn(&Path, &[u8]) -> Result<T, PolicyError>,
    ) -> Option<T> {
        let bytes = match read_trusted(file, file_max()) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.file(file, &error);
                return None;
            }
        };
        match parse(file, &bytes) {
            Ok(parsed) => {
                self.read.push(file.display().to_string());
                Some(parsed)
            }
            Err(error) => {
                self.policy(&error);
                None
            }
        }
    }

    fn policy(&mut self, error: &PolicyError) {
        self.problems.push(Found {
            file: error.file.clone(),
            line: Some(error.line),
            column: Some(error.column),
            code: error.code().to_owned(),
            problem: error.to_string(),
        });
    }

    fn file(&mut self, file: &Path, error: &FileError) {
        let failure = unreadable(error);
        self.whole(
            file,
            "file",
            format!("{}; {}", failure.error, failure.remedy),
        );
    }

    fn whole(&mut self, file: &Path, code: &str, problem: String) {
        self.problems.push(Found {
            file: file.display().to_string(),
            line: None,
            column: None,
            code: code.to_owned(),
            problem,
        });
    }

    /// A problem at a line of a shell file.
    fn at(&mut self, shell: &Shell, line: u32, code: &str, problem: &str) {
        self.problems.push(Found {
            file: shell.file.clone(),
            line: Some(line),
            column: Some(1),
            code: code.to_owned(),
            problem: format!("{}:{line}:1: {problem}", shell.file),
        });
    }

    fn write(&self, streams: &mut Streams<'_>) -> std::io::Result<()> {
        let paint = Paint::new(streams.colour);
        for found in &self.problems {
            writeln!(streams.out, "{}", clean(&found.problem))?;
        }
        match self.problems.len() {
            0 => writeln!(
                streams.out,
                "{}: {} file(s) read",
                paint.good("in order"),
                self.read.len()
            ),
            1 => writeln!(streams.out, "{}", paint.bad("1 problem")),
            many => writeln!(streams.out, "{}", paint.bad(&format!("{many} problems"))),
        }
    }
}

/// No grants file is no mistake: it permits nothing.
fn grants(file: &Path, report: &mut Report) -> Option<Grants> {
    match read_trusted(file, file_max()) {
        Err(FileError::Missing { .. }) => Some(Grants::none()),
        _ => report.parse(file, Grants::parse),
    }
}

/// Each region: can anything be loaded into it, and is its blank image there, the one that was
/// pinned, and for this region?
fn regions(shell: &Shell, engine: Engine, demands: &[Demand], report: &mut Report) {
    for (region, demand) in shell.regions.iter().zip(demands) {
        if region.fence == Fence::Required && engine == Engine::Dfl {
            let problem = "the fence is required, and frames of what the engine dfl loads cannot \
                           be checked: nothing can be loaded into the region";
            report.at(shell, region.line, "fence", problem);
        }
        let Some(blank) = &region.blank else { continue };
        if let Err(why) = blank_fits(region, blank, engine, demand) {
            report.at(shell, region.line, "blank-image", &why);
        }
    }
}

fn blank_fits(
    region: &Region,
    blank: &Blank,
    engine: Engine,
    demand: &Demand,
) -> Result<(), String> {
    // Larger ones are refused by the card's process as well.
    let bytes = read_bounded(&blank.path, 256 << 20).map_err(|error| {
        let failure = unreadable(&error);
        format!("the blank image cannot be read: {}", failure.error)
    })?;
    let path = blank.path.display();
    let found = Digest::of(&bytes);
    if found != blank.sha256 {
        let pinned = blank.sha256;
        return Err(format!(
            "the blank image {path} is {found}, and {pinned} is pinned"
        ));
    }
    let contents =
        Contents::read(&bytes).map_err(|error| format!("the blank image {path}: {error}"))?;
    if !engine.takes(contents.format()) {
        let (format, engine) = (contents.format().name(), engine.name());
        return Err(format!(
            "the blank image {path} is a {format}, which the engine {engine} does not load"
        ));
    }
    if let Some(names) = contents.names() {
        if names.interface_id != region.interface_id.0 {
            return Err(format!(
                "the blank image {path} is for the interface id {}, the region has {}",
                names.interface_id, region.interface_id
            ));
        }
        let pinned = blank.function_id.map(|function| function.0);
        if pinned.is_some_and(|pinned| pinned != names.function_id) {
            return Err(format!(
                "the blank image {path} holds the function {}, another one is stated",
                names.function_id
            ));
        }
    }
    hold(&contents, demand)
        .map(|_proof| ())
        .map_err(|unfit| format!("the blank image {path}: {}", unfit.story()))
}

/// What no file can tell alone, asked of the snapshot that decides.
fn together(host: &Host, shells: Vec<Option<Shell>>, grants: Option<Grants>, report: &mut Report) {
    let (Some(shells), Some(grants)) = (shells.into_iter().collect::<Option<Vec<_>>>(), grants)
    else {
        return;
    };
    let trouble = CatalogueTrouble::Unreadable {
        why: "not looked at".to_owned(),
    };
    let inputs = PolicyInputs {
        host: host.clone(),
        shells,
        grants,
        catalogue: Err(trouble),
        loads: Loads::Decided,
    };
    if let Err(error) = Policy::new(inputs).map(Arc::new) {
        report.policy(&error);
    }
}

/// Root, floors and list; the same problem of many floors is told once.
fn trusted(place: &Place, report: &mut Report) {
    let state = trust::state(place, UnixTime(now()));
    let mut told: Vec<&str> = Vec::new();
    for problem in state.problems() {
        if told.contains(&problem.problem.as_str()) {
            continue;
        }
        told.push(&problem.problem);
        let text = format!(
            "{}: {}. {}",
            problem.file.display(),
            problem.problem,
            problem.remedy
        );
        report.whole(&problem.file, &problem.code, text);
    }
}
