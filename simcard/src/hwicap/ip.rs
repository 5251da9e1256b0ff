//! The AXI HWICAP core: its FIFOs and registers, in front of the configuration
//! logic. Offsets from the core's base; registers are 32 bits wide.
//!
//! Words gather in the write FIFO until CR b0 lets them through; b0 stays set
//! until the last has gone. A word that finds the FIFO full is lost, silently.

use std::collections::VecDeque;
use std::time::Duration;

use crate::fifo::{Drain, Fifo, Push};
use crate::silicon::Logic;
use crate::stats::count;

/// Size of the core's window.
pub(crate) const SIZE: u64 = 0x1000;
/// Words that the read FIFO holds.
const READ_DEPTH: usize = 256;

/// Registers.
pub(crate) mod reg {
    pub(crate) const GIER: u64 = 0x1c;
    pub(crate) const ISR: u64 = 0x20;
    pub(crate) const IER: u64 = 0x28;
    pub(crate) const WF: u64 = 0x100;
    pub(crate) const RF: u64 = 0x104;
    pub(crate) const SZ: u64 = 0x108;
    pub(crate) const CR: u64 = 0x10c;
    pub(crate) const SR: u64 = 0x110;
    pub(crate) const WFV: u64 = 0x114;
    pub(crate) const RFO: u64 = 0x118;
}

/// Bits of CR.
pub(crate) mod cr {
    pub(crate) const WRITE: u32 = 1;
    pub(crate) const READ: u32 = 1 << 1;
    pub(crate) const CLEAR: u32 = 1 << 2;
    pub(crate) const RESET: u32 = 1 << 3;
    pub(crate) const ABORT: u32 = 1 << 4;
}

/// Bits of SR.
mod sr {
    pub(super) const DONE: u32 = 1;
    pub(super) const EOS: u32 = 1 << 2;
    pub(super) const IN_ABORT_N: u32 = 1 << 5;
    pub(super) const DALIGN: u32 = 1 << 7;
    pub(super) const CFGERR_N: u32 = 1 << 8;
}

/// Interrupts: write FIFO half empty, write FIFO empty.
const ISR_WRITE: u32 = 1 << 0 | 1 << 2;
const GIER: u32 = 1 << 31;

/// Whether CR b0 is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transfer {
    Idle,
    Writing,
}

/// The core.
#[derive(Debug, Clone)]
pub(crate) struct Ip {
    queue: VecDeque<u32>,
    /// The queue's length in time, while it drains.
    level: Fifo,
    transfer: Transfer,
    read: VecDeque<u32>,
    size: u32,
    gier: u32,
    isr: u32,
    ier: u32,
    pub(crate) data_stores: u64,
    pub(crate) lost_words: u64,
    pub(crate) resets: u64,
    pub(crate) aborts: u64,
}

impl Ip {
    pub(crate) fn new(depth: u16) -> Self {
        Self {
            queue: VecDeque::with_capacity(usize::from(depth)),
            level: Fifo::new(depth),
            transfer: Transfer::Idle,
            read: VecDeque::new(),
            size: 0,
            gier: 0,
            isr: 0,
            ier: 0,
            data_stores: 0,
            lost_words: 0,
            resets: 0,
            aborts: 0,
        }
    }

    /// SW reset, or the shell's own: registers and FIFOs; the counts stay.
    pub(crate) fn reset(&mut self) {
        *self = Self {
            data_stores: self.data_stores,
            lost_words: self.lost_words,
            resets: self.resets,
            aborts: self.aborts,
            ..Self::new(self.level.depth())
        };
    }

    /// Both FIFOs empty; a write under way has nothing more to write.
    pub(crate) fn clear(&mut self) {
        self.queue.clear();
        self.read.clear();
        self.transfer = Transfer::Idle;
    }

    /// CR b0.
    pub(crate) fn begin_write(&mut self, drain: Drain, now: Duration) {
        let waiting = u16::try_from(self.queue.len()).unwrap_or(u16::MAX);
        self.level.start(drain, waiting, now);
        self.transfer = Transfer::Writing;
    }

    /// CR b1: SZ words out of the configuration logic, at once.
    pub(crate) fn begin_read(&mut self, logic: &mut Logic) {
        for _ in 0..self.size {
            if self.read.len() >= READ_DEPTH {
                break;
            }
            self.read.push_back(logic.read());
        }
    }

    pub(crate) fn writing(&self) -> bool {
        self.transfer == Transfer::Writing
    }

    /// The next word that time has let through, if one has.
    pub(crate) fn drained(&mut self, now: Duration) -> Option<u32> {
        if self.transfer == Transfer::Idle {
            return None;
        }
        self.level.settle(now);
        let level = usize::from(self.level.depth().saturating_sub(self.level.credit()));
        if self.queue.len() > level {
            return self.queue.pop_front();
        }
        if self.queue.is_empty() && self.level.is_empty() && !self.level.blocked() {
            self.transfer = Transfer::Idle;
            self.isr |= ISR_WRITE;
        }
        None
    }

    fn push(&mut self, word: u32) {
        count(&mut self.data_stores);
        let full = self.queue.len() >= usize::from(self.level.depth());
        if full || (self.writing() && self.level.push() == Push::Lost) {
            count(&mut self.lost_words);
        } else {
            self.queue.push_back(word);
        }
    }

    /// A read. RF gives a word away with each.
    pub(crate) fn load(&mut self, register: u64, logic: &Logic) -> u32 {
        match register {
            reg::GIER => self.gier,
            reg::ISR => self.isr,
            reg::IER => self.ier,
            reg::RF => self.read.pop_front().unwrap_or(0),
            reg::CR if self.writing() => cr::WRITE,
            reg::SR => self.status(logic),
            reg::WFV => {
                let room = usize::from(self.level.depth()).saturating_sub(self.queue.len());
                u32::try_from(room).unwrap_or(0)
            }
            reg::RFO => u32::try_from(self.read.len()).unwrap_or(u32::MAX),
            // WF and SZ are write-only; ASR (the status of an abort) stays zero.
            _ => 0,
        }
    }

    fn status(&self, logic: &Logic) -> u32 {
        let when = |holds: bool, bit: u32| if holds { bit } else { 0 };
        when(!self.writing(), sr::DONE)
            | when(logic.started(), sr::EOS)
            | sr::IN_ABORT_N
            | when(logic.synced(), sr::DALIGN)
            | when(logic.error().is_none(), sr::CFGERR_N)
    }

    /// A write to any register but CR, which is the shell's matter.
    pub(crate) fn store(&mut self, register: u64, value: u32) {
        match register {
            reg::GIER => self.gier = value & GIER,
            // Writing a one turns the bit over.
            reg::ISR => self.isr ^= value & 0xf,
            reg::IER => self.ier = value & 0xf,
            reg::WF => self.push(value),
            reg::SZ => self.size = value & 0xfff,
            _ => {}
        }
    }
}
