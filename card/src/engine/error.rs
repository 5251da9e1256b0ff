//! What can go wrong with a region, told to operators: what was being done,
//! the raw words of the hardware, and how the region was left.

use std::fmt;

use crate::device::DeviceError;

use super::RegionId;

/// A region could not be read, shut, opened or reset.
#[derive(Debug, thiserror::Error)]
#[error("{step} region {region}: {cause}; {left}")]
pub struct EngineError {
    /// Which region.
    pub region: RegionId,
    /// What was being done.
    pub step: Step,
    /// Why it failed.
    #[source]
    pub cause: EngineCause,
    /// What became of the region.
    pub left: RegionLeft,
}

/// What an engine was asked to do with a region, loads aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// To read who reaches it or whether it is in reset.
    Reading,
    /// To take it from the guest.
    Shutting,
    /// To read what it holds.
    Identifying,
    /// To give it to the guest.
    Opening,
    /// To reset its logic.
    Resetting,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reading => "reading the state of",
            Self::Shutting => "shutting",
            Self::Identifying => "identifying",
            Self::Opening => "opening",
            Self::Resetting => "resetting",
        })
    }
}

/// How a region was left by what failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegionLeft {
    /// No guest reaches it: read back from the card after the failure.
    Shut,
    /// Nothing was done to it.
    AsItWas,
    /// It was to be shut, and the card did not show that it is.
    Unproven,
}

impl fmt::Display for RegionLeft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Shut => "the region is shut",
            Self::AsItWas => "the region is as it was",
            Self::Unproven => "the region could not be proven shut",
        })
    }
}

/// Why something could not be done to a region.
#[derive(Debug, thiserror::Error)]
pub enum EngineCause {
    /// The card has no region of this number.
    #[error("the card has no such region")]
    NoSuchRegion,
    /// The device could not be reached.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Access was given to the host and did not go there: no isolation.
    #[error("access did not go to the host (register {register:#018x})")]
    DecoupleFailed {
        /// The register with the switch, as read back.
        register: u64,
    },
    /// Access was given to the guest and did not go there.
    #[error("access did not go to the guest (register {register:#018x})")]
    AccessStuck {
        /// The register with the switch, as read back.
        register: u64,
    },
    /// The card did not answer to a change of its registers in time.
    #[error("{what} did not come in time (register {register:#018x})")]
    Stuck {
        /// What was waited for.
        what: &'static str,
        /// The register that was watched, as last read.
        register: u64,
    },
    /// What is asked for needs a region that only the host reaches.
    #[error("the region is not shut")]
    NotShut,
    /// What is asked for needs a region that is in use.
    #[error("the region is shut")]
    NotOpen,
    /// The shell gives no way to reset the logic of a region.
    #[error("the shell has no reset for the region; load the image again instead")]
    NoReset,
    /// The function in the region did not answer with an identifier.
    #[error("the function in the region shows no identifier")]
    NoIdentifier,
}

/// A load failed.
#[derive(Debug, thiserror::Error)]
#[error("{stage} region {region}: {cause} ({raw}); {left}")]
pub struct ProgramError {
    /// Which region.
    pub region: RegionId,
    /// How far the load had come.
    pub stage: Stage,
    /// Why it failed.
    #[source]
    pub cause: ProgramCause,
    /// The registers at the time of the failure, before they were cleared.
    pub raw: RawStatus,
    /// What became of the region.
    pub left: RegionLeft,
}

/// The stages of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The engine is being made ready. Nothing was written.
    Preparing,
    /// The payload is being written.
    Writing,
    /// All is written, and the verdict awaited.
    Completing,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Preparing => "preparing",
            Self::Writing => "writing",
            Self::Completing => "completing",
        })
    }
}

