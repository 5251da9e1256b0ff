//! Bytes that nobody can change any more: an anonymous file in memory, sealed
//! against writing, growing and shrinking, and against taking the seals off.
//!
//! What is checked is what is loaded, because there is only one set of bytes
//! and it cannot move under the reader (threat B2). It knows nothing of what
//! the bytes mean.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    FileType, MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, memfd_create,
    sendfile,
};
use rustix::io::{Errno, write};

pub use crate::raw::SealedMap;

/// What makes a file's content final.
const ALL_SEALS: SealFlags = SealFlags::WRITE
    .union(SealFlags::GROW)
    .union(SealFlags::SHRINK)
    .union(SealFlags::SEAL);

/// Bytes copied at once from a reader.
const COPY_STEP: usize = 128 << 10;

/// A sealed anonymous file. Its content is the same for everyone for ever.
#[derive(Debug)]
pub struct SealedMemfd {
    file: OwnedFd,
    length: u64,
}

/// An anonymous file that is still being written.
#[derive(Debug)]
pub struct MemfdWriter {
    file: OwnedFd,
    length: u64,
    limit: u64,
}

/// Why bytes could not be sealed, or a descriptor is not what it should be.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// More bytes than allowed.
    #[error("more than {limit} bytes")]
    TooLarge {
        /// Most bytes that were allowed.
        limit: u64,
    },
    /// Not an anonymous file in memory.
    #[error("the descriptor is no memory file")]
    NotMemory,
    /// An anonymous file that can still change.
    #[error("the memory file is not sealed")]
    NotSealed,
    /// The source of the bytes failed.
    #[error("reading the bytes to seal: {0}")]
    Read(#[source] io::Error),
    /// The operating system failed.
    #[error("{doing}: {source}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl SealError {
    fn io(doing: &'static str) -> impl FnOnce(Errno) -> Self {
        move |errno| Self::Io {
            doing,
            source: errno.into(),
        }
    }
}

impl MemfdWriter {
    /// An empty file that takes at most `limit` bytes.
    ///
    /// # Errors
    /// [`SealError::Io`].
    pub fn new(limit: u64) -> Result<Self, SealError> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("reconf-bitstream", flags)
            .map_err(SealError::io("making a memory file"))?;
        Ok(Self {
            file,
            length: 0,
            limit,
        })
    }

    /// Bytes written so far.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Appends all of `bytes`.
    ///
    /// # Errors
    /// [`SealError::TooLarge`], before anything of `bytes` is written.
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<(), SealError> {
        let limit = self.limit;
        let more = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let length = self.length.saturating_add(more);
        if length > limit {
            return Err(SealError::TooLarge { limit });
        }
        while !bytes.is_empty() {
            let written = match write(&self.file, bytes) {
                Err(Errno::INTR) => continue,
                result => result.map_err(SealError::io("writing a memory file"))?,
            };
            bytes = bytes.get(written..).unwrap_or_default();
        }
        self.length = length;
        Ok(())
    }

    /// Makes the content final.
    ///
    /// # Errors
    /// [`SealError::Io`].
    pub fn seal(self) -> Result<SealedMemfd, SealError> {
        fcntl_add_seals(&self.file, ALL_SEALS).map_err(SealError::io("sealing a memory file"))?;
        Ok(SealedMemfd {
            file: self.file,
            length: self.length,
        })
    }
}

impl SealedMemfd {
    /// Copies all that `reader` has, at most `limit` bytes, and seals the copy.
    ///
    /// # Errors
    /// [`SealError::TooLarge`] as soon as one byte more than `limit` comes.
    pub fn from_reader(mut reader: impl Read, limit: u64) -> Result<Self, SealError> {
        let mut writer = MemfdWriter::new(limit)?;
        let mut buffer = vec![0; COPY_STEP];
        loop {
            match reader.read(&mut buffer) {
                Ok(0) => return writer.seal(),
                Ok(got) => writer.write(buffer.get(..got).unwrap_or_default())?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(SealError::Read(error)),
            }
        }
    }

    /// Copies what `file` has from its current position on, at most `limit` bytes, and seals the
    /// copy. As [`Self::from_reader`], but the kernel copies, once instead of twice.
    ///
    /// # Errors
    /// [`SealError::TooLarge`] as soon as one byte more than `limit` comes.
    pub fn from_file(file: &File, limit: u64) -> Result<Self, SealError> {
        let mut writer = MemfdWriter::new(limit)?;
        loop {
            // One byte more than allowed, so that a file that is too long shows.
            let room = limit.saturating_sub(writer.length).saturating_add(1);
            let room = usize::try_from(room).unwrap_or(usize::MAX);
            match sendfile(&writer.file, file, None, room) {
                Ok(0) => return writer.seal(),
                Ok(copied) => {
                    let copied = u64::try_from(copied).unwrap_or(u64::MAX);
                    writer.length = writer.length.saturating_add(copied);
                    if writer.length > limit {
                        return Err(SealError::TooLarge { limit });
                    }
                }
                Err(Errno::INTR) => {}
                // Some file systems cannot hand their pages on.
                Err(Errno::INVAL) if writer.length == 0 => return Self::from_reader(file, limit),
                Err(errno) => return Err(SealError::Read(errno.into())),
            }
        }
    }

    /// Takes a descriptor that came from someone else, if its content is final.
    ///
    /// # Errors
    /// [`SealError::NotMemory`] for a pipe, a socket or a file on a disk,
    /// [`SealError::NotSealed`] for one that can still change.
    pub fn adopt(file: OwnedFd) -> Result<Self, SealError> {
        // Only files in memory know seals; everything else says EINVAL.
        let seals = match fcntl_get_seals(&file) {
            Err(Errno::INVAL | Errno::BADF) => return Err(SealError::NotMemory),
            result => result.map_err(SealError::io("reading the seals of a file"))?,
        };
        let stat = fstat(&file).map_err(SealError::io("looking at a file"))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(SealError::NotMemory);
        }
        if !seals.contains(ALL_SEALS) {
            return Err(SealError::NotSealed);
        }
        let length = u64::try_from(stat.st_size).map_err(|_negative| SealError::NotMemory)?;
        Ok(Self { file, length })
    }

    /// Bytes of content.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Maps the content into memory, for reading.
    ///
    /// # Errors
    /// [`SealError::Io`], for one when there is no room for so many bytes.
    pub fn map(&self) -> Result<SealedMap, SealError> {
        let doing = "mapping a sealed memory file";
        let length = usize::try_from(self.length)
            .map_err(|_too_wide| SealError::io(doing)(Errno::OVERFLOW))?;
        SealedMap::new(self.file.as_fd(), length).map_err(SealError::io(doing))
    }

    /// A second handle on the same bytes.
    ///
    /// # Errors
    /// [`SealError::Io`] when there are no descriptors left.
    pub fn try_clone(&self) -> Result<Self, SealError> {
        let file = self.file.try_clone().map_err(|source| SealError::Io {
            doing: "duplicating a descriptor",
            source,
        })?;
        Ok(Self {
            file,
            length: self.length,
        })
    }
}

impl AsFd for SealedMemfd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl From<SealedMemfd> for OwnedFd {
    fn from(sealed: SealedMemfd) -> Self {
        sealed.file
    }
}

#[cfg(test)]
mod tests;
