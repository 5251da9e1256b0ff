//! The loading of words through the PR feature.
//!
//! The sequence is the one that passes on the vendor's own RTL, in good runs
//! and in failing ones, and by Linux's logic on classic cards. Three traps
//! shape it:
//!
//! - the reset is an edge, and does not clear the errors; those are cleared
//!   under reset, before the load, so that none is blamed on it;
//! - every store to the data register pushes one word, whatever its width;
//! - an error may end the load or hang it, so errors are looked for all along
//!   and every wait has a deadline.

use std::time::Duration;

use crate::device::{DeviceError, live};
use crate::engine::{Failure, Loader, PrFaults, ProgramCause, RawStatus, RegionId, RegionLeft};

use crate::patience::Patience;

use super::engine::DflEngine;
use super::registers::{
    PR_CTRL, PR_CTRL_COMPLETE, PR_CTRL_RST, PR_CTRL_RST_ACK, PR_CTRL_START, PR_DATA, PR_ERR,
    PR_STS, PR_STS_CREDITS, PR_STS_FAULT, PR_STS_HOST,
};
use super::topology::{Port, Shape};

/// Credits that are left alone: a status read straight after a store may show
/// two words too many.
const CREDIT_MARGIN: usize = 4;
/// Words after which START is looked at again.
const CHECK_EVERY: usize = 4096;

const RST_BITS: u64 = PR_CTRL_RST | PR_CTRL_RST_ACK;
const BUSY_BITS: u64 = RST_BITS | PR_CTRL_START | PR_CTRL_COMPLETE;

impl DflEngine {
    /// Makes the PR engine ready and starts a load into a region that is shut.
    pub(super) fn start(&mut self, port: &Port, deadline: Duration) -> Result<(), Failure> {
        let result = self.rest(deadline).and_then(|()| {
            // One store that says all; nothing of an earlier value is kept.
            let region = self.shape.region_field(port.number);
            self.store(PR_CTRL, PR_CTRL_START | region)?;
            Ok(())
        });
        self.credits = 0;
        self.unchecked = 0;
        result.map_err(|cause| self.failure(cause))
    }

    /// Brings engine and region to rest after a failure.
    pub(super) fn give_up(&mut self, port: &Port) -> RegionLeft {
        // A wait that is no longer part of any load: bounded by itself.
        if let Err(error) = self.rest(Duration::MAX) {
            tracing::warn!(region = port.number, %error, "resetting the PR engine after a failure");
        }
        self.make_safe(port)
    }

    /// Resets the PR engine, clears its errors under reset, and awaits rest.
    fn rest(&mut self, deadline: Duration) -> Result<(), ProgramCause> {
        if self.load(PR_CTRL)? & RST_BITS != 0 {
            // A reset that was left on: without an edge nothing would happen,
            // and the old acknowledgement would look like a new one.
            self.store(PR_CTRL, 0)?;
            self.await_control(deadline, "the end of an earlier reset", RST_BITS, 0)?;
        }
        self.store(PR_CTRL, PR_CTRL_RST)?;
        let ack = PR_CTRL_RST_ACK;
        self.await_control(
            deadline,
            "the acknowledgement of the engine's reset",
            ack,
            ack,
        )?;
        self.clear_errors(deadline)?;
        self.store(PR_CTRL, 0)?;
        self.await_control(deadline, "the end of the engine's reset", BUSY_BITS, 0)?;
        self.await_idle(deadline, "the engine's rest")?;
        Ok(())
    }

    /// Clears what earlier loads left. An error that the hardware still
    /// reports comes back at once, so this tries until it is over.
    fn clear_errors(&mut self, deadline: Duration) -> Result<(), ProgramCause> {
        let mut patience = self.patience(deadline);
        loop {
            let errors = self.load(PR_ERR)?;
            match PrFaults::new(errors) {
                None if self.load(PR_STS)? & PR_STS_FAULT == 0 => return Ok(()),
                None => {}
                Some(_) => self.store(PR_ERR, errors)?,
            }
            if !patience.another(&*self.clock) {
                return Err(match PrFaults::new(errors) {
                    Some(faults) => ProgramCause::StaleErrors(faults),
                    None => self.late(deadline, "the end of the engine's fault flag"),
                });
            }
        }
    }

