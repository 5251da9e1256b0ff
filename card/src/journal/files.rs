//! The file operations of a journal, each as small as the system's own, so
//! that a test can let any of them fail or the power go between any two.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, linkat, openat, renameat, unlinkat};

/// Files of one directory, by name.
pub trait JournalFiles {
    /// The first `limit` bytes of a file; `None` if there is no such file.
    ///
    /// # Errors
    /// Of the system.
    fn read(&mut self, name: &str, limit: u64) -> io::Result<Option<Vec<u8>>>;

    /// Makes a file, or empties the one that is there.
    ///
    /// # Errors
    /// Of the system.
    fn create(&mut self, name: &str) -> io::Result<()>;

    /// Writes some of `bytes` at `offset`, and returns how many.
    ///
    /// # Errors
    /// Of the system.
    fn write(&mut self, name: &str, offset: u64, bytes: &[u8]) -> io::Result<usize>;

    /// Makes a file's content durable.
    ///
    /// # Errors
    /// Of the system; what is durable is then not known.
    fn sync(&mut self, name: &str) -> io::Result<()>;

    /// Cuts a file to `length` bytes.
    ///
    /// # Errors
    /// Of the system.
    fn truncate(&mut self, name: &str, length: u64) -> io::Result<()>;

    /// Puts one file in the place of another, at once.
    ///
    /// # Errors
    /// Of the system.
    fn rename(&mut self, from: &str, to: &str) -> io::Result<()>;

    /// Gives a file a second name.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] where the name is taken.
    fn link(&mut self, name: &str, second: &str) -> io::Result<()>;

    /// Removes a name.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] where there is none.
    fn remove(&mut self, name: &str) -> io::Result<()>;

    /// Makes the names durable.
    ///
    /// # Errors
    /// Of the system; which names are durable is then not known.
    fn sync_directory(&mut self) -> io::Result<()>;
}

/// A directory of the machine.
#[derive(Debug)]
pub struct Directory {
    directory: OwnedFd,
    /// The file that was used last: nearly always the journal.
    open: Option<(String, File)>,
}

impl Directory {
    /// Opens the directory at `path`.
    ///
    /// # Errors
    /// Of the system.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = if path.as_os_str() == OsStr::new("") {
            Path::new(".")
        } else {
            path
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(CWD, path, flags, Mode::empty())?;
        Ok(Self {
            directory,
            open: None,
        })
    }

    fn file(&mut self, name: &str, more: OFlags) -> io::Result<&File> {
        let reuse = matches!(&self.open, Some((open, _)) if open == name) && more.is_empty();
        if !reuse {
            // Never through a link that someone planted, never waiting for the
            // other end of a pipe.
            let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
            let mode = Mode::RUSR | Mode::WUSR;
            let file = openat(&self.directory, name, flags | more, mode)?;
            let kind = FileType::from_raw_mode(fstat(&file)?.st_mode);
            if kind != FileType::RegularFile {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "the journal is no regular file",
                ));
            }
            self.open = Some((name.to_owned(), File::from(file)));
        }
        match &self.open {
            Some((_, file)) => Ok(file),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

impl JournalFiles for Directory {
    fn read(&mut self, name: &str, limit: u64) -> io::Result<Option<Vec<u8>>> {
        self.open = None;
        let file = match self.file(name, OFlags::empty()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            result => result?,
        };
        let mut bytes = Vec::new();
        let _read: usize = file.take(limit).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    fn create(&mut self, name: &str) -> io::Result<()> {
        self.file(name, OFlags::CREATE | OFlags::TRUNC)
            .map(|_file| ())
    }

    fn write(&mut self, name: &str, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        self.file(name, OFlags::empty())?.write_at(bytes, offset)
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        self.file(name, OFlags::empty())?.sync_data()
    }

    fn truncate(&mut self, name: &str, length: u64) -> io::Result<()> {
        self.file(name, OFlags::empty())?.set_len(length)
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        self.open = None;
        Ok(renameat(&self.directory, from, &self.directory, to)?)
    }

    fn link(&mut self, name: &str, second: &str) -> io::Result<()> {
        let (from, to) = (&self.directory, &self.directory);
        Ok(linkat(from, name, to, second, AtFlags::empty())?)
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.open = None;
        Ok(unlinkat(&self.directory, name, AtFlags::empty())?)
    }

    fn sync_directory(&mut self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.directory)?)
    }
}
