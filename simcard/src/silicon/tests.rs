//! The configuration logic by itself: geometry, the frame pipeline.
#![expect(
    clippy::arithmetic_side_effects,
    reason = "a test may stop at an overflow"
)]

use super::geometry::Place;
use super::*;

const SERIES7: &str = include_str!("../../../bitstream/geometry/series7.txt");
const ULTRASCALE: &str = include_str!("../../../bitstream/geometry/ultrascale.txt");

#[test]
fn parts_have_the_frames_that_their_makers_say() {
    for (table, device, frames) in [
        (SERIES7, "xc7a35t", 4384 + 1024),
        // Told with two pads a row: 8 rows, 6 rows.
        (SERIES7, "0x03631093", 9464 - 16),
        (SERIES7, "xc7z020", 10008 - 12),
        (ULTRASCALE, "xcku025", 32510),
    ] {
        let geometry = Geometry::parse(table, device).unwrap();
        assert_eq!(geometry.frame_count(), frames, "{device}");
    }
}

#[test]
fn addresses_and_indices_are_each_others_inverse() {
    for (table, device) in [(SERIES7, "xc7z020"), (ULTRASCALE, "xczu7ev")] {
        let geometry = Geometry::parse(table, device).unwrap();
        for index in 0..geometry.all_frames() {
            let far = geometry.far(index).unwrap();
            let place = geometry.place(far).unwrap();
            assert_eq!(geometry.at(place).unwrap().0, Place::Frame(index));
        }
        assert_eq!(geometry.far(geometry.all_frames()), None);
        for far in [0x03be_0000, 0x07fc_0000, 0x0000_7f80, u32::MAX] {
            assert_eq!(geometry.place(far), None, "{far:#x}");
        }
    }
}

#[test]
fn the_walk_passes_two_pads_at_each_row_and_ends() {
    let geometry = Geometry::parse(SERIES7, "xc7z020").unwrap();
    let (mut at, mut frames, mut pads) = (geometry.place(0), 0, 0);
    while let Some((place, next)) = at.and_then(|at| geometry.at(at)) {
        match place {
            Place::Frame(index) => {
                assert_eq!(index, frames);
                frames += 1;
            }
            Place::Pad => pads += 1,
        }
        at = next;
    }
    assert_eq!((frames, pads), (10008 - 12, 12));
}

#[test]
fn a_bad_table_is_refused_with_its_line() {
    let device = "device 0x03727093 series7 a,b layout x\n";
    for (rows, bad) in [
        ("logic top 0 : 3 2x4\n", None),
        ("logic top 0 3\n", Some(2)),
        ("logic top x : 3\n", Some(2)),
        ("logic top 0 : 0\n", Some(2)),
        ("logic top 0 : 9999x4\n", Some(2)),
        ("logic top 0 : 257\n", Some(2)),
        (
            "logic top 0-255 : 1\nlogic bottom 0-255 : 1\nbram top 0 : 1\n",
            Some(4),
        ),
        ("other top 0 : 1\n", Some(2)),
    ] {
        let table = format!("layout x series7\n{rows}{device}");
        match (Geometry::parse(&table, "b"), bad) {
            (Ok(geometry), None) => assert_eq!(geometry.frame_count(), 11),
            (Err(GeometryError::BadLine { line, .. }), Some(bad)) => assert_eq!(line, bad),
            (other, _) => panic!("{rows}: {other:?}"),
        }
    }
    assert!(matches!(
        Geometry::parse("device 0x1 series7 a unknown", "a"),
        Err(GeometryError::NoColumns(_))
    ));
    assert!(matches!(
        Geometry::parse("", "a"),
        Err(GeometryError::NoDevice(_))
    ));
}

/// A 7Z020 in the middle of configuration.
fn configuring() -> Logic {
    let mut logic = Logic::new(Geometry::parse(SERIES7, "xc7z020").unwrap());
    feed(&mut logic, &[0xaa99_5566, 0x3001_8001, 0x2372_7093]);
    logic
}

