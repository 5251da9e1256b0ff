//! The `dfl` engine: one card, its PR feature and its ports.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::clock::Clock;
use crate::device::{Device, DeviceIdentity};
use crate::engine::{
    Access, Capabilities, ClockKind, Declared, Engine, EngineCause, EngineError, Identity,
    IdentityCheck, Payload, ProgramCause, ProgramError, Programming, RawStatus, RegionFacts,
    RegionId, RegionLeft, ResetState, Stage, Step, WordOrder,
};

use super::damage::Place;
use super::registers::{AFU_GUID_H, AFU_GUID_L};
use super::topology::{NotProgrammable, Port, Shape, Topology};

/// How long the engine waits for the card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waits {
    /// For a port to follow its reset bit. Linux gives it 1 ms.
    pub port: Duration,
    /// For anything of the PR engine, each time. 8 s as in Linux, and no more
    /// whatever is asked for.
    pub engine: Duration,
}

impl Waits {
    /// The longest wait of all.
    pub(crate) const LONGEST: Duration = Duration::from_secs(8);
}

impl Default for Waits {
    fn default() -> Self {
        Self {
            port: Duration::from_secs(1),
            engine: Self::LONGEST,
        }
    }
}

/// The engine of a card with device feature lists, classic or OFS.
///
/// Two parts stand in files of their own: the gate of a region (`gate.rs`) and
/// the loading of words (`loader.rs`).
pub struct DflEngine {
    pub(super) device: Box<dyn Device>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) waits: Waits,
    pub(super) shape: Shape,
    /// The PR feature.
    pub(super) pr: Place,
    /// Words that may be pushed before the status has to be read again.
    pub(super) credits: usize,
    /// Words pushed since START was last seen set.
    pub(super) unchecked: usize,
    /// Where words wait to be stored.
    pub(super) burst: Vec<u64>,
    ports: Vec<Port>,
    facts: Vec<RegionFacts>,
}

impl DflEngine {
    /// The engine of the card that `topology` was read from. Nothing is
    /// written.
    ///
    /// # Errors
    /// What the card lacks to be programmed.
    pub fn new(
        device: Box<dyn Device>,
        topology: &Topology,
        waits: Waits,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, NotProgrammable> {
        let (feature, shape, interface_id) = topology.programmable()?;
        let mut ports = topology.ports.clone();
        // A classic port without its switch cannot be taken from a guest.
        ports.retain(|port| shape == Shape::Ofs || port.switch.is_some());
        if ports.is_empty() {
            return Err(NotProgrammable::NoRegion);
        }
        let facts = ports
            .iter()
            .map(|port| RegionFacts {
                id: RegionId(u16::from(port.number)),
                interface_id,
                identity: readable_identity(shape, port),
            })
            .collect();
        Ok(Self {
            device,
            clock,
            waits: Waits {
                port: waits.port.min(Waits::LONGEST),
                engine: waits.engine.min(Waits::LONGEST),
            },
            shape,
            pr: feature.place,
            credits: 0,
            unchecked: 0,
            burst: Vec::new(),
            ports,
            facts,
        })
    }

    pub(super) fn port(&self, region: RegionId) -> Option<Port> {
        let number = u8::try_from(region.0).ok()?;
        self.ports
            .iter()
            .find(|port| port.number == number)
            .copied()
    }

    /// Does one step with a region's port; if it fails, shuts the region.
    fn or_shut<T>(
        &mut self,
        region: RegionId,
        step: Step,
        act: impl FnOnce(&mut Self, &Port) -> Result<T, EngineCause>,
    ) -> Result<T, EngineError> {
        let port = self.known(region, step)?;
        act(self, &port).map_err(|cause| {
            let left = match cause {
                // Nothing was touched, and it is shut already.
                EngineCause::NotOpen => RegionLeft::AsItWas,
                _ => self.make_safe(&port),
            };
            EngineError {
                region,
                step,
                cause,
                left,
            }
        })
    }

    /// Reads something of a region's port.
    fn reading<T>(
        &mut self,
        region: RegionId,
        act: impl FnOnce(&mut Self, &Port) -> Result<T, EngineCause>,
    ) -> Result<T, EngineError> {
        let step = Step::Reading;
        let port = self.known(region, step)?;
        act(self, &port).map_err(|cause| EngineError {
            region,
            step,
            cause,
            left: RegionLeft::AsItWas,
        })
    }

    fn known(&self, region: RegionId, step: Step) -> Result<Port, EngineError> {
        self.port(region).ok_or(EngineError {
            region,
            step,
            cause: EngineCause::NoSuchRegion,
            left: RegionLeft::AsItWas,
        })
    }

    /// The identifier of the function in a region that only the host reaches.
    fn read_identity(&mut self, port: &Port) -> Result<Identity, EngineCause> {
        if self.port_access(port)? != Access::Host {
            return Err(EngineCause::NotShut);
        }
        let afu = match (self.shape, port.afu) {
            (Shape::Classic, Some(afu)) => afu.place,
            // The function lies in the tenant's own BAR, or nowhere.
            _ => return Ok(Identity::EngineStatus),
        };
        // It only answers out of reset.
        self.release_reset(port)?;
        let low = self
            .device
            .load64(afu.bar, afu.offset.saturating_add(AFU_GUID_L))?;
        let high = self
            .device
            .load64(afu.bar, afu.offset.saturating_add(AFU_GUID_H))?;
        match (high, low) {
            (0, 0) => Err(EngineCause::NoIdentifier),
            (u64::MAX, u64::MAX) => {
                // Is it the function that is silent, or the card?
                self.port_control(port)?;
                Err(EngineCause::NoIdentifier)
            }
            _ => Ok(Identity::Function(Uuid::from_u64_pair(high, low))),
        }
    }

    fn pulse(&mut self, port: &Port) -> Result<(), EngineCause> {
        let before = self.port_access(port)?;
        if before == Access::Host && self.port_reset(port)? != ResetState::Released {
            return Err(EngineCause::NotOpen);
        }
        self.take_access(port)?;
        self.hold_reset(port)?;
        self.release_reset(port)?;
        match before {
            Access::Host => Ok(()),
            Access::Guest => self.give_access(port),
        }
    }
}

impl Engine for DflEngine {
    fn device(&self) -> &DeviceIdentity {
        self.device.identity()
    }