    /// Waits until there is room for words, with an eye on errors.
    fn await_credits(&mut self, deadline: Duration) -> Result<(), ProgramCause> {
        let mut patience = self.patience(deadline);
        loop {
            let status = self.load(PR_STS)?;
            self.look_for_faults(status)?;
            self.credits = usize::try_from(status & PR_STS_CREDITS).unwrap_or(0);
            let room = self.credits > CREDIT_MARGIN;
            if !room || self.unchecked >= CHECK_EVERY {
                // No room may also mean that nobody takes words any more.
                self.still_started()?;
                self.unchecked = 0;
            }
            if room {
                return Ok(());
            }
            if !patience.another(&*self.clock) {
                return Err(self.late(deadline, "room for words"));
            }
        }
    }

    fn push_words(&mut self, mut words: &[u32], deadline: Duration) -> Result<(), ProgramCause> {
        while !words.is_empty() {
            if self.clock.now() >= deadline {
                return Err(self.late(deadline, "the end of the payload"));
            }
            if self.credits <= CREDIT_MARGIN {
                self.await_credits(deadline)?;
            }
            let room = self.credits.saturating_sub(CREDIT_MARGIN);
            let (now, later) = words.split_at(room.min(words.len()));
            self.burst.clear();
            self.burst.extend(now.iter().copied().map(u64::from));
            let data = self.pr.offset.saturating_add(PR_DATA);
            self.device.store64_burst(self.pr.bar, data, &self.burst)?;
            self.credits = self.credits.saturating_sub(now.len());
            self.unchecked = self.unchecked.saturating_add(now.len());
            words = later;
        }
        Ok(())
    }

    fn await_verdict(
        &mut self,
        region: RegionId,
        deadline: Duration,
    ) -> Result<RawStatus, ProgramCause> {
        // This also flushes what was posted.
        let status = self.load(PR_STS)?;
        self.look_for_faults(status)?;
        self.still_started()?;
        self.store(PR_CTRL, self.completing(region))?;
        let mut patience = self.patience(deadline);
        let control = loop {
            let control = self.load(PR_CTRL)?;
            let status = self.load(PR_STS)?;
            // With START still set an error will never end by itself.
            self.look_for_faults(status)?;
            if control & PR_CTRL_START == 0 {
                break control;
            }
            if !patience.another(&*self.clock) {
                return Err(self.late(deadline, "the end of the load"));
            }
        };
        // The fault flag follows the errors and START by a moment, so the
        // errors are read at both ends of the wait for rest.
        self.no_errors()?;
        let status = self.await_idle(deadline, "the engine's rest after the load")?;
        self.no_errors()?;
        Ok(RawStatus {
            control: Some(control),
            status: Some(status),
            errors: Some(0),
        })
    }

    /// The store that says "all words are pushed". OFS bits are set-only, and
    /// a START written again could begin another load; on classic cards Linux
    /// writes the whole register back, so it is not known what less would do.
    fn completing(&self, region: RegionId) -> u64 {
        let number = u8::try_from(region.0).unwrap_or(u8::MAX);
        let common = PR_CTRL_COMPLETE | self.shape.region_field(number);
        match self.shape {
            Shape::Classic => common | PR_CTRL_START,
            Shape::Ofs => common,
        }
    }

    /// Fails where START dropped before COMPLETE was written.
    fn still_started(&mut self) -> Result<(), ProgramCause> {
        if self.load(PR_CTRL)? & PR_CTRL_START != 0 {
            return Ok(());
        }
        self.no_errors()?;
        Err(ProgramCause::EndedEarly)
    }

