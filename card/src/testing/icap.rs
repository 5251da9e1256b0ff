//! An AMD shell made of registers: HWICAP core, decouplers, identities, and as
//! much of the configuration logic as tells whether it was treated well.

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::VirtualClock;
use crate::address::CardAddress;
use crate::clock::Clock;
use crate::device::{
    Bar, Device, DeviceError, DeviceIdentity, DmaMapping, InterruptKind, Space, check_range,
};
use crate::raw::DeviceMap;

const SIZE: u64 = 0x1_0000;
pub(crate) const CORE: u64 = 0x1000;
pub(crate) const DECOUPLERS: u64 = 0x2000;
pub(crate) const IDENTITIES: u64 = 0x3000;
pub(crate) const IDCODE: u32 = 0x1372_7093;
/// A payload's word that the configuration logic does not take.
pub(crate) const BAD_WORD: u32 = 0xbad0_bad0;
/// A payload's word that begins an identifier of four words, highest first.
pub(crate) const FUNCTION: u32 = 0xf00d_f00d;
const SYNC: u32 = 0xaa99_5566;

/// What goes wrong.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct IcapTrouble {
    /// A write never ends: neither flag says so.
    pub(crate) hang: bool,
    /// CR keeps the bit of a write that SR calls done.
    pub(crate) no_fall: bool,
    /// SR never says done, though CR's bit falls and start-up has ended.
    pub(crate) no_done: bool,
    /// What is asked for is never answered.
    pub(crate) mute: bool,
    /// There is never room.
    pub(crate) no_room: bool,
    /// Start-up never ends.
    pub(crate) no_start: bool,
    /// Decouplers do not move.
    pub(crate) stuck: bool,
    /// All reads are all ones, all writes are lost.
    pub(crate) gone: bool,
    /// The same, from that access on.
    pub(crate) gone_at: Option<u64>,
    /// Time one word takes.
    pub(crate) word_takes: Duration,
}

pub(crate) struct Icap {
    pub(crate) trouble: IcapTrouble,
    pub(crate) coupled: [bool; 2],
    pub(crate) functions: [u128; 2],
    /// Words that reached the configuration logic while it listened.
    pub(crate) heard: Vec<u32>,
    pub(crate) listens: bool,
    /// Words that reached it while no region was decoupled, IDCODE aside.
    pub(crate) unguarded: u32,
    pub(crate) overruns: u32,
    /// Words that were let through, listened to or not.
    pub(crate) sent: Vec<u32>,
    /// Stores to registers that no driver has to store to.
    pub(crate) strays: Vec<u64>,
    /// Words that are still taken for frame data, whatever they are.
    pub(crate) owed: u32,
    /// The configuration logic's error flag.
    pub(crate) error: bool,
    /// Words in the write FIFO.
    pub(crate) queue: Vec<u32>,
    /// A decoupled region was written, and not to the end.
    pub(crate) half_written: bool,
    /// Reads and writes so far.
    pub(crate) accesses: u64,
    busy_until: Duration,
    read: Vec<u32>,
    asked: u32,
    clock: Arc<VirtualClock>,
}

