//! What a command, an address, frame data and a copy do to a sub-stream, and
//! when each may come.
//!
//! The other half of [`Machine`]: that one reads packets and keeps the books,
//! this one knows the order of steps.

use super::machine::{Machine, Power, Went, Write};
use super::pipeline::Fault;
use super::reason::Reason;
use super::rules;
use super::written::Written;
use crate::device::{Device, Family};
use crate::xilinx::{Command, Register};

const MASKS_OPEN: Reason = Reason::Order("masks of columns are still being written");

impl Machine<'_, '_> {
    pub(super) fn command(
        &mut self,
        command: Command,
        here: impl Fn(Reason) -> Fault,
    ) -> Result<Went, Fault> {
        match self.device {
            Some(device) => rules::command(device.family(), command).map_err(&here)?,
            // Before the device is named only these do no harm.
            None if [Command::NULL, Command::RCRC, Command::URAM].contains(&command) => {}
            None => return Err(here(Reason::BeforeIdcode(Register::CMD))),
        }
        if command != Command::MFW
            && let Some(pipeline) = &mut self.pipeline
        {
            pipeline.drop_buffer().map_err(&here)?;
        }
        let starts = [Command::LFRM, Command::START];
        if self.power == Power::Restored && !starts.contains(&command) {
            let why = "another command than the start follows the restore of flip-flops";
            return Err(here(Reason::Order(why)));
        }
        let copying = self.command == Command::MFW;
        self.command = command;
        (self.wait, self.nops) = (rules::wait(command), 0);
        match command {
            Command::RCRC => {
                if !self.summed {
                    return Err(here(Reason::NoCrc));
                }
                self.begun = true;
                self.crc.reset();
            }
            Command::URAM if self.begun => {
                return Err(here(Reason::Order(
                    "block memory is cleared after the beginning",
                )));
            }
            Command::URAM if self.cleared => {
                return Err(here(Reason::Order("block memory is cleared twice")));
            }
            Command::URAM => self.cleared = true,
            Command::WCFG => {
                if let Some(pipeline) = &mut self.pipeline {
                    pipeline.arm();
                }
            }
            Command::MFW if copying => {
                return Err(here(Reason::Order("copying is commanded twice")));
            }
            Command::MFW => {
                self.copies = 0;
                self.compressed = true;
            }
            // Both act on the whole device, where others run.
            Command::AGHIGH if self.power != Power::Stopped => {
                return Err(here(Reason::Order(
                    "the interconnect is held while the device is not stopped",
                )));
            }
            Command::AGHIGH | Command::LFRM if self.controls.writes_masks() => {
                return Err(here(MASKS_OPEN));
            }
            Command::AGHIGH if self.held => {
                return Err(here(Reason::Order("the interconnect is held twice")));
            }
            Command::AGHIGH => self.held = true,
            Command::LFRM if self.power != Power::Restored => {
                return Err(here(Reason::Order(
                    "the interconnect is let go before flip-flops are restored",
                )));
            }
            Command::LFRM if self.released => {
                return Err(here(Reason::Order("the interconnect is let go twice")));
            }
            Command::LFRM => self.released = true,
            Command::DESYNC => return Ok(Went::Ended),
            _ => self.power(command, &here)?,
        }
        Ok(Went::On)
    }

    /// Stop, restore, start: each only after the one before.
    fn power(&mut self, command: Command, here: impl Fn(Reason) -> Fault) -> Result<(), Fault> {
        if command == Command::SHUTDOWN && self.controls.any_of_ctl1() {
            return Err(here(Reason::Order(
                "the device is stopped while frames are written in a special way",
            )));
        }
        let frames = self.pipeline.as_ref().map(|pipeline| &pipeline.frames);
        if command == Command::SHUTDOWN && frames.is_some_and(Written::any_of_design) {
            return Err(here(Reason::Order(
                "the device is stopped after frames were written",
            )));
        }
        if command == Command::SHUTDOWN {
            if !self.summed {
                return Err(here(Reason::NoCrc));
            }
            let plus = self.device.map(Device::family) == Some(Family::UltraScalePlus);
            if plus && !self.optioned {
                let why = "the device is stopped before the options of its start are set";
                return Err(here(Reason::Order(why)));
            }
        }
        if command == Command::GRESTORE && self.controls.writes_masks() {
            return Err(here(MASKS_OPEN));
        }
        self.power = match (command, self.power) {
            (Command::SHUTDOWN, Power::Untouched) => Power::Stopped,
            (Command::GRESTORE, Power::Stopped) if self.held => {
                let why = "flip-flops are restored by the stream that holds the interconnect";
                return Err(here(Reason::Order(why)));
            }
            (Command::GRESTORE, Power::Stopped) => {
                let series7 = self.device.map(Device::family) == Some(Family::Series7);
                if let (true, Some(pipeline)) = (series7, &self.pipeline) {
                    pipeline.may_restore().map_err(|(reason, frame)| Fault {
                        frame,
                        ..here(reason)
                    })?;
                }
                if let Some(pipeline) = &mut self.pipeline {
                    pipeline.forget_address();
                }
                Power::Restored
            }
            (Command::START, Power::Restored) => {
                self.controls.left_set().map_err(here)?;
                Power::Started
            }
            (Command::SHUTDOWN, _) => {
                return Err(here(Reason::Order("the device is stopped twice")));
            }
            (Command::GRESTORE, _) => {
                return Err(here(Reason::Order(
                    "flip-flops are restored while the device is not stopped",
                )));
            }
            (Command::START, _) => {
                return Err(here(Reason::Order(
                    "the device is started, and flip-flops were not restored before",
                )));
            }
            (_, power) => power,
        };
        Ok(())
    }

