//! The sole home of unsafe code: memory maps, volatile accesses to them, the
//! signal that a lost device raises at one, and VFIO's calls.
//!
//! It knows addresses, lengths and the kernel's structures. Whether a file may be
//! mapped, that is, cannot shrink and cannot change where that matters, is for
//! its callers in `sealed.rs`, `vfio_user.rs` and `vfio.rs` to have checked.

use std::ffi::{c_int, c_void};
use std::ops::Deref;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use nix::libc::siginfo_t;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use rustix::io::Errno;
use rustix::ioctl::{self, NoArg, Opcode, Setter, Updater, opcode};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use vfio_bindings::bindings::vfio::{vfio_device_info, vfio_irq_info};
use vfio_ioctls::{VfioContainer, VfioError};

use crate::device::{Bar, DeviceError, DmaMapping, Space, check_range};

/// A mapping of a file, undone when dropped.
#[derive(Debug)]
struct Mapping {
    start: NonNull<c_void>,
    length: usize,
}

impl Mapping {
    /// Maps `length` bytes of `file` from `offset` on; `length` is not 0.
    fn new(
        file: BorrowedFd<'_>,
        offset: u64,
        length: usize,
        rights: ProtFlags,
        flags: MapFlags,
    ) -> Result<Self, Errno> {
        // SAFETY: a null hint lets the kernel choose an unused range, so no
        // memory that Rust knows of is replaced.
        let start = unsafe { mmap(ptr::null_mut(), length, rights, flags, file, offset) }?;
        // The kernel never maps at 0 without being told to.
        let start = NonNull::new(start).ok_or(Errno::NOMEM)?;
        Ok(Self { start, length })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is ours since `new`, and whoever borrowed from it
        // borrowed from the owner that is being dropped.
        if let Err(error) = unsafe { munmap(self.start.as_ptr(), self.length) } {
            tracing::error!(%error, "a mapping could not be undone");
        }
    }
}

/// The bytes of a sealed file. Made by [`crate::SealedMemfd::map`] only.
#[derive(Debug)]
pub struct SealedMap {
    /// `None` for a file without bytes, which cannot be mapped.
    mapping: Option<Mapping>,
}

// SAFETY: the bytes are only ever read, by whichever thread.
unsafe impl Send for SealedMap {}
// SAFETY: as above.
unsafe impl Sync for SealedMap {}

impl SealedMap {
    /// Maps a file that is `length` bytes long and sealed against writing,
    /// growing and shrinking: that is what makes the slice below sound.
    pub(crate) fn new(sealed: BorrowedFd<'_>, length: usize) -> Result<Self, Errno> {
        // Private, because kernels before 6.7 refuse shared maps of sealed
        // files; without writes there is no difference. Not populated: that
        // measured slower than the faults it saves.
        let mapping = match length {
            0 => None,
            _ => Some(Mapping::new(
                sealed,
                0,
                length,
                ProtFlags::READ,
                MapFlags::PRIVATE,
            )?),
        };
        Ok(Self { mapping })
    }
}

impl Deref for SealedMap {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.mapping {
            None => &[],
            // SAFETY: `length` bytes are mapped and readable as long as `self`
            // lives; the seals keep everyone, this process included, from
            // writing to them or taking them away; any byte is a valid u8.
            Some(map) => unsafe {
                std::slice::from_raw_parts(map.start.cast::<u8>().as_ptr(), map.length)
            },
        }
    }
}

/// A part of a device mapped into memory. Its content changes by itself, so it
/// is reached through single volatile accesses and never borrowed.
#[derive(Debug)]
pub struct DeviceMap {
    /// Set where the kernel may take the device away under the mapping. Given
    /// back before the mapping is undone.
    guard: Option<Guard>,
    mapping: Mapping,
    bar: Bar,
}

// SAFETY: a mapping belongs to no thread.
unsafe impl Send for DeviceMap {}

impl DeviceMap {
    /// Maps a part of a device's file that cannot become shorter while it is
    /// mapped. `length` is not 0.
    pub(crate) fn new(
        file: BorrowedFd<'_>,
        offset: u64,
        length: usize,
        bar: Bar,
    ) -> Result<Self, Errno> {
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        let mapping = Mapping::new(file, offset, length, rights, MapFlags::SHARED)?;
        Ok(Self {
            guard: None,
            mapping,
            bar,
        })
    }

