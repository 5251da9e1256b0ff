//! Why a stream is refused: a closed set, each with a code and a remedy.
//!
//! Knows reasons; their sentences stand in `sentence`.

use crate::device::{AddressError, Device, FrameBlock};
use crate::xilinx::{Command, PacketFault, Register};

/// Why a stream is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// No sync word at all.
    NoSync,
    /// A word that may not stand where the device does not listen.
    OutsideWord(u32),
    /// The words end while the device still listens.
    Unfinished,
    /// A word that is no packet as tools write them.
    Packet(PacketFault, u32),
    /// A register that partial bitstreams do not write.
    Register(Register),
    /// A command that partial bitstreams do not give.
    Command(Command),
    /// A value that the register is not given by partial bitstreams.
    Value(Register, u32),
    /// Another number of words than the register takes.
    Count(Register, usize),
    /// A whole device, not a region.
    FullBitstream,
    /// Encrypted: what it holds cannot be checked.
    Encrypted,
    /// Streams for several dies in one.
    MultiDie,
    /// Each frame with a checksum of its own: not measured.
    PerFrameCrc,
    /// Compressed, of a family where that was not measured.
    Compressed,
    /// A family whose partial bitstreams were not measured.
    Family(Device),
    /// An IDCODE that no known device has.
    UnknownDevice(u32),
    /// For another device.
    WrongDevice {
        /// What the stream says.
        found: u32,
        /// What it should be for.
        expected: Device,
    },
    /// Something comes before the IDCODE, or before the checksum was begun.
    BeforeIdcode(Register),
    /// A step that is not due here.
    Order(&'static str),
    /// The checksum does not match.
    Crc {
        /// What the stream says.
        stated: u32,
        /// What its words give.
        computed: u32,
    },
    /// No checksum after the last frames.
    NoCrc,
    /// No frame address that counts for these frames.
    NoAddress,
    /// A frame address with reserved bits.
    Address(AddressError),
    /// Frame data that is no whole number of frames.
    FrameLength(usize),
    /// The device has no such frame.
    NoSuchFrame,
    /// A frame that is not the region's.
    OutsideRegion,
    /// A block that the references of the region do not write.
    OutsideBlocks(FrameBlock),
    /// A pad frame with content.
    Pad,
    /// A frame is left in the device's buffer.
    LeftInBuffer,
    /// A column mask of other content than tools write.
    MaskContent,
    /// Flip-flops are restored and not every column was masked before.
    MaskIncomplete,
    /// Which flip-flops are restored cannot be told: the columns of the device
    /// are not known.
    MaskUnknown,
    /// Flip-flops outside the region would be restored.
    RestoresOutside,
    /// The masks before and after are not of the same frames.
    MasksDiffer,
    /// Masks of frames that the stream does not write otherwise.
    MaskOutside,
    /// Sub-streams in another arrangement than measured.
    Arrangement,
    /// The device is left stopped, or its interconnect held.
    LeftStopped,
    /// A control bit is left set.
    LeftSet(Register, u32),
    /// More sub-streams or blocks than any genuine file has.
    TooMany,
    /// A region of sets for a device of blocks, or the other way round.
    Incomparable,
}

