//! Images that were read before, and what was found out about them for each
//! region: a repeat hashes nothing and checks nothing again.
//!
//! Knows sealed memory by the kernel's own number for it. Must not know whether
//! anyone signed it, or what a region demands.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use card::{SealError, SealedMemfd};
use rustix::fs::fstat;

use super::fitted::Fitted;
use super::image::{Image, ImageError};
use crate::fence::Unfit;
use crate::frames::Demand;
use crate::ipc::{DigestBytes, RegionIndex};

/// Most images that are remembered.
const MOST_KNOWN: usize = 16;

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
    use uuid::Uuid;

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
