//! The one device trait: what an engine may ask of a PCI device.
//!
//! Kernel VFIO ([`crate::vfio`]) and vfio-user ([`crate::vfio_user`]) implement
//! it. Whoever uses it knows nothing of sockets or ioctls, and whoever
//! implements it knows nothing of what the registers mean.
//!
//! Every access returns an error that has to be looked at: on a card a lost
//! write that nobody notices is a half-written region (cases/VFIO-01). Every
//! call comes back within the time its implementation was opened with.

use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;

use crate::address::CardAddress;
use crate::raw::DeviceMap;

/// A PCI device, as its one holder sees it.
pub trait Device: Send {
    /// Who the device is. Read once, when it was opened.
    fn identity(&self) -> &DeviceIdentity;

    /// Bytes in `space`; 0 where the device has no such space.
    fn size(&self, space: Space) -> u64;

    /// Fills `data` from `offset` on. In one access where `data` is no longer
    /// than a machine word; longer reads may be split.
    ///
    /// # Errors
    /// Nothing of `data` may be believed after an error.
    fn read(&mut self, space: Space, offset: u64, data: &mut [u8]) -> Result<(), DeviceError>;

    /// Writes `data` from `offset` on, and waits until the device has it.
    ///
    /// # Errors
    /// Any part of `data` may have been written before an error.
    fn write(&mut self, space: Space, offset: u64, data: &[u8]) -> Result<(), DeviceError>;

    /// Reads a 64-bit register in one access. Everything stored before has
    /// reached the device when this returns.
    ///
    /// # Errors
    /// As [`Device::read`], and [`DeviceError::Refused`] for an earlier posted
    /// store that the device did not take.
    fn load64(&mut self, bar: Bar, offset: u64) -> Result<u64, DeviceError>;

    /// Writes a 64-bit register in one access: two halves would push twice
    /// into a data register. Waits until the device has it.
    ///
    /// # Errors
    /// As [`Device::write`].
    fn store64(&mut self, bar: Bar, offset: u64, value: u64) -> Result<(), DeviceError>;

    /// Writes `values` one after the other to one and the same register, each
    /// in one access. They are posted: the next [`Device::load64`] flushes
    /// them, and tells if the device refused one.
    ///
    /// # Errors
    /// Any number of `values` may have been written before an error.
    fn store64_burst(&mut self, bar: Bar, offset: u64, values: &[u64]) -> Result<(), DeviceError>;

    /// As [`Device::store64_burst`], for a register of 32 bits: one access of
    /// four bytes for each of `values`.
    ///
    /// # Errors
    /// As [`Device::store64_burst`].
    fn store32_burst(&mut self, bar: Bar, offset: u64, values: &[u32]) -> Result<(), DeviceError>;

    /// Maps `length` bytes of `bar` at `offset` into memory, for accesses
    /// without a system call each.
    ///
    /// # Errors
    /// [`DeviceError::NotMappable`] where the device only offers calls.
    fn map(&mut self, bar: Bar, offset: u64, length: usize) -> Result<DeviceMap, DeviceError>;

    /// Lets the device reach `mapping` of `memory` by DMA.
    ///
    /// # Errors
    /// [`DeviceError::Refused`] for a range that is taken or out of reach.
    fn dma_map(&mut self, mapping: DmaMapping, memory: BorrowedFd<'_>) -> Result<(), DeviceError>;

    /// Takes back what [`Device::dma_map`] gave, `size` bytes from `iova` on.
    ///
    /// # Errors
    /// [`DeviceError::Refused`] for a range that was not mapped.
    fn dma_unmap(&mut self, iova: u64, size: u64) -> Result<(), DeviceError>;

    /// How many vectors the device has of `kind`; 0 for none.
    fn interrupts(&self, kind: InterruptKind) -> u32;

    /// Has `vector` of `kind` signal `eventfd`, or nothing any more.
    ///
    /// # Errors
    /// [`DeviceError::NoSuchInterrupt`].
    fn set_interrupt(
        &mut self,
        kind: InterruptKind,
        vector: u32,
        eventfd: Option<BorrowedFd<'_>>,
    ) -> Result<(), DeviceError>;

    /// Whoever gives the device wants it back, or has lost it: it should be closed
    /// soon, and what is done with it meanwhile may fail. Touches no register.
    fn leaving(&self) -> bool {
        false
    }

    /// Resets the function.
    ///
    /// # Errors
    /// [`DeviceError::NoReset`] where the device cannot be reset without
    /// hurting others (cases/VFIO-02: a silent no-op is no reset).
    fn reset(&mut self) -> Result<(), DeviceError>;
}

/// One of the six base address registers of a PCI function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Bar(u8);

impl Bar {
    /// The first one, where device feature lists begin.
    pub const ZERO: Self = Self(0);

    /// `None` for a number that no BAR has.
    #[must_use]
    pub fn new(number: u8) -> Option<Self> {
        (number < 6).then_some(Self(number))
    }

