//! `reconfd` on the command line.
//!
//! Knows options and exit codes. Must not know what the daemon does.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::EnvFilter;

use super::start::{self, Options, StartError};

/// Listens on the guests' channels of this host, decides what they may load, and
/// has it loaded.
#[derive(Debug, Parser)]
#[command(name = "reconfd", version, after_help = AFTER)]
struct Arguments {
    /// The host's file. Everything else is found through it.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/etc/reconf/host.toml",
        env = "RECONF_HOST_FILE"
    )]
    host_file: PathBuf,
    /// Start `reconf-card` for each card that nobody holds. For development: on a real host
    /// systemd starts them.
    #[arg(long)]
    spawn_cards: bool,
    /// Print `ready` on stdout once everything listens.
    #[arg(long)]
    print_ready: bool,
    /// What to log, as in `RUST_LOG`: `info`, `debug`, `reconf_daemon=debug`. On stderr.
    #[arg(
        long,
        value_name = "FILTER",
        default_value = "info",
        env = "RECONF_LOG"
    )]
    log: String,
}

const AFTER: &str = "\
SIGHUP reads the shell files, grants and the signed list again. SIGTERM lets the
job that runs end and leaves every active region alone.

Exit codes: 0 stopped by a signal; 2 wrong usage; 3 the operator's files are wrong
(see `reconfctl check`); 4 state cannot be read or written, or another reconfd has
it; 5 the self-test of signatures failed; 6 a part of it was lost while it ran.";

/// Runs `reconfd` to its end.
#[must_use]
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let filter = EnvFilter::try_new(&arguments.log).unwrap_or_else(|_wrong| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .init();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "no runtime");
            return ExitCode::from(4);
        }
    };
    let options = Options {
        host_file: arguments.host_file,
        spawn_cards: arguments.spawn_cards,
    };
    let print_ready = arguments.print_ready;
    let result = runtime.block_on(start::run(options, || {
        if print_ready {
            let mut out = std::io::stdout();
            // Whoever closed our stdout does not wait for the word.
            let _told = writeln!(out, "ready").and_then(|()| out.flush());
        }
    }));
    // A blocking task that hangs must not keep the process.
    runtime.shutdown_timeout(std::time::Duration::from_secs(2));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::from(match error {
                StartError::Files(_) => 3,
                StartError::State { .. } | StartError::Store(_) | StartError::Socket(_) => 4,
                StartError::SelfTest(_) => 5,
                StartError::PartLost(_) => 6,
            })
        }
    }
}
