//! The command line: its words, their grammar, their help.
//!
//! Knows clap. Must not do anything.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use protocol::message::{ImageRef, JobKey, Slot};

use super::exit::EXIT_CODES;
use crate::channel::ENVIRONMENT;

/// Change what the FPGA function of this VM does, while it runs.
///
/// The host decides which images this VM may load; `reconf list` shows them.
#[derive(Debug, Parser)]
#[command(name = "reconf", version, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Args)]
pub(crate) struct Global {
    /// The channel to the host: a Unix socket or a virtio port [default: the agent's socket
    /// /run/reconf/guest.sock, else /dev/virtio-ports/org.reconf.0]
    #[arg(long, global = true, value_name = "PATH", env = ENVIRONMENT)]
    pub(crate) channel: Option<PathBuf>,

    /// Print JSON: one object for the result; for a watch and for the progress of a load
    /// one object a line
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Give up after this many seconds [default: 5 to reach the host, 10 for a reply,
    /// 600 for a job; a watch never ends by itself]
    #[arg(long, global = true, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) timeout: Option<Duration>,

    /// When to use colour; the variable `NO_COLOR` is respected
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: When,

    /// No progress, no hints: only results and errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    /// On a terminal
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the images that this VM may load
    List(ListArgs),
    /// Show what the slots hold
    Describe(OneSlot),
    /// Load an image into a slot
    Load(LoadArgs),
    /// Take the function away and leave the slot empty
    Clear(ClearArgs),
    /// Reset the function in a slot, without loading anything
    Reset(OneSlot),
    /// Show a job, or wait for its end
    Job(JobArgs),
    /// Cancel a job that still waits for its card
    Cancel {
        /// The job's key, as `load` printed it
        #[arg(value_name = "KEY", value_parser = JobKey::parse)]
        key: JobKey,
    },
    /// Show what happens to the slots, as it happens
    Watch(WatchArgs),
    /// Ask whether the host is there
    Ping,
    /// Say what a bitstream file is and whether it is well formed (asks no host)
    ///
    /// Of an AMD .bit or .bin file every word is read as the device would read it: a
    /// command that no partial bitstream needs, a wrong checksum or a frame that the
    /// device does not have is told, and what the file writes. Which frames a slot has
    /// only the host knows, and the last word is the host's.
    Check {
        /// The file; `-` is standard input
        file: PathBuf,
    },
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages
    #[command(hide = true)]
    Man {
        /// Where to; without it the main page goes to standard output
        directory: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct OneSlot {
    /// The slot; may be left out where the VM has one
    #[arg(long, value_name = "N", value_parser = parse_slot)]
    pub(crate) slot: Option<Slot>,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) slot: OneSlot,

    /// Show the digest of each image as well
    #[arg(long)]
    pub(crate) digests: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LoadArgs {
    /// `publisher/name:version`, `publisher/name` for the newest, or `sha256:` and the digest
    /// that `list` shows
    #[arg(value_name = "IMAGE", value_parser = parse_image)]
    pub(crate) image: ImageRef,

    #[command(flatten)]
    pub(crate) slot: OneSlot,

    /// Do nothing where this very image is loaded already
    #[arg(long, conflicts_with = "force")]
    pub(crate) if_not_loaded: bool,

    /// Load it again although this very image is loaded already
    #[arg(long)]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) job: NewJob,
}

#[derive(Debug, Args)]
pub(crate) struct ClearArgs {
    #[command(flatten)]
    pub(crate) slot: OneSlot,
    #[command(flatten)]
    pub(crate) job: NewJob,
}

/// How a command treats the job it starts.
#[derive(Debug, Args)]
pub(crate) struct NewJob {
    /// Wait for the end of the job (the default)
    #[arg(long, overrides_with = "no_wait")]
    wait: bool,

    /// Return as soon as the host has accepted the job, and print its key
    #[arg(long, overrides_with = "wait")]
    no_wait: bool,

    /// The job's key, 32 hexadecimal digits [default: random]. The same key finds the same
    /// job again, so a script may repeat its command without a second load
    #[arg(long, value_name = "HEX", value_parser = JobKey::parse)]
    pub(crate) key: Option<JobKey>,
}

/// Whether to stay until a job ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stay {
    /// Until it ends.
    Wait,
    /// Until it is accepted.
    Leave,
}

impl NewJob {
    pub(crate) fn stay(&self) -> Stay {
        // `--wait` only takes an earlier `--no-wait` back.
        if self.no_wait && !self.wait {
            Stay::Leave
        } else {
            Stay::Wait
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct JobArgs {
    /// The job's key, as `load` printed it
    #[arg(value_name = "KEY", value_parser = JobKey::parse)]
    pub(crate) key: JobKey,

    /// Wait for its end, with progress
    #[arg(long)]
    pub(crate) wait: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    pub(crate) slot: OneSlot,

    /// End after this many events
    #[arg(long, value_name = "N")]
    pub(crate) count: Option<std::num::NonZeroU64>,
}

fn parse_slot(text: &str) -> Result<Slot, String> {
    text.parse()
        .map(Slot)
        .map_err(|_not_a_number| "a slot is a number from 0 to 65535".to_owned())
}

fn parse_image(text: &str) -> Result<ImageRef, String> {
    ImageRef::parse(text).map_err(|error| error.to_string())
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    text.parse::<f64>()
        .ok()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .filter(|duration| (Duration::from_millis(1)..=LONGEST).contains(duration))
        .ok_or_else(|| "give a number of seconds from 0.001 to 604800".to_owned())
}

/// A week: longer than any load, short of any overflow.
const LONGEST: Duration = Duration::from_secs(604_800);

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_last_of_wait_and_no_wait_counts() {
        let stay = |args: &[&str]| {
            let all = ["reconf", "load", "a/b"].iter().chain(args);
            match Cli::try_parse_from(all).unwrap().command {
                Command::Load(load) => load.job.stay(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(stay(&[]), Stay::Wait);
        assert_eq!(stay(&["--no-wait"]), Stay::Leave);
        assert_eq!(stay(&["--no-wait", "--wait"]), Stay::Wait);
        assert_eq!(stay(&["--wait", "--no-wait"]), Stay::Leave);
    }

    #[test]
    fn odd_timeouts_are_refused() {
        for bad in ["", "0", "-1", "nan", "inf", "1e99", "0.0000001", "604801"] {
            assert!(parse_seconds(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_seconds("0.5"), Ok(Duration::from_millis(500)));
    }
}
