//! `inspect`: what is in a bitstream, and would the fence let it pass?
//!
//! Knows files and the fence. Needs no process, no root and no card.

mod checks;
pub(super) mod file;
mod page;
mod report;

use std::path::Path;
use std::sync::Arc;

use bitstream::device::{Device, FrameSet, RegionFrames};
use bitstream::draw::{self, Layer, Role};
use policy::files::Shell;

use super::args::{Global, Inspect};
use super::exit::{Exit, Failure};
use super::place::{absolute, file_max, unreadable};
use super::show::Paint;
use super::{Colour, Stopped, Streams};
use crate::files::read_bounded;
use crate::frames::{Own, stated};
use report::{Report, Verdict};

/// Columns of a drawing, where nobody says how wide the terminal is.
const WIDTH: usize = 100;

pub(super) fn run(
    asked: &Inspect,
    global: &Global,
    streams: &mut Streams<'_>,
) -> Result<Exit, Stopped> {
    let region = asked.region.as_deref().map(Region::read).transpose()?;
    let bytes = file::bytes(&asked.file)?;
    let name = asked.file.display().to_string();
    let report = Report::of(&name, &bytes, region.as_ref())?;
    if let Some(Some(to)) = &asked.draw {
        let svg = drawing(&report, region.as_ref(), |geometry, layers| {
            draw::svg(geometry, &name, layers)
        })?;
        std::fs::write(to, svg).map_err(|error| Failure::io(&to.display().to_string(), &error))?;
    }
    if global.json {
        let value = serde_json::to_string(&report).map_err(|error| {
            Failure::files(format!("the report: {error}"), "report this as a defect")
        })?;
        writeln!(streams.out, "{value}")?;
    } else {
        page::write(&report, Paint::new(streams.colour), streams.out)?;
        if matches!(asked.draw, Some(None)) {
            let colour = match streams.colour {
                Colour::Always => draw::Colour::Ansi,
                Colour::Never => draw::Colour::Never,
            };
            let text = drawing(&report, region.as_ref(), |geometry, layers| {
                draw::terminal(geometry, layers, WIDTH, colour)
            })?;
            writeln!(streams.out, "\n{text}")?;
        }
    }
    Ok(match report.verdict {
        Verdict::Accepted => Exit::Done,
        Verdict::Refused => Exit::No,
    })
}

/// A region of a shell file, by its frames, whether or not the file demands them.
#[derive(Debug)]
pub(super) struct Region {
    /// `SHELL.toml#NAME`.
    label: String,
    device: Device,
    own: Arc<Own>,
}

impl Region {
    /// Reads `SHELL.toml#NAME`; the name may be left out where there is one region.
    fn read(text: &str) -> Result<Self, Failure> {
        let (file, name) = match text.rsplit_once('#') {
            Some((file, name)) => (file, Some(name)),
            None => (text, None),
        };
        let file = absolute(Path::new(file))?;
        let bytes = read_bounded(&file, file_max()).map_err(|error| unreadable(&error))?;
        let wrong = |error: policy::files::FileError| {
            Failure::files(error.to_string(), "correct the shell file")
        };
        let shell = Shell::parse(&file, &bytes).map_err(wrong)?;
        let stated = stated(&shell).map_err(wrong)?;
        let named = |region: &policy::files::Region| match name {
            Some(name) => region.name.to_string() == name,
            None => shell.regions.len() == 1,
        };
        let Some(number) = shell.regions.iter().position(named) else {
            let names: Vec<String> = shell.regions.iter().map(|r| r.name.to_string()).collect();
            return Err(Failure::files(
                format!("{text}: no such region"),
                format!("name one of: {}", names.join(", ")),
            ));
        };
        let own = stated.and_then(|of| Some((of.device, of.regions.get(number)?.clone()?)));
        let (Some((device, own)), Some(region)) = (own, shell.regions.get(number)) else {
            return Err(Failure::files(
                format!("{text}: the shell file states no device, or no frames of the region"),
                "state them: `reconfctl region learn --help`",
            ));
        };
        Ok(Self {
            label: format!("{}#{}", file.display(), region.name),
            device,
            own,
        })
    }
}

/// Draws what the report found, if the device's columns are known.
fn drawing(
    report: &Report,
    region: Option<&Region>,
    draw: impl FnOnce(&bitstream::device::Geometry, &[Layer<'_>]) -> String,
) -> Result<String, Failure> {
    let device = region
        .map(|region| region.device)
        .or(report.fenced_device());
    let Some(geometry) = device.and_then(Device::geometry) else {
        return Err(Failure::files(
            "the device cannot be drawn: its columns are not known",
            "leave --draw out",
        ));
    };
    let written = match report.written() {
        Some(RegionFrames::Set(set)) => set.clone(),
        _ => FrameSet::new(),
    };
    let own = match region.map(|region| &region.own.frames) {
        Some(RegionFrames::Set(set)) => set.clone(),
        _ => FrameSet::new(),
    };
    let mut layers = Vec::new();
    if region.is_some() {
        layers.push(Layer {
            name: "the region",
            frames: &own,
            role: Role::Region,
        });
    }
    let (inside, outside) = match region {
        Some(_) => (written.intersection(&own), written.difference(&own)),
        None => (written, FrameSet::new()),
    };
    layers.push(Layer {
        name: "what the file writes",
        frames: &inside,
        role: Role::Writes,
    });
    if region.is_some() {
        layers.push(Layer {
            name: "outside the region",
            frames: &outside,
            role: Role::Outside,
        });
    }
    Ok(draw(geometry, &layers))
}
