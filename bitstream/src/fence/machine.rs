//! One sub-stream: from the sync word to the command that ends it.
//!
//! Knows the order in which genuine partial bitstreams do things, and refuses
//! every other. Must not know how sub-streams go together: that is the
//! arrangement's, in [`check`](super::check).

use super::crc::Crc;
use super::pipeline::{Fault, Pipeline};
use super::reason::Reason;
use super::refusal::Refusal;
use super::rules::{self, Controls};
use super::substream::{Kind, SubStream, Task};
use crate::device::{Device, Family, FrameSet};
use crate::xilinx::{Command, Packet, Packets, Register};

/// Reads a sub-stream whose sync word stands before `begin`.
pub(super) fn run(task: Task<'_, '_>, begin: usize) -> Result<SubStream, Refusal> {
    let words = task.stream.words();
    let mut packets = Packets::new(words, begin);
    let mut machine = Machine::new(task);
    loop {
        let at = packets.at();
        let packet = packets.next_packet().map_err(|fault| {
            let word = words.get(at).unwrap_or(0);
            task.refuse(Reason::Packet(fault, word), at, None)
        })?;
        match packet {
            None => return Err(task.refuse(Reason::Unfinished, at, None)),
            Some(Packet::Nop) => machine.nops = machine.nops.saturating_add(1),
            Some(Packet::Write { register, data }) => {
                let begin = data.start;
                let write = Write {
                    register,
                    data: words.slice(data),
                    begin,
                };
                let went = machine
                    .write(&write)
                    .map_err(|fault| task.refuse(fault.reason, fault.word, fault.frame))?;
                if went == Went::Ended {
                    return machine
                        .end(packets.at())
                        .map_err(|reason| task.refuse(reason, begin, None));
                }
            }
        }
    }
}

/// Words for a register.
pub(super) struct Write<'a> {
    pub(super) register: Register,
    pub(super) data: crate::xilinx::Words<'a>,
    /// The number of the first word in the stream.
    pub(super) begin: usize,
}

#[derive(PartialEq, Eq)]
pub(super) enum Went {
    On,
    Ended,
}

/// How far start-up is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Power {
    /// As it was found.
    Untouched,
    /// Stopped.
    Stopped,
    /// Flip-flops were restored.
    Restored,
    /// The start was commanded; the parking address carries it out.
    Started,
    /// Started again: the last checksum is due.
    Running,
    /// Nothing but the end may follow.
    Closed,
}

pub(super) struct Machine<'s, 'a> {
    pub(super) task: Task<'s, 'a>,
    pub(super) crc: Crc,
    /// The checksum was begun.
    pub(super) begun: bool,
    /// There is a checksum over all frames so far.
    pub(super) summed: bool,
    pub(super) crc_checks: u32,
    pub(super) controls: Controls,
    pub(super) command: Command,
    pub(super) power: Power,
    pub(super) held: bool,
    pub(super) released: bool,
    pub(super) cleared: bool,
    /// The last address is the one where no frame is.
    pub(super) parked: bool,
    /// NOPs that are due before anything else.
    pub(super) wait: u32,
    /// NOPs since the last command.
    pub(super) nops: u32,
    /// The options of the start were set.
    pub(super) optioned: bool,
    pub(super) copies: u32,
    pub(super) compressed: bool,
    /// Made when the device is named.
    pub(super) pipeline: Option<Pipeline<'s>>,
    pub(super) device: Option<Device>,
}

impl<'s, 'a> Machine<'s, 'a> {
    fn new(task: Task<'s, 'a>) -> Self {
        Self {
            task,
            crc: Crc::default(),
            begun: false,
            summed: true,
            crc_checks: 0,
            controls: Controls::default(),
            command: Command::NULL,
            power: Power::Untouched,
            held: false,
            released: false,
            cleared: false,
            parked: false,
            wait: 0,
            nops: 0,
            optioned: false,
            copies: 0,
            compressed: false,
            pipeline: None,
            device: None,
        }
    }

    fn write(&mut self, write: &Write<'_>) -> Result<Went, Fault> {
        let Write {
            register,
            data,
            begin,
        } = *write;
        let here = |reason| Fault {
            reason,
            word: begin,
            frame: None,
        };
        let value = data.get(0);
        if let Some(reason) = value.and_then(|value| rules::special(register, value)) {
            return Err(here(reason));
        }
        if let Some(device) = self.device {
            rules::register(device.family(), register).map_err(here)?;
        } else if ![Register::CMD, Register::IDCODE].contains(&register) {
            return Err(here(rules::before_device(register, value)));
        }
        let single = match (register, value) {
            (Register::FDRI | Register::MFWR, _) => None,
            (_, Some(value)) if data.len() == 1 => Some(value),
            _ => return Err(here(Reason::Count(register, data.len()))),
        };
        self.due(register, single).map_err(here)?;
        if register == Register::CRC {
            self.compare(single.unwrap_or(0)).map_err(here)?;
            return Ok(Went::On);
        }
        self.crc.words(register, data);
        match (register, single) {
            (Register::CMD, Some(value)) => return self.command(Command(value), here),
            (Register::IDCODE, Some(value)) => self.idcode(value).map_err(here)?,
            (Register::FAR, Some(value)) => self.address(value, begin)?,
            (Register::FDRI, _) => self.data(write)?,
            (Register::MFWR, _) => self.copy(write)?,
            (_, Some(value)) => self.option(register, value).map_err(here)?,
            (_, None) => return Err(here(Reason::Count(register, data.len()))),
        }
        Ok(Went::On)
    }

