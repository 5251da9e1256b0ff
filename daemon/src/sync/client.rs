//! `reconf-tuf-client`: the command line that the conformance suite for TUF
//! clients asks for. Knows arguments and exit codes: 0, or 1 with the reason.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use policy::time::UnixTime;
use policy::tuf::{News, Role, TargetPath, longest};

use super::{Http, Store, Updater, enrol};
use crate::files;

/// A plain client for repositories in TUF format.
#[derive(Debug, Parser)]
#[command(name = "reconf-tuf-client", version)]
struct Args {
    /// Where verified metadata is kept.
    #[arg(long)]
    metadata_dir: PathBuf,
    /// The base address of the metadata.
    #[arg(long)]
    metadata_url: Option<String>,
    /// A target; may be repeated.
    #[arg(long)]
    target_name: Vec<String>,
    /// The base address of the targets.
    #[arg(long)]
    target_base_url: Option<String>,
    /// Where targets are put.
    #[arg(long)]
    target_dir: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Trust this root.
    Init {
        /// A root.json.
        root: PathBuf,
    },
    /// Bring the metadata up to date.
    Refresh,
    /// Bring the metadata up to date, then fetch the targets in their order.
    Download,
}

/// Runs the command line.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let done = match Args::try_parse_from(args) {
        Ok(args) => run(&args),
        Err(error) => {
            let wrong = error.use_stderr();
            return match error.print() {
                Ok(()) if !wrong => ExitCode::SUCCESS,
                _ => ExitCode::FAILURE,
            };
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Where nobody reads it, nobody misses it.
fn say(text: &str) {
    let _unread = writeln!(std::io::stderr(), "reconf-tuf-client: {text}");
}

fn run(args: &Args) -> Result<()> {
    let store = Store::new(&args.metadata_dir);
    if let Command::Init { root } = &args.command {
        let max = u64::try_from(longest(&Role::Root))?;
        return Ok(enrol(&store, &files::read_bounded(root, max)?)?);
    }
    let url = args.metadata_url.as_deref().context("no --metadata-url")?;
    let source = Http::new(url, args.target_base_url.as_deref())?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let mut updater = Updater::refresh(store, source, UnixTime(now.as_secs()))?;
    if updater.news() == News::Equivocation {
        say("timestamp: two different documents of one version were signed; the first one stays");
    }
    if matches!(args.command, Command::Download) {
        let folder = args.target_dir.as_deref().context("no --target-dir")?;
        args.target_base_url
            .as_deref()
            .context("no --target-base-url")?;
        for name in &args.target_name {
            let target = updater.find(&TargetPath::parse(name)?)?;
            updater.download(&target, folder)?;
        }
    }
    Ok(())
}
