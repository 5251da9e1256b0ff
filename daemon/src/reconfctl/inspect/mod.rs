//! `inspect`: what is in a bitstream, and would the fence let it pass?
//!
//! Knows files and the fence. Needs no process, no root and no card.

mod checks;
pub(super) mod file;
mod page;
pub(super) mod region;
mod report;

use std::path::Path;

use bitstream::device::{Device, FrameSet, Geometry, RegionFrames};
use bitstream::draw::{self, Layer, Role};

use super::args::{Global, Inspect};
use super::exit::{Exit, Failure};
use super::show::Paint;
use super::{Colour, Stopped, Streams};
use crate::files::{Readers, write_atomic};
use region::Region;
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
        keep(to, &svg)?;
    }
    if global.json {
        let value = serde_json::to_string(&report).map_err(|error| {
            Failure::files(format!("the report: {error}"), "report this as a defect")
        })?;
        writeln!(streams.out, "{value}")?;
    } else {
        page::write(&report, Paint::new(streams.colour), streams.out)?;
        if matches!(asked.draw, Some(None)) {
            let colour = paints(streams.colour);
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

/// Draws what the report found, if the device's columns are known.
fn drawing(
    report: &Report,
    region: Option<&Region>,
    draw: impl FnOnce(&Geometry, &[Layer<'_>]) -> String,
) -> Result<String, Failure> {
    let device = region
        .map(|region| region.device)
        .or(report.fenced_device());
    let Some(geometry) = device.and_then(Device::geometry) else {
        return Err(undrawable());
    };
    let written = match report.written() {
        Some(RegionFrames::Set(set)) => set.clone(),
        _ => FrameSet::new(),
    };
    let own = region.map_or_else(FrameSet::new, Region::set);
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

/// Writes a drawing: whole, or not at all.
fn keep(to: &Path, svg: &str) -> Result<(), Failure> {
    let written = if to.is_file() || !to.exists() {
        write_atomic(to, svg.as_bytes(), Readers::All)
    } else {
        // A pipe, or a terminal.
        std::fs::write(to, svg)
    };
    written.map_err(|error| Failure::io(&to.display().to_string(), &error))
}

fn paints(colour: Colour) -> draw::Colour {
    match colour {
        Colour::Always => draw::Colour::Ansi,
        Colour::Never => draw::Colour::Never,
    }
}

fn undrawable() -> Failure {
    Failure::files(
        "the device cannot be drawn: its columns are not known",
        "leave --draw out",
    )
}
