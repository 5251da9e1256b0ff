//! The frame fence: does a partial bitstream of an AMD device write its region
//! and nothing else?
//!
//! Every word is read as the device reads it, before the device gets any of
//! them. What was found in genuine partial bitstreams is allowed; everything
//! else is refused, each with a reason, the byte and the frame. The verdict is
//! a value of type [`Fenced`], which nothing but [`check`] makes.
//!
//! Knows 7-series and UltraScale+. Must not know who asks, what was signed, or
//! cards. What is proven and what is not is told in
//! `docs/bitstream-safety.md`.
//!
//! | read | for |
//! |---|---|
//! | this file | how sub-streams go together |
//! | `machine`, `commands`, `due` | the order of steps in one of them |
//! | `pipeline` | which frame each word ends in |
//! | `rules` | registers, commands and values |
//! | `masks`, `crc`, `written` | column masks, the checksum, sets of frames |
//! | `substream` | what one of them turned out to be |

mod commands;
mod crc;
mod due;
mod frames;
mod learn;
mod machine;
mod masks;
mod pipeline;
mod reason;
mod refusal;
mod rules;
mod sentence;
mod steps;
mod substream;
mod survey;
mod written;

#[cfg(test)]
#[expect(
    clippy::arithmetic_side_effects,
    reason = "a test may stop at an overflow"
)]
mod tests;

use std::collections::BTreeMap;

use self::pipeline::{Allowed, Record};
use self::substream::{Kind, SubStream, Task};
use self::written::Written;
use crate::device::{Device, Family, FrameSet, RegionFrames};
use crate::xilinx::{BUS_WIDTH, NOP, PAD, SYNC, XilinxStream};

pub use self::learn::{LearnError, Learnt, learn};
pub use self::reason::Reason;
pub use self::refusal::Refusal;
pub(crate) use self::steps::steps;
pub use self::survey::{Survey, SurveyedBlock, SurveyedStream, survey};

/// More sub-streams than this has no genuine file.
const MOST_STREAMS: usize = 8;

/// A bitstream that was found to write what it may, and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fenced {
    device: Device,
    frames: RegionFrames,
    streams: usize,
    crc_checks: u32,
    compressed: bool,
    restarts: bool,
    restores: FrameSet,
}

/// What a bitstream is held against.
#[derive(Debug, Clone, Copy)]
pub struct Bounds<'a> {
    /// The frames of the region.
    pub frames: &'a RegionFrames,
    /// Columns outside of it that every partial bitstream of the device restores
    /// (7-series), where that was not measured but learnt from references.
    pub restores: Option<&'a FrameSet>,
}

impl Fenced {
    /// The device that it is for.
    #[must_use]
    pub fn device(&self) -> Device {
        self.device
    }

    /// What it writes: never more than the region that it was held against.
    #[must_use]
    pub fn frames(&self) -> &RegionFrames {
        &self.frames
    }

    /// How many times the device is made to listen.
    #[must_use]
    pub fn sub_streams(&self) -> usize {
        self.streams
    }

    /// How many checksums it carries; all of them match.
    #[must_use]
    pub fn crc_checks(&self) -> u32 {
        self.crc_checks
    }

    /// It holds equal frames once.
    #[must_use]
    pub fn is_compressed(&self) -> bool {
        self.compressed
    }

    /// It gives the region's flip-flops their initial values.
    #[must_use]
    pub fn restores_flip_flops(&self) -> bool {
        self.restarts
    }

    /// Columns outside of what it writes whose flip-flops it restores as well
    /// (7-series), other than those of which it is known that every file of the
    /// device restores them.
    #[must_use]
    pub fn restores_besides(&self) -> &FrameSet {
        &self.restores
    }
}

/// Holds a bitstream against what every partial bitstream must obey, and, where
/// they are given, against a device and a region of it.
///
/// # Errors
///
/// [`Refusal`]: the first thing that is wrong.
pub fn check(
    stream: &XilinxStream<'_>,
    device: Option<Device>,
    region: Option<&RegionFrames>,
) -> Result<Fenced, Refusal> {
    let bounds = region.map(|frames| Bounds {
        frames,
        restores: None,
    });
    check_within(stream, device, bounds)
}

/// As [`check`], where the region is known better.
///
/// # Errors
///
/// As [`check`].
pub fn check_within(
    stream: &XilinxStream<'_>,
    device: Option<Device>,
    bounds: Option<Bounds<'_>>,
) -> Result<Fenced, Refusal> {
    let region = bounds.map(|bounds| bounds.frames);
    let task = Task {
        stream,
        device,
        allowed: Allowed {
            region,
            restores: bounds.and_then(|bounds| bounds.restores),
        },
        record: Record::Nothing,
    };
    let streams = read(task)?;
    let end = stream.words().len();
    arrange(&streams, region).map_err(|reason| task.refuse(reason, end, None))
}

