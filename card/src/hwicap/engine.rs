//! The `hwicap` engine: one card, its core and its regions.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::clock::Clock;
use crate::device::{Device, DeviceError, DeviceIdentity, Space};
use crate::dfl::Waits;
use crate::engine::{
    Access, Capabilities, ClockKind, Declared, Engine, EngineCause, EngineError, Identity,
    IdentityCheck, Payload, ProgramCause, ProgramError, Programming, RawStatus, RegionFacts,
    RegionId, RegionLeft, ResetState, Stage, Step, WordOrder,
};
use crate::patience::Patience;

use super::core::{Core, CoreFault};
use super::layout::{Layout, LayoutError, RegionLayout};

/// The decoupler's one bit: 1 keeps the region apart.
const DECOUPLE: u32 = 1;
/// The part of an IDCODE that names the device.
const WITHOUT_REVISION: u32 = 0x0fff_ffff;

/// Why a card cannot be programmed through this engine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotUsable {
    /// The shell file's layout cannot be this card's.
    #[error("the shell file's layout: {0}")]
    Layout(#[from] LayoutError),
    /// The card could not be reached.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// What should be the core does not do what it should.
    #[error("no HWICAP core answers where the shell file says: {0}")]
    NoCore(String),
    /// Another device than the shell file says.
    #[error("the device's IDCODE is {found:08x}, and the shell file says {expected:08x}")]
    OtherDevice {
        /// What was read.
        found: u32,
        /// What was stated.
        expected: u32,
    },
}

/// The engine of a card with an AMD shell.
pub struct HwicapEngine {
    pub(super) core: Core,
    wait: Duration,
    regions: Vec<RegionLayout>,
    facts: Vec<RegionFacts>,
    /// How the words of the load in progress are made.
    pub(super) order: WordOrder,
    /// Where words wait that must be turned.
    pub(super) turned: Vec<u32>,
}

impl HwicapEngine {
    /// The engine of a card whose shell file states `layout`. Brings the core
    /// to rest and asks the device for its IDCODE; no region is touched.
    ///
    /// # Errors
    /// What makes the card unusable.
    pub fn new(
        device: Box<dyn Device>,
        layout: &Layout,
        waits: Waits,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, NotUsable> {
        layout.check(device.size(Space::Bar(layout.bar)))?;
        let place = (layout.bar, layout.core);
        let mut core = Core::new(device, clock, place, waits.engine.min(Waits::LONGEST));
        let end = core.clock.now().saturating_add(waits.engine);
        let found =
            core.rest(end)
                .and_then(|()| core.idcode(end))
                .map_err(|fault| match fault {
                    CoreFault::Device(error) => NotUsable::Device(error),
                    other => NotUsable::NoCore(other.to_string()),
                })?;
        let expected = layout.idcode;
        if (found ^ expected) & WITHOUT_REVISION != 0 {
            return Err(NotUsable::OtherDevice { found, expected });
        }
        let mut regions = layout.regions.clone();
        regions.sort_by_key(|region| region.id);
        let facts = regions
            .iter()
            .map(|region| RegionFacts {
                id: region.id,
                interface_id: region.interface_id,
                identity: match region.identity {
                    Some(_) => IdentityCheck::Checked,
                    None => IdentityCheck::EngineStatus,
                },
            })
            .collect();
        Ok(Self {
            core,
            wait: waits.port.min(Waits::LONGEST),
            regions,
            facts,
            order: WordOrder::BigEndian,
            turned: Vec::new(),
        })
    }

    pub(super) fn region(&self, region: RegionId) -> Option<RegionLayout> {
        self.regions
            .iter()
            .find(|known| known.id == region)
            .copied()
    }

    fn known(&self, region: RegionId, step: Step) -> Result<RegionLayout, EngineError> {
        self.region(region).ok_or(EngineError {
            region,
            step,
            cause: EngineCause::NoSuchRegion,
            left: RegionLeft::AsItWas,
        })
    }

    fn decoupler(&mut self, region: &RegionLayout) -> Result<u32, DeviceError> {
        self.core.load(region.decoupler)
    }

    fn reach(&mut self, region: &RegionLayout) -> Result<Access, DeviceError> {
        Ok(match self.decoupler(region)? & DECOUPLE {
            0 => Access::Guest,
            _ => Access::Host,
        })
    }

    /// Moves the decoupler and waits until it reads back as told; gives the
    /// register as last read where it does not.
    fn decouple(&mut self, region: &RegionLayout, to: Access) -> Result<Option<u32>, DeviceError> {
        let told = match to {
            Access::Host => DECOUPLE,
            Access::Guest => 0,
        };
        self.core.store(region.decoupler, told)?;
        let until = self.core.clock.now().saturating_add(self.wait);
        let mut patience = Patience::new(until);
        loop {
            let found = self.decoupler(region)?;
            if found & DECOUPLE == told {
                return Ok(None);
            }
            if !patience.another(&*self.core.clock) {
                return Ok(Some(found));
            }
        }
    }

    fn take(&mut self, region: &RegionLayout) -> Result<(), EngineCause> {
        match self.decouple(region, Access::Host)? {
            None => Ok(()),
            Some(register) => Err(EngineCause::DecoupleFailed {
                register: u64::from(register),
            }),
        }
    }

    fn give(&mut self, region: &RegionLayout) -> Result<(), EngineCause> {
        match self.decouple(region, Access::Guest)? {
            None => Ok(()),
            Some(register) => Err(EngineCause::AccessStuck {
                register: u64::from(register),
            }),
        }
    }

    /// Decouples after a failure, and says whether that could be seen.
    pub(super) fn make_safe(&mut self, region: &RegionLayout) -> RegionLeft {
        // Twice: the access that failed may be the one that answers now.
        for _try in 0..2 {
            if self.take(region).is_ok() {
                return RegionLeft::Shut;
            }
        }
        RegionLeft::Unproven
    }

    /// Does one step with a region; if it fails, decouples it.
    fn or_shut<T>(
        &mut self,
        region: RegionId,
        step: Step,
        act: impl FnOnce(&mut Self, &RegionLayout) -> Result<T, EngineCause>,
    ) -> Result<T, EngineError> {
        let known = self.known(region, step)?;
        act(self, &known).map_err(|cause| EngineError {
            region,
            step,
            cause,
            left: self.make_safe(&known),
        })
    }

    /// Reads something of a region, and changes nothing.
    fn reading<T>(
        &mut self,
        region: RegionId,
        act: impl FnOnce(&mut Self, &RegionLayout) -> Result<T, DeviceError>,
    ) -> Result<T, EngineError> {
        let step = Step::Reading;
        let known = self.known(region, step)?;
        act(self, &known).map_err(|error| EngineError {
            region,
            step,
            cause: error.into(),
            left: RegionLeft::AsItWas,
        })
    }

    fn read_identity(&mut self, region: &RegionLayout) -> Result<Identity, EngineCause> {
        if self.reach(region)? != Access::Host {
            return Err(EngineCause::NotShut);
        }
        let Some(at) = region.identity else {
            return Ok(Identity::EngineStatus);
        };
        let low = self.core.load64(at)?;
        let high = self.core.load64(at.saturating_add(8))?;
        match (high, low) {
            (0, 0) => Err(EngineCause::NoIdentifier),
            (u64::MAX, u64::MAX) => {
                // Is it the region that is silent, or the card?
                self.core.status()?;
                Err(EngineCause::NoIdentifier)
            }
            _ => Ok(Identity::Function(Uuid::from_u64_pair(high, low))),
        }
    }
}

impl Engine for HwicapEngine {
    fn device(&self) -> &DeviceIdentity {
        self.core.device.identity()
    }