    fn leaving(&self) -> bool {
        self.device.leaving()
    }

    fn capabilities(&self) -> Capabilities {
        let weakest = self.facts.iter().map(|facts| facts.identity).min();
        Capabilities {
            holds_isolated: Declared::Yes,
            identity: weakest.unwrap_or(IdentityCheck::None),
            drains: Declared::No,
            // Until an acceptance run has proven it on this card.
            answers_while_shut: Declared::No,
            fenced: Declared::No,
            // The user clocks of both shapes come with the clock's own file.
            clock: ClockKind::None,
        }
    }

    fn regions(&self) -> &[RegionFacts] {
        &self.facts
    }

    fn access(&mut self, region: RegionId) -> Result<Access, EngineError> {
        self.reading(region, Self::port_access)
    }

    fn in_reset(&mut self, region: RegionId) -> Result<ResetState, EngineError> {
        self.reading(region, Self::port_reset)
    }

    fn shut(&mut self, region: RegionId) -> Result<(), EngineError> {
        self.or_shut(region, Step::Shutting, |engine, port| {
            engine.take_access(port)?;
            engine.hold_reset(port)
        })
    }

    fn begin(
        &mut self,
        region: RegionId,
        payload: Payload,
        budget: Duration,
    ) -> Result<Programming<'_>, ProgramError> {
        let total_bytes = payload.bytes;
        let started = self.clock.now();
        let deadline = started.saturating_add(budget);
        let refused = |cause, left| ProgramError {
            region,
            stage: Stage::Preparing,
            cause,
            raw: RawStatus::default(),
            left,
        };
        let Some(port) = self.port(region) else {
            return Err(refused(ProgramCause::NoSuchRegion, RegionLeft::AsItWas));
        };
        if total_bytes == 0 {
            return Err(refused(ProgramCause::Empty, RegionLeft::AsItWas));
        }
        if payload.order != WordOrder::LittleEndian {
            let cause = ProgramCause::NotWords { bytes: total_bytes };
            return Err(refused(cause, RegionLeft::AsItWas));
        }
        match self.is_shut(&port) {
            Ok(true) => {}
            Ok(false) => return Err(refused(ProgramCause::NotShut, RegionLeft::AsItWas)),
            Err(EngineCause::Device(error)) => {
                let left = self.make_safe(&port);
                return Err(refused(ProgramCause::Device(error), left));
            }
            Err(_) => return Err(refused(ProgramCause::NotShut, self.make_safe(&port))),
        }
        if let Err(failure) = self.start(&port, deadline) {
            return Err(ProgramError {
                region,
                stage: Stage::Preparing,
                cause: failure.cause,
                raw: failure.raw,
                left: self.give_up(&port),
            });
        }
        Ok(Programming::new(
            self,
            region,
            total_bytes,
            started,
            deadline,
        ))
    }

    fn identity(&mut self, region: RegionId) -> Result<Identity, EngineError> {
        self.or_shut(region, Step::Identifying, Self::read_identity)
    }

    fn open(&mut self, region: RegionId) -> Result<(), EngineError> {
        self.or_shut(region, Step::Opening, |engine, port| {
            engine.release_reset(port)?;
            engine.give_access(port)
        })
    }

    fn pulse_reset(&mut self, region: RegionId) -> Result<(), EngineError> {
        self.or_shut(region, Step::Resetting, Self::pulse)
    }
}

impl fmt::Debug for DflEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DflEngine")
            .field("device", self.device.identity())
            .field("shape", &self.shape)
            .field("regions", &self.facts)
            .finish_non_exhaustive()
    }
}

/// How far the content of a port can be read back.
fn readable_identity(shape: Shape, port: &Port) -> IdentityCheck {
    match (shape, port.afu) {
        (Shape::Classic, Some(_)) => IdentityCheck::Checked,
        _ => IdentityCheck::EngineStatus,
    }
}

#[cfg(test)]
mod tests;
