//! The `reconf` command: one line from a person, one result, one exit code.
//!
//! Knows the command line, text and JSON, and the library. Must not know
//! frames or streams.

mod args;
mod check;
mod exit;
mod failure;
mod job;
mod progress;
mod shell;
mod show;
mod table;
mod ui;
mod views;
mod watch;

use std::cell::Cell;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use crate::channel::Places;
use crate::client::Client;
use crate::config::Config;
use crate::error::Error;

use args::{Cli, Command, Global};
use exit::Exit;
use failure::{Failure, Started};
use ui::Ui;

/// How a command ends.
type Outcome = Result<(), Failure>;

/// More than the library's own deadlines need: where both would end a wait, the
/// library's error tells more.
const GRACE: Duration = Duration::from_millis(200);

/// Runs the command with this process's arguments and streams.
#[must_use]
pub fn main() -> ExitCode {
    // Wrong usage ends here, with clap's message and code 2.
    let cli = Cli::parse();
    let (mut out, mut err) = (io::stdout(), io::stderr());
    let mut ui = Ui::new(&mut out, &mut err, &cli.global);
    let outcome = match &cli.command {
        Command::Check { file } => check::check(&mut ui, file),
        Command::Completions { shell } => shell::completions(&mut ui, *shell),
        Command::Man { directory } => shell::manual(&mut ui, directory.as_deref()),
        asking => ask_host(&mut ui, &cli.global, asking),
    };
    let exit = match outcome {
        Ok(()) => Exit::Ok,
        // Where even the error cannot be told, the code still is.
        Err(failure) => {
            let exit = failure.exit();
            failure.tell(&mut ui).unwrap_or(exit)
        }
    };
    exit.into()
}

/// What a command that asks the host has at hand.
struct Host<'a> {
    global: &'a Global,
    config: Config,
    /// The job that was asked for, from then on: whoever interrupts the command
    /// is told how to find it again.
    started: &'a Cell<Started>,
}

impl Host<'_> {
    async fn connect(&self) -> Result<Client, Failure> {
        let places = match &self.global.channel {
            Some(path) => Places::named(path),
            // The environment variable is clap's: it is in `channel` already.
            None => Places::usual(),
        };
        Ok(Client::connect_to(places, self.config.clone()).await?)
    }
}

fn ask_host(ui: &mut Ui<'_>, global: &Global, command: &Command) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::Runtime)?;
    let started = Cell::new(Started::Nothing);
    let host = Host {
        global,
        config: patience(global.timeout),
        started: &started,
    };
    let outcome = runtime.block_on(async {
        tokio::select! {
            outcome = dispatch(ui, &host, command) => outcome,
            () = interrupted() => Err(Failure::Interrupted { started: started.get() }),
            () = too_long(global.timeout) => match command {
                // To watch for so long and no longer is what was asked for.
                Command::Watch(args) if args.count.is_none() => Ok(()),
                _ => Err(Failure::TooLong { started: started.get() }),
            },
        }
    });
    runtime.shutdown_background();
    outcome.map_err(|failure| match failure {
        Failure::Client { error, .. } => Failure::Client {
            error,
            started: started.get(),
        },
        other => other,
    })
}

async fn dispatch(ui: &mut Ui<'_>, host: &Host<'_>, command: &Command) -> Outcome {
    match command {
        Command::List(args) => show::list(ui, host, args).await,
        Command::Describe(args) => show::describe(ui, host, args.slot).await,
        Command::Reset(args) => show::reset(ui, host, args.slot).await,
        Command::Ping => show::ping(ui, host).await,
        Command::Load(args) => job::load(ui, host, args).await,
        Command::Clear(args) => job::clear(ui, host, args).await,
        Command::Job(args) => job::job(ui, host, args).await,
        Command::Cancel { key } => job::cancel(ui, host, *key).await,
        Command::Watch(args) => watch::watch(ui, host, args).await,
        // These ask no host, and `main` has done them.
        Command::Check { .. } | Command::Completions { .. } | Command::Man { .. } => Ok(()),
    }
}

/// `--timeout` is the patience for everything: with the host, with a reply and
/// with a job.
fn patience(timeout: Option<Duration>) -> Config {
    let usual = Config::default();
    match timeout {
        None => usual,
        Some(timeout) => Config {
            handshake_timeout: timeout,
            reply_timeout: timeout,
            wait_timeout: timeout,
            ..usual
        },
    }
}

async fn too_long(timeout: Option<Duration>) {
    match timeout {
        Some(timeout) => tokio::time::sleep(timeout.saturating_add(GRACE)).await,
        None => std::future::pending().await,
    }
}

async fn interrupted() {
    // Where the signal cannot be caught, it ends the process by itself.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
