//! Lists of blocks of frames, for devices whose columns nobody has published.
//!
//! Knows where each block begins and how many frames it has. Must not guess
//! where a column or a row ends: what two lists share is said where it is
//! certain, and only there.

use std::fmt;
use std::num::NonZeroU32;

use super::address::FrameAddress;

/// A write of so many frames from an address on, as a bitstream makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameBlock {
    /// The first frame.
    pub address: FrameAddress,
    /// How many frames are committed: all that the write carries but the last,
    /// which stays in the device's buffer. Pads within are counted, for nobody
    /// knows where they are.
    pub frames: NonZeroU32,
}

/// As in a shell file: `block 0x00420100 frames 272`.
impl fmt::Display for FrameBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "block 0x{:08x} frames {}",
            self.address.raw(),
            self.frames
        )
    }
}

impl FrameBlock {
    /// The first frame of `other`, which comes no earlier, is surely one of
    /// this block's.
    fn surely_reaches(self, other: FrameBlock) -> bool {
        let (from, to) = (self.address, other.address);
        let row = |a: FrameAddress| (a.family(), a.block(), a.half(), a.row());
        if row(from) != row(to) {
            return false;
        }
        let Some(columns) = to.column().checked_sub(from.column()) else {
            return false;
        };
        // No column has more frames than minor addresses; within one column the
        // distance is exact.
        let most = from.family().minor_count();
        let end = u64::from(columns)
            .saturating_mul(u64::from(most))
            .saturating_add(u64::from(to.minor()));
        end < u64::from(from.minor()).saturating_add(u64::from(self.frames.get()))
    }
}

/// A set of blocks, ascending. Two of one address and different length are two.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct BlockList {
    blocks: Vec<FrameBlock>,
}

impl BlockList {
    /// The empty list.
    #[must_use]
    pub fn new() -> BlockList {
        BlockList::default()
    }

    /// Adds a block; one that is there already is not added twice.
    pub fn insert(&mut self, block: FrameBlock) {
        if let Err(at) = self.blocks.binary_search(&block) {
            self.blocks.insert(at, block);
        }
    }

    /// Exactly this block is in the list.
    #[must_use]
    pub fn contains(&self, block: FrameBlock) -> bool {
        self.blocks.binary_search(&block).is_ok()
    }

    /// Every block of this list is in the other.
    #[must_use]
    pub fn is_subset(&self, other: &BlockList) -> bool {
        self.blocks.iter().all(|&block| other.contains(block))
    }

    /// The blocks, ascending by address, then by length.
    #[must_use]
    pub fn blocks(&self) -> &[FrameBlock] {
        &self.blocks
    }

    /// There are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// A block of this list and one of the other that surely share a frame.
    ///
    /// `None` is no proof that they share none: where a column ends is not
    /// known. Blocks of genuine partial bitstreams begin and end with columns,
    /// so regions that overlap nearly always have a block that begins alike.
    #[must_use]
    pub fn surely_common(&self, other: &BlockList) -> Option<(FrameBlock, FrameBlock)> {
        let one_way = |left: &BlockList, right: &BlockList| {
            left.blocks.iter().find_map(|&from| {
                let after = right.blocks.partition_point(|to| to.address < from.address);
                let mut later = right.blocks.get(after..)?.iter();
                later
                    .find(|&&to| from.surely_reaches(to))
                    .map(|&to| (from, to))
            })
        };
        one_way(self, other).or_else(|| one_way(other, self).map(|(from, to)| (to, from)))
    }
}

impl FromIterator<FrameBlock> for BlockList {
    fn from_iter<T: IntoIterator<Item = FrameBlock>>(blocks: T) -> BlockList {
        let mut blocks: Vec<FrameBlock> = blocks.into_iter().collect();
        blocks.sort_unstable();
        blocks.dedup();
        BlockList { blocks }
    }
}
