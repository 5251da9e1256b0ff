//! Words as packets, while the device listens.
//!
//! Knows how a packet is spelled (UG570, "Packet Types"), and takes the one
//! spelling that tools write: reserved bits are 0, "do nothing" is one word,
//! the long form follows only the short form of frame data. Must not know what
//! a register does.

use std::ops::Range;

use super::NOP;
use super::names::Register;
use super::words::Words;

/// One packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Packet {
    /// Nothing to do.
    Nop,
    /// Words for a register.
    Write {
        /// Which.
        register: Register,
        /// Which words of the stream they are.
        data: Range<usize>,
    },
}

/// A word that begins no packet as tools write them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PacketFault {
    /// Neither of the two types.
    Type,
    /// A read: the answer would tell what the device holds.
    Read(Register),
    /// The operation that is reserved: some parts lose all state.
    ReservedOperation,
    /// A bit that must be 0.
    ReservedBits,
    /// "Do nothing" with a register or a length.
    OddNop,
    /// The long form, and not right behind a short form of no words.
    LoneLong,
    /// Frame data of no words.
    Empty,
    /// More words than there are.
    Cut,
}

/// Reads packets from a word on. Ends at the end of the words.
#[derive(Debug, Clone)]
pub struct Packets<'a> {
    words: Words<'a>,
    at: usize,
}

impl<'a> Packets<'a> {
    /// From `at` on.
    #[must_use]
    pub fn new(words: Words<'a>, at: usize) -> Self {
        Self { words, at }
    }

    /// The word that is read next.
    #[must_use]
    pub fn at(&self) -> usize {
        self.at
    }

    /// The next packet; `None` at the end of the words. After a fault the
    /// reader stands where it stood.
    ///
    /// # Errors
    ///
    /// See [`PacketFault`].
    pub fn next_packet(&mut self) -> Result<Option<Packet>, PacketFault> {
        let Some(word) = self.words.get(self.at) else {
            return Ok(None);
        };
        let mut after = self.at.saturating_add(1);
        if word == NOP {
            self.at = after;
            return Ok(Some(Packet::Nop));
        }
        let (register, mut count) = short(word)?;
        if register == Register::FDRI && count == 0 {
            count = long(self.words.get(after).ok_or(PacketFault::Cut)?)?;
            after = after.saturating_add(1);
        }
        let end = after.saturating_add(count);
        if end > self.words.len() {
            return Err(PacketFault::Cut);
        }
        self.at = end;
        Ok(Some(Packet::Write {
            register,
            data: after..end,
        }))
    }
}

/// Type 1: register and number of words of a write.
fn short(word: u32) -> Result<(Register, usize), PacketFault> {
    match word >> 29 {
        1 => {}
        2 => return Err(PacketFault::LoneLong),
        _ => return Err(PacketFault::Type),
    }
    let register = Register(u8::try_from((word >> 13) & 0x1f).unwrap_or(0));
    match (word >> 27) & 3 {
        0 => return Err(PacketFault::OddNop),
        1 => return Err(PacketFault::Read(register)),
        2 => {}
        _ => return Err(PacketFault::ReservedOperation),
    }
    // Bits 26 to 18 belong to registers that do not exist, 12 and 11 to nobody.
    if word & 0x07fc_1800 != 0 {
        return Err(PacketFault::ReservedBits);
    }
    Ok((
        register,
        usize::try_from(word & 0x7ff).unwrap_or(usize::MAX),
    ))
}

/// Type 2: number of words of the write that the packet before began.
fn long(word: u32) -> Result<usize, PacketFault> {
    match (word >> 29, (word >> 27) & 3) {
        (2, 2) => {}
        (2, 3) => return Err(PacketFault::ReservedOperation),
        (2, 1) => return Err(PacketFault::Read(Register::FDRI)),
        _ => return Err(PacketFault::Empty),
    }
    match usize::try_from(word & 0x07ff_ffff).unwrap_or(usize::MAX) {
        0 => Err(PacketFault::Empty),
        count => Ok(count),
    }
}
