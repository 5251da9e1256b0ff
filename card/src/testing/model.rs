//! A card made of registers: the management unit, the PR engine and the ports
//! of a classic or an OFS card, with the behaviour that the facts tell of and
//! troubles on demand.

use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use uuid::Uuid;

use super::VirtualClock;
use crate::address::CardAddress;
use crate::clock::Clock;
use crate::device::{
    Bar, Device, DeviceError, DeviceIdentity, DmaMapping, InterruptKind, SerialNumber, Space,
    check_aligned64, check_range,
};
use crate::raw::DeviceMap;

const BAR_SIZE: u64 = 512 << 10;
const PR: u64 = 0x2000;
const FIFO: u64 = 256;
const GUEST: u64 = 1 << 55;
const IMPLEMENTED: u64 = 1 << 60;

/// Which card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Two ports in lists of their own, with access switches.
    Classic,
    /// One port in the management unit's own list.
    Ofs,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Trouble {
    /// Error bits that the next load ends with.
    pub(crate) errors: u64,
    /// The next load never ends by itself.
    pub(crate) hang: bool,
    /// No word is taken any more.
    pub(crate) no_credits: bool,
    /// The engine's reset is never acknowledged.
    pub(crate) no_reset_ack: bool,
    /// The fault flag stays, whatever the errors.
    pub(crate) fault_flag_stuck: bool,
    /// The fault flag also means "busy".
    pub(crate) fault_flag_busy: bool,
    /// A port does not acknowledge its reset.
    pub(crate) no_port_ack: bool,
    /// A port's acknowledgement stays after its reset.
    pub(crate) port_ack_stuck: bool,
    /// The access switch does not move.
    pub(crate) switch_stuck: bool,
    /// All reads are all ones, all writes are lost.
    pub(crate) gone: bool,
    /// The function shows another identifier.
    pub(crate) wrong_function: bool,
    /// The function shows none.
    pub(crate) no_function: bool,
    /// START drops in the middle, without an error.
    pub(crate) ends_early: bool,
    /// The card is gone after so many accesses.
    pub(crate) vanishes_after: Option<usize>,
    /// Reads of the interface id that give 0.
    pub(crate) late_id: u32,
    /// Time one word takes.
    pub(crate) word_takes: Duration,
}

#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct PortState {
    pub(crate) guest: bool,
    pub(crate) reset: bool,
    /// Whether the reset was acknowledged when it rose.
    acknowledged: bool,
    pub(crate) function: u128,
}

pub(crate) struct Model {
    pub(crate) kind: Kind,
    pub(crate) trouble: Trouble,
    pub(crate) ports: Vec<PortState>,
    /// Words of the load in progress, or of the last one.
    pub(crate) words: Vec<u32>,
    pub(crate) error: u64,
    /// Every access: offset, and the value if it was a store.
    pub(crate) trace: Vec<(u64, Option<u64>)>,
    /// Registers that are what they were set to, before all others.
    pub(crate) fixed: HashMap<u64, u64>,
    control: u64,
    taken_at: Duration,
    queued: u64,
    clock: Arc<VirtualClock>,
}

impl Model {
    /// A card whose regions are in use by guests.
    pub(crate) fn new(kind: Kind, clock: &Arc<VirtualClock>) -> Arc<Mutex<Self>> {
        let count = match kind {
            Kind::Classic => 2,
            Kind::Ofs => 1,
        };
        let port = PortState {
            guest: true,
            function: 0x11,
            ..PortState::default()
        };
        Arc::new(Mutex::new(Self {
            kind,
            trouble: Trouble::default(),
            ports: vec![port; count],
            words: Vec::new(),
            error: 0,
            trace: Vec::new(),
            fixed: HashMap::new(),
            control: 0,
            taken_at: Duration::ZERO,
            queued: 0,
            clock: Arc::clone(clock),
        }))
    }

    pub(crate) fn interface_id() -> Uuid {
        Uuid::from_u128(0x6d1f_0a3c_94be_4c27_8a15_5e0f_77c2_b9d4)
    }

    /// Whether the guest of `port` reaches its function, or could by itself.
    pub(crate) fn guest_reaches(&self, port: usize) -> bool {
        let port = self.ports[port];
        match self.kind {
            Kind::Classic => port.guest,
            Kind::Ofs => !port.reset,
        }
    }

    /// Whether a load is under way.
    pub(crate) fn loading(&self) -> bool {
        self.control & 1 << 12 != 0
    }

    fn is_gone(&self) -> bool {
        let over = |after| self.trace.len() > after;
        self.trouble.gone || self.trouble.vanishes_after.is_some_and(over)
    }

    fn port_base(&self, port: usize) -> u64 {
        match self.kind {
            Kind::Classic => 0x10000 * (port as u64 + 1),
            Kind::Ofs => 0x3000,
        }
    }

