//! A strict vfio-user client: a PCI device that another process serves on a
//! Unix socket.
//!
//! It knows the protocol (version 0.1) and believes none of the server. Every
//! answer's id, command, flags and exact size are checked, no length is used
//! before it was checked against a bound, and every wait has a deadline. After
//! an answer that is late or out of step the connection is given up for good:
//! what would come next belongs to nobody.

mod connection;
mod describe;
mod stream;
mod wire;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{SealFlags, fcntl_get_seals};

use crate::address::CardAddress;
use crate::device::{
    Bar, Device, DeviceError, DeviceIdentity, DmaMapping, DmaRights, InterruptKind, Space,
    check_aligned32, check_aligned64, check_range,
};
use crate::pci;
use crate::raw::DeviceMap;

use connection::Connection;
pub(crate) use describe::{RegionInfo, fuzz_reply, parse_region_info};
use wire::Command;

/// How long a server may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// To be connected to and to agree on the protocol.
    pub connect: Duration,
    /// To answer a request, each time.
    pub answer: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(2),
            answer: Duration::from_secs(5),
        }
    }
}

/// A device served over vfio-user.
#[derive(Debug)]
pub struct VfioUserDevice {
    connection: Connection,
    identity: DeviceIdentity,
    info: describe::DeviceInfo,
    /// By region index: six BARs, the expansion ROM, configuration space.
    regions: Vec<Region>,
    /// Vectors, by interrupt index.
    interrupts: Vec<u32>,
    /// Most bytes in one read or write.
    transfer: usize,
}

/// A region in VFIO's sense, and the file that maps it.
#[derive(Debug, Default)]
struct Region {
    info: RegionInfo,
    file: Option<OwnedFd>,
}

impl VfioUserDevice {
    /// Connects to the socket at `path` and learns what the device has. The
    /// device is not reset.
    ///
    /// # Errors
    /// [`DeviceError`]; a server that does not speak the protocol is
    /// [`DeviceError::Protocol`].
    pub fn open(path: &Path, deadlines: Deadlines) -> Result<Self, DeviceError> {
        let mut connection = Connection::open(path, deadlines)?;
        let limits = connection.negotiate()?;
        let info = connection.device_info()?;
        let mut regions = Vec::new();
        for index in 0..=wire::CONFIG_REGION {
            regions.push(region(&mut connection, index)?);
        }
        let mut interrupts = Vec::new();
        for index in 0..info.interrupts.min(wire::INTERRUPT_KINDS) {
            interrupts.push(connection.interrupt_count(index)?);
        }
        connection.set_answer_deadline(deadlines.answer);
        let mut device = Self {
            connection,
            identity: DeviceIdentity {
                address: CardAddress::VfioUser(path.to_owned()),
                vendor: 0,
                device: 0,
                serial: None,
            },
            info,
            regions,
            interrupts,
            transfer: limits.transfer,
        };
        let (vendor, id) = pci::ids(&mut device)?;
        device.identity.vendor = vendor;
        device.identity.device = id;
        device.identity.serial = pci::serial_number(&mut device)?;
        Ok(device)
    }

    fn region(&self, space: Space) -> Option<&Region> {
        self.regions
            .get(usize::try_from(index(space)).unwrap_or(usize::MAX))
    }

    fn check(&self, space: Space, offset: u64, length: usize) -> Result<(), DeviceError> {
        let length = u64::try_from(length).unwrap_or(u64::MAX);
        check_range(space, self.size(space), offset, length)
    }
}

impl Device for VfioUserDevice {
    fn identity(&self) -> &DeviceIdentity {
        &self.identity
    }

    fn size(&self, space: Space) -> u64 {
        self.region(space).map_or(0, |region| region.info.size)
    }

    fn read(&mut self, space: Space, offset: u64, data: &mut [u8]) -> Result<(), DeviceError> {
        self.check(space, offset, data.len())?;
        let mut at = offset;
        for piece in data.chunks_mut(self.transfer) {
            self.connection.region_read(index(space), at, piece)?;
            at = at.saturating_add(u64::try_from(piece.len()).unwrap_or(u64::MAX));
        }
        Ok(())
    }

    fn write(&mut self, space: Space, offset: u64, data: &[u8]) -> Result<(), DeviceError> {
        self.check(space, offset, data.len())?;
        let mut at = offset;
        for piece in data.chunks(self.transfer) {
            self.connection.region_write(index(space), at, piece)?;
            at = at.saturating_add(u64::try_from(piece.len()).unwrap_or(u64::MAX));
        }
        Ok(())
    }

    fn load64(&mut self, bar: Bar, offset: u64) -> Result<u64, DeviceError> {
        check_aligned64(offset)?;
        let space = Space::Bar(bar);
        self.check(space, offset, 8)?;
        let mut word = [0; 8];
        self.connection
            .region_read(index(space), offset, &mut word)?;
        Ok(u64::from_le_bytes(word))
    }

