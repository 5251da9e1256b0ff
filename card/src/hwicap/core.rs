//! The HWICAP core (AMD PG134): words in, words out, and its two flags.
//!
//! Traps of other drivers, not repeated here: a reset that stores to the
//! vacancy register instead of the FIFO; a wait of 20 × 50 ns; a verdict that
//! takes "start-up ended", which is set all the time, for "done"; a dead
//! device's all-ones taken for success.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::device::{Bar, Device, DeviceError, Space};
use crate::patience::Patience;

/// Bytes from the core's base to the end of its last register.
pub(super) const WINDOW: u64 = 0x120;

/// Write FIFO.
const WF: u64 = 0x100;
/// Read FIFO.
const RF: u64 = 0x104;
/// Words to be read.
const SZ: u64 = 0x108;
/// Control.
const CR: u64 = 0x10c;
/// Status.
const SR: u64 = 0x110;
/// Room in the write FIFO, in words.
const WFV: u64 = 0x114;
/// Words in the read FIFO.
const RFO: u64 = 0x118;

const CR_WRITE: u32 = 1 << 0;
const CR_READ: u32 = 1 << 1;
const CR_CLEAR: u32 = 1 << 2;
const CR_RESET: u32 = 1 << 3;
const CR_ABORT: u32 = 1 << 4;
/// Nothing is under way.
pub(super) const SR_DONE: u32 = 1 << 0;
/// Start-up has ended.
const SR_EOS: u32 = 1 << 2;
/// The configuration logic listens.
const SR_DALIGN: u32 = 1 << 7;
/// Cleared: the configuration logic reports an error.
const SR_CFGERR_N: u32 = 1 << 8;

/// More words than this no core has room for.
const MOST_ROOM: u32 = 1 << 16;

/// Makes the configuration logic listen, and asks for the IDCODE.
const ASK_IDCODE: [u32; 7] = [
    0xffff_ffff,
    0xaa99_5566,
    0x2000_0000,
    0x2000_0000,
    0x2801_8001,
    0x2000_0000,
    0x2000_0000,
];
/// Makes it listen no more.
const DESYNC: [u32; 4] = [0x3000_8001, 0x0000_000d, 0x2000_0000, 0x2000_0000];

/// Why the core did not do something.
#[derive(Debug, thiserror::Error)]
pub(super) enum CoreFault {
    /// It could not be reached, or is gone.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// It took too long.
    #[error("{what} did not come in time (SR {status:#x})")]
    Late { what: &'static str, status: u32 },
    /// The configuration logic reports an error.
    #[error("the configuration logic reports an error")]
    Configuration,
}

/// The core of one card.
pub(super) struct Core {
    pub(super) device: Box<dyn Device>,
    pub(super) clock: Arc<dyn Clock>,
    bar: Bar,
    base: u64,
    /// The longest single wait.
    wait: Duration,
}

impl Core {
    pub(super) fn new(
        device: Box<dyn Device>,
        clock: Arc<dyn Clock>,
        (bar, base): (Bar, u64),
        wait: Duration,
    ) -> Self {
        Self {
            device,
            clock,
            bar,
            base,
            wait,
        }
    }

    /// A register of 32 bits anywhere in the BAR. None of those that are read
    /// here can hold all ones.
    pub(super) fn load(&mut self, offset: u64) -> Result<u32, DeviceError> {
        let mut bytes = [0; 4];
        self.device.read(Space::Bar(self.bar), offset, &mut bytes)?;
        match u32::from_le_bytes(bytes) {
            u32::MAX => Err(DeviceError::Gone("a register reads as all ones")),
            value => Ok(value),
        }
    }

    pub(super) fn store(&mut self, offset: u64, value: u32) -> Result<(), DeviceError> {
        let bytes = value.to_le_bytes();
        self.device.write(Space::Bar(self.bar), offset, &bytes)
    }

    /// A register of 64 bits.
    pub(super) fn load64(&mut self, offset: u64) -> Result<u64, DeviceError> {
        self.device.load64(self.bar, offset)
    }

    fn register(&mut self, register: u64) -> Result<u32, DeviceError> {
        self.load(self.base.saturating_add(register))
    }

    fn control(&mut self, value: u32) -> Result<(), DeviceError> {
        self.store(self.base.saturating_add(CR), value)
    }

    /// SR.
    pub(super) fn status(&mut self) -> Result<u32, DeviceError> {
        self.register(SR)
    }

    /// CR and SR as they are, where they can be read.
    pub(super) fn raw(&mut self) -> (Option<u32>, Option<u32>) {
        (self.register(CR).ok(), self.register(SR).ok())
    }