    fn settle(&mut self) {
        let now = self.clock.now();
        if self.trouble.no_credits {
            return;
        }
        if self.trouble.word_takes.is_zero() {
            self.queued = 0;
            return;
        }
        while self.queued > 0 && now >= self.taken_at + self.trouble.word_takes {
            self.taken_at += self.trouble.word_takes;
            self.queued -= 1;
        }
    }

    fn load(&mut self, offset: u64) -> u64 {
        self.clock.advance(Duration::from_micros(1));
        self.trace.push((offset, None));
        if self.is_gone() {
            return u64::MAX;
        }
        if let Some(fixed) = self.fixed.get(&offset) {
            return *fixed;
        }
        let (high, low) = Self::interface_id().as_u64_pair();
        let ofs = self.kind == Kind::Ofs;
        let count = self.ports.len() as u64;
        match offset {
            0x0000 => 4 << 60 | 0x1000 << 16,
            0x0030 => count << 17,
            0x0038 | 0x0040 if (offset - 0x38) / 8 < count => {
                let port = ((offset - 0x38) / 8) as usize;
                let place = if ofs { 7 << 32 } else { self.port_base(port) };
                let guest = if self.ports[port].guest { GUEST } else { 0 };
                IMPLEMENTED | place | guest
            }
            0x1000 => 3 << 60 | 0x1000 << 16 | 4,
            PR if ofs => 3 << 60 | 0x1000 << 16 | 1 << 12 | 5,
            PR => 3 << 60 | 1 << 40 | 5,
            0x2008 => self.control,
            0x2010 => self.status(),
            0x2020 => self.error,
            0x20a8 if self.trouble.late_id > 0 => {
                self.trouble.late_id -= 1;
                0
            }
            0x20a8 => low,
            0x20b0 => high,
            _ => self.port_load(offset),
        }
    }

    fn status(&mut self) -> u64 {
        self.settle();
        let busy = self.control & 1 << 12 != 0;
        let flag = self.error != 0
            || self.trouble.fault_flag_stuck
            || (self.trouble.fault_flag_busy && busy);
        let credits = FIFO - self.queued.min(FIFO);
        let credits = if self.trouble.no_credits { 2 } else { credits };
        let host = if busy { 5 << 24 } else { 0 };
        credits | u64::from(flag) << 16 | host
    }

    fn port_load(&self, offset: u64) -> u64 {
        for (number, port) in self.ports.iter().enumerate() {
            let base = self.port_base(number);
            let ack = port.acknowledged || self.trouble.port_ack_stuck;
            let silent = port.reset || port.guest || self.trouble.no_function;
            let wrong = if self.trouble.wrong_function {
                1 << 70
            } else {
                0
            };
            let function = port.function ^ wrong;
            match offset.checked_sub(base) {
                Some(0x00) if self.kind == Kind::Ofs => return 4 << 60 | 1 << 40 | 2 << 12 | 1,
                Some(0x00) => return 4 << 60 | 1 << 40 | 1,
                Some(0x18) if self.kind == Kind::Classic => return 0x1000,
                Some(0x30) => return number as u64 | 4 << 8,
                Some(0x38) => return u64::from(port.reset) | 4 | u64::from(ack) << 4,
                Some(0x1000..0x2000) if silent => return u64::MAX,
                Some(0x1008) => return function as u64,
                Some(0x1010) => return (function >> 64) as u64,
                _ => {}
            }
        }
        0
    }

    fn store(&mut self, offset: u64, value: u64) {
        self.clock.advance(Duration::from_micros(1));
        self.trace.push((offset, Some(value)));
        if self.is_gone() {
            return;
        }
        match offset {
            0x0038 | 0x0040 => {
                let port = ((offset - 0x38) / 8) as usize;
                if self.kind == Kind::Classic && !self.trouble.switch_stuck {
                    self.ports[port].guest = value & GUEST != 0;
                }
            }
            0x2008 => self.store_control(value),
            0x2018 => self.push(value as u32),
            0x2020 => self.error &= !value,
            _ => {
                for number in 0..self.ports.len() {
                    if offset == self.port_base(number) + 0x38 {
                        let port = &mut self.ports[number];
                        let rises = !port.reset && value & 1 != 0;
                        port.reset = value & 1 != 0;
                        port.acknowledged &= port.reset;
                        port.acknowledged |= rises && !self.trouble.no_port_ack;
                    }
                }
            }
        }
    }

    fn push(&mut self, word: u32) {
        self.settle();
        if self.control & 1 << 12 == 0 {
            return;
        }
        if self.queued >= FIFO {
            self.error |= 1 << 4;
            return;
        }
        if self.queued == 0 {
            self.taken_at = self.clock.now();
        }
        self.queued += 1;
        self.words.push(word);
        if self.kind == Kind::Ofs && self.words.len() == 100 {
            // An error of the IP shows at once, and ends nothing.
            self.error |= std::mem::take(&mut self.trouble.errors);
        }
        if self.trouble.ends_early && self.words.len() == 100 {
            self.control &= !(1 << 12);
        }
    }