impl Icap {
    /// A card whose two regions are in use.
    pub(crate) fn new(clock: &Arc<VirtualClock>) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self {
            trouble: IcapTrouble::default(),
            coupled: [true; 2],
            functions: [0x11; 2],
            heard: Vec::new(),
            listens: false,
            unguarded: 0,
            overruns: 0,
            sent: Vec::new(),
            strays: Vec::new(),
            owed: 0,
            error: false,
            queue: Vec::new(),
            half_written: false,
            accesses: 0,
            busy_until: Duration::ZERO,
            read: Vec::new(),
            asked: 0,
            clock: Arc::clone(clock),
        }))
    }

    fn room(&self) -> u32 {
        if self.trouble.no_room {
            return 0;
        }
        64_u32.saturating_sub(self.queue.len() as u32)
    }

    fn busy(&self) -> bool {
        self.trouble.hang || self.clock.now() < self.busy_until
    }

    /// Counts an access, and says whether anything is there to answer it.
    fn answers(&mut self) -> bool {
        let gone = self.trouble.gone_at.is_some_and(|at| self.accesses >= at);
        self.accesses += 1;
        !self.trouble.gone && !gone
    }

    fn load(&mut self, offset: u64) -> u32 {
        match offset {
            at if at == CORE + 0x104 => self.read.pop().unwrap_or(0),
            at if at == CORE + 0x10c => u32::from(self.busy() || self.trouble.no_fall),
            at if at == CORE + 0x110 => {
                let done = u32::from(!self.busy() && !self.trouble.no_done);
                let eos = u32::from(!self.trouble.no_start) << 2;
                let listens = u32::from(self.listens) << 7;
                done | eos | 1 << 5 | listens | u32::from(!self.error) << 8
            }
            at if at == CORE + 0x114 => self.room(),
            at if at == CORE + 0x118 => self.read.len() as u32,
            DECOUPLERS => u32::from(!self.coupled[0]),
            at if at == DECOUPLERS + 0x100 => u32::from(!self.coupled[1]),
            _ => 0,
        }
    }

    fn store(&mut self, offset: u64, value: u32) {
        match offset {
            at if at == CORE + 0x100 && self.room() == 0 => self.overruns += 1,
            at if at == CORE + 0x100 => self.queue.push(value),
            at if at == CORE + 0x10c => self.control(value),
            at if at == CORE + 0x108 => {}
            DECOUPLERS if !self.trouble.stuck => self.coupled[0] = value & 1 == 0,
            at if at == DECOUPLERS + 0x100 && !self.trouble.stuck => {
                self.coupled[1] = value & 1 == 0;
            }
            DECOUPLERS => {}
            at if at == DECOUPLERS + 0x100 => {}
            stray => self.strays.push(stray),
        }
    }

    fn control(&mut self, value: u32) {
        // Each does its own thing and no other's: who leaves one out is seen.
        if value & 0x10 != 0 {
            self.listens = false;
            self.owed = 0;
            self.heard.clear();
        }
        if value & 8 != 0 {
            self.error = false;
        }
        if value & 4 != 0 {
            self.queue.clear();
        }
        if value & 1 != 0 {
            let words = std::mem::take(&mut self.queue);
            let takes = self.trouble.word_takes * words.len() as u32;
            self.busy_until = self.clock.now() + takes;
            for word in words {
                self.hear(word);
            }
        }
        if value & 2 != 0 && self.asked > 0 && !self.trouble.mute {
            self.read = vec![IDCODE];
            self.asked = 0;
        }
    }

    fn hear(&mut self, word: u32) {
        self.sent.push(word);
        if self.owed > 0 {
            self.owed -= 1;
            return;
        }
        if !self.listens {
            self.listens = word == SYNC;
            return;
        }
        if word == 0x2801_8001 {
            self.asked += 1;
        }
        if self.coupled == [true; 2] && self.heard.len() > 16 {
            self.unguarded += 1;
        }
        self.error |= word == BAD_WORD;
        self.half_written |= word == FUNCTION;
        self.heard.push(word);
        if self.heard.ends_with(&[0x3000_8001, 13]) {
            self.listens = false;
            self.end();
        }
    }

    fn end(&mut self) {
        let mut heard = self.heard.iter();
        if heard.any(|word| *word == FUNCTION) && !self.error {
            let id = heard
                .take(4)
                .fold(0, |id, word| id << 32 | u128::from(*word));
            for (function, coupled) in self.functions.iter_mut().zip(self.coupled) {
                if !coupled {
                    *function = id;
                }
            }
            self.half_written = false;
        }
    }
}

/// The card as the engine holds it.
pub(crate) struct IcapDevice {
    icap: Arc<Mutex<Icap>>,
    identity: DeviceIdentity,
}

impl IcapDevice {
    pub(crate) fn new(icap: &Arc<Mutex<Icap>>) -> Self {
        Self {
            icap: Arc::clone(icap),
            identity: DeviceIdentity {
                address: CardAddress::VfioUser("/icap".into()),
                vendor: 0x10ee,
                device: 0x9038,
                serial: None,
            },
        }
    }

    fn icap(&self) -> MutexGuard<'_, Icap> {
        self.icap.lock().unwrap()
    }
}

impl Device for IcapDevice {
    fn identity(&self) -> &DeviceIdentity {
        &self.identity
    }

    fn size(&self, space: Space) -> u64 {
        match space {
            Space::Bar(Bar::ZERO) => SIZE,
            _ => 0,
        }
    }

    fn read(&mut self, space: Space, offset: u64, data: &mut [u8]) -> Result<(), DeviceError> {
        check_range(space, self.size(space), offset, data.len() as u64)?;
        let mut icap = self.icap();
        let value = if icap.answers() {
            icap.load(offset)
        } else {
            u32::MAX
        };
        data.copy_from_slice(&value.to_le_bytes());
        Ok(())
    }

    fn write(&mut self, space: Space, offset: u64, data: &[u8]) -> Result<(), DeviceError> {
        check_range(space, self.size(space), offset, data.len() as u64)?;
        let mut icap = self.icap();
        if icap.answers() {
            icap.store(offset, u32::from_le_bytes(data.try_into().unwrap()));
        }
        Ok(())
    }

    fn load64(&mut self, bar: Bar, offset: u64) -> Result<u64, DeviceError> {
        check_range(Space::Bar(bar), self.size(Space::Bar(bar)), offset, 8)?;
        let mut icap = self.icap();
        if !icap.answers() {
            return Ok(u64::MAX);
        }
        let at = (offset - IDENTITIES) as usize;
        let function = icap.functions[at / 0x100];
        Ok(if at.is_multiple_of(0x100) {
            function as u64
        } else {
            (function >> 64) as u64
        })
    }

    fn store64(&mut self, _: Bar, _: u64, _: u64) -> Result<(), DeviceError> {
        panic!("a store of 64 bits reaches two registers of 32")
    }

    fn store64_burst(&mut self, _: Bar, _: u64, _: &[u64]) -> Result<(), DeviceError> {
        panic!("a store of 64 bits reaches two registers of 32")
    }

    fn store32_burst(&mut self, bar: Bar, offset: u64, values: &[u32]) -> Result<(), DeviceError> {
        for value in values {
            self.write(Space::Bar(bar), offset, &value.to_le_bytes())?;
        }
        Ok(())
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
        kind: InterruptKind,
        vector: u32,
        _: Option<BorrowedFd<'_>>,
    ) -> Result<(), DeviceError> {
        Err(DeviceError::NoSuchInterrupt { kind, vector })
    }

    fn reset(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }
}
