//! The loading of words through the core.
//!
//! The core at rest, the words, the error flag, the end of start-up; then the
//! configuration logic is told to listen no more, whatever the payload said,
//! and after every failure too: what comes next must not be taken for frames.

use std::time::Duration;

use crate::engine::{Failure, Loader, ProgramCause, RawStatus, RegionId, RegionLeft, WordOrder};

use super::core::CoreFault;
use super::engine::HwicapEngine;
use super::layout::RegionLayout;

impl HwicapEngine {
    /// Brings the core to rest before a load.
    pub(super) fn prepare(&mut self, deadline: Duration) -> Result<(), Failure> {
        let rest = self.core.rest(deadline);
        let rest = rest.and_then(|()| self.core.desync(deadline));
        rest.map_err(|fault| self.failure(fault, deadline))
    }

    /// Brings core, configuration logic and region to rest after a failure.
    pub(super) fn give_up(&mut self, region: &RegionLayout) -> RegionLeft {
        // A wait that is no longer part of any load: bounded by itself.
        let end = Duration::MAX;
        let rest = self.core.rest(end);
        let ended = self.core.desync(end);
        if let Err(error) = rest.and(ended) {
            tracing::warn!(region = region.id.0, %error, "bringing the HWICAP core to rest");
        }
        self.make_safe(region)
    }

    fn verdict(&mut self, deadline: Duration) -> Result<RawStatus, Failure> {
        let judged = self
            .core
            .no_error()
            .and_then(|()| self.core.started(deadline))
            .and_then(|()| Ok(self.core.listens()?));
        let listens = match judged {
            Ok(listens) => listens,
            Err(fault) => return Err(self.failure(fault, deadline)),
        };
        let raw = self.raw_status();
        // Always, also where it listens no more.
        if let Err(fault) = self
            .core
            .desync(deadline)
            .and_then(|()| self.core.no_error())
        {
            return Err(self.failure(fault, deadline));
        }
        if listens {
            let cause = ProgramCause::StillListens;
            return Err(Failure { cause, raw });
        }
        Ok(raw)
    }

    fn failure(&mut self, fault: CoreFault, deadline: Duration) -> Failure {
        let cause = match fault {
            CoreFault::Device(error) => ProgramCause::Device(error),
            CoreFault::Configuration => ProgramCause::Configuration,
            CoreFault::Late { what, .. } if self.core.clock.now() >= deadline => {
                ProgramCause::Deadline { what }
            }
            CoreFault::Late { what, .. } => ProgramCause::Stuck { what },
        };
        let raw = self.raw_status();
        Failure { cause, raw }
    }
}

impl Loader for HwicapEngine {
    fn push(&mut self, words: &[u32], deadline: Duration) -> Result<(), Failure> {
        if words.is_empty() {
            return Ok(());
        }
        if self.core.clock.now() >= deadline {
            let cause = ProgramCause::Deadline {
                what: "the end of the payload",
            };
            let raw = self.raw_status();
            return Err(Failure { cause, raw });
        }
        let written = match self.order {
            WordOrder::LittleEndian => self.core.write(words, deadline),
            // The guard of the load reads words the other way round.
            WordOrder::BigEndian => {
                let mut turned = std::mem::take(&mut self.turned);
                turned.clear();
                turned.extend(words.iter().map(|word| word.swap_bytes()));
                let written = self.core.write(&turned, deadline);
                self.turned = turned;
                written
            }
        };
        written
            .and_then(|()| self.core.no_error())
            .map_err(|fault| self.failure(fault, deadline))
    }

    fn complete(&mut self, _region: RegionId, deadline: Duration) -> Result<RawStatus, Failure> {
        self.verdict(deadline)
    }

    fn recover(&mut self, region: RegionId) -> RegionLeft {
        match self.region(region) {
            Some(region) => self.give_up(&region),
            None => RegionLeft::AsItWas,
        }
    }

    fn raw_status(&mut self) -> RawStatus {
        let (control, status) = self.core.raw();
        RawStatus {
            control: control.map(u64::from),
            status: status.map(u64::from),
            errors: None,
        }
    }

    fn now(&self) -> Duration {
        self.core.clock.now()
    }
}
