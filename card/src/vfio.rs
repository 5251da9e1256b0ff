//! Kernel VFIO: a PCI function of this machine that is bound to `vfio-pci`.
//!
//! It knows sysfs, the container, group and device of VFIO, and that a device may
//! go at any time. Setting up is `vfio-ioctls`'; every access after that is a call
//! of our own whose result is looked at, for that crate's own accesses return
//! nothing (its 0.10 logs a failed read and leaves the buffer as it was).
//!
//! 64-bit registers are reached through mapped BARs only: the kernel splits longer
//! calls into narrower accesses, and half a word pushed into a data register is a
//! word too many. A device whose registers cannot be mapped is refused.
//!
//! Opening resets the function, as the kernel does for every new user, and closing
//! may wait a minute for a reset that is not answered: that waits on a thread of its
//! own.

mod place;

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{Errno, pread, pwrite};
use rustix::param::page_size;
use vfio_ioctls::{VfioContainer, VfioDevice, VfioError};

use crate::address::{CardAddress, PciAddress};
use crate::device::{
    Bar, Device, DeviceError, DeviceIdentity, DmaMapping, DmaRights, InterruptKind, Space,
    check_aligned32, check_aligned64, check_range,
};
use crate::pci;
use crate::raw::{self, DeviceMap, DmaMemory};
use crate::vfio_user::{RegionInfo, interrupt_index, parse_region_info};

/// VFIO's numbers of regions: six BARs, the expansion ROM, configuration space.
const CONFIG_REGION: u32 = 7;
/// Kinds of interrupts that [`InterruptKind`] names.
const INTERRUPT_KINDS: u32 = 5;
/// `VFIO_DEVICE_FLAGS_RESET` and `VFIO_DEVICE_FLAGS_PCI`.
const RESETTABLE: u32 = 1;
const PCI: u32 = 2;

/// How long a reset may take: the kernel itself gives a function up after 65 s.
const RESET_WITHIN: Duration = Duration::from_secs(90);

/// A function behind kernel VFIO.
#[derive(Debug)]
pub struct KernelDevice {
    identity: DeviceIdentity,
    /// Mapped parts of BARs. Undone before the device is closed.
    maps: Vec<Part>,
    /// By VFIO's numbers.
    regions: Vec<RegionInfo>,
    interrupts: Vec<u32>,
    resettable: bool,
    memory: Vec<DmaMemory>,
    /// Signalled where the kernel wants the function back, or where the bus told of
    /// an error that cannot be mended.
    called: Option<OwnedFd>,
    handle: Arc<Handle>,
}

/// A mapped part of a BAR.
#[derive(Debug)]
struct Part {
    bar: Bar,
    offset: u64,
    map: DeviceMap,
}

impl Part {
    /// Where in the part this many bytes of a BAR lie.
    fn place(&self, bar: Bar, offset: u64, length: u64) -> Option<u64> {
        let within = offset
            .checked_sub(self.offset)
            .filter(|_| bar == self.bar)?;
        let end = within.checked_add(length)?;
        let mapped = u64::try_from(self.map.length()).unwrap_or(u64::MAX);
        (end <= mapped).then_some(within)
    }
}

/// What keeps the device open, in the order in which it has to be closed.
struct Handle {
    file: OwnedFd,
    _device: VfioDevice,
    container: Arc<VfioContainer>,
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle")
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

impl KernelDevice {
    /// Opens the function, which resets it, and learns what it has.
    ///
    /// # Errors
    /// [`DeviceError::Unusable`] with what is wrong and what mends it, where the
    /// function is not there, not bound to `vfio-pci`, in no IOMMU group, or in
    /// one that others use; else as [`Device::read`].
    pub fn open(address: PciAddress) -> Result<Self, DeviceError> {
        let folder = place::check(Path::new("/sys/bus/pci/devices"), address)?;
        let container = VfioContainer::new(None).map_err(|error| set_up(address, &error))?;
        let container = Arc::new(container);
        let ops: Arc<VfioContainer> = Arc::clone(&container);
        let device =
            VfioDevice::new(&folder, ops, true).map_err(|error| set_up(address, &error))?;
        let file = raw::duplicate(&device).map_err(DeviceError::io("opening a device"))?;
        let handle = Arc::new(Handle {
            file,
            _device: device,
            container,
        });
        let info = raw::vfio::device_info(handle.file.as_fd())
            .map_err(DeviceError::io("asking what a device has"))?;
        if info.flags & PCI == 0 || info.num_regions <= CONFIG_REGION {
            let why = "a device that is no PCI device";
            return Err(DeviceError::Protocol(why));
        }
        let mut device = Self {
            identity: DeviceIdentity {
                address: CardAddress::Pci(address),
                vendor: 0,
                device: 0,
                serial: None,
            },
            maps: Vec::new(),
            regions: regions(handle.file.as_fd())?,
            interrupts: interrupts(handle.file.as_fd(), info.num_irqs)?,
            resettable: info.flags & RESETTABLE != 0,
            memory: Vec::new(),
            called: None,
            handle,
        };
        device.map_bars();
        device.listen()?;
        let (vendor, id) = pci::ids(&mut device)?;
        device.identity.vendor = vendor;
        device.identity.device = id;
        device.identity.serial = pci::serial_number(&mut device)?;
        Ok(device)
    }

