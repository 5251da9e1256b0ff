//! What can be wrong with a stream: each kind of mistake or malice, many times.
//!
//! The checksums are put right after each change, unless they are what changes:
//! who writes a hostile stream knows how to compute them.

use bitstream::device::{Block, FrameIndex, Half};

use crate::legal::{Legal, number};
use crate::random::Dice;
use crate::stream::{
    CMD, COR0, CRC, CTL0, CTL1, DESYNC, FAR, FDRI, IDCODE, MASK, MFW, MFWR, NOP, Part, SYNC,
    header, mend, words,
};

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
}

impl Kind {
    pub(crate) const ALL: [Kind; 19] = [
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

    /// Any register is written, or read, anywhere.
    fn register(&mut self) {
        let register = number(self.dice.below(32));
        let part = if self.dice.once_in(4) {
            Part::Raw(vec![0x2800_0000 | register << 13 | 1])
        } else {
            Part::write(register, self.value())
        };
        let at = self.anywhere();
        self.parts.insert(at, part);
    }

    /// Any command, in place of another or besides.
    fn command(&mut self) -> Option<()> {
        let code = match self.dice.below(8) {
            0 => self.value(),
            _ => number(self.dice.below(32)),
        };
        if self.dice.once_in(2) {
            let at = self.one_of(CMD)?;
            self.parts[at] = Part::command(code);
        } else {
            let at = self.anywhere();
            self.parts.insert(at, Part::command(code));
        }
        Some(())
    }

    /// One bit of one header.
    fn header_bit(&mut self) -> Vec<u32> {
        let at = self.anywhere();
        let place = words(&self.parts[..at]).len();
        let mut words = words(&self.parts);
        words[place] ^= 1 << self.dice.below(32);
        mend(&mut words);
        words
    }

    /// A frame address: outside, where nothing is, of another block, reserved.
    fn address(&mut self) -> Option<()> {
        let at = self.one_of(FAR)?;
        let geometry = self.legal.geometry;
        let old = self.parts[at].words_mut()[0];
        let new = match self.dice.below(7) {
            0 => old ^ 1 << self.dice.below(32),
            1 => old.wrapping_add(1),
            2 => old.wrapping_sub(1),
            3 => self.dice.word(),
            4 => self.legal.device.family().park(),
            5 => {
                // A row, a column or a minor one past the last.
                let columns = geometry.columns();
                let column = self.dice.pick(columns);
                let base = column.address().raw();
                *self.dice.pick(&[
                    base + column.frames,
                    base | 0x1f << 18,
                    base | 0x3ff << 8,
                    base | 0x1ff << 7,
                    base ^ 0x0080_0000,
                ])
            }
            _ => {
                let frame = self.dice.below(geometry.frame_count() as usize);
                geometry.address(FrameIndex(number(frame)))?.raw()
            }
        };
        *self.parts[at].words_mut() = vec![new];
        Some(())
    }

    /// The device goes on by itself: more frames than the region has, or
    /// fewer, from an address before, at each edge.
    fn edge(&mut self) -> Option<()> {
        let at = self.one_of(FDRI)?;
        let length = self.legal.device.family().frame_words();
        let content = if self.dice.once_in(2) { 0 } else { 0x0bad_f00d };
        let frames = [1, 1, 2, 3, 4, 40][self.dice.below(6)];
        let more = vec![content; frames * length];
        let before = self.parts[..at]
            .iter()
            .rposition(|part| part.register() == Some(FAR))?;
        let words = self.parts[at].words_mut();
        let end = words.len();
        match self.dice.below(6) {
            // Before the pad, behind it, and at the beginning.
            0 => drop(words.splice(end - length..end - length, more)),
            1 => words.extend(more),
            2 => drop(words.splice(0..0, more)),
            // Earlier by as many frames as come first.
            3 => {
                words.splice(0..0, more);
                let far = self.parts[before].words_mut();
                far[0] = far[0].wrapping_sub(number(frames));
            }
            // The write goes on without an address of its own.
            4 => {
                let register = FDRI;
                let more = Part::Write {
                    register,
                    words: more,
                };
                self.parts.insert(at + 1, more);
            }
            _ => {
                let device = self.legal.device;
                let row_end = self.legal.region.iter().find(|frame| {
                    self.legal.geometry.row_end(*frame)
                        || self.legal.geometry.next(*frame).is_none()
                });
                let frame = row_end.or_else(|| self.legal.region.iter().last())?;
                let far = self.legal.geometry.address(frame)?.raw();
                let frames = 2 + self.dice.below(4);
                *self.parts[at].words_mut() = vec![content; frames * device.family().frame_words()];
                *self.parts[before].words_mut() = vec![far];
            }
        }
        Some(())
    }

    /// Pads that hold something, or are missing, or too many.
    fn pad(&mut self) -> Option<()> {
        let at = self.one_of(FDRI)?;
        let length = self.legal.device.family().frame_words();
        let choice = self.dice.below(5);
        let place = self.dice.below(length);
        let words = self.parts[at].words_mut();
        let end = words.len();
        match choice {
            0 => words[end - length + place] = 0xbad,
            1 => words.truncate(end - length),
            2 => words.extend(vec![0; length]),
            3 => {
                words.pop();
            }
            _ => {
                // An empty frame somewhere within: a pad of a row, if there is one.
                let empty: Vec<usize> = (0..end / length)
                    .filter(|frame| words[frame * length..][..length].iter().all(|w| *w == 0))
                    .collect();
                let frame = *self.dice.pick(if empty.is_empty() { &[0] } else { &empty });
                let words = self.parts[at].words_mut();
                words[frame * length + place] = 1 << (place % 32);
            }
        }
        Some(())
    }

    /// The device is made to listen where nobody looks.
    fn second_sync(&mut self) {
        let hostile = Part::write(FAR, 0);
        let ends = vec![Part::command(15), Part::command(DESYNC)];
        let desync = (0..self.parts.len())
            .filter(|at| self.parts[*at] == Part::command(DESYNC))
            .collect::<Vec<_>>();
        let mut parts = vec![Part::Raw(vec![*self.dice.pick(&[
            SYNC,
            SYNC.swap_bytes(),
            SYNC.rotate_left(8),
        ])])];
        parts.push(hostile);
        parts.extend(ends);
        let at = match self.dice.below(4) {
            0 => 0,
            1 => self.dice.pick(&desync) + 1,
            2 => self.parts.len(),
            _ => self.anywhere(),
        };
        if self.dice.once_in(3) {
            // Frames of the neighbour instead.
            parts = self.foreign.parts.clone();
        }
        if self.dice.once_in(4) {
            // Not even at the place of a word.
            parts[0] = Part::Raw(vec![0xffff_ffaa, 0x9955_66ff]);
        }
        self.parts.splice(at..at, parts);
    }

    fn checksum(&mut self) -> Option<Vec<u32>> {
        let at = self.one_of(CRC)?;
        let place = words(&self.parts[..at]).len();
        match self.dice.below(3) {
            0 => {
                self.parts.remove(at);
                Some(words(&self.parts))
            }
            1 => {
                self.parts.retain(|part| part.register() != Some(CRC));
                Some(words(&self.parts))
            }
            _ => {
                let mut words = words(&self.parts);
                words[place + 1] ^= 1 << self.dice.below(32);
                Some(words)
            }
        }
    }

    /// The count in a header, and not the words that follow.
    fn count(&mut self) -> Option<Vec<u32>> {
        let register = *self.dice.pick(&[FDRI, FDRI, FAR, CMD, MFWR, MASK]);
        let at = self.one_of(register)?;
        let place = words(&self.parts[..at]).len();
        let count = self.parts[at].words_mut().len();
        let mut words = words(&self.parts);
        let headers = header(register, count).len();
        let word = &mut words[place + headers - 1];
        *word = match self.dice.below(6) {
            0 => word.wrapping_add(1),
            1 => word.wrapping_sub(1),
            2 if headers == 2 => 0x5000_0000,
            3 if headers == 2 => 0x57ff_ffff,
            4 => *word & !0x7ff,
            _ => *word ^ 1 << self.dice.below(11),
        };
        if headers == 2 && self.dice.once_in(3) {
            words.insert(place + 1, NOP);
        }
        if self.dice.once_in(4) {
            words.insert(place, 0x5000_0000 | number(self.dice.below(4)));
        }
        mend(&mut words);
        Some(words)
    }

    /// Words that no tool writes: types 0 and 3 to 7, operations 1 and 3.
    fn packet_type(&mut self) -> Vec<u32> {
        let at = self.anywhere();
        let place = words(&self.parts[..at]).len();
        let mut words = words(&self.parts);
        if self.dice.once_in(2) {
            let kind = number(self.dice.below(8));
            words[place] = words[place] & 0x1fff_ffff | kind << 29;
        } else {
            let operation = number(self.dice.below(4));
            words[place] = words[place] & !(3 << 27) | operation << 27;
        }
        mend(&mut words);
        words
    }

    fn idcode(&mut self) -> Option<()> {
        let at = self.one_of(IDCODE)?;
        let old = self.legal.device.idcode();
        match self.dice.below(5) {
            0 => drop(self.parts.remove(at)),
            1 => self.parts[at] = Part::write(IDCODE, old ^ 1 << self.dice.below(28)),
            // The revision of the silicon may differ.
            2 => self.parts[at] = Part::write(IDCODE, old | 0xf000_0000),
            3 => {
                let part = self.parts.remove(at);
                let later = at + self.dice.below(self.parts.len() - at);
                self.parts.insert(later, part);
            }
            _ => {
                let at = self.anywhere();
                let other = *self.dice.pick(&[old, 0x0362_d093, 0x04a4_9093]);
                self.parts.insert(at, Part::write(IDCODE, other));
            }
        }
        Some(())
    }

    /// Each bit of the control registers and of their mask.
    fn control(&mut self) {
        let register = *self.dice.pick(&[CTL0, CTL1, MASK, COR0]);
        let bit = 1 << self.dice.below(32);
        if let (true, Some(at)) = (self.dice.once_in(2), self.one_of(register)) {
            match self.dice.below(3) {
                0 => drop(self.parts.remove(at)),
                _ => self.parts[at].words_mut()[0] ^= bit,
            }
            return;
        }
        let at = self.anywhere();
        let pair = [Part::write(MASK, bit), Part::write(register, bit)];
        self.parts.splice(at..at, pair);
    }

    /// 7-series: the masks that keep a reset off the columns of others.
    fn column_mask(&mut self) -> Option<()> {
        let at = (0..self.parts.len()).find(|at| {
            let far = |part: &Part| *part == Part::write(FAR, 0x0100_0000);
            self.parts[*at].register() == Some(FDRI) && self.parts[..*at].iter().any(far)
        })?;
        let length = self.legal.device.family().frame_words();
        let choice = self.dice.below(5);
        let frames = self.parts[at].words_mut().len() / length;
        let frame = self.dice.below(frames) * length;
        let bit = self.dice.below(32);
        let words = self.parts[at].words_mut();
        match choice {
            0 => words[frame..frame + length].fill(0),
            1 => words[frame + 50] = 0xe000_09bc,
            2 => words[frame + 50] ^= 1 << bit,
            3 => words[frame + bit] ^= 1,
            _ => drop(self.parts.drain(at - 4..=at)),
        }
        Some(())
    }

    /// Multi-frame writes.
    fn copy(&mut self) -> Option<()> {
        let at = match self.one_of(MFWR) {
            Some(at) => at,
            // A stream that has none: copy the last frame elsewhere.
            None => self.one_of(FDRI)?,
        };
        let far = match self.dice.below(3) {
            0 => 0,
            1 => self.dice.word() & 0x00ff_ffff,
            _ => {
                let frame = self.dice.below(self.legal.geometry.frame_count() as usize);
                self.legal
                    .geometry
                    .address(FrameIndex(number(frame)))?
                    .raw()
            }
        };
        let copy = |words| Part::Write {
            register: MFWR,
            words,
        };
        match self.dice.below(6) {
            0 => {
                let more = [Part::write(FAR, far), copy(vec![0; 4])];
                self.parts.splice(at + 1..at + 1, more);
            }
            1 => self.parts.insert(at + 1, copy(vec![0; 4])),
            2 => self.parts[at].words_mut().push(0),
            3 => self.parts[at].words_mut()[0] ^= 1,
            4 => {
                let more = [
                    Part::command(MFW),
                    copy(vec![0; 8]),
                    Part::write(FAR, far),
                    copy(vec![0; 4]),
                ];
                self.parts.splice(at + 1..at + 1, more);
            }
            _ => drop(self.parts.remove(at)),
        }
        Some(())
    }

    /// Parts left out, twice, changed about.
    fn part(&mut self) {
        let (at, other) = (self.anywhere(), self.anywhere());
        match self.dice.below(4) {
            0 => drop(self.parts.remove(at)),
            1 => self.parts.insert(at, self.parts[at].clone()),
            2 => self.parts.swap(at, other),
            _ => {
                let part = self.parts.remove(at);
                self.parts.insert(other.min(self.parts.len()), part);
            }
        }
    }

    fn byte_order(&mut self) -> Vec<u32> {
        let mut words = words(&self.parts);
        let at = self.dice.below(words.len());
        match self.dice.below(4) {
            0 => words[at] = words[at].swap_bytes(),
            1 => words[at..].iter_mut().for_each(|w| *w = w.swap_bytes()),
            2 => words.iter_mut().for_each(|w| *w = w.rotate_left(16)),
            _ => words
                .iter_mut()
                .for_each(|w| *w = w.swap_bytes().reverse_bits()),
        }
        words
    }

    fn cut(&mut self) -> Vec<u32> {
        let mut words = words(&self.parts);
        let at = if self.dice.once_in(2) {
            words.len() - self.dice.below(words.len().min(60))
        } else {
            self.dice.below(words.len())
        };
        words.truncate(at);
        words
    }

    /// Words that are no data are changed at random.
    fn word(&mut self) -> Vec<u32> {
        let part = self.anywhere();
        let start = words(&self.parts[..part]).len();
        let within = self.parts[part].words_mut().len() + 1;
        let mut words = words(&self.parts);
        let at = (start + self.dice.below(within.min(3))).min(words.len() - 1);
        match self.dice.below(5) {
            0 => words[at] = self.dice.word(),
            1 => words[at] ^= 1 << self.dice.below(32),
            2 => drop(words.remove(at)),
            3 => words.insert(at, words[at]),
            _ => {
                let next = (at + 1).min(words.len() - 1);
                words.swap(at, next);
            }
        }
        mend(&mut words);
        words
    }

    /// A write of the neighbour's frames among the region's own.
    fn foreign(&mut self) {
        let all = &self.foreign.parts;
        let writes: Vec<usize> = (0..all.len())
            .filter(|at| all[*at].register() == Some(FDRI))
            .collect();
        let from = *self.dice.pick(&writes);
        let begin = all[..from]
            .iter()
            .rposition(|part| part.register() == Some(FAR))
            .unwrap_or(from);
        let mut taken = vec![Part::command(1)];
        taken.extend(all[begin..=from].iter().cloned());
        let at = match self.one_of(FDRI) {
            Some(at) if !self.dice.once_in(3) => at + 1,
            _ => self.anywhere(),
        };
        self.parts.splice(at..at, taken);
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