    /// Brings core and configuration logic to rest, whatever they were doing:
    /// a packet that was begun is dropped, so that what comes next is not
    /// taken for frame data.
    pub(super) fn rest(&mut self, deadline: Duration) -> Result<(), CoreFault> {
        self.control(CR_ABORT)?;
        self.idle("the end of an abort", deadline)?;
        self.control(CR_RESET)?;
        self.idle("the end of the core's reset", deadline)?;
        self.control(CR_CLEAR)?;
        self.idle("an empty FIFO", deadline)?;
        match self.status()? & SR_CFGERR_N {
            0 => Err(CoreFault::Configuration),
            _ => Ok(()),
        }
    }

    /// Words for the configuration logic, as fast as it takes them.
    pub(super) fn write(&mut self, mut words: &[u32], deadline: Duration) -> Result<(), CoreFault> {
        let fifo = self.base.saturating_add(WF);
        while !words.is_empty() {
            let room = self.room(deadline)?;
            let (now, later) = words.split_at(room.min(words.len()));
            self.device.store32_burst(self.bar, fifo, now)?;
            self.control(CR_WRITE)?;
            self.idle("the end of a write", deadline)?;
            words = later;
        }
        Ok(())
    }

    /// How many words there is room for; more than none.
    fn room(&mut self, deadline: Duration) -> Result<usize, CoreFault> {
        let mut patience = self.patience(deadline);
        loop {
            let room = self.register(WFV)?.min(MOST_ROOM);
            if room > 0 {
                return Ok(usize::try_from(room).unwrap_or(1));
            }
            if !patience.another(&*self.clock) {
                return Err(self.late("room in the FIFO"));
            }
        }
    }

    /// Waits until nothing is under way, and looks at the error flag.
    fn idle(&mut self, what: &'static str, deadline: Duration) -> Result<(), CoreFault> {
        let mut patience = self.patience(deadline);
        loop {
            let control = self.register(CR)?;
            let status = self.status()?;
            // Both: the bit of the command falls when the FIFO is empty, and
            // "done" follows the configuration logic.
            if control & (CR_WRITE | CR_READ) == 0 && status & SR_DONE != 0 {
                return Ok(());
            }
            if !patience.another(&*self.clock) {
                return Err(self.late(what));
            }
        }
    }

    /// Fails where the configuration logic reports an error.
    pub(super) fn no_error(&mut self) -> Result<(), CoreFault> {
        match self.status()? & SR_CFGERR_N {
            0 => Err(CoreFault::Configuration),
            _ => Ok(()),
        }
    }

    /// Waits for the end of start-up.
    pub(super) fn started(&mut self, deadline: Duration) -> Result<(), CoreFault> {
        let mut patience = self.patience(deadline);
        while self.status()? & SR_EOS == 0 {
            if !patience.another(&*self.clock) {
                return Err(self.late("the end of start-up"));
            }
        }
        Ok(())
    }

    /// Whether the configuration logic listens.
    pub(super) fn listens(&mut self) -> Result<bool, DeviceError> {
        Ok(self.status()? & SR_DALIGN != 0)
    }

    /// Makes the configuration logic listen no more.
    pub(super) fn desync(&mut self, deadline: Duration) -> Result<(), CoreFault> {
        self.write(&DESYNC, deadline)
    }

    /// Reads the device's IDCODE. The configuration logic is left not
    /// listening, also after a failure.
    pub(super) fn idcode(&mut self, deadline: Duration) -> Result<u32, CoreFault> {
        let read = self.ask_idcode(deadline);
        let left = self.desync(deadline);
        let idcode = read?;
        left?;
        Ok(idcode)
    }

    fn ask_idcode(&mut self, deadline: Duration) -> Result<u32, CoreFault> {
        self.write(&ASK_IDCODE, deadline)?;
        self.store(self.base.saturating_add(SZ), 1)?;
        self.control(CR_READ)?;
        let mut patience = self.patience(deadline);
        while self.register(RFO)? == 0 {
            if !patience.another(&*self.clock) {
                return Err(self.late("the device's IDCODE"));
            }
        }
        Ok(self.register(RF)?)
    }

    /// One wait: as long as one may be, and not beyond the whole load's end.
    fn patience(&self, deadline: Duration) -> Patience {
        let longest = self.clock.now().saturating_add(self.wait);
        Patience::new(longest.min(deadline))
    }

    fn late(&mut self, what: &'static str) -> CoreFault {
        match self.status() {
            Ok(status) => CoreFault::Late { what, status },
            Err(error) => CoreFault::Device(error),
        }
    }
}
