//! `reconf check`: what a bitstream file is, before anybody is asked.
//!
//! Knows files and the container parsers. Asks no host, and cannot know
//! whether a host would take the file.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use bitstream::Container;

use super::Outcome;
use super::failure::Failure;
use super::table::bytes;
use super::ui::{Form, Ui};
use super::views::{CheckView, Fine};
use crate::text;

/// Largest file that is read, in bytes: no host takes a larger bitstream by
/// default.
const LARGEST: u64 = 256 * 1024 * 1024;

pub(super) fn check(ui: &mut Ui<'_>, path: &Path) -> Outcome {
    let file = read(path)?;
    let container = bitstream::parse(&file).map_err(|error| Failure::BadFile {
        path: path.into(),
        code: error.code(),
        what: error.to_string(),
        remedy: error.remedy().into(),
    })?;
    let view = view(path, &container)?;
    if ui.form() == Form::Json {
        ui.json(&Fine::new(view))?;
        return Ok(());
    }
    let size = u64::try_from(view.payload_size).unwrap_or(u64::MAX);
    ui.result(&format!(
        "{}: {}, well formed\n  name       {}\n  interface  {}\n  function   {}\n  payload    {} at byte {}\n",
        path.display(),
        view.format,
        view.name,
        view.interface_id,
        view.function_id,
        bytes(size),
        view.payload_offset,
    ))?;
    ui.hint("The form is right. Whether a host takes it depends on its signature and its region.")?;
    Ok(())
}

fn view(path: &Path, container: &Container<'_>) -> Result<CheckView, Failure> {
    match container {
        Container::Gbs(gbs) => Ok(CheckView {
            format: "GBS",
            interface_id: gbs.interface_id.to_string(),
            function_id: gbs.accelerator.to_string(),
            name: text::foreign(&gbs.name),
            payload_offset: gbs.payload_offset,
            payload_size: gbs.payload.len(),
        }),
        _ => Err(Failure::BadFile {
            path: path.into(),
            code: "unknown-format",
            what: "a format that this command does not know".into(),
            remedy: "Update reconf.".into(),
        }),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |source| Failure::File {
        path: path.into(),
        source,
    };
    let mut file = Vec::new();
    let read = File::open(path)
        .and_then(|open| open.take(LARGEST.saturating_add(1)).read_to_end(&mut file))
        .map_err(failed)?;
    if u64::try_from(read).unwrap_or(u64::MAX) > LARGEST {
        return Err(Failure::BadFile {
            path: path.into(),
            code: "too-large",
            what: format!("it is larger than {}", bytes(LARGEST)),
            remedy: "Give a bitstream.".into(),
        });
    }
    Ok(file)
}
