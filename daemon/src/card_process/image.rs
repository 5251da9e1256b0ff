//! Sealed bytes that were read as a bitstream: their digest, what the
//! container says of itself, and where its payload lies.
//!
//! Knows hashing and containers. Must not know whether anyone signed them, or
//! for which region they are.

use std::ops::Range;

use bitstream::xilinx::WordOrder;
use bitstream::{ContainerError, Fact, TargetMismatch};
use card::{SealError, SealedMap, SealedMemfd};
use policy::trust::Format;
use uuid::Uuid;

use crate::contents::{Contents, Names};
use crate::ipc::DigestBytes;

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
}
