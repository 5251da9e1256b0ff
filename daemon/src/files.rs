//! Files read and written with care.
//!
//! Reading: bounded, a plain file with one name, never through a symbolic link, never
//! stuck on a FIFO. Writing: whole or not at all, and durable. Knows nothing of what is
//! in the files, nor where they lie (`layout.rs`).

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{self as sys, AtFlags, CWD, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Nothing is there.
    #[error("{path}: no such file", path = path.display())]
    Missing {
        /// What was asked for.
        path: PathBuf,
    },
    /// More bytes than anyone needs in such a file.
    #[error("{path}: larger than {max} bytes", path = path.display())]
    TooLarge {
        /// Which file.
        path: PathBuf,
        /// The most that is read, in bytes.
        max: u64,
    },
    /// A link, a directory, a FIFO, a device, or a file with a second name.
    #[error("{path}: {what}, not a plain file", path = path.display())]
    Unsafe {
        /// Which file.
        path: PathBuf,
        /// What it is instead.
        what: &'static str,
    },
    /// Others than its owner may write it.
    #[error("{path}: group or others may write it (mode {mode:04o}); run: chmod go-w {path}", path = path.display())]
    UnsafePermissions {
        /// Which file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A secret that others than its owner may read.
    #[error("{path}: group or others may read this secret (mode {mode:04o}); run: chmod go= {path}", path = path.display())]
    Exposed {
        /// Which file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// It belongs to somebody whose word does not count here.
    #[error("{path}: belongs to uid {owner}; only root's and our own files count", path = path.display())]
    UnsafeOwner {
        /// Which file.
        path: PathBuf,
        /// The owner.
        owner: u32,
    },
    /// The system said no.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
}

impl FileError {
    fn io(path: &Path, source: impl Into<io::Error>) -> Self {
        let (path, source) = (path.to_path_buf(), source.into());
        match source.kind() {
            io::ErrorKind::NotFound => Self::Missing { path },
            _ => Self::Io { path, source },
        }
    }

    /// Nothing is there, as opposed to something wrong.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Missing { .. })
    }
}

impl From<FileError> for io::Error {
    fn from(error: FileError) -> Self {
        let kind = match &error {
            FileError::Missing { .. } => io::ErrorKind::NotFound,
            FileError::Io { source, .. } => source.kind(),
            FileError::TooLarge { .. } => io::ErrorKind::FileTooLarge,
            FileError::Unsafe { .. }
            | FileError::UnsafePermissions { .. }
            | FileError::Exposed { .. }
            | FileError::UnsafeOwner { .. } => io::ErrorKind::InvalidInput,
        };
        Self::new(kind, error)
    }
}

/// Reads a file whose content proves itself (signed, or compared by digest), of at most
/// `max` bytes, whoever owns it.
///
/// # Errors
/// See [`FileError`].
pub fn read_bounded(path: &Path, max: u64) -> Result<Vec<u8>, FileError> {
    let (file, _stat) = open_plain(path)?;
    read_all(file, path, max)
}

/// Reads a file whose word is taken as it stands (`host.toml`, shell files, grants, floors):
/// as [`read_bounded`], and only where root or we ourselves own it and nobody else may
/// write it.
///
/// # Errors
/// See [`FileError`].
pub fn read_trusted(path: &Path, max: u64) -> Result<Vec<u8>, FileError> {
    let (file, stat) = open_plain(path)?;
    check_owner(path, &stat)?;
    read_all(file, path, max)
}

/// Reads a secret: as [`read_trusted`], and only where nobody but its owner may read it.
///
/// # Errors
/// See [`FileError`].
pub fn read_secret(path: &Path, max: u64) -> Result<Vec<u8>, FileError> {
    let (file, stat) = open_plain(path)?;
    check_owner(path, &stat)?;
    let mode = stat.st_mode & 0o7777;
    if mode & 0o077 != 0 {
        let path = path.to_path_buf();
        return Err(FileError::Exposed { path, mode });
    }
    read_all(file, path, max)
}

/// Root's or our own, and nobody else may write it.
fn check_owner(path: &Path, stat: &sys::Stat) -> Result<(), FileError> {
    let mode = stat.st_mode & 0o7777;
    if mode & 0o022 != 0 {
        let path = path.to_path_buf();
        return Err(FileError::UnsafePermissions { path, mode });
    }
    let owner = stat.st_uid;
    if owner != 0 && owner != rustix::process::geteuid().as_raw() {
        let path = path.to_path_buf();
        return Err(FileError::UnsafeOwner { path, owner });
    }
    Ok(())
}

/// Opens the plain file `relative` below `directory`, with no symbolic link on the way.
/// Gives its size in bytes too.
///
/// # Errors
/// See [`FileError`]; a `relative` that is absolute, empty or climbs (`..`) is
/// [`FileError::Unsafe`].
pub fn open_beneath(directory: &Path, relative: &Path) -> Result<(File, u64), FileError> {
    let whole = directory.join(relative);
    let climbs = || FileError::Unsafe {
        path: whole.clone(),
        what: "a path that climbs",
    };
    let mut names: Vec<&OsStr> = Vec::new();
    for component in relative.components() {
        let Component::Normal(name) = component else {
            return Err(climbs());
        };
        names.push(name);
    }
    let last = names.pop().ok_or_else(climbs)?;
    let step = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut at = sys::open(directory, step, Mode::empty())
        .map_err(|errno| FileError::io(directory, errno))?;
    for name in names {
        at = sys::openat(&at, name, step | OFlags::NOFOLLOW, Mode::empty())
            .map_err(|errno| refuse_link(&whole, errno))?;
    }
    let (file, stat) = check_plain(
        &whole,
        sys::openat(&at, last, PLAIN, Mode::empty()).map_err(|errno| refuse_link(&whole, errno))?,
    )?;
    Ok((file, u64::try_from(stat.st_size).unwrap_or(0)))
}

/// How files are opened: no link, and no waiting for the other end of a FIFO.
const PLAIN: OFlags = OFlags::RDONLY
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY);

