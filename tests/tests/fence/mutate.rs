//! What can be wrong with a stream: each kind of mistake or malice, many times.
//!
//! The checksums are put right after each change, unless they are what changes:
//! who writes a hostile stream knows how to compute them.

mod frames;
mod steps;
mod words;

use bitstream::device::{Block, Half};

use crate::legal::Legal;
use crate::random::Dice;
use crate::stream::{Part, words};

/// What was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    Register,
    Command,
    HeaderBit,
    Address,
    Edge,
    Pad,
    SecondSync,
    Checksum,
    Count,
    PacketType,
    Idcode,
    Control,
    ColumnMask,
    Copy,
    Part,
    ByteOrder,
    Cut,
    Word,
    Foreign,
    Step,
    Tail,
    Late,
}

impl Kind {
    pub(crate) const ALL: [Kind; 22] = [
        Kind::Register,
        Kind::Command,
        Kind::HeaderBit,
        Kind::Address,
        Kind::Edge,
        Kind::Pad,
        Kind::SecondSync,
        Kind::Checksum,
        Kind::Count,
        Kind::PacketType,
        Kind::Idcode,
        Kind::Control,
        Kind::ColumnMask,
        Kind::Copy,
        Kind::Part,
        Kind::ByteOrder,
        Kind::Cut,
        Kind::Word,
        Kind::Foreign,
        Kind::Step,
        Kind::Tail,
        Kind::Late,
    ];

    /// How many of one stream.
    fn count(self) -> usize {
        match self {
            Kind::Checksum | Kind::Idcode | Kind::ByteOrder | Kind::ColumnMask => 10,
            Kind::Count | Kind::PacketType | Kind::SecondSync | Kind::Foreign => 15,
            Kind::HeaderBit | Kind::Pad | Kind::Copy | Kind::Cut => 20,
            _ => 40,
        }
    }
}

/// Gives each mutant of a stream to `judge`. `foreign` is a legal stream for
/// another region of the device; `share` makes fewer of them.
pub(crate) fn each(
    dice: &mut Dice,
    legal: &Legal,
    foreign: &Legal,
    share: usize,
    mut judge: impl FnMut(Kind, &[u32]),
) {
    for kind in Kind::ALL {
        for _ in 0..kind.count().div_ceil(share) {
            let mut mutation = Mutation {
                dice,
                legal,
                foreign,
                parts: legal.parts.clone(),
            };
            if let Some(words) = mutation.make(kind) {
                judge(kind, &words);
            }
        }
    }
}

struct Mutation<'a> {
    dice: &'a mut Dice,
    legal: &'a Legal,
    foreign: &'a Legal,
    parts: Vec<Part>,
}

impl Mutation<'_> {
    /// `None`: the stream has nothing that could be changed so.
    fn make(&mut self, kind: Kind) -> Option<Vec<u32>> {
        match kind {
            Kind::Register => self.register(),
            Kind::Command => self.command()?,
            Kind::HeaderBit => return Some(self.header_bit()),
            Kind::Address => self.address()?,
            Kind::Edge => self.edge()?,
            Kind::Pad => self.pad()?,
            Kind::SecondSync => self.second_sync(),
            Kind::Checksum => return self.checksum(),
            Kind::Count => return self.count(),
            Kind::PacketType => return Some(self.packet_type()),
            Kind::Idcode => self.idcode()?,
            Kind::Control => self.control(),
            Kind::ColumnMask => self.column_mask()?,
            Kind::Copy => self.copy()?,
            Kind::Part => self.part(),
            Kind::ByteOrder => return Some(self.byte_order()),
            Kind::Cut => return Some(self.cut()),
            Kind::Word => return Some(self.word()),
            Kind::Foreign => self.foreign(),
            Kind::Step => self.step(),
            Kind::Tail => self.tail()?,
            Kind::Late => self.late()?,
        }
        Some(words(&self.parts))
    }

    /// One of the parts that write a register.
    fn one_of(&mut self, register: u32) -> Option<usize> {
        let all: Vec<usize> = (0..self.parts.len())
            .filter(|at| self.parts[*at].register() == Some(register))
            .collect();
        (!all.is_empty()).then(|| *self.dice.pick(&all))
    }

    fn anywhere(&mut self) -> usize {
        // Between the words of the first padding nothing is a packet.
        2 + self.dice.below(self.parts.len() - 2)
    }

    fn value(&mut self) -> u32 {
        match self.dice.below(5) {
            0 => 0,
            1 => u32::MAX,
            2 => 1,
            3 => 1 << self.dice.below(32),
            _ => self.dice.word(),
        }
    }
}

/// Every row, column and minor that a family's address can say and the device
/// does not have, one after the other; and the block types nobody has.
pub(crate) fn nowhere(legal: &Legal) -> Vec<u32> {
    use bitstream::device::FrameAddress;
    let family = legal.device.family();
    let halves: &[Option<Half>] = match legal.geometry.columns()[0].half {
        Some(_) => &[Some(Half::Top), Some(Half::Bottom)],
        None => &[None],
    };
    let blocks = [Block::Logic, Block::Bram, Block::ClbMask];
    let others = (3..8).map(Block::Other);
    let mut all = Vec::new();
    for block in blocks.into_iter().chain(others) {
        for half in halves {
            for row in 0..64 {
                for (column, minor) in [(0, 0), (0, 127), (1, 5), (60, 40), (300, 0), (1023, 0)] {
                    let far = FrameAddress::new(family, block, *half, row, column, minor);
                    all.extend(far.filter(|far| legal.geometry.index(*far).is_none()));
                }
            }
        }
    }
    all.into_iter().map(FrameAddress::raw).collect()
}