    /// As [`DeviceMap::new`], for a device that may go while it is mapped: the
    /// access that meets it, and each one after it, is [`DeviceError::Gone`].
    pub(crate) fn guarded(
        file: BorrowedFd<'_>,
        offset: u64,
        length: usize,
        bar: Bar,
    ) -> Result<Self, Errno> {
        let mut map = Self::new(file, offset, length, bar)?;
        map.guard = Some(Guard::over(&map.mapping)?);
        Ok(map)
    }

    /// Bytes that are mapped.
    #[must_use]
    pub fn length(&self) -> usize {
        self.mapping.length
    }

    /// Reads a 64-bit word in one access, little-endian as PCI is.
    ///
    /// # Errors
    /// [`DeviceError::OutOfRange`] or [`DeviceError::Unaligned`].
    pub fn load64(&self, offset: u64) -> Result<u64, DeviceError> {
        let place = self.place::<u64>(offset)?;
        // SAFETY: `place` is aligned and its eight bytes are mapped readable.
        let value = u64::from_le(unsafe { place.read_volatile() });
        self.still_there()?;
        Ok(value)
    }

    /// Reads a 32-bit word in one access.
    ///
    /// # Errors
    /// As [`DeviceMap::load64`].
    pub fn load32(&self, offset: u64) -> Result<u32, DeviceError> {
        let place = self.place::<u32>(offset)?;
        // SAFETY: `place` is aligned and its four bytes are mapped readable.
        let value = u32::from_le(unsafe { place.read_volatile() });
        self.still_there()?;
        Ok(value)
    }

    /// Writes a 64-bit word in one access.
    ///
    /// # Errors
    /// [`DeviceError::OutOfRange`] or [`DeviceError::Unaligned`].
    pub fn store64(&mut self, offset: u64, value: u64) -> Result<(), DeviceError> {
        let place = self.place::<u64>(offset)?;
        // SAFETY: `place` is aligned and its eight bytes are mapped writable.
        unsafe { place.write_volatile(value.to_le()) };
        self.still_there()
    }

    /// Writes a 32-bit word in one access.
    ///
    /// # Errors
    /// As [`DeviceMap::load64`].
    pub fn store32(&mut self, offset: u64, value: u32) -> Result<(), DeviceError> {
        let place = self.place::<u32>(offset)?;
        // SAFETY: `place` is aligned and its four bytes are mapped writable.
        unsafe { place.write_volatile(value.to_le()) };
        self.still_there()
    }

    fn still_there(&self) -> Result<(), DeviceError> {
        match &self.guard {
            Some(guard) if guard.lost() => Err(DeviceError::Gone("its memory was taken away")),
            _ => Ok(()),
        }
    }

    /// Where an aligned word lies that is wholly within the mapping.
    fn place<W>(&self, offset: u64) -> Result<NonNull<W>, DeviceError> {
        let length = u64::try_from(self.mapping.length).unwrap_or(u64::MAX);
        let space = Space::Bar(self.bar);
        let width = u64::try_from(size_of::<W>()).unwrap_or(u64::MAX);
        check_range(space, length, offset, width)?;
        if !offset.is_multiple_of(width) {
            return Err(DeviceError::Unaligned { offset });
        }
        let out_of_range = |_too_wide| DeviceError::OutOfRange {
            space,
            offset,
            length: width,
        };
        let offset = usize::try_from(offset).map_err(out_of_range)?;
        // SAFETY: `offset` and the word behind it lie within the mapping, as
        // was just checked; mappings begin on a page, so the word is aligned.
        Ok(unsafe { self.mapping.start.byte_add(offset) }.cast())
    }
}

/// Mappings at which the kernel may raise SIGBUS, at most: six BARs of ten cards.
const MOST_GUARDED: usize = 64;

/// One of them, for the signal's handler: nothing else may it look at.
struct Guarded {
    /// First byte; 0: the place is free. Taken first and given back last.
    start: AtomicUsize,
    length: AtomicUsize,
    lost: AtomicBool,
}

