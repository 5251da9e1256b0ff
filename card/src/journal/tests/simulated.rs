//! A directory in memory that knows what of it is durable: names and contents
//! each in two versions, the one that was synced and the one that was not.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

use crate::journal::JournalFiles;

/// What a crash takes of what was not synced.
#[derive(Debug, Clone, Copy)]
pub(super) struct Loss {
    content: Content,
    names: Names,
}

#[derive(Debug, Clone, Copy)]
enum Content {
    /// All of it.
    All,
    /// Nothing of it.
    Nothing,
    /// All but the first so many new bytes.
    But(usize),
    /// The length is there, the bytes are zeros.
    Zeros,
}

#[derive(Debug, Clone, Copy)]
enum Names {
    All,
    Nothing,
}

impl Loss {
    pub(super) fn all() -> Vec<Self> {
        let mut contents = vec![Content::All, Content::Nothing, Content::Zeros];
        contents.extend([1, 64, 127].map(Content::But));
        let names = [Names::All, Names::Nothing];
        contents
            .into_iter()
            .flat_map(|content| names.map(|names| Self { content, names }))
            .collect()
    }
}

#[derive(Debug, Clone, Default)]
struct Inode {
    now: Vec<u8>,
    durable: Vec<u8>,
}

#[derive(Debug, Default)]
struct Disk {
    inodes: Vec<Inode>,
    now: BTreeMap<String, usize>,
    durable: BTreeMap<String, usize>,
    operations: usize,
    crash_at: Option<usize>,
    fail_at: Option<(usize, io::ErrorKind)>,
    failed: bool,
}

/// The directory; clones are the same one.
#[derive(Debug, Clone, Default)]
pub(super) struct Files(Arc<Mutex<Disk>>);

impl Files {
    /// A directory with one file, all durable.
    pub(super) fn with(name: &str, bytes: &[u8]) -> Self {
        let files = Self::default();
        {
            let mut disk = files.0.lock().unwrap();
            let (now, durable) = (bytes.to_vec(), bytes.to_vec());
            disk.inodes.push(Inode { now, durable });
            disk.now.insert(name.to_owned(), 0);
            disk.durable.insert(name.to_owned(), 0);
        }
        files
    }

    pub(super) fn crash_at(&self, operation: usize) {
        self.0.lock().unwrap().crash_at = Some(operation);
    }

    pub(super) fn fail_at(&self, operation: usize, kind: io::ErrorKind) {
        self.0.lock().unwrap().fail_at = Some((operation, kind));
    }

    pub(super) fn failed(&self) -> bool {
        self.0.lock().unwrap().failed
    }

    pub(super) fn operations(&self) -> usize {
        self.0.lock().unwrap().operations
    }

    pub(super) fn content(&self, name: &str) -> Option<Vec<u8>> {
        let disk = self.0.lock().unwrap();
        disk.now
            .get(name)
            .map(|inode| disk.inodes[*inode].now.clone())
    }

    /// The disk as the next start finds it.
    pub(super) fn after_crash(&self, loss: Loss) -> Self {
        let disk = self.0.lock().unwrap();
        let names = match loss.names {
            Names::All => disk.durable.clone(),
            Names::Nothing => disk.now.clone(),
        };
        let inodes = disk.inodes.iter().map(|inode| {
            let bytes = match loss.content {
                Content::All => inode.durable.clone(),
                Content::Nothing => inode.now.clone(),
                Content::But(kept) => {
                    let kept = (inode.durable.len() + kept).min(inode.now.len());
                    let mut bytes = inode.now[..kept].to_vec();
                    // What was cut off without a sync may be back.
                    bytes.extend(inode.durable.iter().skip(kept));
                    bytes
                }
                Content::Zeros => {
                    let mut bytes = inode.durable.clone();
                    bytes.resize(bytes.len().max(inode.now.len()), 0);
                    bytes
                }
            };
            Inode {
                now: bytes.clone(),
                durable: bytes,
            }
        });
        let inodes = inodes.collect();
        Self(Arc::new(Mutex::new(Disk {
            inodes,
            now: names.clone(),
            durable: names,
            ..Disk::default()
        })))
    }

