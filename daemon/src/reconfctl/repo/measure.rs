//! What a bitstream says about itself, and what its publisher must say for it.

use std::io::Read;
use std::path::Path;

use policy::ids::{Digest, FunctionId, InterfaceId, TargetPath};
use policy::trust::Format;

use super::super::exit::Failure;
use super::super::place::unreadable;
use super::draft::{DraftImage, DraftVariant};
use super::regions::Regions;
use crate::contents::Contents;
use crate::files::open_beneath;

/// The longest bitstream that is published, in bytes: what hosts take by default.
const BITSTREAM_MAX: u64 = 256 << 20;

/// The facts of one file: measured, or stated where the file does not tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Measured {
    pub(super) sha256: Digest,
    pub(super) size: u64,
    pub(super) format: Format,
    pub(super) interface_id: InterfaceId,
    pub(super) function_id: FunctionId,
}

/// Reads the variant's file below `targets`, and holds it against each of the regions that it
/// is for.
pub(super) fn measure(
    targets: &Path,
    image: &DraftImage,
    variant: &DraftVariant,
    regions: &mut Regions,
) -> Result<Measured, Failure> {
    let path = &variant.path;
    let name = targets.join(path.as_str()).display().to_string();
    let bytes = read(targets, path, &name)?;
    let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let contents = Contents::read(&bytes).map_err(|error| {
        let text = format!("{name}: {error} (at byte {})", error.offset());
        Failure::files(text, error.remedy())
    })?;
    let named = contents.names();
    let interface_id = agreed(
        &name,
        ("interface_id", "of the variant"),
        named.map(|names| InterfaceId(names.interface_id)),
        variant.interface_id,
    )?;
    let function_id = agreed(
        &name,
        ("function_id", "of the image"),
        named.map(|names| FunctionId(names.function_id)),
        image.function_id,
    )?;
    regions.hold(&name, &contents, interface_id, variant.region_type.as_ref())?;
    Ok(Measured {
        sha256: Digest::of(&bytes),
        size,
        format: contents.format(),
        interface_id,
        function_id,
    })
}

fn read(targets: &Path, path: &TargetPath, name: &str) -> Result<Vec<u8>, Failure> {
    let (file, _size) =
        open_beneath(targets, Path::new(path.as_str())).map_err(|error| unreadable(&error))?;
    let mut bytes = Vec::new();
    file.take(BITSTREAM_MAX.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::io(name, &error))?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > BITSTREAM_MAX {
        let error = format!("{name}: longer than {BITSTREAM_MAX} bytes");
        return Err(Failure::files(
            error,
            "no host takes it; is this the right file?",
        ));
    }
    Ok(bytes)
}

/// What the file names counts; where it names nothing, what the list states.
fn agreed<T: PartialEq + std::fmt::Display>(
    name: &str,
    (key, whose): (&str, &str),
    named: Option<T>,
    stated: Option<T>,
) -> Result<T, Failure> {
    match (named, stated) {
        (Some(named), Some(stated)) if named != stated => Err(Failure::files(
            format!("{name}: it names the {key} {named}, and the list states {stated}"),
            format!("take the {key} {whose} out of the list, or name another file"),
        )),
        (Some(id), _) | (None, Some(id)) => Ok(id),
        (None, None) => Err(Failure::files(
            format!("{name}: such a file does not name its {key}"),
            format!("state the {key} {whose} in the list"),
        )),
    }
}