    /// Has the kernel call where it wants the function back. Without an answer its
    /// unbinding would wait for us for ever.
    fn listen(&mut self) -> Result<(), DeviceError> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let called = eventfd(0, flags).map_err(DeviceError::io("making an eventfd"))?;
        for kind in [InterruptKind::Request, InterruptKind::Error] {
            if self.interrupts(kind) > 0 {
                self.set_interrupt(kind, 0, Some(called.as_fd()))?;
            }
        }
        self.called = Some(called);
        Ok(())
    }

    /// Maps what may be mapped. What cannot be is refused where it is used.
    fn map_bars(&mut self) {
        for bar in (0..6).filter_map(Bar::new) {
            let Some(region) = self.region(Space::Bar(bar)) else {
                continue;
            };
            let areas = region.mappable.clone();
            for area in areas {
                let Some((offset, length)) = whole_pages(area.offset(), area.size()) else {
                    continue;
                };
                match self.map_part(bar, offset, length) {
                    Ok(map) => self.maps.push(Part { bar, offset, map }),
                    Err(error) => {
                        tracing::warn!(address = %self.identity.address, %bar, offset, %error, "not mapped");
                    }
                }
            }
        }
    }

    fn map_part(&self, bar: Bar, offset: u64, length: usize) -> Result<DeviceMap, DeviceError> {
        let region = self.region(Space::Bar(bar));
        let region = region.ok_or(DeviceError::NotMappable)?;
        let wide = u64::try_from(length).unwrap_or(u64::MAX);
        let covered = region.mappable.iter().any(|area| area.covers(offset, wide));
        let start = region.file_offset.checked_add(offset);
        match start {
            Some(start) if covered && length > 0 => {
                let map = DeviceMap::guarded(self.handle.file.as_fd(), start, length, bar);
                map.map_err(DeviceError::io("mapping a device's memory"))
            }
            _ => Err(DeviceError::NotMappable),
        }
    }

    fn region(&self, space: Space) -> Option<&RegionInfo> {
        self.regions
            .get(usize::try_from(index(space)).unwrap_or(usize::MAX))
    }

    fn check(&self, space: Space, offset: u64, length: usize) -> Result<u64, DeviceError> {
        let length = u64::try_from(length).unwrap_or(u64::MAX);
        check_range(space, self.size(space), offset, length)?;
        let start = self.region(space).map_or(0, |region| region.file_offset);
        start.checked_add(offset).ok_or(DeviceError::OutOfRange {
            space,
            offset,
            length,
        })
    }

    /// The part that holds a word, and where in it.
    fn part(
        &mut self,
        bar: Bar,
        offset: u64,
        length: u64,
    ) -> Result<(&mut Part, u64), DeviceError> {
        check_range(Space::Bar(bar), self.size(Space::Bar(bar)), offset, length)?;
        let mut parts = self.maps.iter_mut();
        parts
            .find_map(|part| part.place(bar, offset, length).map(|place| (part, place)))
            .ok_or(DeviceError::NotMappable)
    }
}

impl Device for KernelDevice {
    fn identity(&self) -> &DeviceIdentity {
        &self.identity
    }

    fn size(&self, space: Space) -> u64 {
        self.region(space).map_or(0, |region| region.size)
    }

