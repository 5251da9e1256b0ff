//! `reconf-card` on the command line: options, signals, exit codes.
//!
//! Knows the terminal and the service manager. Must not know cards.

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;
use nix::sys::signal::{SigSet, Signal};
use tracing_subscriber::EnvFilter;

use super::lock::LockError;
use super::process::{Controls, Options, Process, StartError};
use super::steps::Unwatched;

const AFTER_HELP: &str = "\
The process reads host.toml and the card's shell file, takes the card's lock, reconciles the \
card's regions with its journal, and waits for reconfd. It never resets a card, and leaves \
regions alone that guests use.

Examples:
  reconf-card --card pci:0000:3b:00.0
  reconf-card --host-file ./etc/host.toml --card vfio-user:/tmp/card0.sock --print-ready

Signals: TERM and INT end the job at hand safely, and then the process; HUP reads the signed \
list again.

Exit codes: 0 stopped, 2 usage, 3 configuration, 4 the card cannot be used or went away, \
5 another process holds the card. A host that is not enrolled is no error: its regions can be \
scrubbed.";

/// Holds one FPGA card, and changes its regions as reconfd asks and signatures allow.
#[derive(Debug, Parser)]
#[command(name = "reconf-card", version, after_help = AFTER_HELP)]
struct Arguments {
    /// The host's file
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/etc/reconf/host.toml",
        env = "RECONF_HOST_FILE"
    )]
    host_file: PathBuf,
    /// The card, by its address in host.toml
    #[arg(long, value_name = "ADDRESS")]
    card: String,
    /// Where to listen for reconfd [default: cards/NAME.sock, in the run directory]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Where journal, lock and record of versions lie [default: as in host.toml]
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// The user that reconfd runs as, by name or number, if it is not this process' own
    #[arg(long, value_name = "USER", value_parser = user)]
    peer: Option<u32>,
    /// Print the line "ready" once reconfd may connect
    #[arg(long)]
    print_ready: bool,
    /// What to log, as in `RUST_LOG`: `info`, `debug`, `reconf_daemon=debug`; on stderr
    #[arg(
        long,
        value_name = "FILTER",
        default_value = "info",
        env = "RECONF_LOG"
    )]
    log: String,
}

/// Runs the process to its end.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            let code = match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => 0,
                _ => 2,
            };
            // A closed terminal is nobody to tell.
            let _unheard = error.print();
            return ExitCode::from(code);
        }
    };
    let filter = EnvFilter::try_new(&arguments.log).unwrap_or_else(|_wrong| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::from(exit_code(&error))
        }
    }
}

fn run(arguments: Arguments) -> Result<(), StartError> {
    let signals = wanted_signals();
    let io = |doing: &str, source: std::io::Error| StartError::Io {
        doing: doing.to_owned(),
        source,
    };
    // Before any other thread is made, so that none of them is interrupted.
    signals
        .thread_block()
        .map_err(|errno| io("blocking signals", errno.into()))?;
    let options = Options {
        host_file: arguments.host_file,
        card: arguments.card,
        socket: arguments.socket,
        state_dir: arguments.state_dir,
        peer: arguments.peer,
    };
    let process = Process::start(&options, Box::new(Unwatched))?;
    let controls = process.controls();
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || heed(&signals, &controls))
        .map_err(|source| io("making a thread", source))?;
    if arguments.print_ready {
        let mut out = std::io::stdout();
        let told = writeln!(out, "ready").and_then(|()| out.flush());
        told.map_err(|source| io("printing", source))?;
    }
    tracing::info!("ready");
    Ok(process.run()?)
}

fn wanted_signals() -> SigSet {
    let mut signals = SigSet::empty();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        signals.add(signal);
    }
    signals
}

/// Waits for signals as long as the process lives.
fn heed(signals: &SigSet, controls: &Controls) {
    loop {
        match signals.wait() {
            Ok(Signal::SIGHUP) => controls.reload(),
            Ok(_) => controls.stop(),
            Err(nix::errno::Errno::EINTR) => {}
            Err(error) => {
                tracing::error!(%error, "signals cannot be heard any more; stopping");
                controls.stop();
                return;
            }
        }
    }
}

fn exit_code(error: &StartError) -> u8 {
    match error {
        StartError::Setup(_)
        | StartError::Engine(_)
        | StartError::SelfTest
        | StartError::Journal(_)
        | StartError::Link(_)
        | StartError::Io { .. }
        | StartError::Lock(LockError::Io { .. }) => 3,
        StartError::Open(_) | StartError::Serial { .. } | StartError::Gone(_) => 4,
        StartError::Lock(LockError::Held(_)) => 5,
    }
}

/// A user by number or name.
fn user(text: &str) -> Result<u32, String> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    match nix::unistd::User::from_name(text) {
        Ok(Some(user)) => Ok(user.uid.as_raw()),
        Ok(None) => Err("there is no such user".to_owned()),
        Err(errno) => Err(errno.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound_and_teaches() {
        Arguments::command().debug_assert();
        let help = Arguments::command().render_long_help().to_string();
        for word in ["Examples:", "Exit codes:", "Signals:", "--host-file"] {
            assert!(help.contains(word), "{word}");
        }
    }

    #[test]
    fn a_wrong_option_is_usage_and_a_missing_file_configuration() {
        let code = main(["reconf-card", "--no-such"].map(OsString::from));
        assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::from(2)));
        let options = Options {
            host_file: "/nonexistent/host.toml".into(),
            card: "pci:0000:3b:00.0".into(),
            socket: None,
            state_dir: None,
            peer: None,
        };
        let error = Process::start(&options, Box::new(Unwatched)).unwrap_err();
        assert_eq!(exit_code(&error), 3);
    }

    #[test]
    fn users_by_number_and_name() {
        assert_eq!(user("1234"), Ok(1234));
        assert_eq!(user("root"), Ok(0));
        assert!(user("nobody-of-this-name").is_err());
    }
}
