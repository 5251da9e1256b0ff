//! `reconfctl`: the operator's command.
//!
//! Two halves. What is asked of a running `reconfd` goes over its admin socket
//! (`client`) and comes back as one object, which is printed as it is
//! (`--json`) or as a page for people (`show`). What is done to files (trust,
//! repository, shell files) needs no process at all and works before the first
//! start.
//!
//! May know every room but the guest's. Must not know registers or signature
//! mathematics, and never writes to a card.

mod args;

mod check;
mod client;
mod diff;
mod doctor;
mod duration;
mod exit;
mod inspect;
mod learn;
mod online;
mod pages;
mod place;
mod probe;
mod repo;
mod show;
mod time;
mod trust;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io::{self, Write};

use clap::Parser;

use args::{Cli, Command, Online, Region};
pub use exit::Exit;
use exit::Failure;
pub use show::Colour;

/// Where the command writes.
pub struct Streams<'a> {
    /// What was asked for.
    pub out: &'a mut dyn Write,
    /// What went wrong.
    pub err: &'a mut dyn Write,
    /// Whether `out` and `err` take colours.
    pub colour: Colour,
}

/// Runs the command with `args` (the program's name first).
///
/// A reader of our output that goes away early (`| head`) is no failure.
pub fn run<I>(args: I, streams: &mut Streams<'_>) -> Exit
where
    I: IntoIterator,
    I::Item: Into<OsString> + Clone,
{
    match try_run(args, streams) {
        Ok(exit) => exit,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Done,
        Err(error) => {
            // If standard error is closed as well, the exit code has to do.
            let _told = writeln!(streams.err, "error: cannot write the answer: {error}");
            Exit::Files
        }
    }
}

fn try_run<I>(args: I, streams: &mut Streams<'_>) -> io::Result<Exit>
where
    I: IntoIterator,
    I::Item: Into<OsString> + Clone,
{
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => return usage(&error, streams),
    };
    let json = cli.global.json;
    match dispatch(cli, streams) {
        Ok(exit) => Ok(exit),
        Err(Stopped::Output(error)) => Err(error),
        Err(Stopped::Failed(failure)) => {
            if json {
                writeln!(streams.out, "{}", failure.to_json())?;
            } else {
                failure.write(streams.err, streams.colour)?;
            }
            Ok(failure.exit)
        }
    }
}

/// Help and version are answers; everything else from clap is a mistake in the command line.
fn usage(error: &clap::Error, streams: &mut Streams<'_>) -> io::Result<Exit> {
    let text = match streams.colour {
        Colour::Always => error.render().ansi().to_string(),
        Colour::Never => error.render().to_string(),
    };
    if error.use_stderr() {
        write!(streams.err, "{text}")?;
        return Ok(Exit::Usage);
    }
    write!(streams.out, "{text}")?;
    Ok(Exit::Done)
}

/// Why a command ended before its end.
enum Stopped {
    Failed(Failure),
    Output(io::Error),
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

fn dispatch(cli: Cli, streams: &mut Streams<'_>) -> Result<Exit, Stopped> {
    let global = cli.global;
    match cli.command {
        Command::Online(command) => online::run(command, &global, streams),
        Command::Trust { command } => trust::run(command, &global, streams),
        Command::Repo { command } => repo::run(command, &global, streams),
        Command::Card { command } => probe::run(command, &global, streams),
        Command::Inspect(asked) => inspect::run(&asked, &global, streams),
        Command::Diff(asked) => diff::run(&asked, &global, streams),
        Command::Region { command } => match command {
            Region::Scrub { region } => {
                online::run(Online::RegionScrub { region }, &global, streams)
            }
            Region::Learn(asked) => learn::run(&asked, &global, streams),
            Region::Show(asked) => inspect::region::show(&asked, &global, streams),
        },
        Command::Check => check::run(&global, streams),
        Command::Doctor(asked) => doctor::run(&asked, &global, streams),
        Command::Completions { shell } => {
            pages::completions(shell, streams.out)?;
            Ok(Exit::Done)
        }
        Command::Man { directory } => {
            pages::manual(&directory)?;
            Ok(Exit::Done)
        }
    }
}
