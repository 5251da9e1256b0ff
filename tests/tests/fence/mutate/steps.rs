//! Steps changed: what is done, and in which order.

use super::Mutation;
use crate::legal::number;
use crate::stream::{CMD, COR0, CRC, CTL0, CTL1, DESYNC, FAR, FDRI, IDCODE, MASK, Part, SYNC};

impl Mutation<'_> {
    /// The device is made to listen where nobody looks.
    pub(super) fn second_sync(&mut self) {
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

    pub(super) fn idcode(&mut self) -> Option<()> {
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
    pub(super) fn control(&mut self) {
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
        // Set, or cleared.
        let value = if self.dice.once_in(3) { 0 } else { bit };
        let pair = [Part::write(MASK, bit), Part::write(register, value)];
        self.parts.splice(at..at, pair);
    }

    /// Any command, in place of another or besides.
    pub(super) fn command(&mut self) -> Option<()> {
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

    /// Any register is written, or read, anywhere.
    pub(super) fn register(&mut self) {
        let register = number(self.dice.below(32));
        let part = if self.dice.once_in(4) {
            Part::Raw(vec![0x2800_0000 | register << 13 | 1])
        } else {
            Part::write(register, self.value())
        };
        let at = self.anywhere();
        self.parts.insert(at, part);
    }

    /// Parts left out, twice, changed about.
    pub(super) fn part(&mut self) {
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

    /// A command that genuine files do give, with what carries it out.
    pub(super) fn step(&mut self) {
        const STEPS: [u32; 11] = [0, 1, 2, 3, 5, 6, 7, 8, 10, 11, 13];
        let mut more = vec![Part::command(*self.dice.pick(&STEPS))];
        if self.dice.once_in(3) {
            more.push(Part::write(FAR, self.legal.device.family().park()));
        }
        if self.dice.once_in(3) {
            more.push(Part::write(CRC, 0));
        }
        let at = self.anywhere();
        self.parts.splice(at..at, more);
    }

    /// How a sub-stream ends: its last parts left out, twice, changed about.
    pub(super) fn tail(&mut self) -> Option<()> {
        let ends: Vec<usize> = (0..self.parts.len())
            .filter(|at| self.parts[*at] == Part::command(DESYNC))
            .collect();
        let end = *self.dice.pick(&ends);
        let begin = end.checked_sub(6)?;
        let (at, other) = (begin + self.dice.below(7), begin + self.dice.below(7));
        match self.dice.below(5) {
            0 => drop(self.parts.remove(at)),
            1 => drop(self.parts.drain(at..end)),
            2 => drop(self.parts.drain(at.min(other)..at.max(other))),
            3 => self.parts.insert(at, self.parts[other].clone()),
            _ => self.parts.swap(at, other),
        }
        Some(())
    }

    /// Frames, or masks of columns, after flip-flops were restored; with the
    /// address from before, or one of their own.
    pub(super) fn late(&mut self) -> Option<()> {
        let restore = self
            .parts
            .iter()
            .position(|part| *part == Part::command(10))?;
        let writes: Vec<usize> = (0..restore)
            .filter(|at| self.parts[*at].register() == Some(FDRI))
            .collect();
        let from = *self.dice.pick(&writes);
        let before = self.parts[..from]
            .iter()
            .rposition(|part| part.register() == Some(FAR))?;
        let data = if self.dice.once_in(2) {
            self.parts[from].clone()
        } else {
            let words = vec![0; 2 * self.legal.device.family().frame_words()];
            let register = FDRI;
            Part::Write { register, words }
        };
        let far = self.parts[before].clone();
        let after = restore + 1 + self.dice.below((self.parts.len() - restore - 1).min(6));
        if self.dice.once_in(2) {
            self.parts
                .splice(after..after, [Part::command(1), far, data]);
        } else {
            self.parts.splice(after..after, [Part::command(1), data]);
            self.parts.insert(restore, far);
        }
        Some(())
    }
}
