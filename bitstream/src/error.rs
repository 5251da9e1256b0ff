//! Why a file is refused: what, at which byte, and what to do.
//!
//! Knows sentences. They tell only of the file itself, so that the person who
//! made the file may read each of them.

use std::fmt;

use thiserror::Error;

use crate::detect::Format;
use crate::gbs::{HEADER_LEN, METADATA_MAX};

/// How the words of a configuration stream are turned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteOrder {
    /// The bits of each byte in reverse.
    BitsSwapped,
}

impl fmt::Display for ByteOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ByteOrder::BitsSwapped => "the bits of each byte are in reverse",
        })
    }
}

/// A file that cannot be loaded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ContainerError {
    /// No bytes at all.
    #[error("the file is empty")]
    Empty,
    /// No format that is known.
    #[error("not a bitstream: the first bytes belong to no known format")]
    Unrecognised,
    /// An ELF program or library.
    #[error("not a bitstream: the file is a program (ELF)")]
    Program,
    /// An xclbin of a version that is not known.
    #[error("not a bitstream: an xclbin file of an unknown version")]
    XclbinVersion,
    /// An xclbin that ends before its section table does.
    #[error("the xclbin file ends at byte {len}, before the end of its section table")]
    XclbinTruncated {
        /// Bytes in the file.
        len: usize,
    },
    /// An xclbin with none of the sections that go to a device.
    #[error("the xclbin file holds no bitstream section")]
    XclbinWithoutPayload,
    /// Padding as before a configuration stream, and then something else.
    #[error("not a bitstream: no sync word where one is due, at byte {at}")]
    NoSyncWord {
        /// Where the sync word was due.
        at: usize,
    },
    /// Configuration words that end within a word.
    #[error("the {len} bytes of configuration are no whole number of words")]
    NotWords {
        /// Bytes of configuration.
        len: usize,
    },
    /// A `.bit` file that ends within its header.
    #[error("the .bit file ends at byte {len}, within its header")]
    BitTruncated {
        /// Bytes in the file.
        len: usize,
    },
    /// A key of a `.bit` header that is unknown, or stands twice.
    #[error("the .bit header has an unknown or repeated key at byte {at}")]
    BitKey {
        /// Where the key stands.
        at: usize,
    },
    /// A text of a `.bit` header that is none.
    #[error("the .bit header has a text that cannot be shown at byte {at}")]
    BitText {
        /// Where the text begins.
        at: usize,
    },
    /// A `.bit` header that states another length than there is.
    #[error(
        "the .bit header at byte {at} states {stated} bytes of configuration, and {found} follow"
    )]
    BitLength {
        /// Where the key of the length stands.
        at: usize,
        /// What the header states.
        stated: u32,
        /// What there is.
        found: usize,
    },
    /// A configuration stream in the order of another loader.
    #[error("wrong byte order: {order}, as the sync word at byte {at} shows")]
    WordOrder {
        /// How they are turned.
        order: ByteOrder,
        /// Where the sync word stands.
        at: usize,
    },
    /// A format that is known and that no engine takes yet.
    #[error("{format} is recognised, and cannot be loaded yet")]
    NotLoadable {
        /// The format.
        format: Format,
    },

    /// A GBS shorter than its header.
    #[error("the GBS file has {len} bytes and its header {HEADER_LEN}")]
    HeaderTruncated {
        /// Bytes in the file.
        len: usize,
    },
    /// The GBS magic with its bytes in reverse.
    #[error("the GBS magic at byte 0 has its bytes in reverse")]
    MagicReversed,
    /// The header from before GBS had metadata.
    #[error("a GBS file with the legacy header, which has no metadata")]
    LegacyHeader,
    /// `GBSv` and a number that is not 001.
    #[error("a GBS file of an unknown header version, at byte 12")]
    HeaderVersion,
    /// A metadata length of zero: others then skip the interface check.
    #[error("the metadata length at byte 16 is zero")]
    MetadataEmpty,
    /// More metadata than is ever right.
    #[error("the metadata length at byte 16 is {len}, above the limit of {METADATA_MAX}")]
    MetadataTooLong {
        /// What the header states.
        len: u32,
    },
    /// Metadata that would reach past the end of the file.
    #[error("the metadata length at byte 16 is {len}, and {available} bytes follow")]
    MetadataBeyondFile {
        /// What the header states.
        len: u32,
        /// What there is.
        available: usize,
    },
    /// Nothing after the metadata.
    #[error("the file ends at byte {at} with the metadata: there is no payload")]
    PayloadMissing {
        /// Where the payload should begin.
        at: usize,
    },
    /// The metadata is not JSON as it should be.
    #[error("the metadata is not valid JSON at byte {at}: {why}")]
    MetadataSyntax {
        /// Where, in the file.
        at: usize,
        /// What the JSON parser says.
        why: String,
    },
    /// A field is missing or wrong.
    #[error("the metadata's `{field}` {why}")]
    Field {
        /// The field, with the objects around it.
        field: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// None, or several functions in one bitstream.
    #[error("the metadata names {found} accelerators, and exactly one is allowed")]
    ClusterCount {
        /// How many there are.
        found: usize,
    },
    /// `magic-no` is not that of a bitstream.
    #[error("the metadata's `afu-image.magic-no` is {found}, and 488605312 is right")]
    MagicNumber {
        /// What it is.
        found: String,
    },
}