    /// One operation, which may be where the power goes or the system fails.
    /// A write does half of what it should before.
    fn operation<T>(
        &self,
        half: impl FnOnce(&mut Disk),
        act: impl FnOnce(&mut Disk) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut disk = self.0.lock().unwrap();
        let number = disk.operations;
        disk.operations += 1;
        if disk.crash_at.is_some_and(|at| number >= at) {
            if disk.crash_at == Some(number) {
                half(&mut disk);
            }
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        match disk.fail_at {
            Some((at, kind)) if at == number => {
                half(&mut disk);
                disk.failed = true;
                Err(kind.into())
            }
            _ => act(&mut disk),
        }
    }
}

impl Disk {
    fn inode(&mut self, name: &str) -> io::Result<&mut Inode> {
        let inode = *self.now.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(&mut self.inodes[inode])
    }

    fn put(&mut self, name: &str, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let inode = self.inode(name)?;
        let (from, to) = (offset as usize, offset as usize + bytes.len());
        inode.now.resize(inode.now.len().max(to), 0);
        inode.now[from..to].copy_from_slice(bytes);
        Ok(())
    }
}

fn nothing(_disk: &mut Disk) {}

impl JournalFiles for Files {
    fn read(&mut self, name: &str, limit: u64) -> io::Result<Option<Vec<u8>>> {
        self.operation(nothing, |disk| {
            let bytes = disk.inode(name).ok().map(|inode| inode.now.clone());
            Ok(bytes.map(|mut bytes| {
                bytes.truncate(limit as usize);
                bytes
            }))
        })
    }

    fn create(&mut self, name: &str) -> io::Result<()> {
        self.operation(nothing, |disk| {
            if let Ok(inode) = disk.inode(name) {
                inode.now.clear();
                return Ok(());
            }
            disk.inodes.push(Inode::default());
            let inode = disk.inodes.len() - 1;
            disk.now.insert(name.to_owned(), inode);
            Ok(())
        })
    }

    fn write(&mut self, name: &str, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        // Short writes all the time: a record takes three.
        let short = &bytes[..bytes.len().min(50)];
        let half = |disk: &mut Disk| drop(disk.put(name, offset, &short[..short.len() / 2]));
        self.operation(half, |disk| {
            disk.put(name, offset, short)?;
            Ok(short.len())
        })
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        self.operation(nothing, |disk| {
            let inode = disk.inode(name)?;
            inode.durable = inode.now.clone();
            Ok(())
        })
    }

    fn truncate(&mut self, name: &str, length: u64) -> io::Result<()> {
        self.operation(nothing, |disk| {
            disk.inode(name)?.now.resize(length as usize, 0);
            Ok(())
        })
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        self.operation(nothing, |disk| {
            let inode = disk.now.remove(from).ok_or(io::ErrorKind::NotFound)?;
            disk.now.insert(to.to_owned(), inode);
            Ok(())
        })
    }

    fn link(&mut self, name: &str, second: &str) -> io::Result<()> {
        self.operation(nothing, |disk| {
            let inode = *disk.now.get(name).ok_or(io::ErrorKind::NotFound)?;
            if disk.now.contains_key(second) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            disk.now.insert(second.to_owned(), inode);
            Ok(())
        })
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.operation(nothing, |disk| {
            let removed = disk.now.remove(name);
            removed
                .map(|_inode| ())
                .ok_or(io::ErrorKind::NotFound.into())
        })
    }

    fn sync_directory(&mut self) -> io::Result<()> {
        self.operation(nothing, |disk| {
            disk.durable = disk.now.clone();
            Ok(())
        })
    }
}
