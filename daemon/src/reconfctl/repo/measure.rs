//! What a bitstream says about itself: size, digest, interface id, function id.

use std::io::Read;
use std::path::Path;

use bitstream::Container;
use policy::ids::{Digest, FunctionId, InterfaceId, TargetPath};
use policy::trust::Format;

use super::super::exit::Failure;
use super::super::place::unreadable;
use crate::files::open_beneath;

/// The longest bitstream that is published, in bytes: what hosts take by default.
const BITSTREAM_MAX: u64 = 256 << 20;

/// The measured facts of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Measured {
    pub(super) sha256: Digest,
    pub(super) size: u64,
    pub(super) format: Format,
    pub(super) interface_id: InterfaceId,
    pub(super) function_id: FunctionId,
}

/// Reads the file at `path` below `targets`.
pub(super) fn measure(targets: &Path, path: &TargetPath) -> Result<Measured, Failure> {
    let (file, _size) =
        open_beneath(targets, Path::new(path.as_str())).map_err(|error| unreadable(&error))?;
    let name = targets.join(path.as_str());
    let mut bytes = Vec::new();
    file.take(BITSTREAM_MAX.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::io(&name.display().to_string(), &error))?;
    let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    if size > BITSTREAM_MAX {
        let error = format!("{}: longer than {BITSTREAM_MAX} bytes", name.display());
        return Err(Failure::files(
            error,
            "no host takes it; is this the right file?",
        ));
    }
    let container = bitstream::parse(&bytes).map_err(|error| {
        let text = format!("{}: {error} (at byte {})", name.display(), error.offset());
        Failure::files(text, error.remedy())
    })?;
    let sha256 = Digest::of(&bytes);
    match container {
        Container::Gbs(gbs) => Ok(Measured {
            sha256,
            size,
            format: Format::Gbs,
            interface_id: InterfaceId(gbs.interface_id),
            function_id: FunctionId(gbs.accelerator),
        }),
        other => {
            let error = format!(
                "{}: hosts cannot load this container yet: {other:?}",
                name.display()
            );
            Err(Failure::files(error, "publish it as GBS"))
        }
    }
}