static GUARDED: [Guarded; MOST_GUARDED] = [const {
    Guarded {
        start: AtomicUsize::new(0),
        length: AtomicUsize::new(0),
        lost: AtomicBool::new(false),
    }
}; MOST_GUARDED];

/// What was there for SIGBUS before us; set before our handler is.
static BEFORE: OnceLock<SigAction> = OnceLock::new();

/// A place in the table, given back when dropped.
#[derive(Debug)]
struct Guard(usize);

impl Guard {
    fn over(mapping: &Mapping) -> Result<Self, Errno> {
        install()?;
        let start = mapping.start.as_ptr().expose_provenance();
        let taken = GUARDED.iter().position(|place| {
            let free = place
                .start
                .compare_exchange(0, start, Ordering::SeqCst, Ordering::SeqCst);
            free.is_ok()
        });
        let guard = Self(taken.ok_or(Errno::NOMEM)?);
        if let Some(place) = guard.place() {
            place.lost.store(false, Ordering::SeqCst);
            place.length.store(mapping.length, Ordering::SeqCst);
        }
        Ok(guard)
    }

    fn place(&self) -> Option<&'static Guarded> {
        GUARDED.get(self.0)
    }

    fn lost(&self) -> bool {
        self.place()
            .is_some_and(|place| place.lost.load(Ordering::SeqCst))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(place) = self.place() {
            place.length.store(0, Ordering::SeqCst);
            place.start.store(0, Ordering::SeqCst);
        }
    }
}

/// Has SIGBUS come to us; once in a process.
fn install() -> Result<(), Errno> {
    static INSTALLED: OnceLock<Result<(), Errno>> = OnceLock::new();
    *INSTALLED.get_or_init(|| {
        let flags = SaFlags::SA_SIGINFO | SaFlags::SA_ONSTACK;
        let ours = SigAction::new(SigHandler::SigAction(on_bus_error), flags, SigSet::empty());
        let failed = |error: nix::Error| Errno::from_raw_os_error(error as i32);
        let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
        // SAFETY: the default action runs no code of ours; what was there is
        // put back by the handler for faults that are not ours.
        let before = unsafe { sigaction(Signal::SIGBUS, &default) }.map_err(failed)?;
        BEFORE.get_or_init(|| before);
        // SAFETY: the handler makes only system calls that may be made in one,
        // and reads only atomics and what was set before.
        unsafe { sigaction(Signal::SIGBUS, &ours) }.map_err(failed)?;
        Ok(())
    })
}

/// A device's memory is gone: ordinary memory takes its place, so that the access
/// ends, and whoever made it is told by the mark.
extern "C" fn on_bus_error(_signal: c_int, info: *mut siginfo_t, _context: *mut c_void) {
    // SAFETY: the kernel gives a handler with SA_SIGINFO a valid `info`.
    let at = unsafe { (*info).si_addr() }.addr();
    for place in &GUARDED {
        let start = place.start.load(Ordering::SeqCst);
        let length = place.length.load(Ordering::SeqCst);
        if start == 0 || at < start || at.wrapping_sub(start) >= length {
            continue;
        }
        place.lost.store(true, Ordering::SeqCst);
        // SAFETY: the range is a mapping of ours that is still in use, reached by
        // volatile accesses only: none sees anything but other bytes.
        let replaced = unsafe {
            mmap_anonymous(
                ptr::with_exposed_provenance_mut(start),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::FIXED,
            )
        };
        if replaced.is_ok() {
            return;
        }
    }
    // Not ours: the access is made again, and ends as it would have without us.
    if let Some(before) = BEFORE.get() {
        // SAFETY: it was in force before, so its handler is still there.
        let _old = unsafe { sigaction(Signal::SIGBUS, before) };
    }
}

/// A descriptor of our own for what an owner of another crate holds.
pub(crate) fn duplicate<T: AsRawFd>(owner: &T) -> Result<OwnedFd, Errno> {
    // SAFETY: the owner holds it open at least as long as it is borrowed here.
    let borrowed = unsafe { BorrowedFd::borrow_raw(owner.as_raw_fd()) };
    rustix::io::fcntl_dupfd_cloexec(borrowed, 0)
}

