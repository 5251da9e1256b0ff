//! The command: reads its arguments, serves one card, says `ready`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use thiserror::Error;
use tracing_subscriber::EnvFilter;
use uuid::Uuid;

use crate::card::Card;
use crate::clock::Clock;
use crate::config::{self, Config, FifoDepth, OnClose, Rate};
use crate::serve::{ServeError, Sockets, serve};
use crate::silicon::{Geometry, GeometryError};
use crate::table::{Table, TableError};

/// A table longer than this is a mistake.
const MAX_TABLE: u64 = 16 << 20;

/// A simulated FPGA card, served as vfio-user PCI devices.
///
/// Makes four sockets: DIR/NAME.sock (the management function), DIR/NAME-vf0.sock
/// and DIR/NAME-vf1.sock (the user functions of regions 0 and 1), and DIR/NAME.ctl
/// (control: one JSON object a line, for example {"get":"state"}). Prints the line
/// "ready" when all of them listen, and runs until it is killed.
#[derive(Debug, Parser)]
#[command(name = "reconf-simcard", version)]
struct Arguments {
    /// Directory for the sockets; it must exist.
    #[arg(long)]
    dir: PathBuf,
    /// Name of the card: letters, digits, `-`, `_`; at most 32.
    #[arg(long, default_value = "card0", value_parser = card_name)]
    name: String,
    /// Serial number (PCI Express device serial number) in hexadecimal.
    #[arg(long, value_parser = serial)]
    serial: u64,
    /// Whose register map the card has: `dfl` (a classic Intel PAC), or `hwicap` (an AMD
    /// shell with an AXI HWICAP core, decouplers and identity blocks).
    #[arg(long, value_enum, default_value = "dfl")]
    shape: Shape,
    /// Interface id: which partial bitstreams fit (dfl).
    #[arg(
        long,
        value_name = "UUID",
        required_unless_present = "device",
        conflicts_with = "device"
    )]
    interface_id: Option<Uuid>,
    /// The FPGA, by a name or IDCODE that the table of --geometry has (hwicap).
    #[arg(
        long,
        value_name = "NAME",
        required_if_eq("shape", "hwicap"),
        requires = "geometry"
    )]
    device: Option<String>,
    /// A table of column layouts, with the device in it (hwicap): bitstream/geometry/*.txt.
    #[arg(long, value_name = "FILE", requires = "device")]
    geometry: Option<PathBuf>,
    /// Speed of reconfiguration: `instant`, or bytes a second (`k`: 1000, `M`: 1000000).
    #[arg(long, default_value = "instant")]
    rate: Rate,
    /// Depth of the data FIFO in 32-bit words, 2 to 511.
    #[arg(long, default_value = "256")]
    fifo: FifoDepth,
    /// Payloads of other formats: lines of `SHA256 AFU-UUID`; the digest is of the
    /// payload padded with zeros to four bytes (dfl), of a .bit file's data (hwicap).
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
    /// Reset a function when its client goes, as the kernel's VFIO does.
    #[arg(long)]
    reset_on_close: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Shape {
    Dfl,
    Hwicap,
}

#[derive(Debug, Error)]
enum Failed {
    #[error("--device and --geometry are of --shape hwicap")]
    StrayDevice,
    #[error("{path}: {source}")]
    Geometry {
        path: PathBuf,
        source: GeometryError,
    },
    #[error("{path}: {source}")]
    ReadTable {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{path}: larger than {MAX_TABLE} bytes")]
    HugeTable { path: PathBuf },
    #[error("{path}: {source}")]
    BadTable { path: PathBuf, source: TableError },
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error("saying that the card is ready: {0}")]
    Ready(#[source] std::io::Error),
}

/// Runs the command to its end.
#[must_use]
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let filter =
        EnvFilter::try_from_env("RECONF_LOG").unwrap_or_else(|_unset| EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => {
            tracing::error!("{failed}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Failed> {
    let table = arguments
        .table
        .as_deref()
        .map(read_table)
        .transpose()?
        .unwrap_or_default();
    let card = Card::new(Config {
        shape: shape(arguments)?,
        serial: arguments.serial,
        interface_id: arguments.interface_id.unwrap_or_default(),
        rate: arguments.rate,
        fifo: arguments.fifo,
        table,
        on_close: if arguments.reset_on_close {
            OnClose::Reset
        } else {
            OnClose::KeepState
        },
        clock: Clock::wall(),
    });
    let handle = serve(card, Sockets::in_dir(&arguments.dir, &arguments.name))?;
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "ready")
        .and_then(|()| stdout.flush())
        .map_err(Failed::Ready)?;
    drop(stdout);
    handle.wait();
    Ok(())
}

/// What the arguments say of the shape. clap has seen to it that what belongs together is there.
fn shape(arguments: &Arguments) -> Result<config::Shape, Failed> {
    let given = arguments
        .device
        .as_deref()
        .zip(arguments.geometry.as_deref());
    match (arguments.shape, given) {
        (Shape::Hwicap, Some((device, path))) => {
            let geometry = Geometry::parse(&read_text(path)?, device);
            let geometry = geometry.map_err(|source| Failed::Geometry {
                path: path.to_owned(),
                source,
            })?;
            Ok(config::Shape::Hwicap(Box::new(geometry)))
        }
        (Shape::Dfl, None) => Ok(config::Shape::Dfl),
        _ => Err(Failed::StrayDevice),
    }
}

fn read_table(path: &Path) -> Result<Table, Failed> {
    Table::parse(&read_text(path)?).map_err(|source| Failed::BadTable {
        path: path.to_owned(),
        source,
    })
}

fn read_text(path: &Path) -> Result<String, Failed> {
    let unreadable = |source| Failed::ReadTable {
        path: path.to_owned(),
        source,
    };
    if std::fs::metadata(path).map_err(unreadable)?.len() > MAX_TABLE {
        return Err(Failed::HugeTable {
            path: path.to_owned(),
        });
    }
    std::fs::read_to_string(path).map_err(unreadable)
}

fn serial(text: &str) -> Result<u64, std::num::ParseIntError> {
    u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16)
}

fn card_name(text: &str) -> Result<String, &'static str> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if (1..=32).contains(&text.len()) && text.chars().all(good) {
        Ok(text.to_owned())
    } else {
        Err("letters, digits, `-` and `_`, at most 32 of them")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_well_formed() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn names_cannot_leave_the_directory() {
        assert!(card_name("card0").is_ok());
        for bad in ["", "../x", "a/b", "a.b", &"x".repeat(33)] {
            assert!(card_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn serials_are_hexadecimal() {
        assert_eq!(serial("0xff"), Ok(255));
        assert_eq!(serial("ff"), Ok(255));
        assert!(serial("").is_err());
        assert!(serial("11223344556677889").is_err());
    }
}
