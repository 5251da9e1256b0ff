//! Bytes held against what a region demands of their frames.
//!
//! The one place where containers, devices and demands meet: both processes,
//! `reconfctl check` and `reconfctl repo` ask here, so that what one of them
//! refuses no other one accepts. Knows what is proven. Must not know who asks,
//! what was signed, or cards.

use std::fmt;
use std::sync::Arc;

use bitstream::ContainerError;
use bitstream::device::Device;
use bitstream::fence::{Fenced, Refusal, check, check_within, survey};
use bitstream::xilinx::XilinxStream;
use policy::trust::Format;

use crate::contents::Contents;
use crate::frames::Demand;

/// What was proven of bytes, for the region whose demand they were held against.
/// Only [`hold`] makes one.
#[derive(Debug, Clone)]
pub struct Proof(Proven);

#[derive(Debug, Clone)]
enum Proven {
    /// The region demands nothing.
    NothingDemanded,
    /// They are for the device; their frames were not to be checked.
    ForDevice,
    /// They are for the device, and write the region's frames and no other.
    WithinFrames(Arc<Fenced>),
}

impl Proof {
    /// What the bytes write, where that was to be checked.
    #[must_use]
    pub fn fenced(&self) -> Option<&Fenced> {
        match &self.0 {
            Proven::NothingDemanded | Proven::ForDevice => None,
            Proven::WithinFrames(fenced) => Some(fenced),
        }
    }
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            Proven::NothingDemanded => "nothing demanded",
            Proven::ForDevice => "for the device",
            Proven::WithinFrames(_) => "for the device, within the region's frames",
        })
    }
}

/// Bytes that a region must not be given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// It is no container that can be loaded.
    #[error(transparent)]
    Container(#[from] ContainerError),
    /// The frame fence refuses them.
    #[error("{0}")]
    Fence(Box<Refusal>),
    /// Nobody can tell which frames are in such a container.
    #[error("the frames of a {} cannot be checked, and the region's fence is required", .0.name())]
    Opaque(Format),
    /// The header for people names another part.
    #[error("the header says that it is for {part}, and the region is of {device}")]
    Part {
        /// What the header says.
        part: String,
        /// What the shell file says.
        device: &'static str,
    },
    /// The configuration words name another device.
    #[error("it is for the device with IDCODE {idcode:08x}, and the region is of {device}")]
    Device {
        /// What the words say.
        idcode: u32,
        /// What the shell file says.
        device: &'static str,
    },
    /// The device is made to listen more often than anybody looked.
    #[error("it has more sub-streams than any genuine bitstream, so what it names is not known")]
    Streams,
    /// The configuration words name no device.
    #[error("it names no device, and the region is of {device}")]
    NoDevice {
        /// What the shell file says.
        device: &'static str,
    },
}

impl Unfit {
    /// A stable name.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Container(_) => "not-a-container",
            Self::Fence(refusal) => refusal.code(),
            Self::Opaque(_) => "frames-not-readable",
            Self::Part { .. } => "other-part",
            Self::Device { .. } => "other-device",
            Self::Streams => "too-many",
            Self::NoDevice { .. } => "no-device",
        }
    }

    /// The byte of the file that is to blame, where one is.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        match self {
            Self::Container(error) => Some(number(error.offset())),
            Self::Fence(refusal) => Some(number(refusal.offset())),
            _ => None,
        }
    }

    /// The frame that it is about, in the device's terms, where there is one.
    #[must_use]
    pub fn frame(&self) -> Option<String> {
        match self {
            Self::Fence(refusal) => refusal.frame().map(|frame| frame.to_string()),
            _ => None,
        }
    }

    /// What to do about it, in one sentence.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::Container(error) => error.remedy().to_owned(),
            Self::Fence(refusal) => refusal.remedy().to_string(),
            Self::Opaque(_) => {
                "Publish a bitstream whose frames can be checked, or do not require it of this region."
                    .to_owned()
            }
            Self::Part { .. } | Self::Device { .. } | Self::Streams | Self::NoDevice { .. } => {
                "Publish a bitstream that was made for this device.".to_owned()
            }
        }
    }

    /// Code, byte and frame, in less than a hundred characters.
    #[must_use]
    pub fn place(&self) -> String {
        let code = self.code();
        match (self.offset(), self.frame()) {
            (Some(offset), Some(frame)) => format!("{code} at byte {offset}: {frame}"),
            (Some(offset), None) => format!("{code} at byte {offset}"),
            (None, _) => code.to_owned(),
        }
    }

    /// Everything: code, byte, frame, sentence, remedy. For operators only.
    #[must_use]
    pub fn story(&self) -> String {
        format!("{}: {self}. {}", self.place(), self.remedy())
    }
}

/// Holds a bitstream against what a region demands.
///
/// # Errors
/// [`Unfit`]: it must not be written to that region.
pub fn hold(contents: &Contents<'_>, demand: &Demand) -> Result<Proof, Unfit> {
    let proven = match (demand, contents.stream()) {
        (Demand::Nothing, _) => Proven::NothingDemanded,
        // Nothing in it says for which device it is: what was signed stands alone.
        (Demand::Device(_), None) => Proven::ForDevice,
        (Demand::Device(device), Some(stream)) => {
            for_device(stream, *device)?;
            Proven::ForDevice
        }
        (Demand::Frames(..), None) => return Err(Unfit::Opaque(contents.format())),
        (Demand::Frames(device, own), Some(stream)) => {
            same_part(stream, *device)?;
            let fenced = check_within(stream, Some(*device), Some(own.bounds()))
                .map_err(|refusal| Unfit::Fence(Box::new(refusal)))?;
            Proven::WithinFrames(Arc::new(fenced))
        }
    };
    Ok(Proof(proven))
}

/// Holds a bitstream against what holds for every region: its own grammar, its checksums, and
/// that it does nothing forbidden. Of containers that cannot be read there is nothing to hold.
///
/// # Errors
/// [`Unfit`]: no region may be given it.
pub fn hold_alone(contents: &Contents<'_>) -> Result<(), Unfit> {
    match contents.stream() {
        None => Ok(()),
        Some(stream) => check(stream, None, None)
            .map(|_fenced| ())
            .map_err(|refusal| Unfit::Fence(Box::new(refusal))),
    }
}

/// The device is named at least once, and no other one is.
fn for_device(stream: &XilinxStream<'_>, device: Device) -> Result<(), Unfit> {
    same_part(stream, device)?;
    let name = device.name();
    let survey = survey(stream);
    if survey.more {
        return Err(Unfit::Streams);
    }
    let mut seen = None;
    for idcode in survey.idcodes() {
        if !device.has_idcode(idcode) {
            return Err(Unfit::Device {
                idcode,
                device: name,
            });
        }
        seen = Some(idcode);
    }
    seen.map(|_idcode| ())
        .ok_or(Unfit::NoDevice { device: name })
}

/// The header is for people, and proves nothing; but where it names another part, somebody took
/// the wrong file.
fn same_part(stream: &XilinxStream<'_>, device: Device) -> Result<(), Unfit> {
    let Some(part) = stream.header.as_ref().and_then(|header| header.part) else {
        return Ok(());
    };
    match Device::named(part) {
        Some(named) if named == device => Ok(()),
        // A part that is not known cannot be compared; the IDCODE is what counts.
        None => Ok(()),
        Some(_other) => Err(Unfit::Part {
            part: part.to_owned(),
            device: device.name(),
        }),
    }
}

fn number(at: usize) -> u64 {
    u64::try_from(at).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