/// Memory that a device may reach, mapped as long as it may.
#[derive(Debug)]
pub(crate) struct DmaMemory {
    mapping: Mapping,
    iova: u64,
}

// SAFETY: a mapping belongs to no thread, and nobody here looks into it.
unsafe impl Send for DmaMemory {}

impl DmaMemory {
    /// Maps a part of `memory` and lets the container's devices read and write it.
    pub(crate) fn give(
        container: &VfioContainer,
        asked: DmaMapping,
        memory: BorrowedFd<'_>,
    ) -> Result<Self, Errno> {
        let length = usize::try_from(asked.size).map_err(|_wide| Errno::INVAL)?;
        if length == 0 {
            return Err(Errno::INVAL);
        }
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        let mapping = Mapping::new(memory, asked.offset, length, rights, MapFlags::SHARED)?;
        let start = mapping.start.as_ptr().cast();
        // SAFETY: the range is ours, no reference into it is ever made, and it stays
        // mapped until it is taken back, or the container closed.
        unsafe { container.vfio_dma_map(asked.iova, length, start) }
            .map_err(|error| failed(&error))?;
        Ok(Self {
            mapping,
            iova: asked.iova,
        })
    }

    pub(crate) fn iova(&self) -> u64 {
        self.iova
    }

    pub(crate) fn size(&self) -> u64 {
        u64::try_from(self.mapping.length).unwrap_or(u64::MAX)
    }

    pub(crate) fn take_back(self, container: &VfioContainer) -> Result<(), Errno> {
        let taken = container.vfio_dma_unmap(self.iova, self.mapping.length);
        taken.map_err(|error| failed(&error))
    }
}

/// The number in an error of the set-up crate, where it has one.
fn failed(error: &VfioError) -> Errno {
    match error {
        VfioError::IommuDmaMap(error) | VfioError::IommuDmaUnmap(error) => {
            Errno::from_raw_os_error(error.errno())
        }
        _ => Errno::IO,
    }
}

/// VFIO's calls (linux/vfio.h), each with the one structure that it takes.
pub(crate) mod vfio {
    use super::{
        AsRawFd as _, BorrowedFd, Errno, NoArg, Opcode, Setter, Updater, ioctl, opcode,
        vfio_device_info, vfio_irq_info,
    };

    const GET_INFO: Opcode = opcode::none(b';', 107);
    const GET_REGION_INFO: Opcode = opcode::none(b';', 108);
    const GET_IRQ_INFO: Opcode = opcode::none(b';', 109);
    const SET_IRQS: Opcode = opcode::none(b';', 110);
    const RESET: Opcode = opcode::none(b';', 111);

    /// `struct vfio_region_info` with room for its capabilities, as the kernel
    /// writes it; in native words, for it is so aligned.
    #[derive(Debug, Clone, Copy)]
    #[repr(C, align(8))]
    pub(crate) struct RegionInfo(pub(crate) [u8; Self::SIZE]);

    impl RegionInfo {
        /// The structure is 32 bytes; a list of six areas takes 112 more.
        pub(crate) const SIZE: usize = 4096;
    }

    /// `struct vfio_irq_set` with one file descriptor behind it, or none.
    #[derive(Debug, Clone, Copy)]
    #[repr(C)]
    struct IrqSet {
        size: u32,
        flags: u32,
        index: u32,
        start: u32,
        count: u32,
        eventfd: i32,
    }

    pub(crate) fn device_info(device: BorrowedFd<'_>) -> Result<vfio_device_info, Errno> {
        let mut info = vfio_device_info {
            argsz: size(size_of::<vfio_device_info>()),
            ..vfio_device_info::default()
        };
        // SAFETY: this call takes this structure, and writes no more than `argsz`.
        unsafe { ioctl::ioctl(device, Updater::<GET_INFO, _>::new(&mut info)) }?;
        Ok(info)
    }