impl Reason {
    /// Every code, each with what it means, in the order of the documentation.
    pub const CODES: &'static [(&'static str, &'static str)] = &[
        ("no-sync-word", "the file never makes the device listen"),
        (
            "word-outside-sync",
            "a word other than padding stands where the device does not listen",
        ),
        ("unfinished", "the file ends while the device still listens"),
        (
            "not-a-packet",
            "a word is no packet, or one that tools never write",
        ),
        ("read-packet", "the stream reads from the device"),
        (
            "reserved-operation",
            "the stream uses the operation that makes some parts lose all state",
        ),
        (
            "forbidden-register",
            "the stream writes a register that no partial bitstream needs",
        ),
        (
            "forbidden-command",
            "the stream gives a command that no partial bitstream needs",
        ),
        (
            "forbidden-value",
            "a register is given a value that no partial bitstream needs",
        ),
        (
            "word-count",
            "a register is given another number of words than it takes",
        ),
        ("full-bitstream", "the file configures the whole device"),
        (
            "encrypted",
            "the content is encrypted and cannot be checked",
        ),
        (
            "multi-die",
            "the file holds streams for several dies; that was not measured",
        ),
        (
            "per-frame-crc",
            "each frame has a checksum of its own; that was not measured",
        ),
        (
            "unmeasured-compression",
            "compressed for a family in which that was not measured",
        ),
        (
            "unmeasured-family",
            "partial bitstreams of this family were not measured",
        ),
        ("unknown-device", "no device with this IDCODE is known"),
        ("wrong-device", "the file is for another device"),
        (
            "before-idcode",
            "something is written before the checksum was begun and the device named",
        ),
        (
            "out-of-order",
            "a step stands where partial bitstreams do not have it",
        ),
        (
            "crc-mismatch",
            "the file is damaged or was edited: its checksum does not match",
        ),
        ("crc-missing", "no checksum follows the last frames"),
        ("no-frame-address", "frames without an address of their own"),
        ("bad-frame-address", "a frame address with reserved bits"),
        (
            "frame-length",
            "frame data that is no whole number of frames",
        ),
        (
            "no-such-frame",
            "a frame address that the device does not have",
        ),
        ("outside-region", "a frame that is not the region's"),
        (
            "outside-blocks",
            "a block of frames that the region's reference does not write",
        ),
        ("pad-not-empty", "a pad frame has content"),
        ("left-in-buffer", "a frame is left in the device's buffer"),
        ("mask-content", "a column mask of unknown content"),
        (
            "mask-incomplete",
            "flip-flops are restored and not every column was masked",
        ),
        (
            "mask-unknown",
            "flip-flops are restored, and nobody knows which columns the masks name",
        ),
        (
            "restores-outside",
            "flip-flops outside the region would be restored",
        ),
        (
            "masks-differ",
            "the masks before and after are not of the same frames",
        ),
        (
            "mask-outside",
            "a mask of a frame that the stream does not write otherwise",
        ),
        (
            "unmeasured-arrangement",
            "sub-streams in an arrangement that was not measured",
        ),
        ("left-stopped", "the device would be left stopped"),
        ("left-set", "a control bit would be left set"),
        (
            "too-many",
            "more sub-streams or blocks than any genuine file has",
        ),
        (
            "incomparable",
            "the region's frames are stated in a form that does not fit the device",
        ),
    ];

    /// A stable name.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoSync => "no-sync-word",
            Self::OutsideWord(_) => "word-outside-sync",
            Self::Unfinished => "unfinished",
            Self::Packet(PacketFault::Read(_), _) => "read-packet",
            Self::Packet(PacketFault::ReservedOperation, _) => "reserved-operation",
            Self::Packet(..) => "not-a-packet",
            Self::Register(_) => "forbidden-register",
            Self::Command(_) => "forbidden-command",
            Self::Value(..) => "forbidden-value",
            Self::Count(..) => "word-count",
            Self::FullBitstream => "full-bitstream",
            Self::Encrypted => "encrypted",
            Self::MultiDie => "multi-die",
            Self::PerFrameCrc => "per-frame-crc",
            Self::Compressed => "unmeasured-compression",
            Self::Family(_) => "unmeasured-family",
            Self::UnknownDevice(_) => "unknown-device",
            Self::WrongDevice { .. } => "wrong-device",
            Self::BeforeIdcode(_) => "before-idcode",
            Self::Order(_) => "out-of-order",
            Self::Crc { .. } => "crc-mismatch",
            Self::NoCrc => "crc-missing",
            Self::NoAddress => "no-frame-address",
            Self::Address(_) => "bad-frame-address",
            Self::FrameLength(_) => "frame-length",
            Self::NoSuchFrame => "no-such-frame",
            Self::OutsideRegion => "outside-region",
            Self::OutsideBlocks(_) => "outside-blocks",
            Self::Pad => "pad-not-empty",
            Self::LeftInBuffer => "left-in-buffer",
            Self::MaskContent => "mask-content",
            Self::MaskIncomplete => "mask-incomplete",
            Self::MaskUnknown => "mask-unknown",
            Self::RestoresOutside => "restores-outside",
            Self::MasksDiffer => "masks-differ",
            Self::MaskOutside => "mask-outside",
            Self::Arrangement => "unmeasured-arrangement",
            Self::LeftStopped => "left-stopped",
            Self::LeftSet(..) => "left-set",
            Self::TooMany => "too-many",
            Self::Incomparable => "incomparable",
        }
    }

    /// What to do about it, in one sentence.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::NoSync | Self::Unfinished | Self::Crc { .. } => {
                "Copy the file again from where it was built: it is cut or damaged."
            }
            Self::FullBitstream => {
                "Give the partial bitstream of the module, not that of the device."
            }
            Self::Encrypted => {
                "Build the bitstream without encryption: what cannot be read is not loaded."
            }
            Self::MultiDie => "Devices of several dies are not supported yet.",
            Self::PerFrameCrc => "Build the bitstream without BITSTREAM.GENERAL.PERFRAMECRC.",
            Self::Compressed => "Build the bitstream without BITSTREAM.GENERAL.COMPRESS.",
            Self::Family(_) => "Partial bitstreams of this family are not supported yet.",
            Self::UnknownDevice(_) | Self::WrongDevice { .. } => {
                "Build the bitstream for the device that the card has."
            }
            Self::OutsideRegion | Self::OutsideBlocks(_) | Self::RestoresOutside => {
                "Load it into the region that it was built for, or build it from the shell's checkpoint for this one."
            }
            Self::MaskUnknown => {
                "Build the bitstream without RESET_AFTER_RECONFIG: the columns of this device are not known."
            }
            Self::NoSuchFrame => "Build the bitstream for this very device; if it was, report it.",
            Self::Incomparable => "State the region's frames again with `reconfctl region learn`.",
            _ => "Give the file that the vendor's tool wrote, unchanged.",
        }
    }
}
