//! The sole home of unsafe code: memory maps, and volatile accesses to them.
//!
//! It knows addresses and lengths. Whether a file may be mapped, that is,
//! cannot shrink and cannot change where that matters, is for its callers in
//! `sealed.rs` and `vfio_user.rs` to have checked.

use std::ffi::c_void;
use std::ops::Deref;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::device::{Bar, DeviceError, Space, check_aligned64, check_range};

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
        Ok(Self { mapping, bar })
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
        let place = self.place(offset)?;
        // SAFETY: `place` is aligned and its eight bytes are mapped readable.
        Ok(u64::from_le(unsafe { place.read_volatile() }))
    }

    /// Writes a 64-bit word in one access.
    ///
    /// # Errors
    /// [`DeviceError::OutOfRange`] or [`DeviceError::Unaligned`].
    pub fn store64(&mut self, offset: u64, value: u64) -> Result<(), DeviceError> {
        let place = self.place(offset)?;
        // SAFETY: `place` is aligned and its eight bytes are mapped writable.
        unsafe { place.write_volatile(value.to_le()) };
        Ok(())
    }

    /// Where an aligned word lies that is wholly within the mapping.
    fn place(&self, offset: u64) -> Result<NonNull<u64>, DeviceError> {
        let length = u64::try_from(self.mapping.length).unwrap_or(u64::MAX);
        let space = Space::Bar(self.bar);
        check_range(space, length, offset, 8)?;
        check_aligned64(offset)?;
        let out_of_range = |_too_wide| DeviceError::OutOfRange {
            space,
            offset,
            length: 8,
        };
        let offset = usize::try_from(offset).map_err(out_of_range)?;
        // SAFETY: `offset` and the word behind it lie within the mapping, as
        // was just checked; mappings begin on a page, so the word is aligned.
        Ok(unsafe { self.mapping.start.byte_add(offset) }.cast())
    }
}
