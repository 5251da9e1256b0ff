//! How a job ended otherwise than well: the closed outcome for `reconfd`, the
//! card's own words, and the story for operators.
//!
//! Two types, because they oblige to different things. A [`Refusal`] touched
//! nothing. After a [`Failure`] the region's content is not trusted: whoever
//! holds one must condemn the region.

use std::time::Duration;

use card::DeviceError;
use card::engine::{EngineCause, EngineError, ProgramCause, ProgramError, RawStatus, Step};
use card::journal::JournalError;

use super::inbox::GivenUp;
use crate::fence::Unfit;
use crate::ipc::{CardStage, HardwareWords, Outcome};

/// The job was refused; nothing was touched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    /// Why, for `reconfd`.
    pub outcome: Outcome,
    /// The story.
    pub text: String,
}

impl Refusal {
    /// A refusal.
    pub(super) fn new(outcome: Outcome, text: impl Into<String>) -> Self {
        Self {
            outcome,
            text: text.into(),
        }
    }

    /// The bytes are not for the region: the place first, for a packet has little room; the whole
    /// story goes to the log.
    pub(super) fn unfit(unfit: &Unfit) -> Self {
        tracing::warn!(story = %unfit.story(), "a bitstream is refused for its frames");
        Self::new(Outcome::Unfit, unfit.place())
    }
}

/// The job failed after INTENT (or in the middle of a scrub).
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "the region of a failed job must be condemned"]
pub(super) struct Failure {
    /// Why, for `reconfd`.
    pub outcome: Outcome,
    /// How far it had come.
    pub stage: CardStage,
    /// The card's words.
    pub words: HardwareWords,
    /// The story.
    pub text: String,
    /// Who gave it up, if that is why.
    pub given_up: Option<GivenUp>,
}

impl Failure {
    /// A failure without words of the card.
    pub(super) fn new(outcome: Outcome, stage: CardStage, text: impl Into<String>) -> Self {
        Self {
            outcome,
            stage,
            words: HardwareWords::default(),
            text: text.into(),
            given_up: None,
        }
    }

    /// The engine could not do what `stage` needs.
    pub(super) fn engine(stage: CardStage, error: &EngineError) -> Self {
        let outcome = match &error.cause {
            EngineCause::Device(device) => device_outcome(device),
            EngineCause::DecoupleFailed { .. } => Outcome::DecoupleFailed,
            EngineCause::Stuck { .. } if error.step == Step::Shutting => Outcome::DecoupleFailed,
            EngineCause::Stuck { .. } => Outcome::Deadline,
            EngineCause::NoIdentifier => Outcome::Identity,
            EngineCause::NoReset => Outcome::NotOffered,
            EngineCause::NoSuchRegion
            | EngineCause::AccessStuck { .. }
            | EngineCause::NotShut
            | EngineCause::NotOpen => Outcome::ProgramError,
        };
        Self::new(outcome, stage, error.to_string())
    }

    /// The load itself failed.
    pub(super) fn program(error: &ProgramError) -> Self {
        let outcome = match &error.cause {
            ProgramCause::Device(device) => device_outcome(device),
            ProgramCause::Stuck { .. } | ProgramCause::Deadline { .. } => Outcome::Deadline,
            ProgramCause::NotShut => Outcome::DecoupleFailed,
            ProgramCause::NoSuchRegion
            | ProgramCause::Empty
            | ProgramCause::NotWords { .. }
            | ProgramCause::Configuration
            | ProgramCause::StillListens
            | ProgramCause::TooLong { .. }
            | ProgramCause::TooShort { .. }
            | ProgramCause::AlreadyFailed
            | ProgramCause::StaleErrors(_)
            | ProgramCause::Faults(_)
            | ProgramCause::EndedEarly => Outcome::ProgramError,
        };
        Self {
            words: words(error.raw),
            ..Self::new(outcome, CardStage::Writing, error.to_string())
        }
    }

    /// The journal could not be written.
    pub(super) fn journal(stage: CardStage, error: &JournalError) -> Self {
        Self::new(Outcome::Journal, stage, format!("journal: {error}"))
    }

    /// The job was given up from outside.
    pub(super) fn given_up(stage: CardStage, why: GivenUp) -> Self {
        Self {
            given_up: Some(why),
            ..Self::new(Outcome::NotCommitted, stage, given_up(why))
        }
    }

    /// The card itself is gone: no other job can do better.
    pub(super) fn is_card_gone(&self) -> bool {
        self.outcome == Outcome::DeviceGone
    }
}

/// The sentence for a job that was given up.
pub(super) fn given_up(why: GivenUp) -> &'static str {
    match why {
        GivenUp::Aborted => "given up by reconfd",
        GivenUp::ConnectionEnded => "the connection that offered it ended",
        GivenUp::Silence => "no consent came in time",
        GivenUp::Stopping => "the card's process was told to stop",
    }
}

fn device_outcome(error: &DeviceError) -> Outcome {
    match error {
        DeviceError::Gone(_) | DeviceError::Protocol(_) | DeviceError::Unusable { .. } => {
            Outcome::DeviceGone
        }
        DeviceError::Timeout(_) => Outcome::Deadline,
        DeviceError::Refused { .. }
        | DeviceError::OutOfRange { .. }
        | DeviceError::Unaligned { .. }
        | DeviceError::NoReset
        | DeviceError::NotMappable
        | DeviceError::NoSuchInterrupt { .. }
        | DeviceError::Io { .. } => Outcome::ProgramError,
    }
}

/// A register that could not be read is told as 0.
fn words(raw: RawStatus) -> HardwareWords {
    HardwareWords {
        control: raw.control.unwrap_or(0),
        status: raw.status.unwrap_or(0),
        error: raw.errors.unwrap_or(0),
    }
}

/// How a job ended, well or not, before it is put into a packet.
#[derive(Debug)]
pub(super) struct Story {
    pub outcome: Outcome,
    pub stage: CardStage,
    pub words: HardwareWords,
    pub text: String,
    pub device: Duration,
}

impl Story {
    /// It went well; `device` is what the card needed.
    pub(super) fn done(device: Duration) -> Self {
        Self {
            outcome: Outcome::Done,
            stage: CardStage::Committing,
            words: HardwareWords::default(),
            text: String::new(),
            device,
        }
    }
}

impl From<Refusal> for Story {
    fn from(refusal: Refusal) -> Self {
        Self {
            outcome: refusal.outcome,
            stage: CardStage::Verifying,
            words: HardwareWords::default(),
            text: refusal.text,
            device: Duration::ZERO,
        }
    }
}

impl From<Failure> for Story {
    fn from(failure: Failure) -> Self {
        Self {
            outcome: failure.outcome,
            stage: failure.stage,
            words: failure.words,
            text: failure.text,
            device: Duration::ZERO,
        }
    }
}