/// Why a load failed.
#[derive(Debug, thiserror::Error)]
pub enum ProgramCause {
    /// The card has no region of this number.
    #[error("the card has no such region")]
    NoSuchRegion,
    /// The region is not shut, or could not be read.
    #[error("the region is not shut")]
    NotShut,
    /// There is nothing to write.
    #[error("the payload is empty")]
    Empty,
    /// The payload's words are not what this engine takes.
    #[error("this engine does not take a payload of {bytes} bytes in this order of words")]
    NotWords {
        /// What `begin` was told.
        bytes: u64,
    },
    /// The device's configuration logic reports an error: a checksum, an
    /// IDCODE or a frame address that it does not take.
    #[error("the configuration logic reports an error")]
    Configuration,
    /// The configuration logic still listens after the end: the payload did
    /// not end what it began.
    #[error("the configuration logic still listens after the end of the payload")]
    StillListens,
    /// More was written than was announced.
    #[error("more than the announced {announced} bytes were given")]
    TooLong {
        /// What `begin` was told.
        announced: u64,
    },
    /// Less was written than was announced.
    #[error("{given} of the announced {announced} bytes were given")]
    TooShort {
        /// What `begin` was told.
        announced: u64,
        /// What came.
        given: u64,
    },
    /// This load had failed before.
    #[error("the load had failed before")]
    AlreadyFailed,
    /// The device could not be reached.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// One wait took too long.
    #[error("{what} did not come in time")]
    Stuck {
        /// What was waited for.
        what: &'static str,
    },
    /// The whole load took too long.
    #[error("the load took longer than it may, {what} did not come")]
    Deadline {
        /// What was waited for.
        what: &'static str,
    },
    /// Errors of an earlier load could not be cleared, and are not blamed on
    /// this one.
    #[error("errors of an earlier load cannot be cleared: {0}")]
    StaleErrors(PrFaults),
    /// The hardware reports errors of this load.
    #[error("{0}")]
    Faults(PrFaults),
    /// The hardware ended the load in the middle, and gives no reason.
    #[error("the hardware ended the load early")]
    EndedEarly,
}

/// What the programming engine's registers held. `None` where a register could
/// not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RawStatus {
    /// PR control.
    pub control: Option<u64>,
    /// PR status.
    pub status: Option<u64>,
    /// PR errors.
    pub errors: Option<u64>,
}

impl fmt::Display for RawStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, word) in [
            ("CTRL ", self.control),
            (" STS ", self.status),
            (" ERR ", self.errors),
        ] {
            f.write_str(name)?;
            match word {
                Some(word) => write!(f, "{word:#x}")?,
                None => f.write_str("unread")?,
            }
        }
        Ok(())
    }
}

/// The error bits of a programming engine, at least one of them set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrFaults(u64);

/// One error of a programming engine, the worst first: at the front what no
/// second try can mend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PrFault {
    /// The bitstream is made for another region or shell (bit 2).
    Incompatible,
    /// A bitstream that must be signed for the hardware is not (bit 6).
    SecureLoad,
    /// The payload did not pass the hardware's check sum (bit 1).
    Crc,
    /// The engine was used in a state where it must not be (bit 0).
    Operation,
    /// The hardware gave up waiting (bit 5).
    Timeout,
    /// Words came faster than the hardware took them (bit 4).
    FifoOverflow,
    /// The hardware's inner engine failed, for any reason (bit 3). Its name in
    /// the registers, "protocol error", says more than is known.
    Engine,
    /// A bit without a public meaning.
    Unknown,
}

impl PrFault {
    /// Each named fault and its bit, the worst first.
    const BITS: [(Self, u64); 7] = [
        (Self::Incompatible, 1 << 2),
        (Self::SecureLoad, 1 << 6),
        (Self::Crc, 1 << 1),
        (Self::Operation, 1 << 0),
        (Self::Timeout, 1 << 5),
        (Self::FifoOverflow, 1 << 4),
        (Self::Engine, 1 << 3),
    ];
}

impl fmt::Display for PrFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Incompatible => "incompatible bitstream",
            Self::SecureLoad => "secure load error",
            Self::Crc => "CRC error",
            Self::Operation => "operation error",
            Self::Timeout => "hardware timeout",
            Self::FifoOverflow => "FIFO overflow",
            Self::Engine => "engine error",
            Self::Unknown => "unknown error",
        })
    }
}

impl PrFaults {
    /// `None` when the register holds no error.
    #[must_use]
    pub fn new(register: u64) -> Option<Self> {
        (register != 0).then_some(Self(register))
    }

    /// The register as it was read.
    #[must_use]
    pub fn raw(self) -> u64 {
        self.0
    }

    /// The worst of them.
    #[must_use]
    pub fn worst(self) -> PrFault {
        self.iter().next().unwrap_or(PrFault::Unknown)
    }

    /// All of them, the worst first.
    pub fn iter(self) -> impl Iterator<Item = PrFault> {
        let named = PrFault::BITS.iter().fold(0, |mask, (_, bit)| mask | bit);
        PrFault::BITS
            .into_iter()
            .filter(move |(_, bit)| self.0 & bit != 0)
            .map(|(fault, _)| fault)
            .chain((self.0 & !named != 0).then_some(PrFault::Unknown))
    }
}

impl fmt::Display for PrFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, fault) in self.iter().enumerate() {
            if place != 0 {
                f.write_str(", ")?;
            }
            write!(f, "{fault}")?;
        }
        Ok(())
    }
}
