//! Entry points for fuzzing: whatever the bytes, none of these panics or hangs.

use crate::address::CardAddress;
use crate::device::{
    Bar, Device, DeviceError, DeviceIdentity, DmaMapping, InterruptKind, Space, check_aligned64,
    check_range,
};
use crate::raw::DeviceMap;

use std::os::fd::BorrowedFd;

/// An answer of a vfio-user server. Returns how many messages it could be.
pub fn vfio_user_reply(data: &[u8]) -> usize {
    crate::vfio_user::fuzz_reply(data)
}

/// A journal's file. Returns the regions that it tells of.
pub fn journal(data: &[u8]) -> usize {
    crate::journal::fuzz_journal(data)
}

/// A card whose BAR 0 and configuration space are `data`, repeated. Returns
/// the ports found.
pub fn dfl_walk(data: &[u8]) -> usize {
    let mut device = ByteDevice::new(data);
    crate::dfl::walk(&mut device).map_or(0, |topology| topology.ports.len())
}

/// A device that reads as a string of bytes, and takes no writes.
#[derive(Debug)]
pub struct ByteDevice<'data> {
    config: &'data [u8],
    bar: &'data [u8],
    identity: DeviceIdentity,
}

impl<'data> ByteDevice<'data> {
    /// The first 512 bytes are the extended part of configuration space, the
    /// rest is BAR 0.
    #[must_use]
    pub fn new(data: &'data [u8]) -> Self {
        let (config, bar) = data.split_at(data.len().min(512));
        let path = std::path::PathBuf::new();
        Self {
            config,
            bar,
            identity: DeviceIdentity {
                address: CardAddress::VfioUser(path),
                vendor: 0,
                device: 0,
                serial: None,
            },
        }
    }
}

impl Device for ByteDevice<'_> {
    fn identity(&self) -> &DeviceIdentity {
        &self.identity
    }

    fn size(&self, space: Space) -> u64 {
        match space {
            Space::Bar(Bar::ZERO) => u64::try_from(self.bar.len()).unwrap_or(0),
            Space::Bar(_) => 0,
            Space::Config => 4096,
        }
    }

    fn read(&mut self, space: Space, offset: u64, data: &mut [u8]) -> Result<(), DeviceError> {
        let length = u64::try_from(data.len()).unwrap_or(u64::MAX);
        check_range(space, self.size(space), offset, length)?;
        let (bytes, base) = match space {
            Space::Config => (self.config, 0x100),
            Space::Bar(_) => (self.bar, 0),
        };
        let at = usize::try_from(offset).unwrap_or(usize::MAX);
        let from = at.checked_sub(base).and_then(|at| bytes.get(at..));
        // What was not given reads as zeros.
        data.fill(0);
        for (to, from) in data.iter_mut().zip(from.unwrap_or_default()) {
            *to = *from;
        }
        Ok(())
    }

    fn write(&mut self, _: Space, _: u64, _: &[u8]) -> Result<(), DeviceError> {
        Ok(())
    }

    fn load64(&mut self, bar: Bar, offset: u64) -> Result<u64, DeviceError> {
        check_aligned64(offset)?;
        let mut word = [0; 8];
        self.read(Space::Bar(bar), offset, &mut word)?;
        Ok(u64::from_le_bytes(word))
    }

    fn store64(&mut self, _: Bar, _: u64, _: u64) -> Result<(), DeviceError> {
        Ok(())
    }

    fn store64_burst(&mut self, _: Bar, _: u64, _: &[u64]) -> Result<(), DeviceError> {
        Ok(())
    }

    fn store32_burst(&mut self, _: Bar, _: u64, _: &[u32]) -> Result<(), DeviceError> {
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
        _: InterruptKind,
        _: u32,
        _: Option<BorrowedFd<'_>>,
    ) -> Result<(), DeviceError> {
        Ok(())
    }

    fn reset(&mut self) -> Result<(), DeviceError> {
        Err(DeviceError::NoReset)
    }
}