fn open_plain(path: &Path) -> Result<(File, sys::Stat), FileError> {
    let fd = sys::open(path, PLAIN, Mode::empty()).map_err(|errno| refuse_link(path, errno))?;
    check_plain(path, fd)
}

fn refuse_link(path: &Path, errno: Errno) -> FileError {
    let what = match errno {
        Errno::LOOP => "a symbolic link",
        // A component of the way is a link or a file; or the file is a socket.
        Errno::NOTDIR => "below a link or a file",
        Errno::NXIO => "a socket",
        _ => return FileError::io(path, errno),
    };
    FileError::Unsafe {
        path: path.to_path_buf(),
        what,
    }
}

fn check_plain(path: &Path, fd: OwnedFd) -> Result<(File, sys::Stat), FileError> {
    let stat = sys::fstat(&fd).map_err(|errno| FileError::io(path, errno))?;
    let what = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if stat.st_nlink <= 1 => return Ok((File::from(fd), stat)),
        FileType::RegularFile => "a file with a second name (hard link)",
        FileType::Directory => "a directory",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        _ => "something else",
    };
    Err(FileError::Unsafe {
        path: path.to_path_buf(),
        what,
    })
}

/// Reads to the end, but never more than `max`; the file may grow meanwhile.
fn read_all(file: File, path: &Path, max: u64) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
    file.take(max.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|source| FileError::io(path, source))?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > max {
        return Err(FileError::TooLarge {
            path: path.to_path_buf(),
            max,
        });
    }
    Ok(bytes)
}

/// Who may read a file that we write; its owner may always read and write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// Mode 0600.
    Owner,
    /// Mode 0640.
    Group,
    /// Mode 0644.
    All,
}

impl Readers {
    const fn mode(self) -> Mode {
        match self {
            Self::Owner => Mode::from_raw_mode(0o600),
            Self::Group => Mode::from_raw_mode(0o640),
            Self::All => Mode::from_raw_mode(0o644),
        }
    }
}

/// Replaces `path` by `bytes`: afterwards, also after a power cut, the old or the new
/// content is there, whole. Writers of the same file at the same time do no harm: one wins.
/// What root writes into somebody's directory is theirs: an operator's command leaves no
/// file behind that its service cannot replace.
///
/// # Errors
/// The system's; `path` is then as it was.
pub fn write_atomic(path: &Path, bytes: &[u8], readers: Readers) -> io::Result<()> {
    write_then_rename(path, bytes, readers, RenameFlags::empty())
}

/// As [`write_atomic`], but only where nothing is at `path` yet.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`], or the system's.
pub fn create_atomic(path: &Path, bytes: &[u8], readers: Readers) -> io::Result<()> {
    write_then_rename(path, bytes, readers, RenameFlags::NOREPLACE)
}

fn write_then_rename(
    path: &Path,
    bytes: &[u8],
    readers: Readers,
    how: RenameFlags,
) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    let parent = parent_of(path);
    let opened = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = sys::openat(CWD, parent, opened, Mode::empty())?;

    // A name of its own for every try: two writers never share a temporary file, and one
    // that was left by a crash is in nobody's way.
    let mut temporary = OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}.tmp", uuid::Uuid::new_v4().simple()));

    let written = (|| {
        let fresh =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(sys::openat(
            &directory,
            &temporary,
            fresh,
            Mode::from_raw_mode(0o600),
        )?);
        file.write_all(bytes)?;
        give_to_owner_of(&directory, &file)?;
        // The umask has no say.
        sys::fchmod(&file, readers.mode())?;
        file.sync_all()?;
        Ok(sys::renameat_with(
            &directory, &temporary, &directory, name, how,
        )?)
    })();
    if written.is_err() {
        // It may not even exist; the error that counts is the one before.
        let _gone = sys::unlinkat(&directory, &temporary, AtFlags::empty());
        return written;
    }
    Ok(sys::fsync(&directory)?)
}

/// Where root works in a directory that is somebody's, what it made there is theirs. On
/// open descriptors: a path could be swapped between making and giving.
fn give_to_owner_of(directory: impl AsFd, made: impl AsFd) -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let owner = sys::fstat(directory)?;
    let (uid, gid) = (Uid::from_raw(owner.st_uid), Gid::from_raw(owner.st_gid));
    Ok(sys::fchown(made, Some(uid), Some(gid))?)
}

/// Makes the directory `path` and what is missing above it, with mode 0750. What root makes
/// in somebody's directory is theirs.
///
/// # Errors
/// The system's; [`io::ErrorKind::NotADirectory`] where a link or a file is in the way.
pub fn create_directories(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    let parent = parent_of(path);
    create_directories(parent)?;
    let open = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let above = sys::openat(CWD, parent, open, Mode::empty())?;
    match sys::mkdirat(&above, name, Mode::from_raw_mode(0o750)) {
        Ok(()) => {}
        // Somebody else was faster.
        Err(Errno::EXIST) if path.is_dir() => return Ok(()),
        Err(Errno::EXIST) => return Err(io::ErrorKind::NotADirectory.into()),
        Err(errno) => return Err(errno.into()),
    }
    let made = sys::openat(&above, name, open | OFlags::NOFOLLOW, Mode::empty())?;
    give_to_owner_of(&above, &made)?;
    Ok(sys::fsync(&above)?)
}

/// The directory in which `path` lies; the working directory for a mere name.
fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests;
