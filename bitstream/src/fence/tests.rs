//! The fence over streams that are built for it, and over real ones.

mod build;
mod order;
mod plus;
mod real;
mod restores;
mod rules;

use super::*;
use crate::device::FrameIndex;
use crate::xilinx::{Command, Register, WordOrder, parse_bin};

/// Checks words against a device and a region.
fn judge(
    words: &[u32],
    device: Option<Device>,
    region: Option<&RegionFrames>,
) -> Result<Fenced, Refusal> {
    let bytes = build::bytes(words);
    let stream = parse_bin(&bytes, WordOrder::BigEndian).unwrap();
    check(&stream, device, region)
}

fn device(name: &str) -> Device {
    Device::named(name).unwrap()
}

/// The region of these columns of a device's first row of logic.
fn columns(device: Device, columns: std::ops::Range<usize>) -> RegionFrames {
    let geometry = device.geometry().unwrap();
    let row = geometry.row_columns(&geometry.rows()[0]);
    let set = row[columns]
        .iter()
        .map(crate::device::Column::range)
        .collect();
    RegionFrames::Set(set)
}

fn set(region: &RegionFrames) -> &FrameSet {
    let RegionFrames::Set(set) = region else {
        panic!("a region of frames");
    };
    set
}

/// The code of a refusal.
fn code(result: Result<Fenced, Refusal>) -> &'static str {
    match result {
        Ok(fenced) => panic!("accepted: {fenced:?}"),
        Err(refusal) => refusal.code(),
    }
}
