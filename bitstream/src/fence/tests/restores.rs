//! What a 7-series restart restores, where that was not measured.

use super::build::Stream;
use super::*;
use crate::device::Column;
use crate::xilinx::parse_bin;

/// A die of which no genuine partial was looked at.
const UNMEASURED: &str = "xc7z010";

/// A partial of columns 20 to 21 that restores them and the column `besides`.
fn partial(device: Device, besides: &[usize]) -> Vec<u8> {
    let region = columns(device, 20..22);
    let restored = [&[20, 21], besides].concat();
    let mut stream = Stream::default();
    stream.open(device).masks(device, &restored).stop();
    for range in set(&region).ranges() {
        stream.block(device, range.start, range.end.0 - range.start.0);
    }
    stream.restart();
    build::bytes(&stream.words)
}

fn learnt(files: &[Vec<u8>]) -> Result<Learnt, LearnError> {
    let streams: Vec<_> = files
        .iter()
        .map(|file| parse_bin(file, WordOrder::BigEndian).unwrap())
        .collect();
    learn(&streams, None)
}

#[test]
fn what_references_restore_besides_is_learnt_and_then_allowed() {
    let device = device(UNMEASURED);
    let geometry = device.geometry().unwrap();
    let file = partial(device, &[3]);
    let stream = parse_bin(&file, WordOrder::BigEndian).unwrap();
    let region = learnt(&[file.clone(), file.clone()]).unwrap();
    assert_eq!(region.frames, columns(device, 20..22));
    let column: &Column = &geometry.columns()[3];
    let expected = [column.range()].into_iter().collect();
    assert_eq!(region.restores, expected);

    let without = check(&stream, Some(device), Some(&region.frames));
    assert_eq!(code(without), "restores-outside");
    let bounds = Bounds {
        frames: &region.frames,
        restores: Some(&region.restores),
    };
    let fenced = check_within(&stream, Some(device), Some(bounds)).unwrap();
    assert_eq!(fenced.restores_besides(), &region.restores);

    // One column more is still one too many.
    let more = partial(device, &[3, 4]);
    let stream = parse_bin(&more, WordOrder::BigEndian).unwrap();
    let refused = check_within(&stream, Some(device), Some(bounds));
    assert_eq!(code(refused), "restores-outside");
    // And references that restore different columns teach nothing.
    let refused = learnt(&[file, more]).unwrap_err();
    assert!(matches!(
        refused,
        LearnError::Disagrees { reference: 1, .. }
    ));
}

/// Of a device whose columns nobody has published it can be told that masks
/// come before the restore, and not whose.
#[test]
fn masks_of_a_device_without_columns_fit_no_region() {
    let device = device("xc7vx690t");
    assert!(device.geometry().is_none());
    let file = |masks: bool| {
        let mut stream = Stream::default();
        stream.open(device);
        if masks {
            stream
                .command(Command::WCFG)
                .put(Register::FAR, 0x0100_0000)
                .frames(&[0; 404]);
        }
        stream
            .stop()
            .command(Command::WCFG)
            .put(Register::FAR, 0x80)
            .frames(&[0; 303])
            .restart();
        build::bytes(&stream.words)
    };
    let good = file(true);
    let stream = parse_bin(&good, WordOrder::BigEndian).unwrap();
    let fenced = check(&stream, None, None).unwrap();
    assert_eq!(
        code(check(&stream, Some(device), Some(fenced.frames()))),
        "mask-unknown"
    );
    let bare = file(false);
    let stream = parse_bin(&bare, WordOrder::BigEndian).unwrap();
    assert_eq!(code(check(&stream, None, None)), "mask-incomplete");
}
