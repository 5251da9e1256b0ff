//! `region learn`: the frames of a region, from partial bitstreams built for it.

use bitstream::device::{Device, RegionFrames};
use bitstream::fence::{LearnError, Learnt, learn};

use super::args::{Global, Learn};
use super::exit::{Exit, Failure};
use super::inspect::file;
use super::show::clean;
use super::{Stopped, Streams};

pub(super) fn run(
    asked: &Learn,
    global: &Global,
    streams: &mut Streams<'_>,
) -> Result<Exit, Stopped> {
    let device = asked.device.as_deref().map(part).transpose()?;
    let mut files = Vec::new();
    for path in &asked.references {
        files.push(file::bytes(path)?);
    }
    let mut references = Vec::new();
    for (path, bytes) in asked.references.iter().zip(&files) {
        references.push(file::stream(path, bytes)?);
    }
    let Learnt {
        device,
        frames,
        restores,
    } = learn(&references, device).map_err(|error| refused(asked, &error))?;
    let lines = frames.to_lines(device);
    let restores = RegionFrames::Set(restores).to_lines(device);
    let digests: Vec<String> = files.iter().map(|bytes| digest(bytes)).collect();
    if global.json {
        let value = serde_json::json!({
            "device": device.name(), "frames": lines, "restores": restores,
            "references": digests,
        });
        writeln!(streams.out, "{value}")?;
        return Ok(Exit::Done);
    }
    let out = &mut streams.out;
    writeln!(out, "# Learnt from partial bitstreams of the region:")?;
    for ((path, digest), stream) in asked.references.iter().zip(&digests).zip(&references) {
        let tool = stream.header.and_then(|header| header.option("Version"));
        let tool = tool.map_or(String::new(), |tool| format!(", tool {}", clean(tool)));
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        writeln!(out, "#   {} {digest}{tool}", clean(&name))?;
    }
    writeln!(out, "# At the top of the shell file:")?;
    writeln!(out, "device = \"{}\"", device.name())?;
    if !restores.is_empty() {
        writeln!(
            out,
            "# These columns of no region are restored too. Of this device it was"
        )?;
        writeln!(
            out,
            "# not measured that every bitstream does so: look at them first."
        )?;
        list(out, "restores", &restores)?;
    }
    writeln!(out, "# In the region:")?;
    writeln!(out, "fence = \"required\"")?;
    list(out, "frames", &lines)?;
    Ok(Exit::Done)
}

/// A key with its lines, as a shell file has them.
fn list(out: &mut dyn std::io::Write, key: &str, lines: &[String]) -> std::io::Result<()> {
    writeln!(out, "{key} = [")?;
    for line in lines {
        writeln!(out, "    \"{line}\",")?;
    }
    writeln!(out, "]")
}

fn part(text: &str) -> Result<Device, Failure> {
    Device::named(text).ok_or_else(|| {
        Failure::new(
            Exit::Usage,
            format!("no device is known as {text}"),
            "name the part, as xc7z020, or its IDCODE, as 0x03727093",
        )
    })
}

fn digest(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    format!("sha256:{}", crate::hex::encode(digest.as_ref()))
}

/// The reference by its name, not by its number.
fn refused(asked: &Learn, error: &LearnError) -> Failure {
    let (reference, remedy) = match error {
        LearnError::Refused { reference, refusal } => {
            (Some(*reference), refusal.remedy().to_owned())
        }
        LearnError::OtherDevice { reference, .. } | LearnError::Disagrees { reference, .. } => (
            Some(*reference),
            "Give references of one region only.".to_owned(),
        ),
        LearnError::Empty { reference } => (
            Some(*reference),
            "Give a partial bitstream that configures the region.".to_owned(),
        ),
        _ => (None, "Give a partial bitstream of the region.".to_owned()),
    };
    let name = reference
        .and_then(|number| asked.references.get(number))
        .map_or(String::new(), |path| format!("{}: ", path.display()));
    Failure::new(Exit::No, format!("{name}{error}"), remedy)
}
