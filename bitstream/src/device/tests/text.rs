//! How regions are written down.

use std::num::NonZeroU32;

use super::*;
use proptest::prelude::*;

#[test]
fn lines_say_columns_of_rows() {
    let device = device("xc7z020");
    let lines = [
        "logic bottom row 1 columns 2-9",
        "bram bottom row 1 column 0",
    ];
    let region = RegionFrames::parse(device, &lines).unwrap();
    assert_eq!(region.to_lines(device), lines);
    let RegionFrames::Set(set) = &region else {
        panic!("{region:?}")
    };
    assert_eq!(set.len(), 400);
    let minors =
        FrameSet::parse(geometry("xczu7ev"), &["logic row 2 column 0 minors 0-3"]).unwrap();
    assert_eq!(minors.len(), 4);
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let device = device("xc7z020");
    for wrong in [
        "",
        "logic",
        "logic top row 0",
        "logic row 0 column 1",
        "logic top row 9 column 0",
        "logic top row 0 column 999",
        "bram top row 0 columns 0-99",
        "logic top row 0 columns 5-2",
        "logic top row 0 column 0 minors 0-99",
        "logic top row 0 column 0 and more",
        "clb mask top row 0 column 0",
        "logic top row 0 column -1",
        "logic top row 0 column 99999999999999999999",
        "block 0x00420100 frames 272",
    ] {
        let lines = ["logic top row 0 column 0", wrong];
        let error = RegionFrames::parse(device, &lines).unwrap_err();
        assert_eq!(error.line, 1, "{wrong}");
        assert!(!error.why.to_string().is_empty(), "{wrong}");
    }
}

fn block(raw: u32, frames: u32) -> FrameBlock {
    FrameBlock {
        address: FrameAddress::parse(Family::UltraScalePlus, raw).unwrap(),
        frames: NonZeroU32::new(frames).unwrap(),
    }
}

#[test]
fn blocks_are_compared_where_columns_are_not_known() {
    let device = Device::find(0x0484_a093).unwrap();
    let lines = ["block 0x00081b0d frames 1", "block 0x00082000 frames 100"];
    let region = RegionFrames::parse(device, &lines).unwrap();
    assert_eq!(region.to_lines(device), lines);
    for wrong in [
        "logic row 0 column 0",
        "block 0x00081b0d",
        "block 0x00081b0d frames 0",
        "block x frames 1",
    ] {
        assert!(RegionFrames::parse(device, &[wrong]).is_err(), "{wrong}");
    }
    let list = |blocks: &[FrameBlock]| -> BlockList { blocks.iter().copied().collect() };
    let one = list(&[block(0x0008_2000, 100)]);
    assert!(one.surely_common(&one).is_some());
    // The same column, a later frame of it, and one that is too far for sure.
    assert!(one.surely_common(&list(&[block(0x0008_2005, 1)])).is_some());
    assert!(list(&[block(0x0008_2005, 1)]).surely_common(&one).is_some());
    assert!(one.surely_common(&list(&[block(0x0008_2070, 1)])).is_none());
    // The last frame of a block, and the first after it.
    assert!(one.surely_common(&list(&[block(0x0008_2063, 1)])).is_some());
    assert!(one.surely_common(&list(&[block(0x0008_2064, 1)])).is_none());
    // Another row is never reached.
    assert!(one.surely_common(&list(&[block(0x000c_2000, 1)])).is_none());
}

#[test]
fn regions_that_share_a_frame_are_told() {
    let device = device("xc7z020");
    let region = |line: &str| RegionFrames::parse(device, &[line]).unwrap();
    let left = region("logic top row 0 columns 2-5");
    assert_eq!(left.overlap(&region("logic top row 0 columns 6-9")), None);
    let meet = left
        .overlap(&region("logic top row 0 columns 5-9"))
        .unwrap();
    assert!(
        meet.describe(device).contains("column 5"),
        "{}",
        meet.describe(device)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_is_printed_is_read_back(
        ranges in proptest::collection::vec((0_u32..20_000, 0_u32..300), 0..12),
        which in 0_usize..4,
    ) {
        let name = ["xc7z020", "xc7a35t", "xczu7ev", "xck26"][which];
        let geometry = geometry(name);
        let all = FrameIndex(0)..FrameIndex(geometry.frame_count());
        let all: FrameSet = [all].into_iter().collect();
        let set: FrameSet = ranges
            .iter()
            .map(|(from, length)| FrameIndex(*from)..FrameIndex(from + length))
            .collect();
        let set = set.intersection(&all);
        // No frames at all are no region: that is refused.
        prop_assume!(!set.is_empty());
        let lines = set.to_lines(geometry);
        prop_assert_eq!(FrameSet::parse(geometry, &lines).unwrap(), set);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,80}") {
        for device in [device("xc7z020"), Device::find(0x0484_a093).unwrap()] {
            let _either = RegionFrames::parse(device, &[text.as_str()]);
        }
    }
}
