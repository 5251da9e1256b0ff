//! What a programming interface looks like to whoever wants a region changed.
//!
//! An engine knows registers and their order. It does not know why a region is
//! to be changed, by whom, or whether that is allowed.
//!
//! One load, in the order in which the calls are made:
//!
//! ```text
//! shut      access to the host, read back; then reset, acknowledged
//! begin     the engine made ready: a Programming, the guard of this load
//!   write…  the payload
//!   finish  the verdict of the hardware
//! identity  what is in the region now, while only the host reaches it
//! open      access to the guest: the very last store
//! ```
//!
//! A failure of any of them leaves the region shut, or says that this could
//! not be proven ([`RegionLeft`]).

mod error;
mod programming;

use std::fmt;
use std::time::Duration;

use uuid::Uuid;

use crate::device::DeviceIdentity;

pub use error::{
    EngineCause, EngineError, PrFault, PrFaults, ProgramCause, ProgramError, RawStatus, RegionLeft,
    Stage, Step,
};
pub(crate) use programming::{Failure, Loader};
pub use programming::{Programming, Written};

/// The driver of one card's programming interface.
pub trait Engine: Send {
    /// The device that is programmed through.
    fn device(&self) -> &DeviceIdentity;

    /// The device is to be given back, or lost: see [`Device::leaving`](crate::Device).
    fn leaving(&self) -> bool {
        false
    }

    /// What this engine can and cannot do.
    fn capabilities(&self) -> Capabilities;

    /// The card's regions, by rising number.
    fn regions(&self) -> &[RegionFacts];

    /// Who reaches the region now, read from the card. Where the card has no
    /// switch of its own for this, the reset is the gate: held means host.
    ///
    /// # Errors
    /// The region is left as it was.
    fn access(&mut self, region: RegionId) -> Result<Access, EngineError>;

    /// Whether the region's logic is held in reset, read from the card.
    ///
    /// # Errors
    /// The region is left as it was.
    fn in_reset(&mut self, region: RegionId) -> Result<ResetState, EngineError>;

    /// Takes the region from the guest: access to the host, read back; then
    /// into reset, acknowledged.
    ///
    /// # Errors
    /// [`EngineCause::DecoupleFailed`] where access does not move.
    fn shut(&mut self, region: RegionId) -> Result<(), EngineError>;

    /// Makes the engine ready to take a payload for a region that is shut.
    /// From here to the verdict the load may take `budget` (see
    /// [`load_budget`]).
    ///
    /// # Errors
    /// The region stays shut, nothing of it was written.
    fn begin(
        &mut self,
        region: RegionId,
        payload: Payload,
        budget: Duration,
    ) -> Result<Programming<'_>, ProgramError>;

    /// Tells what the region holds, while access is the host's. Takes it out
    /// of reset where that is needed to read it, and leaves it so.
    ///
    /// # Errors
    /// The region is shut again.
    fn identity(&mut self, region: RegionId) -> Result<Identity, EngineError>;

    /// Gives the region to the guest, out of reset. The very last step.
    ///
    /// # Errors
    /// The region is shut again.
    fn open(&mut self, region: RegionId) -> Result<(), EngineError>;

    /// Resets the logic of a region that is out of reset, for a guest that
    /// asked; access is the host's meanwhile, and afterwards whose it was.
    ///
    /// # Errors
    /// [`EngineCause::NotOpen`] for a region that is shut: it stays so. After
    /// any other failure the region is shut.
    fn pulse_reset(&mut self, region: RegionId) -> Result<(), EngineError>;
}

/// What is about to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Payload {
    /// Its bytes.
    pub bytes: u64,
    /// How they make the words that the hardware takes.
    pub order: WordOrder,
}

/// How the bytes of a payload make words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WordOrder {
    /// The first byte is the highest.
    BigEndian,
    /// The first byte is the lowest: what DFL cards take.
    LittleEndian,
}

/// The number that a card gives one of its regions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RegionId(pub u16);

impl fmt::Display for RegionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What the card itself tells about one of its regions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegionFacts {
    /// Its number.
    pub id: RegionId,
    /// Which partial bitstreams fit it.
    pub interface_id: Uuid,
    /// How far its content can be read back.
    pub identity: IdentityCheck,
}

/// Who reaches a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The host only.
    Host,
    /// The guest, through its user function.
    Guest,
}

/// Whether the logic of a region is held in reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetState {
    /// It is, and it has acknowledged.
    Held,
    /// It was told to, and has not acknowledged yet.
    Entering,
    /// It is not.
    Released,
}

/// What an engine says about itself. A policy may require any of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// A region can stay shut after it was written.
    pub holds_isolated: Declared,
    /// How far the content of a region can be read back.
    pub identity: IdentityCheck,
    /// The guest's outstanding transactions end before the region is shut.
    pub drains: Declared,
    /// A guest's access to a shut region completes, and reads as all ones.
    pub answers_while_shut: Declared,
    /// The frames of a bitstream can be checked against the region's own.
    pub fenced: Declared,
    /// The user clock that can be set with a load.
    pub clock: ClockKind,
}

/// A yes or no of [`Capabilities`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Declared {
    /// It does.
    Yes,
    /// It does not, or nobody has proven yet that it does.
    No,
}

/// How far the content of a region can be known after a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum IdentityCheck {
    /// Not at all.
    None,
    /// The engine says that the load went well, and that is all.
    EngineStatus,
    /// The function's own identifier is read from the region.
    Checked,
}

/// The kinds of user clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockKind {
    /// None that this engine sets.
    None,
    /// In the registers of the port.
    Classic,
    /// A feature of its own.
    Ofs,
}

/// What is in a region, as far as the engine can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// Read from the region itself.
    Function(Uuid),
    /// The engine ended without an error, and cannot tell more.
    EngineStatus,
    /// Nothing is known.
    Unknown,
}

/// What a whole load may take: `base`, and what `total_bytes` need at `rate`
/// bytes a second. A rate of 0 counts as one.
#[must_use]
pub fn load_budget(total_bytes: u64, base: Duration, rate: u64) -> Duration {
    let rate = rate.max(1);
    let whole = total_bytes.checked_div(rate).unwrap_or(0);
    let rest = total_bytes.checked_rem(rate).unwrap_or(0);
    // Below one second; in u128 because a rate may be any u64.
    let nanos = u128::from(rest)
        .saturating_mul(1_000_000_000)
        .checked_div(u128::from(rate))
        .unwrap_or(0);
    base.saturating_add(Duration::from_secs(whole))
        .saturating_add(Duration::from_nanos(u64::try_from(nanos).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_grows_with_the_size_and_never_overflows() {
        let base = Duration::from_secs(2);
        assert_eq!(load_budget(0, base, 1_000_000), base);
        assert_eq!(
            load_budget(2_500_000, base, 1_000_000),
            Duration::from_millis(4500)
        );
        assert_eq!(load_budget(10, base, 0), Duration::from_secs(12));
        assert!(load_budget(u64::MAX, Duration::MAX, 1) == Duration::MAX);
        assert!(load_budget(u64::MAX, base, u64::MAX) == Duration::from_secs(3));
    }
}
