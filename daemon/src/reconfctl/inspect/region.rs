//! A region of a shell file, and what the file states of it.
//!
//! Knows shell files, not bitstreams.

use std::path::Path;
use std::sync::Arc;

use bitstream::device::{Device, FrameSet, Geometry, RegionFrames};
use bitstream::draw::{self, Layer, Role};
use policy::files::Shell;

use super::super::args::{Global, Show};
use super::super::exit::{Exit, Failure};
use super::super::place::{absolute, file_max, unreadable};
use super::super::show::clean;
use super::super::{Stopped, Streams};
use crate::files::read_bounded;
use crate::frames::{Own, stated};

/// A region of a shell file, by its frames, whether or not the file demands them.
#[derive(Debug)]
pub(in super::super) struct Region {
    /// `SHELL.toml#NAME`.
    pub(super) label: String,
    pub(super) device: Device,
    pub(super) own: Arc<Own>,
}

impl Region {
    /// Reads `SHELL.toml#NAME`; the name may be left out where there is one region.
    pub(super) fn read(text: &str) -> Result<Self, Failure> {
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

    /// Its frames, where the device's columns are known.
    pub(super) fn set(&self) -> FrameSet {
        match &self.own.frames {
            RegionFrames::Set(set) => set.clone(),
            RegionFrames::Blocks(_) => FrameSet::new(),
        }
    }
}

/// `region show`: what a shell file states of a region's frames.
pub(in super::super) fn show(
    asked: &Show,
    global: &Global,
    streams: &mut Streams<'_>,
) -> Result<Exit, Stopped> {
    let region = Region::read(&asked.region)?;
    let Region { label, device, own } = &region;
    let set = region.set();
    let draw = |draw: &dyn Fn(&Geometry, &[Layer<'_>]) -> String| {
        let geometry = device.geometry().ok_or_else(super::undrawable)?;
        let layer = Layer {
            name: "the region",
            frames: &set,
            role: Role::Region,
        };
        Ok::<_, Failure>(draw(geometry, &[layer]))
    };
    if let Some(Some(to)) = &asked.draw {
        let svg = draw(&|geometry, layers| draw::svg(geometry, label, layers))?;
        super::keep(to, &svg)?;
    }
    let lines = own.frames.to_lines(*device);
    let restores = RegionFrames::Set(own.restores.clone()).to_lines(*device);
    let (count, what) = match &own.frames {
        RegionFrames::Set(set) => (set.len(), "frames"),
        RegionFrames::Blocks(list) => {
            (list.blocks().len().try_into().unwrap_or(u64::MAX), "blocks")
        }
    };
    if global.json {
        let value = serde_json::json!({
            "region": label, "device": device.name(), "count": count,
            "frames": lines, "restores": restores,
        });
        writeln!(streams.out, "{value}")?;
        return Ok(Exit::Done);
    }
    writeln!(streams.out, "{}: {count} {what} of {device}", clean(label))?;
    for line in &lines {
        writeln!(streams.out, "  {line}")?;
    }
    for line in &restores {
        writeln!(streams.out, "  restores besides: {line}")?;
    }
    if matches!(asked.draw, Some(None)) {
        let colour = super::paints(streams.colour);
        let text =
            draw(&|geometry, layers| draw::terminal(geometry, layers, super::WIDTH, colour))?;
        writeln!(streams.out, "\n{text}")?;
    }
    Ok(Exit::Done)
}