    fn read(&mut self, space: Space, offset: u64, data: &mut [u8]) -> Result<(), DeviceError> {
        let mut at = self.check(space, offset, data.len())?;
        let mut rest = data;
        while !rest.is_empty() {
            let done = pread(&self.handle.file, &mut *rest, at).map_err(refused)?;
            rest = rest.get_mut(done..).unwrap_or_default();
            at = advance(at, done)?;
        }
        Ok(())
    }

    fn write(&mut self, space: Space, offset: u64, data: &[u8]) -> Result<(), DeviceError> {
        let mut at = self.check(space, offset, data.len())?;
        let mut rest = data;
        while !rest.is_empty() {
            let done = pwrite(&self.handle.file, rest, at).map_err(refused)?;
            rest = rest.get(done..).unwrap_or_default();
            at = advance(at, done)?;
        }
        Ok(())
    }

    fn load64(&mut self, bar: Bar, offset: u64) -> Result<u64, DeviceError> {
        check_aligned64(offset)?;
        let (part, place) = self.part(bar, offset, 8)?;
        part.map.load64(place)
    }

    fn store64(&mut self, bar: Bar, offset: u64, value: u64) -> Result<(), DeviceError> {
        self.store64_burst(bar, offset, &[value])?;
        // What is posted arrives before a read from the same device is answered.
        let mut command = [0; 4];
        self.read(Space::Config, 0, &mut command)
    }

    fn store64_burst(&mut self, bar: Bar, offset: u64, values: &[u64]) -> Result<(), DeviceError> {
        check_aligned64(offset)?;
        let (part, place) = self.part(bar, offset, 8)?;
        values
            .iter()
            .try_for_each(|value| part.map.store64(place, *value))
    }

    fn store32_burst(&mut self, bar: Bar, offset: u64, values: &[u32]) -> Result<(), DeviceError> {
        check_aligned32(offset)?;
        let (part, place) = self.part(bar, offset, 4)?;
        values
            .iter()
            .try_for_each(|value| part.map.store32(place, *value))
    }

    fn map(&mut self, bar: Bar, offset: u64, length: usize) -> Result<DeviceMap, DeviceError> {
        self.check(Space::Bar(bar), offset, length)?;
        if whole_pages(offset, u64::try_from(length).unwrap_or(u64::MAX)) != Some((offset, length))
        {
            return Err(DeviceError::NotMappable);
        }
        self.map_part(bar, offset, length)
    }

    fn dma_map(&mut self, mapping: DmaMapping, memory: BorrowedFd<'_>) -> Result<(), DeviceError> {
        // `vfio-ioctls` gives both rights or none.
        if mapping.rights != DmaRights::ReadWrite {
            return Err(refused(Errno::OPNOTSUPP));
        }
        let memory = DmaMemory::give(&self.handle.container, mapping, memory).map_err(refused)?;
        self.memory.push(memory);
        Ok(())
    }

    fn dma_unmap(&mut self, iova: u64, size: u64) -> Result<(), DeviceError> {
        let given = |memory: &DmaMemory| memory.iova() == iova && memory.size() == size;
        let at = self.memory.iter().position(given);
        let at = at.ok_or(refused(Errno::INVAL))?;
        let memory = self.memory.swap_remove(at);
        memory.take_back(&self.handle.container).map_err(refused)
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
        let device = self.handle.file.as_fd();
        raw::vfio::set_irq(device, interrupt_index(kind), vector, eventfd).map_err(refused)
    }

    fn leaving(&self) -> bool {
        let Some(called) = &self.called else {
            return false;
        };
        let mut ready = [PollFd::new(called, PollFlags::IN)];
        let now = Timespec::default();
        poll(&mut ready, Some(&now)).is_ok_and(|count| count > 0)
    }

    fn reset(&mut self) -> Result<(), DeviceError> {
        if !self.resettable {
            return Err(DeviceError::NoReset);
        }
        let handle = Arc::clone(&self.handle);
        let (tell, told) = mpsc::channel();
        thread::Builder::new()
            .name("vfio-reset".to_owned())
            .spawn(move || {
                // Nobody listens any more where it came too late.
                let _late = tell.send(raw::vfio::reset(handle.file.as_fd()));
            })
            .map_err(DeviceError::io("starting a thread"))?;
        match told.recv_timeout(RESET_WITHIN) {
            Ok(result) => result.map_err(refused),
            Err(_late) => Err(DeviceError::Timeout("a reset")),
        }
    }
}

