//! The 32 bytes in front of every body.
//!
//! Knows the layout and what makes a header acceptable. Must not know streams
//! (`scanner`) or bodies (`codec`).
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 4 | magic `RCNF` |
//! | 4 | 1 | version, 1 |
//! | 5 | 1 | flags, 0 |
//! | 6 | 2 | kind |
//! | 8 | 8 | session |
//! | 16 | 4 | sequence |
//! | 20 | 4 | length of the body |
//! | 24 | 4 | CRC-32C of the body |
//! | 28 | 4 | CRC-32C of bytes 0..28 |
//!
//! All numbers are little-endian.

use thiserror::Error;

use crate::kind::{Kind, Traffic};
use crate::status::Status;

/// Bytes of a header.
pub const HEADER_LEN: usize = 32;

/// The first four bytes of every frame.
pub const MAGIC: [u8; 4] = *b"RCNF";

/// The version of this framing.
pub const VERSION: u8 = 1;

/// A header that was found good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// What the body is.
    pub kind: Kind,
    /// The session; 0 during the handshake.
    pub session: u64,
    /// The request's number within its session; a reply carries its request's.
    pub sequence: u32,
    /// Bytes of the body; never more than the kind allows.
    pub length: u32,
    /// CRC-32C of the body.
    pub body_crc: u32,
}

/// Why bytes are no frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum FrameError {
    /// Where a frame had to begin, there is no magic.
    #[error("no frame begins here")]
    BadMagic,
    /// The header's checksum is wrong.
    #[error("the header's checksum is wrong")]
    HeaderCrc,
    /// Another version of the framing.
    #[error("version {0} of the framing, where {VERSION} was expected")]
    Version(u8),
    /// A flag bit is set; this version knows none, least of all compression.
    #[error("flags {0:#04x}, where none may be set")]
    Flags(u8),
    /// The length exceeds what the kind allows. Nothing was allocated for it.
    #[error("a body of {len} bytes, where at most {max} are allowed")]
    TooLarge {
        /// Bytes announced.
        len: u32,
        /// Bytes allowed.
        max: u32,
    },
    /// The body's checksum is wrong.
    #[error("the body's checksum is wrong")]
    BodyCrc,
    /// Inside the body stands a whole opening frame: its sender died in the
    /// middle of a frame, and another one began.
    #[error("the frame was cut off, and a new session begins inside it")]
    Interrupted,
}

impl FrameError {
    /// The status that tells the peer.
    #[must_use]
    pub const fn status(&self) -> Status {
        match self {
            Self::TooLarge { .. } => Status::TooLarge,
            Self::BadMagic
            | Self::HeaderCrc
            | Self::Version(_)
            | Self::Flags(_)
            | Self::BodyCrc
            | Self::Interrupted => Status::Protocol,
        }
    }

    /// Whether this counts against the peer. A guest that rebooted in the
    /// middle of a frame did nothing wrong.
    #[must_use]
    pub const fn blame(&self) -> Blame {
        match self {
            Self::Interrupted => Blame::Nobody,
            Self::BadMagic
            | Self::HeaderCrc
            | Self::Version(_)
            | Self::Flags(_)
            | Self::TooLarge { .. }
            | Self::BodyCrc => Blame::Peer,
        }
    }
}

/// Whom a broken frame is counted against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// The peer broke the framing.
    Peer,
    /// An earlier user of the same channel died in the middle of a frame.
    Nobody,
}

impl Header {
    /// The header for this body.
    pub(crate) fn for_body(kind: Kind, session: u64, sequence: u32, body: &[u8]) -> Option<Self> {
        let length = u32::try_from(body.len()).ok()?;
        Some(Self {
            kind,
            session,
            sequence,
            length,
            body_crc: crc32c::crc32c(body),
        })
    }

    /// Bytes of the body.
    #[must_use]
    pub fn body_len(&self) -> usize {
        // A decoded length is at most 32 736, so this never saturates.
        usize::try_from(self.length).unwrap_or(usize::MAX)
    }

    /// The 32 bytes on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4] = VERSION;
        // bytes[5], the flags, stays 0.
        bytes[6..8].copy_from_slice(&self.kind.0.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.session.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.length.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.body_crc.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..28]);
        bytes[28..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads a header and refuses any that this version cannot serve.
    ///
    /// The checksum comes first: only a header that arrived whole may be
    /// blamed for what it says.
    ///
    /// # Errors
    ///
    /// Every [`FrameError`] but those about the body.
    pub fn parse(bytes: &[u8; HEADER_LEN], traffic: Traffic) -> Result<Self, FrameError> {
        let b = bytes;
        if b[..4] != MAGIC {
            return Err(FrameError::BadMagic);
        }
        if crc32c::crc32c(&b[..28]) != u32::from_le_bytes([b[28], b[29], b[30], b[31]]) {
            return Err(FrameError::HeaderCrc);
        }
        if b[4] != VERSION {
            return Err(FrameError::Version(b[4]));
        }
        if b[5] != 0 {
            return Err(FrameError::Flags(b[5]));
        }
        let header = Self {
            kind: Kind(u16::from_le_bytes([b[6], b[7]])),
            session: u64::from_le_bytes([b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]]),
            sequence: u32::from_le_bytes([b[16], b[17], b[18], b[19]]),
            length: u32::from_le_bytes([b[20], b[21], b[22], b[23]]),
            body_crc: u32::from_le_bytes([b[24], b[25], b[26], b[27]]),
        };
        let max = header.kind.max_body(traffic);
        if header.body_len() > max {
            let max = u32::try_from(max).unwrap_or(u32::MAX);
            return Err(FrameError::TooLarge {
                len: header.length,
                max,
            });
        }
        Ok(header)
    }

    /// Whether these bytes are the body that the header announced.
    #[must_use]
    pub fn matches(&self, body: &[u8]) -> bool {
        body.len() == self.body_len() && crc32c::crc32c(body) == self.body_crc
    }
}
