//! Sealed bytes that were read as a bitstream: their digest, what the
//! container says of itself, and where its payload lies.
//!
//! Knows hashing and containers. Must not know whether anyone signed them, or
//! for which region they are ([`Fitted`] does).

use std::collections::VecDeque;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use bitstream::xilinx::WordOrder;
use bitstream::{ContainerError, Fact, TargetMismatch};
use card::{SealError, SealedMap, SealedMemfd};
use policy::trust::Format;
use rustix::fs::fstat;
use uuid::Uuid;

use super::fitted::Fitted;
use crate::contents::{Contents, Names};
use crate::fence::Unfit;
use crate::frames::Demand;
use crate::ipc::{DigestBytes, RegionIndex};

/// Most images that are remembered.
const MOST_KNOWN: usize = 16;

/// See the module. There is one set of bytes: the map of the sealed memory.
#[derive(Debug)]
pub(super) struct Image {
    digest: DigestBytes,
    format: Format,
    names: Option<Names>,
    payload: Range<usize>,
    order: WordOrder,
    map: SealedMap,
    /// Held so that the file's identity is not given to another one.
    memory: SealedMemfd,
}

/// Why bytes are no image.
#[derive(Debug, thiserror::Error)]
pub(super) enum ImageError {
    /// Not sealed, or no memory.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// More bytes than the region takes.
    #[error("{size} bytes, and the region takes at most {max}")]
    TooLarge {
        /// Bytes.
        size: u64,
        /// The bound.
        max: u64,
    },
    /// Not the bytes that were announced.
    #[error("the bytes are those of sha256:{found}")]
    Digest {
        /// Their digest, in hex.
        found: String,
    },
    /// No container.
    #[error(transparent)]
    Container(#[from] ContainerError),
}

impl Image {
    /// Reads sealed bytes, in this order: their size, their digest, the container.
    ///
    /// # Errors
    /// See [`ImageError`].
    pub(super) fn read(
        memory: SealedMemfd,
        digest: DigestBytes,
        max: u64,
    ) -> Result<Self, ImageError> {
        let size = memory.length();
        if size > max {
            return Err(ImageError::TooLarge { size, max });
        }
        let map = memory.map()?;
        let found = ring::digest::digest(&ring::digest::SHA256, &map);
        if found.as_ref() != digest {
            return Err(ImageError::Digest {
                found: crate::hex::encode(found.as_ref()),
            });
        }
        let contents = Contents::read(&map)?;
        let (format, names) = (contents.format(), contents.names());
        let (payload, order) = (contents.payload(), contents.order());
        Ok(Self {
            digest,
            format,
            names,
            payload,
            order,
            map,
            memory,
        })
    }

    /// SHA-256 of all bytes.
    pub(super) fn digest(&self) -> DigestBytes {
        self.digest
    }

    /// Bytes of the whole container.
    pub(super) fn size(&self) -> u64 {
        self.memory.length()
    }

    /// Its container.
    pub(super) fn format(&self) -> Format {
        self.format
    }

    /// The function that appears, where the container names it.
    pub(super) fn function_id(&self) -> Option<Uuid> {
        self.names.map(|names| names.function_id)
    }

    /// Compares the interface id with a region's. A container that names none leaves it to what
    /// was signed, or pinned.
    ///
    /// # Errors
    /// Both ids.
    pub(super) fn check_interface(&self, expected: Uuid) -> Result<(), TargetMismatch> {
        self.names.map_or(Ok(()), |names| {
            same(Fact::InterfaceId, names.interface_id, expected)
        })
    }

    /// Compares the function id with the signed one, as [`Image::check_interface`] does.
    ///
    /// # Errors
    /// Both ids.
    pub(super) fn check_function(&self, expected: Uuid) -> Result<(), TargetMismatch> {
        self.names.map_or(Ok(()), |names| {
            same(Fact::FunctionId, names.function_id, expected)
        })
    }

    /// What the card is given.
    pub(super) fn payload(&self) -> &[u8] {
        self.map.get(self.payload.clone()).unwrap_or_default()
    }

    /// How the payload's bytes make the card's words.
    pub(super) fn order(&self) -> WordOrder {
        self.order
    }

    /// The container again: the same sealed bytes, so that it is the same container.
    pub(super) fn contents(&self) -> Result<Contents<'_>, ContainerError> {
        Contents::read(&self.map)
    }
}