    /// 0 to 5.
    #[must_use]
    pub fn number(self) -> u8 {
        self.0
    }
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BAR {}", self.0)
    }
}

/// What an offset counts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Space {
    /// The memory behind a base address register.
    Bar(Bar),
    /// PCI configuration space.
    Config,
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bar(bar) => bar.fmt(f),
            Self::Config => f.write_str("configuration space"),
        }
    }
}

/// The families of interrupts of a PCI device, in VFIO's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InterruptKind {
    /// The legacy line.
    Intx,
    /// Message-signalled.
    Msi,
    /// Message-signalled, from a table in a BAR.
    Msix,
    /// VFIO tells of an uncorrectable error.
    Error,
    /// VFIO asks for the device back.
    Request,
}

/// A range of memory that a device may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DmaMapping {
    /// Address the device uses.
    pub iova: u64,
    /// Bytes.
    pub size: u64,
    /// Where in the memory's file the range begins.
    pub offset: u64,
    /// What the device may do there.
    pub rights: DmaRights,
}

/// What a device may do with memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DmaRights {
    /// Read only.
    Read,
    /// Read and write.
    ReadWrite,
}

/// Who a device is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceIdentity {
    /// How it is reached.
    pub address: CardAddress,
    /// PCI vendor id.
    pub vendor: u16,
    /// PCI device id.
    pub device: u16,
    /// PCI Express device serial number, where the device has one.
    pub serial: Option<SerialNumber>,
}

/// A PCI Express device serial number (extended capability 0003h).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SerialNumber(pub u64);

impl fmt::Display for SerialNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Why an access to a device did not do what it should.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The device is no longer there: it reads as all ones, or its other end
    /// was closed.
    #[error("the device is gone ({0})")]
    Gone(&'static str),
    /// The machine is not set up so that the device could be opened.
    #[error("{why}; {remedy}")]
    Unusable {
        /// What is wrong.
        why: String,
        /// What mends it.
        remedy: &'static str,
    },
    /// No answer within the time the device was opened with.
    #[error("the device did not answer in time ({0})")]
    Timeout(&'static str),
    /// The device, or who serves it, said no. 0 is an error without a name.
    #[error("the device refused the access (errno {errno})")]
    Refused {
        /// What it gave as its reason, as the kernel numbers errors.
        errno: u32,
    },
    /// The access goes beyond the end of its space.
    #[error("{length} bytes at {offset:#x} of {space} are out of range")]
    OutOfRange {
        /// What the offset counts from.
        space: Space,
        /// First byte asked for.
        offset: u64,
        /// Bytes asked for.
        length: u64,
    },
    /// The offset is no multiple of the width of the access.
    #[error("offset {offset:#x} is not aligned to the access")]
    Unaligned {
        /// The offset asked for.
        offset: u64,
    },
    /// The device has no such interrupt.
    #[error("the device has no {kind:?} vector {vector}")]
    NoSuchInterrupt {
        /// Of which kind.
        kind: InterruptKind,
        /// Its number.
        vector: u32,
    },
    /// The device cannot be reset on its own.
    #[error("the device cannot be reset on its own")]
    NoReset,
    /// The part asked for cannot be mapped into memory.
    #[error("this part of the device cannot be mapped")]
    NotMappable,
    /// Who serves the device broke the protocol.
    #[error("the device's server broke the protocol: {0}")]
    Protocol(&'static str),
    /// The operating system failed.
    #[error("{doing}: {source}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl DeviceError {
    /// For `map_err`: an error of the system while `doing` something.
    pub(crate) fn io<E: Into<io::Error>>(doing: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::Io {
            doing,
            source: error.into(),
        }
    }
}

/// Passes a register's value on, unless it is what every read of a device that
/// left the bus gives. For registers that cannot hold all ones.
///
/// # Errors
/// [`DeviceError::Gone`].
pub fn live(value: u64) -> Result<u64, DeviceError> {
    if value == u64::MAX {
        return Err(DeviceError::Gone("a register reads as all ones"));
    }
    Ok(value)
}

/// Refuses an access that does not lie within `size` bytes.
pub(crate) fn check_range(
    space: Space,
    size: u64,
    offset: u64,
    length: u64,
) -> Result<(), DeviceError> {
    match offset.checked_add(length) {
        Some(end) if end <= size => Ok(()),
        _ => Err(DeviceError::OutOfRange {
            space,
            offset,
            length,
        }),
    }
}

/// Refuses a 32-bit access that would be split.
pub(crate) fn check_aligned32(offset: u64) -> Result<(), DeviceError> {
    if offset.is_multiple_of(4) {
        Ok(())
    } else {
        Err(DeviceError::Unaligned { offset })
    }
}

/// Refuses a 64-bit access that would be split.
pub(crate) fn check_aligned64(offset: u64) -> Result<(), DeviceError> {
    if offset.is_multiple_of(8) {
        Ok(())
    } else {
        Err(DeviceError::Unaligned { offset })
    }
}
