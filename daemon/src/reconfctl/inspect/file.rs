//! A file that somebody wants looked at: its bytes, and what they are.
//!
//! Knows reading with a bound. Trusts nothing: whose file it is does not matter.

use std::io::Read as _;
use std::path::Path;

use bitstream::fence::survey;
use bitstream::xilinx::XilinxStream;
use bitstream::{Container, ContainerError, Xclbin, parse};

use super::super::exit::{Exit, Failure};
use super::super::place::{absolute, unreadable};
use crate::files::read_bounded;

/// The longest bitstream that any host takes.
const MOST: u64 = 256 << 20;

/// Reads a file, or standard input for `-`.
pub(in super::super) fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    if path != Path::new("-") {
        return read_bounded(&absolute(path)?, MOST).map_err(|error| unreadable(&error));
    }
    let mut bytes = Vec::new();
    let limit = MOST.saturating_add(1);
    std::io::stdin()
        .lock()
        .take(limit)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::io("standard input", &error))?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MOST {
        return Err(Failure::files(
            "standard input is longer than 256 MiB",
            "no bitstream is that long; give another file",
        ));
    }
    Ok(bytes)
}

/// What a file is.
#[derive(Debug)]
pub(super) enum Kind<'a> {
    /// Configuration words.
    Xilinx(XilinxStream<'a>),
    /// A container that is read and whose frames nobody can.
    Opaque(Container<'a>),
    /// Recognised, and loaded by no engine.
    Xclbin(Xclbin<'a>, ContainerError),
    /// Recognised, and broken or not loadable.
    Refused(ContainerError),
}

/// Looks at the content, never at the name.
///
/// # Errors
/// Nothing that is known: exit code 2.
pub(super) fn kind(bytes: &[u8]) -> Result<Kind<'_>, Failure> {
    match parse(bytes) {
        Ok(Container::Xilinx(stream)) => Ok(Kind::Xilinx(stream)),
        Ok(other) => Ok(Kind::Opaque(other)),
        Err(error) => match (error.code(), Xclbin::read(bytes)) {
            ("not-a-bitstream" | "empty-file", _) => Err(not_understood(&error)),
            (_, Ok(xclbin)) if bytes.starts_with(b"xclbin2") => Ok(Kind::Xclbin(xclbin, error)),
            _ => Ok(Kind::Refused(error)),
        },
    }
}

/// Configuration words, and nothing else.
pub(in super::super) fn stream<'a>(
    path: &Path,
    bytes: &'a [u8],
) -> Result<XilinxStream<'a>, Failure> {
    match parse(bytes) {
        Ok(Container::Xilinx(stream)) if !survey(&stream).streams.is_empty() => Ok(stream),
        Ok(_) => Err(Failure::new(
            Exit::Usage,
            format!("{}: its frames cannot be read", path.display()),
            "give a .bit or .bin file of an AMD device",
        )),
        Err(error) => {
            let error = format!("{}: {error}", path.display());
            Err(Failure::new(Exit::Usage, error, "give a .bit or .bin file"))
        }
    }
}

fn not_understood(error: &ContainerError) -> Failure {
    Failure::new(Exit::Usage, error.to_string(), error.remedy())
}
