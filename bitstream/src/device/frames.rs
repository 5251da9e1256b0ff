//! Sets of frames of one device.
//!
//! Knows intervals of frame numbers. Must not know what a frame is: the text
//! form, which does, is in the module `text`.

use std::ops::Range;

use super::geometry::FrameIndex;

/// A set of frames, kept as ascending ranges that neither overlap nor touch.
///
/// Equal sets are equal values, however they were put together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct FrameSet {
    ranges: Vec<Range<FrameIndex>>,
}

impl FrameSet {
    /// The empty set.
    #[must_use]
    pub fn new() -> FrameSet {
        FrameSet::default()
    }

    /// Adds the frames of a range; one that ends where it begins, or before,
    /// adds none.
    pub fn insert_range(&mut self, range: Range<FrameIndex>) {
        if range.start >= range.end {
            return;
        }
        // The ranges that overlap or touch the new one become one with it.
        let first = self.ranges.partition_point(|r| r.end < range.start);
        let after = self.ranges.partition_point(|r| r.start <= range.end);
        let joined = self.ranges.get(first..after).unwrap_or_default();
        let start = joined
            .first()
            .map_or(range.start, |r| r.start.min(range.start));
        let end = joined.last().map_or(range.end, |r| r.end.max(range.end));
        self.ranges.splice(first..after, [start..end]);
    }

    /// Adds one frame.
    pub fn insert(&mut self, frame: FrameIndex) {
        self.insert_range(frame..FrameIndex(frame.0.saturating_add(1)));
    }

    /// The frame is in the set.
    #[must_use]
    pub fn contains(&self, frame: FrameIndex) -> bool {
        let at = self.ranges.partition_point(|r| r.end <= frame);
        self.ranges.get(at).is_some_and(|r| r.start <= frame)
    }

    /// Every frame of the range is in the set; so is every frame of none.
    #[must_use]
    pub fn contains_range(&self, range: &Range<FrameIndex>) -> bool {
        if range.start >= range.end {
            return true;
        }
        let at = self.ranges.partition_point(|r| r.end <= range.start);
        self.ranges
            .get(at)
            .is_some_and(|r| r.start <= range.start && range.end <= r.end)
    }

    /// Every frame of this set is in the other.
    #[must_use]
    pub fn is_subset(&self, other: &FrameSet) -> bool {
        self.ranges.iter().all(|range| other.contains_range(range))
    }

    /// The frames that are in either.
    #[must_use]
    pub fn union(&self, other: &FrameSet) -> FrameSet {
        let mut ranges: Vec<_> = self.ranges.iter().chain(&other.ranges).cloned().collect();
        ranges.sort_unstable_by_key(|range| range.start);
        let mut union = FrameSet::new();
        for range in ranges {
            // In ascending order each insertion is at the end.
            union.insert_range(range);
        }
        union
    }

    /// The frames that are in both.
    #[must_use]
    pub fn intersection(&self, other: &FrameSet) -> FrameSet {
        FrameSet {
            ranges: Common::of(self, other).collect(),
        }
    }

    /// The first frame that is in both.
    #[must_use]
    pub fn first_common(&self, other: &FrameSet) -> Option<FrameIndex> {
        Common::of(self, other).next().map(|range| range.start)
    }

    /// The frames of this set that are not in the other.
    #[must_use]
    pub fn difference(&self, other: &FrameSet) -> FrameSet {
        let mut ranges = Vec::new();
        let mut holes = other.ranges.iter().peekable();
        for range in &self.ranges {
            let mut start = range.start;
            while holes.next_if(|hole| hole.end <= start).is_some() {}
            while let Some(hole) = holes.peek().filter(|hole| hole.start < range.end) {
                if start < hole.start {
                    ranges.push(start..hole.start);
                }
                start = hole.end;
                // A hole that goes on may reach into the next range.
                if hole.end > range.end {
                    break;
                }
                holes.next();
            }
            if start < range.end {
                ranges.push(start..range.end);
            }
        }
        FrameSet { ranges }
    }

    /// How many frames there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.ranges
            .iter()
            .map(|r| u64::from(r.end.0.saturating_sub(r.start.0)))
            .sum()
    }

    /// There are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The ranges, ascending, with a gap between each two.
    #[must_use]
    pub fn ranges(&self) -> &[Range<FrameIndex>] {
        &self.ranges
    }

    /// Every frame, ascending.
    pub fn iter(&self) -> impl Iterator<Item = FrameIndex> {
        self.ranges
            .iter()
            .flat_map(|r| (r.start.0..r.end.0).map(FrameIndex))
    }
}

impl FromIterator<Range<FrameIndex>> for FrameSet {
    fn from_iter<T: IntoIterator<Item = Range<FrameIndex>>>(ranges: T) -> FrameSet {
        let mut set = FrameSet::new();
        for range in ranges {
            set.insert_range(range);
        }
        set
    }
}

/// The ranges that two sets share, ascending.
struct Common<'a> {
    left: &'a [Range<FrameIndex>],
    right: &'a [Range<FrameIndex>],
}

impl<'a> Common<'a> {
    fn of(left: &'a FrameSet, right: &'a FrameSet) -> Common<'a> {
        Common {
            left: &left.ranges,
            right: &right.ranges,
        }
    }
}

impl Iterator for Common<'_> {
    type Item = Range<FrameIndex>;

    fn next(&mut self) -> Option<Range<FrameIndex>> {
        while let (Some((left, lefts)), Some((right, rights))) =
            (self.left.split_first(), self.right.split_first())
        {
            let start = left.start.max(right.start);
            let end = left.end.min(right.end);
            // Who ends first cannot meet anything further on.
            if left.end <= right.end {
                self.left = lefts;
            } else {
                self.right = rights;
            }
            if start < end {
                return Some(start..end);
            }
        }
        None
    }
}
