//! Plays QEMU's character device; see [`reconf_tests::chardev`].

#![forbid(unsafe_code)]

use std::io::Write;
use std::path::PathBuf;

use clap::Parser;
use reconf_tests::chardev::{Chardev, HostEnd};

/// A stand-in for the character device of a VM: one host, one guest opener at a time.
#[derive(Debug, Parser)]
struct Args {
    /// The host connects here (QEMU's server mode).
    #[arg(
        long,
        value_name = "PATH",
        required_unless_present = "connect",
        conflicts_with = "connect"
    )]
    listen: Option<PathBuf>,
    /// The host listens here; connected to again and again.
    #[arg(long, value_name = "PATH")]
    connect: Option<PathBuf>,
    /// Guest processes open the port here.
    #[arg(long, value_name = "PATH")]
    guest: PathBuf,
    /// Keep every byte that the guest receives.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let host = match (args.listen, args.connect) {
        (Some(path), _) => HostEnd::Listen(path),
        (None, Some(path)) => HostEnd::Connect(path),
        (None, None) => anyhow::bail!("neither --listen nor --connect"),
    };
    let chardev = Chardev::new(&host, &args.guest, args.record.as_deref())?;
    writeln!(std::io::stdout(), "ready")?;
    Ok(chardev.run()?)
}
