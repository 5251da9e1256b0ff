//! `reconf check`: what a bitstream file is, before anybody is asked.
//!
//! Knows files, the container parsers and the frame fence, as far as it needs
//! no region. Asks no host, and cannot know whether a host would take the file:
//! which frames a region has is the host's secret.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use bitstream::Container;
use bitstream::fence;
use bitstream::xilinx::XilinxStream;

use super::Outcome;
use super::failure::{BadFile, Failure};
use super::table::bytes;
use super::ui::{Form, Ui};
use super::views::{CheckView, Fine};
use crate::text;

/// Largest file that is read, in bytes: no host takes a larger bitstream by
/// default.
const LARGEST: u64 = 256 * 1024 * 1024;

pub(super) fn check(ui: &mut Ui<'_>, path: &Path) -> Outcome {
    let file = read(path)?;
    let container = bitstream::parse(&file).map_err(|error| BadFile {
        path: path.into(),
        code: error.code(),
        what: error.to_string(),
        remedy: error.remedy().into(),
        offset: Some(error.offset()),
        frame: None,
    })?;
    let view = view(path, &container)?;
    if ui.form() == Form::Json {
        ui.json(&Fine::new(view))?;
        return Ok(());
    }
    ui.result(&page(path, &view))?;
    ui.hint("The form is right. Whether a host takes it depends on its signature and its region.")?;
    Ok(())
}

/// The view as a person reads it.
fn page(path: &Path, view: &CheckView) -> String {
    let size = bytes(u64::try_from(view.payload_size).unwrap_or(u64::MAX));
    let payload = Some(format!("{size} at byte {}", view.payload_offset));
    let mut page = format!("{}: {}, well formed\n", path.display(), view.format);
    for (key, value) in [
        ("name", &view.name),
        ("interface", &view.interface_id),
        ("function", &view.function_id),
        ("device", &view.device),
        ("payload", &payload),
    ] {
        if let Some(value) = value {
            page.push_str(&format!("  {key:<10} {value}\n"));
        }
    }
    for (number, line) in view.writes.iter().flatten().enumerate() {
        let key = if number == 0 { "writes" } else { "" };
        page.push_str(&format!("  {key:<10} {line}\n"));
    }
    page
}

fn view(path: &Path, container: &Container<'_>) -> Result<CheckView, Failure> {
    let payload = CheckView {
        payload_offset: container.payload_offset(),
        payload_size: container.payload().len(),
        ..CheckView::default()
    };
    match container {
        Container::Gbs(gbs) => Ok(CheckView {
            format: "GBS",
            interface_id: Some(gbs.interface_id.to_string()),
            function_id: Some(gbs.accelerator.to_string()),
            name: Some(text::foreign(&gbs.name)),
            ..payload
        }),
        Container::Xilinx(stream) => fenced(path, stream, payload),
        _ => Err(Failure::from(BadFile {
            path: path.into(),
            code: "unknown-format",
            what: "a format that this command does not know".into(),
            remedy: "Update reconf.".into(),
            offset: None,
            frame: None,
        })),
    }
}

/// Reads every word of an AMD bitstream as its device would.
fn fenced(
    path: &Path,
    stream: &XilinxStream<'_>,
    payload: CheckView,
) -> Result<CheckView, Failure> {
    let fenced = fence::check(stream, None, None).map_err(|refusal| {
        let frame = refusal
            .frame()
            .map_or(String::new(), |frame| format!(", {frame}"));
        BadFile {
            path: path.into(),
            code: refusal.code(),
            what: format!("{refusal} (byte {}{frame})", refusal.offset()),
            remedy: refusal.remedy().into(),
            offset: Some(refusal.offset()),
            frame: refusal.frame().map(|frame| frame.to_string()),
        }
    })?;
    let header = stream.header.as_ref();
    Ok(CheckView {
        format: if header.is_some() { "BIT" } else { "BIN" },
        name: header
            .and_then(bitstream::xilinx::BitHeader::name)
            .map(text::foreign),
        device: Some(fenced.device().to_string()),
        writes: Some(fenced.frames().to_lines(fenced.device())),
        ..payload
    })
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |source| Failure::File {
        path: path.into(),
        source,
    };
    let mut file = Vec::new();
    let most = LARGEST.saturating_add(1);
    let read = if path == Path::new("-") {
        io::stdin().lock().take(most).read_to_end(&mut file)
    } else {
        File::open(path).and_then(|open| open.take(most).read_to_end(&mut file))
    }
    .map_err(failed)?;
    if u64::try_from(read).unwrap_or(u64::MAX) > LARGEST {
        return Err(BadFile {
            path: path.into(),
            code: "too-large",
            what: format!("it is larger than {}", bytes(LARGEST)),
            remedy: "Give a bitstream.".into(),
            offset: None,
            frame: None,
        }
        .into());
    }
    Ok(file)
}