    fn store64(&mut self, bar: Bar, offset: u64, value: u64) -> Result<(), DeviceError> {
        check_aligned64(offset)?;
        let space = Space::Bar(bar);
        self.check(space, offset, 8)?;
        self.connection
            .region_write(index(space), offset, &value.to_le_bytes())
    }

    fn store64_burst(&mut self, bar: Bar, offset: u64, values: &[u64]) -> Result<(), DeviceError> {
        check_aligned64(offset)?;
        let space = Space::Bar(bar);
        self.check(space, offset, 8)?;
        let values = values.iter().map(|value| value.to_le_bytes());
        self.connection.post_stores(index(space), offset, values)
    }

    fn store32_burst(&mut self, bar: Bar, offset: u64, values: &[u32]) -> Result<(), DeviceError> {
        check_aligned32(offset)?;
        let space = Space::Bar(bar);
        self.check(space, offset, 4)?;
        let values = values.iter().map(|value| value.to_le_bytes());
        self.connection.post_stores(index(space), offset, values)
    }

    fn map(&mut self, bar: Bar, offset: u64, length: usize) -> Result<DeviceMap, DeviceError> {
        let space = Space::Bar(bar);
        self.check(space, offset, length)?;
        let region = self.region(space).ok_or(DeviceError::NotMappable)?;
        let (Some(file), false) = (&region.file, length == 0) else {
            return Err(DeviceError::NotMappable);
        };
        let wide = u64::try_from(length).unwrap_or(u64::MAX);
        let covered = region
            .info
            .mappable
            .iter()
            .any(|area| area.covers(offset, wide));
        let start = region.info.file_offset.checked_add(offset);
        // A file that its server could cut short would kill us at an access.
        let seals = fcntl_get_seals(file).unwrap_or(SealFlags::empty());
        match start {
            Some(start) if covered && seals.contains(SealFlags::SHRINK) => {
                let map = DeviceMap::new(file.as_fd(), start, length, bar);
                map.map_err(DeviceError::io("mapping a device's memory"))
            }
            _ => Err(DeviceError::NotMappable),
        }
    }

    fn dma_map(&mut self, mapping: DmaMapping, memory: BorrowedFd<'_>) -> Result<(), DeviceError> {
        let rights = match mapping.rights {
            DmaRights::Read => wire::DMA_READ,
            DmaRights::ReadWrite => wire::DMA_READ | wire::DMA_WRITE,
        };
        let body = wire::dma_map(&mapping, rights);
        self.connection
            .call(Command::DmaMap, &[&body], Some(memory), 0)
            .map(|_nothing| ())
    }

    fn dma_unmap(&mut self, iova: u64, size: u64) -> Result<(), DeviceError> {
        let body = wire::dma_unmap(iova, size);
        let length = body.len();
        self.connection
            .call(Command::DmaUnmap, &[&body], None, length)
            .map(|_echo| ())
    }

    fn interrupts(&self, kind: InterruptKind) -> u32 {
        let index = usize::try_from(interrupt_index(kind)).unwrap_or(usize::MAX);
        self.interrupts.get(index).copied().unwrap_or(0)
    }

    fn set_interrupt(
        &mut self,
        kind: InterruptKind,
        vector: u32,
        eventfd: Option<BorrowedFd<'_>>,
    ) -> Result<(), DeviceError> {
        if vector >= self.interrupts(kind) {
            return Err(DeviceError::NoSuchInterrupt { kind, vector });
        }
        let body = wire::set_irqs(interrupt_index(kind), vector);
        self.connection
            .call(Command::SetIrqs, &[&body], eventfd, 0)
            .map(|_nothing| ())
    }

    fn reset(&mut self) -> Result<(), DeviceError> {
        if !self.info.resettable {
            return Err(DeviceError::NoReset);
        }
        self.connection
            .call(Command::Reset, &[], None, 0)
            .map(|_nothing| ())
    }
}

/// Learns about one region; one that the server knows nothing of is empty.
fn region(connection: &mut Connection, index: u32) -> Result<Region, DeviceError> {
    match connection.region_info(index) {
        Ok((info, file)) => Ok(Region { info, file }),
        // A device need not have all of them; VFIO's kernel side refuses too.
        Err(DeviceError::Refused { .. }) if index != wire::CONFIG_REGION => Ok(Region::default()),
        Err(error) => Err(error),
    }
}

fn index(space: Space) -> u32 {
    match space {
        Space::Bar(bar) => u32::from(bar.number()),
        Space::Config => wire::CONFIG_REGION,
    }
}

/// VFIO's number of a kind of interrupts.
pub(crate) fn interrupt_index(kind: InterruptKind) -> u32 {
    match kind {
        InterruptKind::Intx => 0,
        InterruptKind::Msi => 1,
        InterruptKind::Msix => 2,
        InterruptKind::Error => 3,
        InterruptKind::Request => 4,
    }
}

#[cfg(test)]
mod tests;
