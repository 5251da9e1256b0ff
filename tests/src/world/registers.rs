//! The user function of a region, as the guest that owns it reaches it: its
//! registers, through a vfio-user connection of our own.
//!
//! Knows where a port puts its function. Must not know the management function.

use anyhow::Result;
use card::CardAddress;
use card::device::{Bar, Device};
use card::vfio::KernelDevice;
use card::vfio_user::{Deadlines, VfioUserDevice};
use uuid::Uuid;

/// Where a port tells the offset of its function.
const NEXT_AFU: u64 = 0x18;
/// Where a function is that no port stands before.
const BARE: u64 = 0x1_0000;
/// The function's id: low half, high half.
const ID_LOW: u64 = 0x08;
const ID_HIGH: u64 = 0x10;
/// Bits of an offset in [`NEXT_AFU`].
const OFFSET: u64 = 0xff_ffff;

/// What a register reads as while the region is shut.
pub const SHUT: u64 = u64::MAX;

/// The user function.
pub struct UserFunction {
    device: Box<dyn Device>,
    before: Before,
}

/// What stands before the function in its BAR.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    /// A DFL port, which tells where the function is.
    Port,
    /// Nothing: it is where it always is.
    Nothing,
}

impl std::fmt::Debug for UserFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UserFunction")
            .field("device", self.device.identity())
            .field("before", &self.before)
            .finish()
    }
}

impl UserFunction {
    /// Opens the function at a card's address, behind a DFL port.
    ///
    /// # Errors
    /// Nobody serves it.
    pub fn open(address: &str) -> Result<Self> {
        Self::behind(address, Before::Port)
    }

    /// The same, whatever stands before the function.
    ///
    /// # Errors
    /// Nobody serves it.
    pub fn behind(address: &str, before: Before) -> Result<Self> {
        let device: Box<dyn Device> = match address.parse()? {
            CardAddress::VfioUser(path) => {
                Box::new(VfioUserDevice::open(&path, Deadlines::default())?)
            }
            CardAddress::Pci(pci) => Box::new(KernelDevice::open(pci)?),
        };
        Ok(Self { device, before })
    }

    fn afu(&mut self) -> Result<Option<u64>> {
        if self.before == Before::Nothing {
            return Ok(Some(BARE));
        }
        let next = self.device.load64(Bar::ZERO, NEXT_AFU)?;
        Ok((next != SHUT).then_some(next & OFFSET))
    }

    /// The function that the guest sees, or `None` while the region is shut.
    ///
    /// # Errors
    /// The device does not answer.
    pub fn id(&mut self) -> Result<Option<Uuid>> {
        let Some(afu) = self.afu()? else {
            return Ok(None);
        };
        let low = self.device.load64(Bar::ZERO, afu.saturating_add(ID_LOW))?;
        let high = self.device.load64(Bar::ZERO, afu.saturating_add(ID_HIGH))?;
        Ok(((low, high) != (SHUT, SHUT)).then(|| Uuid::from_u64_pair(high, low)))
    }

    /// Reads the function's register `index` (0, 1, …); [`SHUT`] while the region is shut.
    ///
    /// # Errors
    /// The device does not answer.
    pub fn read(&mut self, index: u64) -> Result<u64> {
        let Some(afu) = self.afu()? else {
            return Ok(SHUT);
        };
        Ok(self.device.load64(Bar::ZERO, register(afu, index))?)
    }

    /// Writes the function's register `index`; lost while the region is shut.
    ///
    /// # Errors
    /// The device does not answer.
    pub fn write(&mut self, index: u64, value: u64) -> Result<()> {
        let Some(afu) = self.afu()? else {
            return Ok(());
        };
        Ok(self
            .device
            .store64(Bar::ZERO, register(afu, index), value)?)
    }

    /// Has an adder add.
    ///
    /// # Errors
    /// The device does not answer.
    pub fn add(&mut self, a: u64, b: u64) -> Result<u64> {
        self.write(0, a)?;
        self.write(1, b)?;
        self.read(2)
    }
}

fn register(afu: u64, index: u64) -> u64 {
    afu.saturating_add(simcard::functions::FUNCTION_REGISTERS)
        .saturating_add(index.saturating_mul(8))
}
