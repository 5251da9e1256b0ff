//! The arithmetic of sets, held against bits.

use super::*;
use proptest::prelude::*;

/// The frames of an eight-frame world that a byte's bits name.
fn set(bits: u32) -> FrameSet {
    let mut set = FrameSet::new();
    for frame in (0..8).filter(|frame| bits >> frame & 1 == 1) {
        set.insert(FrameIndex(frame));
    }
    set
}

fn bits(set: &FrameSet) -> u32 {
    set.iter().fold(0, |bits, frame| bits | 1 << frame.0)
}

/// Ascending, not empty, and neither overlapping nor touching.
fn is_canonical(set: &FrameSet) -> bool {
    let ranges = set.ranges();
    ranges.iter().all(|range| range.start < range.end)
        && ranges.windows(2).all(|pair| pair[0].end < pair[1].start)
}

#[test]
fn all_pairs_of_all_subsets_of_eight_frames() {
    for left in 0..256_u32 {
        let mine = set(left);
        assert!(is_canonical(&mine));
        assert_eq!(bits(&mine), left);
        assert_eq!(mine.len(), u64::from(left.count_ones()));
        assert_eq!(mine.is_empty(), left == 0);
        for right in 0..256_u32 {
            let theirs = set(right);
            for (name, got, want) in [
                ("union", mine.union(&theirs), left | right),
                ("intersection", mine.intersection(&theirs), left & right),
                ("difference", mine.difference(&theirs), left & !right),
            ] {
                assert!(is_canonical(&got), "{name} {left:08b} {right:08b}");
                assert_eq!(bits(&got), want, "{name} {left:08b} {right:08b}");
            }
            assert_eq!(mine.is_subset(&theirs), left & !right == 0);
            let common = mine.first_common(&theirs).map(|frame| frame.0);
            let expected = (left & right != 0).then(|| (left & right).trailing_zeros());
            assert_eq!(common, expected);
            assert_eq!(mine == theirs, left == right);
        }
    }
}

#[test]
fn every_range_in_every_subset() {
    for left in 0..256_u32 {
        for start in 0..9_u32 {
            for end in 0..9_u32 {
                let range = FrameIndex(start)..FrameIndex(end);
                let mask = (start..end).fold(0, |mask, frame| mask | 1_u32 << frame);
                let inside = set(left).contains_range(&range);
                assert_eq!(inside, mask & !left == 0, "{left:08b} {start}..{end}");
                let mut grown = set(left);
                grown.insert_range(range);
                assert!(is_canonical(&grown));
                assert_eq!(bits(&grown), left | mask, "{left:08b} {start}..{end}");
            }
            assert_eq!(
                set(left).contains(FrameIndex(start)),
                start < 8 && left >> start & 1 == 1
            );
        }
    }
}

#[test]
fn the_largest_numbers_do_not_wrap() {
    let mut set = FrameSet::new();
    set.insert_range(FrameIndex(u32::MAX - 1)..FrameIndex(u32::MAX));
    set.insert(FrameIndex(u32::MAX));
    assert_eq!(
        set.ranges(),
        [FrameIndex(u32::MAX - 1)..FrameIndex(u32::MAX)]
    );
    assert!(set.union(&set).difference(&set).is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn large_sets_say_what_their_frames_say(
        left in proptest::collection::vec((0_u32..3000, 0_u32..80), 0..60),
        right in proptest::collection::vec((0_u32..3000, 0_u32..80), 0..60),
    ) {
        let set = |ranges: &[(u32, u32)]| -> FrameSet {
            let range = |(from, length): &(u32, u32)| FrameIndex(*from)..FrameIndex(from + length);
            ranges.iter().map(range).collect()
        };
        let (mine, theirs) = (set(&left), set(&right));
        let has = |ranges: &[(u32, u32)], frame: u32| {
            ranges.iter().any(|(from, length)| (*from..from + length).contains(&frame))
        };
        let (union, both, only) = (mine.union(&theirs), mine.intersection(&theirs), mine.difference(&theirs));
        prop_assert!(is_canonical(&union) && is_canonical(&both) && is_canonical(&only));
        for frame in 0..3100 {
            let (l, r) = (has(&left, frame), has(&right, frame));
            let frame = FrameIndex(frame);
            prop_assert_eq!(mine.contains(frame), l);
            prop_assert_eq!(union.contains(frame), l || r);
            prop_assert_eq!(both.contains(frame), l && r);
            prop_assert_eq!(only.contains(frame), l && !r);
        }
    }
}
