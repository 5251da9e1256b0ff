//! `diff`: two bitstreams, frame by frame.

use std::collections::BTreeMap;
use std::path::Path;

use bitstream::device::{Device, FrameSet, RegionFrames};
use bitstream::fence::{Fenced, contents};
use bitstream::xilinx::XilinxStream;

use super::args::{Diff, Global};
use super::exit::{Exit, Failure};
use super::inspect::file;
use super::show::clean;
use super::{Stopped, Streams};

pub(super) fn run(
    asked: &Diff,
    global: &Global,
    streams: &mut Streams<'_>,
) -> Result<Exit, Stopped> {
    let (left, right) = (file::bytes(&asked.left)?, file::bytes(&asked.right)?);
    let left = Side::read(&asked.left, &file::stream(&asked.left, &left)?)?;
    let right = Side::read(&asked.right, &file::stream(&asked.right, &right)?)?;
    if left.fenced.device() != right.fenced.device() {
        let error = format!(
            "one is for {}, the other for {}",
            left.fenced.device(),
            right.fenced.device()
        );
        return Err(Failure::new(Exit::Usage, error, "compare files of one device").into());
    }
    let device = left.fenced.device();
    let found = Found::of(&left, &right);
    let same = found.is_empty();
    let lines = |set: &FrameSet| RegionFrames::Set(set.clone()).to_lines(device);
    let (only_left, only_right) = (lines(&found.only_left), lines(&found.only_right));
    let differ = lines(&found.differ);
    if global.json {
        let value = serde_json::json!({
            "same": same,
            "device": device.name(),
            "only_left": { "frames": found.only_left.len(), "lines": only_left },
            "only_right": { "frames": found.only_right.len(), "lines": only_right },
            "differ": { "frames": found.differ.len(), "lines": differ },
        });
        writeln!(streams.out, "{value}")?;
    } else if same {
        writeln!(streams.out, "the same frames with the same content")?;
    } else {
        let names = [&asked.left, &asked.right].map(|path| clean(&path.display().to_string()));
        for (title, set, lines) in [
            (
                format!("only in {}", names[0]),
                &found.only_left,
                &only_left,
            ),
            (
                format!("only in {}", names[1]),
                &found.only_right,
                &only_right,
            ),
            ("with other content".to_owned(), &found.differ, &differ),
        ] {
            if set.is_empty() {
                continue;
            }
            writeln!(streams.out, "{title}: {} frames", set.len())?;
            for line in lines {
                writeln!(streams.out, "  {line}")?;
            }
        }
    }
    Ok(if same { Exit::Done } else { Exit::No })
}

/// One of the two files.
struct Side {
    fenced: Fenced,
    /// A sum of each frame's last content.
    frames: BTreeMap<u32, u64>,
}

impl Side {
    fn read(path: &Path, stream: &XilinxStream<'_>) -> Result<Self, Failure> {
        let named = |text: String| format!("{}: {text}", path.display());
        let (fenced, frames) = contents(stream).map_err(|refusal| {
            Failure::new(Exit::Usage, named(refusal.to_string()), refusal.remedy())
        })?;
        if Device::geometry(fenced.device()).is_none() {
            return Err(Failure::new(
                Exit::Usage,
                named("the columns of its device are not known".to_owned()),
                "frames of this device cannot be compared yet",
            ));
        }
        Ok(Self { fenced, frames })
    }

    fn set(&self) -> FrameSet {
        match self.fenced.frames() {
            RegionFrames::Set(set) => set.clone(),
            RegionFrames::Blocks(_) => FrameSet::new(),
        }
    }
}

struct Found {
    only_left: FrameSet,
    only_right: FrameSet,
    differ: FrameSet,
}

impl Found {
    fn of(left: &Side, right: &Side) -> Self {
        let (mine, theirs) = (left.set(), right.set());
        let mut differ = FrameSet::new();
        for frame in mine.intersection(&theirs).iter() {
            if left.frames.get(&frame.0) != right.frames.get(&frame.0) {
                differ.insert(frame);
            }
        }
        Self {
            only_left: mine.difference(&theirs),
            only_right: theirs.difference(&mine),
            differ,
        }
    }

    fn is_empty(&self) -> bool {
        self.only_left.is_empty() && self.only_right.is_empty() && self.differ.is_empty()
    }
}