/// Which file in memory a descriptor is about. The change time stands beside the number, because
/// older kernels may give a number twice; sealed content has no later change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileId {
    device: u64,
    inode: u64,
    changed: (i64, u64),
}

/// Images that were read before, so that the same sealed memory is not hashed twice: its content
/// cannot have changed.
#[derive(Debug)]
pub(super) struct Known {
    entries: VecDeque<Entry>,
    /// Most bytes that are kept alive here.
    room: u64,
}

/// An image, and the regions that it was held against.
#[derive(Debug)]
struct Entry {
    id: FileId,
    image: Arc<Image>,
    fitted: Vec<Arc<Fitted>>,
}

impl Known {
    /// An empty memory of at most `room` bytes.
    pub(super) fn new(room: u64) -> Self {
        Self {
            entries: VecDeque::new(),
            room,
        }
    }

    /// The image in `beside`, read now or before, if it is what `digest` says.
    ///
    /// # Errors
    /// See [`ImageError`].
    pub(super) fn adopt(
        &mut self,
        beside: OwnedFd,
        digest: DigestBytes,
        max: u64,
    ) -> Result<Arc<Image>, ImageError> {
        let memory = SealedMemfd::adopt(beside)?;
        let id = file_id(&memory)?;
        let seen = self.entries.iter().position(|known| {
            known.id == id && known.image.digest() == digest && known.image.size() <= max
        });
        let entry = match seen.and_then(|at| self.entries.remove(at)) {
            Some(entry) => entry,
            None => Entry {
                id,
                image: Arc::new(Image::read(memory, digest, max)?),
                fitted: Vec::new(),
            },
        };
        let image = Arc::clone(&entry.image);
        self.keep(entry);
        Ok(image)
    }

    /// The image as held against a region, now or before: what a region demands does not change
    /// while this process runs.
    ///
    /// # Errors
    /// It must not be written to that region.
    pub(super) fn fit(
        &mut self,
        image: &Arc<Image>,
        region: RegionIndex,
        demand: &Demand,
    ) -> Result<Arc<Fitted>, Unfit> {
        let mut entries = self.entries.iter_mut();
        let entry = entries.find(|entry| Arc::ptr_eq(&entry.image, image));
        let known = entry
            .as_ref()
            .and_then(|entry| entry.fitted.iter().find(|fitted| fitted.region() == region));
        if let Some(known) = known {
            return Ok(Arc::clone(known));
        }
        let fitted = Arc::new(Fitted::hold(image, region, demand)?);
        if let Some(entry) = entry {
            entry.fitted.push(Arc::clone(&fitted));
        }
        Ok(fitted)
    }

    /// Adds the newest, and drops the oldest until there is room.
    fn keep(&mut self, entry: Entry) {
        self.entries.push_back(entry);
        while self.entries.len() > MOST_KNOWN || self.bytes() > self.room {
            if self.entries.pop_front().is_none() {
                break;
            }
        }
    }

    fn bytes(&self) -> u64 {
        let sizes = self.entries.iter().map(|entry| entry.image.size());
        sizes.fold(0, u64::saturating_add)
    }
}

fn same(fact: Fact, found: Uuid, expected: Uuid) -> Result<(), TargetMismatch> {
    if found == expected {
        return Ok(());
    }
    Err(TargetMismatch {
        fact,
        expected,
        found,
    })
}