fn feed(logic: &mut Logic, words: &[u32]) {
    for word in words {
        logic.take(*word);
    }
}

fn frame_data(logic: &mut Logic, far: u32, frames: &[u32]) {
    feed(logic, &[0x3000_8001, 1, 0x3000_2001, far, 0x3000_4000]);
    feed(
        logic,
        &[0x5000_0000 | u32::try_from(frames.len() * 101).unwrap()],
    );
    for fill in frames {
        feed(logic, &[*fill; 101]);
    }
}

#[test]
fn the_last_frame_of_a_block_stays_in_the_buffer() {
    let mut logic = configuring();
    frame_data(&mut logic, 0x100, &[5, 6, 7]);
    assert_eq!(logic.frame(0x100), [5; 101]);
    assert_eq!(logic.frame(0x101), [6; 101]);
    assert_eq!(logic.frame(0x102), [0; 101]);
}

#[test]
fn a_row_goes_on_behind_two_pads() {
    let mut logic = configuring();
    // The last frame of the top row's last column of logic (42 frames).
    let last = {
        let geometry = logic.geometry();
        let bottom = geometry.place(0x0040_0000).unwrap();
        let Some((Place::Frame(index), _)) = geometry.at(bottom) else {
            panic!("no frame");
        };
        geometry.far(index - 1).unwrap()
    };
    frame_data(&mut logic, last, &[1, 0, 0, 2, 0]);
    assert_eq!(logic.frame(last), [1; 101]);
    assert_eq!(logic.frame(0x0040_0000), [2; 101]);
    assert_eq!(logic.counts.unclean_pads, 0);
}

#[test]
fn the_buffer_can_be_written_to_many_places() {
    let mut logic = configuring();
    frame_data(&mut logic, 0x100, &[5, 6]);
    // MFW, then copies: at the advanced address, and at one of their own.
    feed(&mut logic, &[0x3000_8001, 2, 0x3001_4008]);
    feed(&mut logic, &[0; 8]);
    feed(&mut logic, &[0x3000_2001, 0x200, 0x3001_4004, 0, 0, 0, 0]);
    assert_eq!(logic.frame(0x100), [5; 101]);
    assert_eq!(logic.frame(0x101), [6; 101]);
    assert_eq!(logic.frame(0x200), [6; 101]);
    assert_eq!(logic.counts.frames, 3);
}

#[test]
fn frames_need_an_idcode_and_the_write_command() {
    let mut logic = Logic::new(Geometry::parse(SERIES7, "xc7z020").unwrap());
    feed(&mut logic, &[0xaa99_5566]);
    frame_data(&mut logic, 0x100, &[5, 6]);
    assert_eq!(logic.error(), Some(Trouble::NoIdcode));
    assert_eq!(logic.frame(0x100), [0; 101]);

    let mut logic = configuring();
    feed(&mut logic, &[0x3000_2001, 0x100, 0x3000_4065]);
    feed(&mut logic, &[1; 202]);
    assert_eq!(logic.counts.frames, 0);
}

#[test]
fn frames_nobody_checked_are_no_sound_end() {
    let mut logic = configuring();
    frame_data(&mut logic, 0x100, &[5, 6]);
    feed(&mut logic, &[0x3000_8001]);
    assert_eq!(logic.take(13), Moment::End(Ending::Unsound));
    assert!(!logic.synced());
}

#[test]
fn startup_ends_with_the_desync_after_start() {
    let mut logic = configuring();
    feed(&mut logic, &[0x3000_8001, 11]);
    assert!(!logic.started());
    feed(&mut logic, &[0x3000_8001, 5]);
    assert!(!logic.started());
    feed(&mut logic, &[0x3000_8001, 13]);
    assert!(logic.started());
}

#[test]
fn a_held_command_is_executed_again_by_a_load_of_far() {
    let mut logic = configuring();
    feed(&mut logic, &[0x3000_8001, 9, 0x3000_2001, 0x100]);
    assert_eq!(logic.counts.dangers.commands, 2);
}
