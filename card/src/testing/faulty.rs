//! A device whose k-th access fails.

use std::os::fd::BorrowedFd;

use crate::device::{Bar, Device, DeviceError, DeviceIdentity, DmaMapping, InterruptKind, Space};
use crate::raw::DeviceMap;

/// Whether the access that fails happens all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It never reaches the device.
    Lost,
    /// It does, and only the answer is lost.
    Done,
}

/// How many accesses fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lasting {
    /// One.
    Once,
    /// All from there on.
    ForEver,
}

pub(crate) struct Faulty<D> {
    inner: D,
    /// Accesses that still go well.
    good: u64,
    lasting: Lasting,
    effect: Effect,
}

impl<D> Faulty<D> {
    pub(crate) fn new(inner: D, good: u64, lasting: Lasting, effect: Effect) -> Self {
        Self {
            inner,
            good,
            lasting,
            effect,
        }
    }

    fn access<T>(
        &mut self,
        act: impl FnOnce(&mut D) -> Result<T, DeviceError>,
    ) -> Result<T, DeviceError> {
        if self.good > 0 {
            self.good -= 1;
            return act(&mut self.inner);
        }
        if self.lasting == Lasting::Once {
            self.good = u64::MAX;
        }
        if self.effect == Effect::Done {
            act(&mut self.inner)?;
        }
        Err(DeviceError::Refused { errno: 5 })
    }
}

impl<D: Device> Device for Faulty<D> {
    fn identity(&self) -> &DeviceIdentity {
        self.inner.identity()
    }

    fn size(&self, space: Space) -> u64 {
        self.inner.size(space)
    }

    fn read(&mut self, space: Space, offset: u64, data: &mut [u8]) -> Result<(), DeviceError> {
        self.access(|device| device.read(space, offset, data))
    }

    fn write(&mut self, space: Space, offset: u64, data: &[u8]) -> Result<(), DeviceError> {
        self.access(|device| device.write(space, offset, data))
    }

    fn load64(&mut self, bar: Bar, offset: u64) -> Result<u64, DeviceError> {
        self.access(|device| device.load64(bar, offset))
    }

    fn store64(&mut self, bar: Bar, offset: u64, value: u64) -> Result<(), DeviceError> {
        self.access(|device| device.store64(bar, offset, value))
    }

    fn store64_burst(&mut self, bar: Bar, offset: u64, values: &[u64]) -> Result<(), DeviceError> {
        self.access(|device| device.store64_burst(bar, offset, values))
    }

    fn store32_burst(&mut self, bar: Bar, offset: u64, values: &[u32]) -> Result<(), DeviceError> {
        self.access(|device| device.store32_burst(bar, offset, values))
    }

    fn map(&mut self, bar: Bar, offset: u64, length: usize) -> Result<DeviceMap, DeviceError> {
        self.access(|device| device.map(bar, offset, length))
    }

    fn dma_map(&mut self, mapping: DmaMapping, memory: BorrowedFd<'_>) -> Result<(), DeviceError> {
        self.access(|device| device.dma_map(mapping, memory))
    }

    fn dma_unmap(&mut self, iova: u64, size: u64) -> Result<(), DeviceError> {
        self.access(|device| device.dma_unmap(iova, size))
    }

    fn interrupts(&self, kind: InterruptKind) -> u32 {
        self.inner.interrupts(kind)
    }

    fn set_interrupt(
        &mut self,
        kind: InterruptKind,
        vector: u32,
        eventfd: Option<BorrowedFd<'_>>,
    ) -> Result<(), DeviceError> {
        self.access(|device| device.set_interrupt(kind, vector, eventfd))
    }

    fn reset(&mut self) -> Result<(), DeviceError> {
        self.access(Device::reset)
    }
}
