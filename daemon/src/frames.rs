//! The device and the frames that a shell file states, read.
//!
//! `policy` keeps them as text with their places, for it knows no devices; here
//! they become what bytes are held against. Knows devices and what two regions
//! may not share. Must not know bytes ([`fence`](crate::fence)), cards or requests.
//!
//! Both processes and `reconfctl check` read shell files by this one piece of
//! code, so that what one accepts the others do not refuse.

use std::sync::Arc;

use bitstream::device::{Device, Family, FrameSet, RegionFrames};
use bitstream::fence::Bounds;
use policy::files::{Fence, FileError, Placed, Problem, Region, Shell};

/// What a shell file demands of the bytes for one region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Demand {
    /// Nothing that is about frames: the file names no device.
    Nothing,
    /// To be for this device; its frames need not be checked.
    Device(Device),
    /// To be for this device, and to write these frames and no other.
    Frames(Device, Arc<Own>),
}

/// What bitstreams for a region may touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Own {
    /// The frames that they may write.
    pub frames: RegionFrames,
    /// Columns of no region whose flip-flops they may restore besides.
    pub restores: FrameSet,
}

impl Own {
    /// As the fence takes it.
    #[must_use]
    pub fn bounds(&self) -> Bounds<'_> {
        Bounds {
            frames: &self.frames,
            restores: Some(&self.restores),
        }
    }
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
    let Some(Stated { device, regions }) = stated(shell)? else {
        return Ok(vec![Demand::Nothing; shell.regions.len()]);
    };
    let regions = shell.regions.iter().zip(regions);
    let demand = |(region, own): (&Region, Option<Arc<Own>>)| match (region.fence, own) {
        (Fence::Required, Some(own)) => Demand::Frames(device, own),
        // A fence without frames was refused before.
        _ => Demand::Device(device),
    };
    Ok(regions.map(demand).collect())
}

/// What a shell file states of frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stated {
    /// The device.
    pub device: Device,
    /// Of each region, in the order of the file; `None`: nothing.
    pub regions: Vec<Option<Arc<Own>>>,
}

/// The device that a shell file names, and what it states of each region's frames,
/// whether or not it demands a fence. `None`: it names none.
///
/// # Errors
/// As [`demands`].
pub fn stated(shell: &Shell) -> Result<Option<Stated>, FileError> {
    let Some(named) = &shell.device else {
        // A file with frames and without a device was refused before.
        return Ok(None);
    };
    let device = Device::named(&named.text).ok_or_else(|| {
        let why = format!(
            "no device is known as {:?}; name the part, as \"xc7z020\", or the IDCODE, as \"0x03727093\"",
            named.text
        );
        named.refused(&shell.file, Problem::Value(why))
    })?;
    if let Some(why) = unsupported(device).filter(|_| shell.hwicap.is_some()) {
        return Err(named.refused(&shell.file, Problem::Value(why)));
    }
    let restores = restores_of(shell, device, named)?;
    let mut before: Vec<(&Region, Arc<Own>)> = Vec::new();
    let mut regions = Vec::new();
    for region in &shell.regions {
        if region.frames.is_empty() {
            regions.push(None);
            continue;
        }
        let frames = frames_of(shell, region, device)?;
        apart(shell, device, &before, (region, &frames))?;
        outside(shell, device, &restores, (region, &frames))?;
        let own = Arc::new(Own {
            frames,
            restores: restores.clone(),
        });
        before.push((region, Arc::clone(&own)));
        regions.push(Some(own));
    }
    Ok(Some(Stated { device, regions }))
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

/// The columns of no region that every partial bitstream of the device restores.
fn restores_of(shell: &Shell, device: Device, named: &Placed) -> Result<FrameSet, FileError> {
    let lines: Vec<&str> = shell.restores.iter().map(|l| l.text.as_str()).collect();
    if lines.is_empty() {
        return Ok(FrameSet::new());
    }
    let refused = |line: Option<&Placed>, why: &str| {
        let why = format!("{}: {why}", device.name());
        line.unwrap_or(named)
            .refused(&shell.file, Problem::Value(why))
    };
    match RegionFrames::parse(device, &lines) {
        Ok(RegionFrames::Set(set)) => Ok(set),
        Ok(RegionFrames::Blocks(_)) => {
            let why = "its columns are not known, so none can be named";
            Err(refused(shell.restores.first(), why))
        }
        Err(error) => Err(refused(
            shell.restores.get(error.line),
            &error.why.to_string(),
        )),
    }
}

/// What every bitstream restores is no region's: a load would reset a neighbour.
fn outside(
    shell: &Shell,
    device: Device,
    restores: &FrameSet,
    (region, frames): (&Region, &RegionFrames),
) -> Result<(), FileError> {
    if restores.is_empty() {
        return Ok(());
    }
    let Some(overlap) = RegionFrames::Set(restores.clone()).overlap(frames) else {
        return Ok(());
    };
    let why = format!(
        "`restores` names columns of no region, but those and {} meet: {}",
        region.name,
        overlap.describe(device)
    );
    Err(at(
        shell,
        region,
        region.frames.first(),
        Problem::Conflict(why),
    ))
}

/// No frame is two regions' own.
fn apart(
    shell: &Shell,
    device: Device,
    before: &[(&Region, Arc<Own>)],
    (region, frames): (&Region, &RegionFrames),
) -> Result<(), FileError> {
    for (other, theirs) in before {
        if let Some(overlap) = theirs.frames.overlap(frames) {
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
        assert_eq!(left.frames.to_lines(*device).len(), 2);
        assert!(left.frames.overlap(&right.frames).is_none());
    }

    /// What every bitstream restores is stated once, for the device, and is no region's.
    #[test]
    fn inv5_columns_that_are_restored_besides_are_of_no_region() {
        let with = |lines: &str| {
            let stated = format!("device = \"xc7z020\"\nrestores = [{lines}]\n");
            read(&SAMPLE.replace("device = \"xc7z020\"\n", &stated))
        };
        let demands = with("\"logic top row 0 columns 3-5\"").unwrap();
        let Some(Demand::Frames(device, left)) = demands.first() else {
            panic!("{demands:?}")
        };
        let restores = RegionFrames::Set(left.restores.clone());
        assert_eq!(restores.to_lines(*device), ["logic top row 0 columns 3-5"]);
        for (lines, column, why) in [
            ("\"logic top row 9 column 3\"", 13, "row"),
            ("\"nonsense\"", 13, "xc7z020: "),
        ] {
            let error = with(lines).unwrap_err();
            assert_eq!(error.column, column, "{error}");
            assert!(error.to_string().contains(why), "{error}");
        }
        let error = with("\"logic bottom row 1 columns 48-51\"").unwrap_err();
        assert_eq!(error.code(), "conflict");
        assert!(error.to_string().contains("no region"), "{error}");
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
