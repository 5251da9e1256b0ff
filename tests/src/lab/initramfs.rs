//! The root file system that a lab VM boots: an archive in cpio's "newc" form
//! (the kernel's Documentation/driver-api/early-userspace/buffer-format.rst).
//!
//! Knows the form. Must not know what the files are for.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result};

/// Folder, as `st_mode` has it.
const FOLDER: u32 = 0o040_755;
/// Regular file.
const FILE: u32 = 0o100_000;

/// An archive that grows entry by entry.
#[derive(Debug, Default)]
pub struct Initramfs {
    bytes: Vec<u8>,
    entries: u32,
}

impl Initramfs {
    /// Adds an empty folder; its parents must be there.
    ///
    /// # Errors
    /// Its name is too long.
    pub fn folder(&mut self, path: &str) -> Result<()> {
        self.entry(path, FOLDER, &[])
    }

    /// Adds a file with these contents and permissions.
    ///
    /// # Errors
    /// It is 4 GiB or longer.
    pub fn file(&mut self, path: &str, mode: u32, contents: &[u8]) -> Result<()> {
        self.entry(path, FILE | mode, contents)
    }

    /// Adds a copy of a file of this machine, executable where that is.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn copy(&mut self, path: &str, from: &Path) -> Result<()> {
        let named = || from.display().to_string();
        let contents = fs::read(from).with_context(named)?;
        let mode = fs::metadata(from).with_context(named)?.permissions().mode();
        self.file(path, mode & 0o777, &contents)
    }

    /// Ends the archive and writes it, uncompressed: a VM unpacks that fastest.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(mut self, to: &Path) -> Result<()> {
        self.entry("TRAILER!!!", 0, &[])?;
        let mut file = fs::File::create(to).with_context(|| to.display().to_string())?;
        file.write_all(&self.bytes)?;
        Ok(())
    }

    fn entry(&mut self, path: &str, mode: u32, contents: &[u8]) -> Result<()> {
        let size = u32::try_from(contents.len()).context("a file of 4 GiB")?;
        let name = u32::try_from(path.len())?.saturating_add(1);
        self.entries = self.entries.saturating_add(1);
        // inode, mode, uid, gid, links, time, size, device ×2, rdev ×2, name, checksum
        let fields = [self.entries, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name, 0];
        write!(self.bytes, "070701")?;
        for field in fields {
            write!(self.bytes, "{field:08x}")?;
        }
        write!(self.bytes, "{path}\0")?;
        self.align();
        self.bytes.extend_from_slice(contents);
        self.align();
        Ok(())
    }

    /// Names and contents each end on four bytes.
    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_as_the_kernel_reads_it() {
        let mut archive = Initramfs::default();
        archive.folder("bin").unwrap();
        archive.file("bin/x", 0o755, b"abcde").unwrap();
        let head = b"07070100000001000041ed";
        assert_eq!(&archive.bytes[..head.len()], head);
        // Header 110 and "bin\0" are 114 bytes, and end at 116.
        assert_eq!(&archive.bytes[116..122], b"070701");
        let contents = 116 + (110_usize + 6).next_multiple_of(4);
        assert_eq!(&archive.bytes[contents..contents + 8], b"abcde\0\0\0");
        assert_eq!(archive.bytes.len(), contents + 8);
    }
}
