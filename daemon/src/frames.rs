//! The device and the frames that a shell file states, read.
//!
//! `policy` keeps them as text with their places, for it knows no devices; here
//! they become what bytes are held against. Knows devices and what two regions
//! may not share. Must not know bytes ([`fence`](crate::fence)), cards or requests.
//!
//! Both processes and `reconfctl check` read shell files by this one piece of
//! code, so that what one accepts the others do not refuse.

use std::sync::Arc;

use bitstream::device::{Device, Family, RegionFrames};
use policy::files::{Fence, FileError, Placed, Problem, Region, Shell};

/// What a shell file demands of the bytes for one region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Demand {
    /// Nothing that is about frames: the file names no device.
    Nothing,
    /// To be for this device; its frames need not be checked.
    Device(Device),
    /// To be for this device, and to write these frames and no other.
    Frames(Device, Arc<RegionFrames>),
}

impl Demand {
    /// The device, where the file names one.
    #[must_use]
    pub fn device(&self) -> Option<Device> {
        match self {
            Demand::Nothing => None,
            Demand::Device(device) | Demand::Frames(device, _) => Some(*device),
        }
    }
}

/// Reads what a shell file demands for each region, in the order of its regions.
///
/// # Errors
/// [`FileError`] with line and column: a device that is not known, or that nothing is
/// loaded into yet; a line that names no frames of it; a frame that two regions claim.
pub fn demands(shell: &Shell) -> Result<Vec<Demand>, FileError> {
    let Some(stated) = &shell.device else {
        // A file with frames and without a device was refused before.
        return Ok(vec![Demand::Nothing; shell.regions.len()]);
    };
    let device = Device::named(&stated.text).ok_or_else(|| {
        let why = format!(
            "no device is known as {:?}; name the part, as \"xc7z020\", or the IDCODE, as \"0x03727093\"",
            stated.text
        );
        stated.refused(&shell.file, Problem::Value(why))
    })?;
    if let Some(why) = unsupported(device).filter(|_| shell.hwicap.is_some()) {
        return Err(stated.refused(&shell.file, Problem::Value(why)));
    }
    let mut read: Vec<(&Region, Arc<RegionFrames>)> = Vec::new();
    let mut demands = Vec::new();
    for region in &shell.regions {
        if region.frames.is_empty() {
            demands.push(Demand::Device(device));
            continue;
        }
        let frames = Arc::new(frames_of(shell, region, device)?);
        apart(shell, device, &read, (region, &frames))?;
        read.push((region, Arc::clone(&frames)));
        demands.push(match region.fence {
            Fence::Required => Demand::Frames(device, frames),
            Fence::None => Demand::Device(device),
        });
    }
    Ok(demands)
}

/// Why no bitstream is loaded into such a device yet, whatever else is demanded.
fn unsupported(device: Device) -> Option<String> {
    let name = device.name();
    if device.is_multi_die() {
        return Some(format!(
            "{name} has several dies, and bitstreams for several dies are not loaded yet"
        ));
    }
    match device.family() {
        Family::Series7 | Family::UltraScalePlus => None,
        Family::UltraScale => Some(format!(
            "{name} needs a clearing bitstream before each load, which is not known yet"
        )),
    }
}

fn frames_of(shell: &Shell, region: &Region, device: Device) -> Result<RegionFrames, FileError> {
    let lines: Vec<&str> = region
        .frames
        .iter()
        .map(|line| line.text.as_str())
        .collect();
    RegionFrames::parse(device, &lines).map_err(|error| {
        let problem = Problem::Value(format!("{}: {}", device.name(), error.why));
        at(shell, region, region.frames.get(error.line), problem)
    })
}

/// No frame is two regions' own.
fn apart(
    shell: &Shell,
    device: Device,
    before: &[(&Region, Arc<RegionFrames>)],
    (region, frames): (&Region, &RegionFrames),
) -> Result<(), FileError> {
    for (other, theirs) in before {
        if let Some(overlap) = theirs.overlap(frames) {
            let why = format!(
                "the regions {} (line {}) and {} must share no frame: {}",
                other.name,
                other.line,
                region.name,
                overlap.describe(device)
            );
            let place = region.frames.first();
            return Err(at(shell, region, place, Problem::Conflict(why)));
        }
    }
    Ok(())
}

/// At a line of the frames, or at the region where there is none.
fn at(shell: &Shell, region: &Region, line: Option<&Placed>, problem: Problem) -> FileError {
    match line {
        Some(line) => line.refused(&shell.file, problem),
        None => FileError {
            file: shell.file.clone(),
            line: region.line,
            column: 1,
            problem,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const SAMPLE: &str = include_str!("../../docs/samples/shell-hwicap.toml");

    fn read(text: &str) -> Result<Vec<Demand>, FileError> {
        demands(&Shell::parse(Path::new("a.toml"), text.as_bytes()).unwrap())
    }

    fn refused(old: &str, new: &str) -> (FileError, &'static str) {
        let text = SAMPLE.replacen(old, new, 1);
        assert_ne!(text, SAMPLE, "{old}");
        let error = read(&text).unwrap_err();
        let place = format!("{}:{}:{}: ", error.file, error.line, error.column);
        assert!(error.to_string().starts_with(&place));
        let code = error.code();
        (error, code)
    }

    #[test]
    fn the_sample_demands_frames_of_a_known_device() {
        let demands = read(SAMPLE).unwrap();
        let [Demand::Frames(device, left), Demand::Frames(_, right)] = demands.as_slice() else {
            panic!("{demands:?}")
        };
        assert_eq!(device.idcode(), 0x0372_7093);
        assert_eq!(left.to_lines(*device).len(), 2);
        assert!(left.overlap(right).is_none());
    }

    #[test]
    fn a_device_without_a_fence_is_still_a_demand() {
        let text = SAMPLE.replace("fence = \"required\"\n", "");
        let demands = read(&text).unwrap();
        assert!(
            demands
                .iter()
                .all(|demand| matches!(demand, Demand::Device(_)))
        );
        let dfl = include_str!("../../docs/samples/shell.toml");
        assert_eq!(read(dfl).unwrap(), [Demand::Nothing, Demand::Nothing]);
    }

    #[test]
    fn inv5_wrong_frames_are_refused_at_line_and_column() {
        let line = |text: &str| {
            let at = SAMPLE.lines().position(|line| line.contains(text)).unwrap();
            u32::try_from(at + 1).unwrap()
        };
        let (error, code) = refused("xc7z020\"\n", "xc7z999\"\n");
        assert_eq!(
            (code, error.line, error.column),
            ("bad-value", line("device = "), 10)
        );

        for (device, why) in [
            ("xcku035", "clearing bitstream"),
            ("xcu250", "several dies"),
        ] {
            let (error, _) = refused("xc7z020\"\n", &format!("{device}\"\n"));
            assert_eq!(error.line, line("device = "));
            assert!(error.to_string().contains(why), "{error}");
        }

        let bram = line("bram bottom");
        let (error, code) = refused("bram bottom row 1", "bram bottom row 9");
        assert_eq!(
            (code, error.line, error.column),
            ("bad-value", bram, 5),
            "{error}"
        );
        let (error, _) = refused("bram bottom row 1 column 0", "bramm bottom row 1 column 0");
        assert_eq!((error.line, error.column), (bram, 5), "{error}");

        let (error, code) = refused("columns 48-51", "columns 9-51");
        assert_eq!(
            (code, error.line),
            ("conflict", line("columns 48-51")),
            "{error}"
        );
        let text = error.to_string();
        assert!(text.contains("left") && text.contains("column 9"), "{text}");
    }
}