impl ContainerError {
    /// A stable name, for logs and machines.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Empty => "empty-file",
            Self::Unrecognised | Self::Program | Self::XclbinVersion | Self::NoSyncWord { .. } => {
                "not-a-bitstream"
            }
            Self::XclbinTruncated { .. }
            | Self::HeaderTruncated { .. }
            | Self::BitTruncated { .. }
            | Self::NotWords { .. } => "truncated",
            Self::BitKey { .. } | Self::BitText { .. } => "bit-header",
            Self::BitLength { .. } => "bit-length",
            Self::XclbinWithoutPayload | Self::PayloadMissing { .. } => "no-payload",
            Self::WordOrder { .. } => "wrong-byte-order",
            Self::NotLoadable { .. } => "format-not-loadable",
            Self::MagicReversed => "reversed-magic",
            Self::LegacyHeader => "legacy-header",
            Self::HeaderVersion => "header-version",
            Self::MetadataEmpty
            | Self::MetadataTooLong { .. }
            | Self::MetadataBeyondFile { .. } => "metadata-length",
            Self::MetadataSyntax { .. } => "metadata-syntax",
            Self::Field { .. } | Self::MagicNumber { .. } => "metadata-field",
            Self::ClusterCount { .. } => "accelerator-count",
        }
    }

    /// The byte of the file that the refusal is about.
    #[must_use]
    pub fn offset(&self) -> usize {
        match self {
            Self::XclbinTruncated { len }
            | Self::HeaderTruncated { len }
            | Self::BitTruncated { len } => *len,
            Self::BitKey { at }
            | Self::BitText { at }
            | Self::BitLength { at, .. }
            | Self::NoSyncWord { at }
            | Self::WordOrder { at, .. }
            | Self::PayloadMissing { at }
            | Self::MetadataSyntax { at, .. } => *at,
            Self::HeaderVersion => 12,
            Self::MetadataEmpty
            | Self::MetadataTooLong { .. }
            | Self::MetadataBeyondFile { .. } => 16,
            Self::Field { .. } | Self::ClusterCount { .. } | Self::MagicNumber { .. } => HEADER_LEN,
            Self::XclbinWithoutPayload => 448,
            Self::Empty
            | Self::Unrecognised
            | Self::Program
            | Self::NotWords { .. }
            | Self::XclbinVersion
            | Self::NotLoadable { .. }
            | Self::MagicReversed
            | Self::LegacyHeader => 0,
        }
    }

    /// What to do about it, in one sentence.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Empty
            | Self::XclbinTruncated { .. }
            | Self::HeaderTruncated { .. }
            | Self::BitTruncated { .. }
            | Self::BitLength { .. }
            | Self::NotWords { .. }
            | Self::MetadataBeyondFile { .. }
            | Self::PayloadMissing { .. } => "Copy the file again: it is cut short.",
            Self::Unrecognised
            | Self::Program
            | Self::BitKey { .. }
            | Self::BitText { .. }
            | Self::NoSyncWord { .. } => "Give the file that the vendor's packager wrote.",
            Self::XclbinVersion => "Package it again with a current xclbinutil.",
            Self::XclbinWithoutPayload => "Package it again with the bitstream section in it.",
            Self::WordOrder { .. } => "Write it again without swapping.",
            Self::NotLoadable { .. } => "See the support table for what each engine takes.",
            Self::MagicReversed | Self::LegacyHeader | Self::HeaderVersion => {
                "Package it again with a current OPAE packager."
            }
            Self::MetadataEmpty
            | Self::MetadataTooLong { .. }
            | Self::MetadataSyntax { .. }
            | Self::Field { .. }
            | Self::MagicNumber { .. } => {
                "Correct the accelerator's JSON file and package it again."
            }
            Self::ClusterCount { .. } => "Package one accelerator a file.",
        }
    }
}
