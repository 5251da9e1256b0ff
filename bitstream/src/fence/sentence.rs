//! What a refusal says to people: one sentence for each reason.
//!
//! Knows sentences. They tell of the file and the device, so that the person
//! who made the file may read each of them.

use std::fmt;

use super::reason::Reason;
use crate::xilinx::PacketFault;

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSync => f.write_str("no sync word where one is due"),
            Self::OutsideWord(word) => {
                write!(
                    f,
                    "the word {word:08x} stands where the device does not listen, and only padding may"
                )
            }
            Self::Unfinished => f.write_str("the file ends and the device still listens"),
            Self::Packet(fault, word) => packet(f, *fault, *word),
            Self::Register(register) => write!(f, "no partial bitstream writes {register}"),
            Self::Command(command) => write!(f, "no partial bitstream gives the command {command}"),
            Self::Value(register, value) => {
                write!(f, "no partial bitstream writes {value:08x} to {register}")
            }
            Self::Count(register, count) => {
                write!(
                    f,
                    "{count} words for {register}, which takes another number"
                )
            }
            Self::FullBitstream => {
                f.write_str("this is a bitstream for the whole device, not for a region")
            }
            Self::Encrypted => {
                f.write_str("the bitstream is encrypted, so what it writes cannot be checked")
            }
            Self::MultiDie => f.write_str(
                "the bitstream is for a device of several dies, which was not measured yet",
            ),
            Self::PerFrameCrc => {
                f.write_str("each frame carries a checksum of its own, which was not measured yet")
            }
            Self::Compressed => f.write_str(
                "the bitstream is compressed, which was not measured yet for this family",
            ),
            Self::Family(device) => {
                write!(
                    f,
                    "the bitstream is for {device}, of a family that was not measured yet"
                )
            }
            Self::UnknownDevice(idcode) => {
                write!(f, "no device with the IDCODE {idcode:08x} is known")
            }
            Self::WrongDevice { found, expected } => {
                write!(
                    f,
                    "the bitstream is for the IDCODE {found:08x}, and the device is {expected}"
                )
            }
            Self::BeforeIdcode(register) => {
                write!(
                    f,
                    "{register} is written before the checksum was begun and the device was named"
                )
            }
            Self::Order(what) => f.write_str(what),
            of_frames => frames(f, of_frames),
        }
    }
}

/// What is wrong with frames, masks and how the parts go together.
fn frames(f: &mut fmt::Formatter<'_>, reason: &Reason) -> fmt::Result {
    match reason {
        Reason::Crc { stated, computed } => {
            write!(
                f,
                "the checksum is stated as {stated:08x}, and the words give {computed:08x}"
            )
        }
        Reason::NoCrc => f.write_str("frames are written and no checksum follows"),
        Reason::NoAddress => f.write_str("frames are written and no address was given for them"),
        Reason::Address(error) => write!(f, "{error}"),
        Reason::FrameLength(words) => write!(
            f,
            "{words} words of frame data are no whole number of frames"
        ),
        Reason::NoSuchFrame => f.write_str("the device has no such frame"),
        Reason::OutsideRegion => {
            f.write_str("the bitstream writes a frame that is not the region's")
        }
        Reason::OutsideBlocks(block) => {
            write!(
                f,
                "the bitstream writes `{block}`, which the region's reference does not"
            )
        }
        Reason::Pad => f.write_str("a pad frame has content"),
        Reason::LeftInBuffer => {
            f.write_str("the last frame has content and is left in the device's buffer")
        }
        Reason::MaskContent => {
            f.write_str("the mask of a column has a content that tools do not write")
        }
        Reason::MaskIncomplete => f.write_str(
            "flip-flops are restored, and not every column of the device was masked before",
        ),
        Reason::MaskUnknown => f.write_str(
            "flip-flops are restored, and of this device nobody knows which ones the masks name",
        ),
        Reason::RestoresOutside => {
            f.write_str("flip-flops of a column outside the region would be restored")
        }
        Reason::MasksDiffer => {
            f.write_str("the masks set before and after the frames are not of the same frames")
        }
        Reason::MaskOutside => {
            f.write_str("a mask is written of a frame that the bitstream does not write otherwise")
        }
        Reason::Arrangement => {
            f.write_str("the sub-streams are arranged in a way that was not measured")
        }
        Reason::LeftStopped => f.write_str("the device would be left stopped"),
        Reason::LeftSet(register, bits) => {
            write!(f, "the bits {bits:08x} of {register} would be left set")
        }
        Reason::TooMany => f.write_str("more parts than any genuine bitstream has"),
        Reason::Incomparable => {
            f.write_str("the region's frames are stated in a form that does not fit the device")
        }
        // The rest is said above.
        reason => f.write_str(reason.code()),
    }
}

fn packet(f: &mut fmt::Formatter<'_>, fault: PacketFault, word: u32) -> fmt::Result {
    match fault {
        PacketFault::Type => write!(f, "the word {word:08x} begins no packet"),
        PacketFault::Read(register) => write!(f, "the stream reads {register}"),
        PacketFault::ReservedOperation => {
            write!(f, "the word {word:08x} asks for the reserved operation")
        }
        PacketFault::ReservedBits => write!(f, "the word {word:08x} sets reserved bits"),
        PacketFault::OddNop => write!(f, "the word {word:08x} is no NOP as tools write it"),
        PacketFault::LoneLong => {
            write!(
                f,
                "the word {word:08x} goes on with a packet that was not begun"
            )
        }
        PacketFault::Empty => f.write_str("frame data of no words"),
        PacketFault::Cut => f.write_str("the file ends within a packet"),
    }
}