    fn store_control(&mut self, value: u64) {
        let edge = self.control & 1 == 0 && value & 1 != 0;
        self.control = self.control & !1 | value & 1;
        if edge {
            self.control &= 1;
            self.queued = 0;
            if !self.trouble.no_reset_ack {
                self.control |= 1 << 4;
            }
        }
        if value & 1 == 0 {
            self.control &= !(1 << 4);
        }
        if value & 1 << 12 != 0 && self.control & 1 << 12 == 0 && !edge {
            self.begin(value);
        }
        if value & 1 << 13 != 0 {
            self.complete();
        }
    }

    fn begin(&mut self, value: u64) {
        let region = (value >> if self.kind == Kind::Ofs { 8 } else { 7 } & 7) as usize;
        self.words.clear();
        let shut = self.ports.get(region).is_some_and(|port| port.reset);
        if self.error != 0 || !shut {
            self.error |= 1;
            return;
        }
        self.control = self.control & !(7 << 7) | 1 << 12 | value & 7 << 7;
    }

    fn complete(&mut self) {
        if self.control & 1 << 12 == 0 || self.trouble.hang {
            return;
        }
        let ofs = self.kind == Kind::Ofs;
        self.error |= std::mem::take(&mut self.trouble.errors);
        if self.error == 0 {
            let region = (self.control >> if ofs { 8 } else { 7 } & 7) as usize;
            let id = self
                .words
                .iter()
                .rev()
                .take(4)
                .fold(0, |id, word| id << 32 | u128::from(*word));
            self.ports[region].function = id;
        } else if ofs {
            return;
        }
        self.control &= !(1 << 12 | 1 << 13);
    }
}

/// The model as a device. The test keeps the other handle.
pub(crate) struct ModelDevice {
    model: Arc<Mutex<Model>>,
    identity: DeviceIdentity,
}

impl ModelDevice {
    pub(crate) fn new(model: &Arc<Mutex<Model>>) -> Self {
        Self {
            model: Arc::clone(model),
            identity: DeviceIdentity {
                address: CardAddress::VfioUser("/model".into()),
                vendor: 0x8086,
                device: 0x09c4,
                serial: Some(SerialNumber(7)),
            },
        }
    }

    fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap()
    }
}

impl Device for ModelDevice {
    fn identity(&self) -> &DeviceIdentity {
        &self.identity
    }

    fn size(&self, space: Space) -> u64 {
        match space {
            Space::Bar(Bar::ZERO) => BAR_SIZE,
            Space::Bar(_) => 0,
            Space::Config => 256,
        }
    }

    fn read(&mut self, _: Space, _: u64, data: &mut [u8]) -> Result<(), DeviceError> {
        data.fill(0);
        Ok(())
    }

    fn write(&mut self, _: Space, _: u64, _: &[u8]) -> Result<(), DeviceError> {
        Ok(())
    }

    fn load64(&mut self, bar: Bar, offset: u64) -> Result<u64, DeviceError> {
        check_aligned64(offset)?;
        check_range(Space::Bar(bar), self.size(Space::Bar(bar)), offset, 8)?;
        Ok(self.model().load(offset))
    }

    fn store64(&mut self, bar: Bar, offset: u64, value: u64) -> Result<(), DeviceError> {
        check_aligned64(offset)?;
        check_range(Space::Bar(bar), self.size(Space::Bar(bar)), offset, 8)?;
        self.model().store(offset, value);
        Ok(())
    }

    fn store64_burst(&mut self, bar: Bar, offset: u64, values: &[u64]) -> Result<(), DeviceError> {
        for value in values {
            self.store64(bar, offset, *value)?;
        }
        Ok(())
    }

    fn store32_burst(&mut self, _: Bar, _: u64, _: &[u32]) -> Result<(), DeviceError> {
        Err(DeviceError::Refused { errno: 22 })
    }

    fn map(&mut self, _: Bar, _: u64, _: usize) -> Result<DeviceMap, DeviceError> {
        Err(DeviceError::NotMappable)
    }

    fn dma_map(&mut self, _: DmaMapping, _: BorrowedFd<'_>) -> Result<(), DeviceError> {
        Ok(())
    }

    fn dma_unmap(&mut self, _: u64, _: u64) -> Result<(), DeviceError> {
        Ok(())
    }

    fn interrupts(&self, _: InterruptKind) -> u32 {
        0
    }

    fn set_interrupt(
        &mut self,
        _: InterruptKind,
        _: u32,
        _: Option<BorrowedFd<'_>>,
    ) -> Result<(), DeviceError> {
        Ok(())
    }

    fn reset(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }
}
