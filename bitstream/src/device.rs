//! The devices whose configuration frames can be named: which they are, how
//! their frames are addressed and ordered, and sets of their frames.
//!
//! Knows part names, IDCODEs, frame addresses and the columns of each die, all
//! from the tables in `geometry/`. Must not know packets, files, regions of a
//! shell, or who asks.
//!
//! A device without a table has a family and a name and no geometry: its frames
//! can be compared (block by block, [`BlockList`]) and not counted.

mod address;
mod blocks;
mod family;
mod fault;
mod frames;
mod geometry;
mod mask;
mod parse;
mod part;
mod print;
mod region;
mod table;
mod words;

#[cfg(test)]
#[expect(
    clippy::arithmetic_side_effects,
    reason = "a test may stop at an overflow"
)]
mod tests;

pub use self::address::{AddressError, Block, FrameAddress, Half};
pub use self::blocks::{BlockList, FrameBlock};
pub use self::family::Family;
pub use self::fault::{FrameSetError, FrameSetFault};
pub use self::frames::FrameSet;
pub use self::geometry::{Column, FrameIndex, Geometry, GeometryError, Row};
pub use self::mask::ClbMask;
pub use self::part::{Device, Die};
pub use self::region::{Overlap, RegionFrames};