    pub(crate) fn region_info(device: BorrowedFd<'_>, index: u32) -> Result<RegionInfo, Errno> {
        let mut info = RegionInfo([0; RegionInfo::SIZE]);
        let words = [size(RegionInfo::SIZE), 0, index];
        for (place, word) in info.0.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        // SAFETY: this call takes this structure, and writes no more than its
        // first word says.
        unsafe { ioctl::ioctl(device, Updater::<GET_REGION_INFO, _>::new(&mut info)) }?;
        Ok(info)
    }

    pub(crate) fn irq_info(device: BorrowedFd<'_>, index: u32) -> Result<vfio_irq_info, Errno> {
        let mut info = vfio_irq_info {
            argsz: size(size_of::<vfio_irq_info>()),
            index,
            ..vfio_irq_info::default()
        };
        // SAFETY: this call takes this structure, and writes no more than `argsz`.
        unsafe { ioctl::ioctl(device, Updater::<GET_IRQ_INFO, _>::new(&mut info)) }?;
        Ok(info)
    }

    /// Has a vector signal `eventfd`, or nothing any more.
    pub(crate) fn set_irq(
        device: BorrowedFd<'_>,
        index: u32,
        vector: u32,
        eventfd: Option<BorrowedFd<'_>>,
    ) -> Result<(), Errno> {
        /// `VFIO_IRQ_SET_DATA_EVENTFD` and `VFIO_IRQ_SET_ACTION_TRIGGER`.
        const EVENTFD_TRIGGER: u32 = 1 << 2 | 1 << 5;
        let set = IrqSet {
            size: size(size_of::<IrqSet>()),
            flags: EVENTFD_TRIGGER,
            index,
            start: vector,
            count: 1,
            // -1 takes the descriptor back.
            eventfd: eventfd.map_or(-1, |fd| fd.as_raw_fd()),
        };
        // SAFETY: this call takes this structure, and reads no more than `size`.
        unsafe { ioctl::ioctl(device, Setter::<SET_IRQS, _>::new(set)) }
    }

    pub(crate) fn reset(device: BorrowedFd<'_>) -> Result<(), Errno> {
        // SAFETY: this call takes nothing.
        unsafe { ioctl::ioctl(device, NoArg::<RESET>::new()) }
    }

    fn size(of: usize) -> u32 {
        u32::try_from(of).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    use super::*;

    /// The kernel raises the same signal where a file ends under its mapping as
    /// where a device goes.
    #[test]
    fn d4_memory_that_is_taken_away_is_an_error_and_no_death() {
        let file = memfd_create("device", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, 8192).unwrap();
        let mut map = DeviceMap::guarded(file.as_fd(), 0, 8192, Bar::ZERO).unwrap();
        let mut other = DeviceMap::guarded(file.as_fd(), 0, 4096, Bar::ZERO).unwrap();
        map.store64(4096, 7).unwrap();
        assert_eq!(map.load64(4096).unwrap(), 7);
        assert_eq!(map.load32(4096).unwrap(), 7);
        ftruncate(&file, 4096).unwrap();
        assert!(matches!(map.load64(4096), Err(DeviceError::Gone(_))));
        // It stays so, also where memory is left.
        assert!(matches!(map.store64(0, 1), Err(DeviceError::Gone(_))));
        assert!(matches!(map.store32(0, 1), Err(DeviceError::Gone(_))));
        // Others are not touched by it.
        other.store64(0, 9).unwrap();
        assert_eq!(other.load64(0).unwrap(), 9);
        drop(map);
        // The place is free again, and unmarked.
        let again = DeviceMap::guarded(file.as_fd(), 0, 4096, Bar::ZERO).unwrap();
        assert_eq!(again.load64(0).unwrap(), 9);
    }

    #[test]
    fn words_out_of_range_or_step_are_refused() {
        let file = memfd_create("device", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, 4096).unwrap();
        let mut map = DeviceMap::new(file.as_fd(), 0, 4096, Bar::ZERO).unwrap();
        map.store32(4092, 3).unwrap();
        assert!(map.load64(4092).is_err());
        assert!(matches!(
            map.load32(4096),
            Err(DeviceError::OutOfRange { .. })
        ));
        assert!(matches!(map.load64(4), Err(DeviceError::Unaligned { .. })));
        assert!(matches!(
            map.store32(2, 0),
            Err(DeviceError::Unaligned { .. })
        ));
    }
}