    pub(super) fn address(&mut self, value: u32, begin: usize) -> Result<(), Fault> {
        let fault = |reason, frame| Fault {
            reason,
            word: begin,
            frame,
        };
        let Some((device, pipeline)) = self.device.zip(self.pipeline.as_mut()) else {
            return Err(fault(Reason::BeforeIdcode(Register::FAR), None));
        };
        let parks = value == device.family().park();
        // The device does the command in force again with every new address.
        let harmless = match self.command {
            Command::NULL | Command::WCFG | Command::MFW => true,
            Command::START | Command::AGHIGH => parks,
            _ => false,
        };
        if !harmless {
            let why = "an address would make the device do its last command again";
            return Err(fault(Reason::Order(why), None));
        }
        if self.power == Power::Restored && !parks {
            let why = "frames are addressed after flip-flops were restored";
            return Err(fault(Reason::Order(why), None));
        }
        self.parked = parks;
        pipeline
            .address(value)
            .map_err(|(reason, frame)| fault(reason, frame))
    }

    pub(super) fn data(&mut self, write: &Write<'_>) -> Result<(), Fault> {
        let here = |reason| Fault {
            reason,
            word: write.begin,
            frame: None,
        };
        if self.command != Command::WCFG {
            return Err(here(Reason::Order(
                "frame data, and writing was not commanded",
            )));
        }
        if !matches!(self.power, Power::Untouched | Power::Stopped) {
            let why = "frames are written after flip-flops were restored";
            return Err(here(Reason::Order(why)));
        }
        let Some((device, pipeline)) = self.device.zip(self.pipeline.as_mut()) else {
            return Err(here(Reason::BeforeIdcode(Register::FDRI)));
        };
        let masks = match device.family() {
            Family::Series7 => pipeline.at_mask(),
            Family::UltraScale | Family::UltraScalePlus => self.controls.writes_masks(),
        };
        // UltraScale+ writes the design's frames while the device is stopped.
        let running = device.family() == Family::Series7 || masks;
        let right = match self.power {
            Power::Untouched => running,
            Power::Stopped => !masks,
            _ => false,
        };
        if !right {
            let why = "frames of this kind are written while the device is in another state";
            return Err(here(Reason::Order(why)));
        }
        // A mark is one frame, or two, and their pads: two where a row ends.
        let most = device.family().frame_words().saturating_mul(4);
        if device.family() != Family::Series7 && masks && write.data.len() > most {
            return Err(here(Reason::FrameLength(write.data.len())));
        }
        self.summed = false;
        pipeline.data(write.data, write.begin, self.controls.writes_masks())
    }

    /// MFWR: eight empty words the first time after the command, then four.
    pub(super) fn copy(&mut self, write: &Write<'_>) -> Result<(), Fault> {
        let fault = |reason, frame| Fault {
            reason,
            word: write.begin,
            frame,
        };
        if self.command != Command::MFW {
            let why = "a frame is copied, and copying was not commanded";
            return Err(fault(Reason::Order(why), None));
        }
        if !matches!(self.power, Power::Untouched | Power::Stopped) {
            let why = "a frame is copied after flip-flops were restored";
            return Err(fault(Reason::Order(why), None));
        }
        let first = self.copies == 0;
        let due = if first { 8 } else { 4 };
        if write.data.len() != due {
            return Err(fault(Reason::Count(Register::MFWR, write.data.len()), None));
        }
        if let Some(word) = write.data.iter().find(|word| *word != 0) {
            return Err(fault(Reason::Value(Register::MFWR, word), None));
        }
        self.copies = self.copies.saturating_add(1);
        self.summed = false;
        let Some(pipeline) = &mut self.pipeline else {
            return Err(fault(Reason::BeforeIdcode(Register::MFWR), None));
        };
        pipeline
            .copy(first)
            .map_err(|(reason, frame)| fault(reason, frame))?;
        // Masks of columns are copied without it, before the stop.
        if !pipeline.holds_mask() && !self.controls.any_of_ctl1() {
            let why = "a frame is copied, and the device was not told of copies";
            return Err(fault(Reason::Order(why), None));
        }
        Ok(())
    }
}