/// As [`check`] without a region, and a sum of the last content of each frame
/// that is written, by the frame's number. Equal frames have equal sums; of a
/// device without geometry there are none.
///
/// # Errors
///
/// As [`check`].
pub fn contents(stream: &XilinxStream<'_>) -> Result<(Fenced, BTreeMap<u32, u64>), Refusal> {
    let task = Task {
        stream,
        device: None,
        allowed: Allowed {
            region: None,
            restores: None,
        },
        record: Record::Contents,
    };
    let streams = read(task)?;
    let end = stream.words().len();
    let fenced = arrange(&streams, None).map_err(|reason| task.refuse(reason, end, None))?;
    let mut last = BTreeMap::new();
    for contents in streams.into_iter().filter_map(|stream| stream.contents) {
        last.extend(contents);
    }
    Ok((fenced, last))
}

/// Reads every sub-stream, each by itself.
fn read(task: Task<'_, '_>) -> Result<Vec<SubStream>, Refusal> {
    let mut streams: Vec<SubStream> = Vec::new();
    let mut at = 0;
    while let Some(begin) = outside(task, at, streams.is_empty())? {
        let first = streams.first().map(|first| first.device);
        let task = Task {
            device: task.device.or(first),
            ..task
        };
        if streams.len() == MOST_STREAMS {
            return Err(task.refuse(Reason::TooMany, begin, None));
        }
        let sub = machine::run(task, begin)?;
        at = sub.end;
        streams.push(sub);
    }
    Ok(streams)
}

/// Passes over what stands before a sync word, or after the last stream, and
/// gives the word after the sync word; `None`: the file has ended.
fn outside(task: Task<'_, '_>, from: usize, first: bool) -> Result<Option<usize>, Refusal> {
    let words = task.stream.words();
    let mut width = false;
    for (at, word) in words.slice(from..words.len()).iter().enumerate() {
        let at = from.saturating_add(at);
        match word {
            SYNC => return Ok(Some(at.saturating_add(1))),
            PAD | NOP => {}
            word if BUS_WIDTH.contains(&word) => width = true,
            word => return Err(task.refuse(Reason::OutsideWord(word), at, None)),
        }
    }
    // After the last stream only padding comes; a beginning without an end
    // means that something was cut off.
    if first || width {
        return Err(task.refuse(Reason::NoSync, words.len(), None));
    }
    Ok(None)
}

/// Puts the sub-streams together: only as genuine files have them.
fn arrange(streams: &[SubStream], region: Option<&RegionFrames>) -> Result<Fenced, Reason> {
    use Kind::{Frames, Marks, Restarts, Stops};
    let Some(first) = streams.first() else {
        return Err(Reason::NoSync);
    };
    let device = first.device;
    let kinds: Vec<Kind> = streams.iter().map(|stream| stream.kind).collect();
    match (device.family(), kinds.as_slice()) {
        // Without a reset after reconfiguration nothing is stopped or restored.
        (Family::Series7, [Restarts | Frames])
        | (Family::UltraScalePlus, [Marks, Stops, Restarts, Marks] | [Stops, Restarts]) => {}
        (_, [.., Stops]) => return Err(Reason::LeftStopped),
        _ => return Err(Reason::Arrangement),
    }
    // Block memory is cleared by the stream that fills it, between masks, and by no
    // other.
    let masked = kinds.contains(&Marks);
    let cleared = |stream: &SubStream| stream.cleared && (stream.kind != Restarts || !masked);
    if streams.iter().any(cleared) {
        return Err(Reason::Arrangement);
    }
    // Who holds the interconnect of the whole device must let it go.
    let held = kinds.contains(&Stops);
    let let_go = |stream: &SubStream| stream.kind == Restarts && stream.released;
    if held && !streams.iter().any(let_go) {
        return Err(Reason::LeftStopped);
    }
    let mut frames = Written::nothing(device.geometry());
    for stream in streams {
        frames.join(&stream.frames)?;
    }
    let mut marks = streams.iter().filter(|stream| stream.kind == Marks);
    if let (Some(before), Some(after)) = (marks.next(), marks.next()) {
        if !before.marks.same(&after.marks) {
            return Err(Reason::MasksDiffer);
        }
        if !before.marks.within(&frames) {
            return Err(Reason::MaskOutside);
        }
        frames.join(&before.marks)?;
    }
    let frames = frames.region();
    let restored = streams
        .iter()
        .fold(FrameSet::new(), |all, stream| all.union(&stream.restored));
    let restores = match &frames {
        RegionFrames::Set(own) => restored.difference(own),
        RegionFrames::Blocks(_) => FrameSet::new(),
    };
    // Each write was held against the region as it came; a region of the other
    // form could not be.
    match (region, &frames) {
        (None, _)
        | (Some(RegionFrames::Set(_)), RegionFrames::Set(_))
        | (Some(RegionFrames::Blocks(_)), RegionFrames::Blocks(_)) => {}
        _ => return Err(Reason::Incomparable),
    }
    Ok(Fenced {
        device,
        frames,
        streams: streams.len(),
        crc_checks: streams
            .iter()
            .fold(0, |sum, stream| sum.saturating_add(stream.crc_checks)),
        compressed: streams.iter().any(|stream| stream.compressed),
        restarts: kinds.contains(&Restarts),
        restores,
    })
}