    /// Looks behind the fault flag: some classic cards also raise it during a
    /// good load, so the errors decide.
    fn look_for_faults(&mut self, status: u64) -> Result<(), ProgramCause> {
        if status & PR_STS_FAULT == 0 {
            return Ok(());
        }
        self.no_errors()
    }

    fn no_errors(&mut self) -> Result<(), ProgramCause> {
        match PrFaults::new(self.load(PR_ERR)?) {
            None => Ok(()),
            Some(faults) => Err(ProgramCause::Faults(faults)),
        }
    }

    /// Waits until `PR_CTRL`, under `mask`, is `wanted`.
    fn await_control(
        &mut self,
        deadline: Duration,
        what: &'static str,
        mask: u64,
        wanted: u64,
    ) -> Result<(), ProgramCause> {
        let mut patience = self.patience(deadline);
        while self.load(PR_CTRL)? & mask != wanted {
            if !patience.another(&*self.clock) {
                return Err(self.late(deadline, what));
            }
        }
        Ok(())
    }

    /// Waits until the status shows no fault, and on OFS cards a controller
    /// at rest: a START that comes sooner may be lost. Returns that status.
    fn await_idle(&mut self, deadline: Duration, what: &'static str) -> Result<u64, ProgramCause> {
        let busy = match self.shape {
            Shape::Classic => PR_STS_FAULT,
            Shape::Ofs => PR_STS_FAULT | PR_STS_HOST,
        };
        let mut patience = self.patience(deadline);
        loop {
            let status = self.load(PR_STS)?;
            if status & busy == 0 {
                return Ok(status);
            }
            if !patience.another(&*self.clock) {
                return Err(self.late(deadline, what));
            }
        }
    }

    /// One wait: as long as one may be, and not beyond the whole load's end.
    fn patience(&self, deadline: Duration) -> Patience {
        let longest = self.clock.now().saturating_add(self.waits.engine);
        Patience::new(longest.min(deadline))
    }

    /// Which of the two limits it was.
    fn late(&self, deadline: Duration, what: &'static str) -> ProgramCause {
        if self.clock.now() >= deadline {
            ProgramCause::Deadline { what }
        } else {
            ProgramCause::Stuck { what }
        }
    }

    fn load(&mut self, register: u64) -> Result<u64, DeviceError> {
        let offset = self.pr.offset.saturating_add(register);
        live(self.device.load64(self.pr.bar, offset)?)
    }

    fn store(&mut self, register: u64, value: u64) -> Result<(), DeviceError> {
        let offset = self.pr.offset.saturating_add(register);
        self.device.store64(self.pr.bar, offset, value)
    }

    fn failure(&mut self, cause: ProgramCause) -> Failure {
        let mut raw = self.raw_status();
        // The errors that were judged, even if the card has changed its mind.
        if let ProgramCause::Faults(faults) | ProgramCause::StaleErrors(faults) = &cause {
            raw.errors = Some(faults.raw());
        }
        Failure { cause, raw }
    }
}

impl Loader for DflEngine {
    fn push(&mut self, words: &[u32], deadline: Duration) -> Result<(), Failure> {
        self.push_words(words, deadline)
            .map_err(|cause| self.failure(cause))
    }

    fn complete(&mut self, region: RegionId, deadline: Duration) -> Result<RawStatus, Failure> {
        self.await_verdict(region, deadline)
            .map_err(|cause| self.failure(cause))
    }

    fn recover(&mut self, region: RegionId) -> RegionLeft {
        match self.port(region) {
            Some(port) => self.give_up(&port),
            None => RegionLeft::AsItWas,
        }
    }

    fn raw_status(&mut self) -> RawStatus {
        RawStatus {
            control: self.load(PR_CTRL).ok(),
            status: self.load(PR_STS).ok(),
            errors: self.load(PR_ERR).ok(),
        }
    }

    fn now(&self) -> Duration {
        self.clock.now()
    }
}