impl Drop for KernelDevice {
    fn drop(&mut self) {
        self.maps.clear();
        for memory in self.memory.drain(..) {
            if let Err(error) = memory.take_back(&self.handle.container) {
                tracing::error!(%error, "memory stays mapped for a device until it is closed");
            }
        }
        // The last handle closes the device. `vfio-ioctls` panics there if sysfs no
        // longer knows the function; on a thread of its own that is the end of nothing.
        let handle = Arc::clone(&self.handle);
        let closing = thread::Builder::new()
            .name("vfio-close".to_owned())
            .spawn(move || {
                while Arc::strong_count(&handle) > 1 {
                    thread::sleep(Duration::from_millis(1));
                }
                drop(handle);
            });
        if let Err(error) = closing {
            tracing::error!(%error, "no thread to close a device on");
        }
    }
}

/// Whole pages only: the largest part of an area that begins on one.
fn whole_pages(offset: u64, size: u64) -> Option<(u64, usize)> {
    let page = u64::try_from(page_size()).ok()?;
    let begin = offset.checked_next_multiple_of(page)?;
    let end = offset.checked_add(size)?;
    let length = end.checked_sub(begin)?;
    let length = length.checked_sub(length.checked_rem(page)?)?;
    (length > 0).then_some((begin, usize::try_from(length).ok()?))
}

/// A call that moved nothing has reached a device that is not there.
fn advance(at: u64, done: usize) -> Result<u64, DeviceError> {
    if done == 0 {
        return Err(DeviceError::Gone("an access moved no byte"));
    }
    Ok(at.saturating_add(u64::try_from(done).unwrap_or(u64::MAX)))
}

/// What the kernel says of an access to a device that left the bus, or of one that
/// it does not take.
fn refused(error: Errno) -> DeviceError {
    match error {
        Errno::NODEV | Errno::NXIO => DeviceError::Gone("the kernel says so"),
        error => DeviceError::Refused {
            errno: u32::try_from(error.raw_os_error()).unwrap_or(0),
        },
    }
}

/// Why VFIO does not give us the function, and what mends it.
fn set_up(address: PciAddress, error: &VfioError) -> DeviceError {
    let remedy = match error {
        VfioError::OpenContainer(_) => "load the module vfio-pci, and run as root",
        VfioError::OpenGroup(..) => "does another process hold it, or a VM?",
        VfioError::GroupViable => {
            "bind every function of its IOMMU group to vfio-pci, or to nothing"
        }
        VfioError::VfioExtension | VfioError::ContainerSetIOMMU(_) => "turn the IOMMU on",
        _ => "look into the kernel's log",
    };
    DeviceError::Unusable {
        why: format!("VFIO does not give {address}: {error}"),
        remedy,
    }
}

fn regions(device: BorrowedFd<'_>) -> Result<Vec<RegionInfo>, DeviceError> {
    let mut regions = Vec::new();
    for index in 0..=CONFIG_REGION {
        regions.push(match raw::vfio::region_info(device, index) {
            Ok(info) => parse_region_info(&info.0, index)?,
            // A function need not have all of them.
            Err(Errno::INVAL) if index != CONFIG_REGION => RegionInfo::default(),
            Err(error) => return Err(DeviceError::io("asking for a region")(error)),
        });
    }
    Ok(regions)
}

fn interrupts(device: BorrowedFd<'_>, kinds: u32) -> Result<Vec<u32>, DeviceError> {
    let mut counts = Vec::new();
    for index in 0..kinds.min(INTERRUPT_KINDS) {
        counts.push(match raw::vfio::irq_info(device, index) {
            Ok(info) => info.count,
            Err(Errno::INVAL) => 0,
            Err(error) => return Err(DeviceError::io("asking for interrupts")(error)),
        });
    }
    Ok(counts)
}

fn index(space: Space) -> u32 {
    match space {
        Space::Bar(bar) => u32::from(bar.number()),
        Space::Config => CONFIG_REGION,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_pages_are_mapped() {
        let page = u64::try_from(page_size()).unwrap();
        let length = usize::try_from(page).unwrap();
        assert_eq!(whole_pages(0, page), Some((0, length)));
        assert_eq!(whole_pages(1, page), None);
        assert_eq!(whole_pages(1, page * 2), Some((page, length)));
        assert_eq!(whole_pages(0, page + 1), Some((0, length)));
        assert_eq!(whole_pages(0, 0), None);
        assert_eq!(whole_pages(u64::MAX, 1), None);
    }
}