    fn compare(&mut self, stated: u32) -> Result<(), Reason> {
        let computed = self.crc.value();
        if stated != computed {
            return Err(Reason::Crc { stated, computed });
        }
        self.crc.reset();
        self.summed = true;
        self.crc_checks = self.crc_checks.saturating_add(1);
        Ok(())
    }

    fn idcode(&mut self, idcode: u32) -> Result<(), Reason> {
        if !self.begun {
            return Err(Reason::BeforeIdcode(Register::IDCODE));
        }
        let device = match (self.task.device, Device::find(idcode)) {
            (Some(expected), _) if expected.has_idcode(idcode) => expected,
            (Some(expected), _) => {
                return Err(Reason::WrongDevice {
                    found: idcode,
                    expected,
                });
            }
            (None, Some(device)) => device,
            (None, None) => return Err(Reason::UnknownDevice(idcode)),
        };
        if device.is_multi_die() {
            return Err(Reason::MultiDie);
        }
        if device.family() == Family::UltraScale {
            return Err(Reason::Family(device));
        }
        if self.cleared {
            rules::command(device.family(), Command::URAM)?;
        }
        match self.device {
            None => {
                self.device = Some(device);
                self.pipeline = Some(Pipeline::new(device, self.task.allowed, self.task.record));
                Ok(())
            }
            // Named once more: nothing changes.
            Some(first) if first == device => Ok(()),
            Some(first) => Err(Reason::WrongDevice {
                found: idcode,
                expected: first,
            }),
        }
    }

    fn option(&mut self, register: Register, value: u32) -> Result<(), Reason> {
        let Some(device) = self.device else {
            return Err(Reason::BeforeIdcode(register));
        };
        rules::value(device.family(), register, value)?;
        if register == Register::COR0 {
            if self.power != Power::Untouched {
                let why = "the options of the start are set after the device was stopped";
                return Err(Reason::Order(why));
            }
            self.optioned = true;
        }
        self.controls.write(device.family(), register, value)?;
        // 7-series files without a restart were not measured, and may do it.
        let stopped = matches!(self.power, Power::Stopped | Power::Restored);
        if self.controls.frees_lut_memory() && device.family() != Family::Series7 && !stopped {
            let why = "the mask of LUT memory is lifted while the device runs";
            return Err(Reason::Order(why));
        }
        Ok(())
    }

    fn end(self, end: usize) -> Result<SubStream, Reason> {
        let (Some(device), Some(pipeline)) = (self.device, self.pipeline) else {
            return Err(Reason::BeforeIdcode(Register::CMD));
        };
        if !self.summed || self.crc_checks == 0 {
            return Err(Reason::NoCrc);
        }
        self.controls.left_set()?;
        if device.family() != Family::Series7 && !self.parked {
            let why = "the stream ends at the address of a frame, and not at the parking address";
            return Err(Reason::Order(why));
        }
        // Left behind, they would say what a later restart restores.
        if pipeline.masked() && self.power == Power::Untouched {
            let why = "columns are masked, and no flip-flops are restored";
            return Err(Reason::Order(why));
        }
        let frames = !pipeline.frames.is_empty();
        let marks = !pipeline.marks.is_empty();
        // A restart restores what it has written; without frames it is for nothing.
        let restarts = self.power == Power::Closed;
        if frames && marks || restarts && !frames {
            return Err(Reason::Arrangement);
        }
        let kind = match (self.power, self.held) {
            (Power::Untouched, false) if marks => Kind::Marks,
            (Power::Untouched, false) if frames => Kind::Frames,
            (Power::Stopped, true) if !marks => Kind::Stops,
            (Power::Closed, false) if !marks => Kind::Restarts,
            (Power::Stopped | Power::Restored | Power::Started | Power::Running, _) => {
                return Err(Reason::LeftStopped);
            }
            _ => return Err(Reason::Arrangement),
        };
        Ok(SubStream {
            kind,
            end,
            device,
            restored: match self.power {
                Power::Closed => pipeline.masks.restored_columns(device),
                _ => FrameSet::new(),
            },
            frames: pipeline.frames,
            marks: pipeline.marks,
            crc_checks: self.crc_checks,
            compressed: self.compressed,
            contents: pipeline.contents,
            released: self.released,
            cleared: self.cleared,
        })
    }
}