    fn leaving(&self) -> bool {
        self.core.device.leaving()
    }

    fn capabilities(&self) -> Capabilities {
        let weakest = self.facts.iter().map(|facts| facts.identity).min();
        Capabilities {
            holds_isolated: Declared::Yes,
            identity: weakest.unwrap_or(IdentityCheck::None),
            // The decoupler cuts; nothing ends what the guest has under way.
            drains: Declared::No,
            answers_while_shut: Declared::No,
            fenced: Declared::Yes,
            clock: ClockKind::None,
        }
    }

    fn regions(&self) -> &[RegionFacts] {
        &self.facts
    }

    fn access(&mut self, region: RegionId) -> Result<Access, EngineError> {
        self.reading(region, Self::reach)
    }

    /// The decoupler is the gate, and all there is.
    fn in_reset(&mut self, region: RegionId) -> Result<ResetState, EngineError> {
        self.reading(region, |engine, region| {
            Ok(match engine.reach(region)? {
                Access::Host => ResetState::Held,
                Access::Guest => ResetState::Released,
            })
        })
    }

    fn shut(&mut self, region: RegionId) -> Result<(), EngineError> {
        self.or_shut(region, Step::Shutting, Self::take)
    }

    fn begin(
        &mut self,
        region: RegionId,
        payload: Payload,
        budget: Duration,
    ) -> Result<Programming<'_>, ProgramError> {
        let started = self.core.clock.now();
        let deadline = started.saturating_add(budget);
        let refused = |cause, raw, left| ProgramError {
            region,
            stage: Stage::Preparing,
            cause,
            raw,
            left,
        };
        let none = RawStatus::default();
        let untouched = |cause| refused(cause, none, RegionLeft::AsItWas);
        let Some(known) = self.region(region) else {
            return Err(untouched(ProgramCause::NoSuchRegion));
        };
        let Payload { bytes, order } = payload;
        if bytes == 0 {
            return Err(untouched(ProgramCause::Empty));
        }
        if !bytes.is_multiple_of(4) {
            return Err(untouched(ProgramCause::NotWords { bytes }));
        }
        match self.reach(&known) {
            Ok(Access::Host) => {}
            Ok(Access::Guest) => return Err(untouched(ProgramCause::NotShut)),
            Err(error) => {
                let left = self.make_safe(&known);
                return Err(refused(error.into(), none, left));
            }
        }
        self.order = order;
        if let Err(failure) = self.prepare(deadline) {
            let left = self.give_up(&known);
            return Err(refused(failure.cause, failure.raw, left));
        }
        Ok(Programming::new(self, region, bytes, started, deadline))
    }

    fn identity(&mut self, region: RegionId) -> Result<Identity, EngineError> {
        self.or_shut(region, Step::Identifying, Self::read_identity)
    }

    fn open(&mut self, region: RegionId) -> Result<(), EngineError> {
        self.or_shut(region, Step::Opening, Self::give)
    }

    /// A region of this kind of shell has no reset of its own. It is left as
    /// it was.
    fn pulse_reset(&mut self, region: RegionId) -> Result<(), EngineError> {
        let step = Step::Resetting;
        let known = self.known(region, step)?;
        let cause = match self.reach(&known) {
            Ok(Access::Host) => EngineCause::NotOpen,
            Ok(Access::Guest) => EngineCause::NoReset,
            Err(error) => error.into(),
        };
        Err(EngineError {
            region,
            step,
            cause,
            left: RegionLeft::AsItWas,
        })
    }
}

impl fmt::Debug for HwicapEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HwicapEngine")
            .field("device", self.core.device.identity())
            .field("regions", &self.facts)
            .finish_non_exhaustive()
    }
}