fn file_id(memory: &SealedMemfd) -> Result<FileId, ImageError> {
    let stat = fstat(memory.as_fd()).map_err(|errno| SealError::Io {
        doing: "looking at a memory file",
        source: errno.into(),
    })?;
    Ok(FileId {
        device: stat.st_dev,
        inode: stat.st_ino,
        changed: (stat.st_ctime, stat.st_ctime_nsec),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bitstream::gbs::{Clocks, Draft, build};

    const MAX: u64 = 1 << 20;

    fn file(function: u128) -> Vec<u8> {
        build(&Draft {
            interface_id: Uuid::from_u128(7),
            accelerator: Uuid::from_u128(function),
            name: "x",
            clocks: Clocks::default(),
            power: 0,
            payload: b"payload",
        })
        .unwrap()
    }

    fn digest(bytes: &[u8]) -> DigestBytes {
        let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
        digest.as_ref().try_into().unwrap()
    }

    fn sealed(bytes: &[u8]) -> SealedMemfd {
        SealedMemfd::from_reader(bytes, MAX).unwrap()
    }

    #[test]
    fn what_the_container_says_and_only_its_payload() {
        let bytes = file(9);
        let image = Image::read(sealed(&bytes), digest(&bytes), MAX).unwrap();
        assert_eq!(image.payload(), b"payload");
        assert_eq!(image.function_id(), Some(Uuid::from_u128(9)));
        assert_eq!(image.format(), Format::Gbs);
        assert_eq!(image.order(), WordOrder::LittleEndian);
        assert!(image.check_interface(Uuid::from_u128(7)).is_ok());
        assert!(image.check_interface(Uuid::from_u128(8)).is_err());
    }

    #[test]
    fn opae_02_a_reversed_id_is_a_mismatch_with_a_hint() {
        let bytes = file(9);
        let image = Image::read(sealed(&bytes), digest(&bytes), MAX).unwrap();
        let reversed = Uuid::from_u128(7_u128.swap_bytes());
        let mismatch = image.check_interface(reversed).unwrap_err();
        assert!(mismatch.is_reversed());
    }

    #[test]
    fn size_comes_before_digest_and_digest_before_content() {
        let bytes = file(9);
        let right = digest(&bytes);
        let cap = u64::try_from(bytes.len()).unwrap();
        assert!(matches!(
            Image::read(sealed(&bytes), [0; 32], cap - 1),
            Err(ImageError::TooLarge { .. })
        ));
        assert!(Image::read(sealed(&bytes), right, cap).is_ok());
        assert!(matches!(
            Image::read(sealed(b"no container"), right, MAX),
            Err(ImageError::Digest { .. })
        ));
        assert!(matches!(
            Image::read(sealed(b"no container"), digest(b"no container"), MAX),
            Err(ImageError::Container(_))
        ));
    }

    #[test]
    fn the_same_memory_is_the_same_image_and_a_copy_is_not() {
        let bytes = file(9);
        let (one, other) = (sealed(&bytes), sealed(&bytes));
        let mut known = Known::new(MAX);
        let mut adopt = |memory: &SealedMemfd| {
            let beside = memory.try_clone().unwrap().into();
            known.adopt(beside, digest(&bytes), MAX).unwrap()
        };
        let first = adopt(&one);
        assert!(Arc::ptr_eq(&first, &adopt(&one)));
        assert!(!Arc::ptr_eq(&first, &adopt(&other)));
        let beside = one.try_clone().unwrap().into();
        let lie = known.adopt(beside, [0; 32], MAX);
        assert!(matches!(lie, Err(ImageError::Digest { .. })));
        // A region that takes less takes not even what is known.
        let beside = one.try_clone().unwrap().into();
        let small = known.adopt(beside, digest(&bytes), 10);
        assert!(matches!(small, Err(ImageError::TooLarge { .. })));
    }

    #[test]
    fn a_verdict_is_kept_for_each_region_and_goes_with_its_image() {
        let bytes = file(9);
        let mut known = Known::new(MAX);
        let beside = sealed(&bytes).into();
        let image = known.adopt(beside, digest(&bytes), MAX).unwrap();
        let mut fit = |region| known.fit(&image, RegionIndex(region), &Demand::Nothing);
        let first = fit(0).unwrap();
        assert!(Arc::ptr_eq(&first, &fit(0).unwrap()), "found out once");
        let other = fit(1).unwrap();
        assert!(!Arc::ptr_eq(&first, &other));
        assert_eq!(
            (first.region(), other.region()),
            (RegionIndex(0), RegionIndex(1))
        );
        // Of an image that is not remembered no verdict is.
        let mut stranger = Known::new(MAX);
        let again = |known: &mut Known| known.fit(&image, RegionIndex(0), &Demand::Nothing);
        let once = again(&mut stranger).unwrap();
        assert!(!Arc::ptr_eq(&once, &again(&mut stranger).unwrap()));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let length = u64::try_from(file(0).len()).unwrap();
        let mut known = Known::new(length * 2);
        for function in 0..9 {
            let bytes = file(function);
            let beside = sealed(&bytes).into();
            known.adopt(beside, digest(&bytes), MAX).unwrap();
            assert!(known.bytes() <= length * 2);
        }
        assert_eq!(known.entries.len(), 2);
        let mut many = Known::new(u64::MAX);
        for function in 0..40 {
            let bytes = file(function);
            let beside = sealed(&bytes).into();
            many.adopt(beside, digest(&bytes), MAX).unwrap();
        }
        assert_eq!(many.entries.len(), MOST_KNOWN);
    }
}
