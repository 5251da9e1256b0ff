//! One sub-stream: from the sync word to the command that ends it.
//!
//! Knows the order in which genuine partial bitstreams do things, and refuses
//! every other. Must not know how sub-streams go together: that is the
//! arrangement's, in [`check`](super::check).

use super::crc::Crc;
use super::pipeline::{Allowed, Contents, Fault, Pipeline, Record};
use super::reason::Reason;
use super::refusal::Refusal;
use super::rules::{self, Controls};
use super::written::Written;
use crate::device::{Device, Family, FrameAddress};
use crate::xilinx::{Command, Packet, Packets, Register, XilinxStream};

/// What a sub-stream turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Writes frames, and neither stops nor starts the device.
    Frames,
    /// Masks columns before, or after, flip-flops are restored (UltraScale+).
    Marks,
    /// Stops the device and holds its interconnect.
    Stops,
    /// Writes frames, restores flip-flops and starts the device again.
    Restarts,
}

/// A sub-stream that was found in order.
#[derive(Debug)]
pub(super) struct SubStream {
    pub(super) kind: Kind,
    /// The word after its end.
    pub(super) end: usize,
    pub(super) device: Device,
    pub(super) frames: Written,
    pub(super) marks: Written,
    pub(super) crc_checks: u32,
    pub(super) compressed: bool,
    pub(super) contents: Option<Contents>,
    /// The interconnect was let go at its end.
    pub(super) released: bool,
}

/// What all sub-streams share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Task<'s, 'a> {
    pub(super) stream: &'s XilinxStream<'a>,
    /// The device that it must be for; none: the one that it names.
    pub(super) device: Option<Device>,
    pub(super) allowed: Allowed<'s>,
    pub(super) record: Record,
}

impl Task<'_, '_> {
    /// A refusal at a word.
    pub(super) fn refuse(
        &self,
        reason: Reason,
        word: usize,
        frame: Option<FrameAddress>,
    ) -> Refusal {
        Refusal {
            reason,
            offset: self.stream.offset_of(word),
            frame,
        }
    }
}

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
            Some(Packet::Nop) => {}
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
    /// Started again: nothing but the end may follow.
    Started,
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
        if self.power == Power::Started {
            self.after_start(register, single).map_err(here)?;
        }
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

    /// After the start nothing comes but the parking address, a checksum, and
    /// the end.
    fn after_start(&self, register: Register, value: Option<u32>) -> Result<(), Reason> {
        let park = self.device.map(|device| device.family().park());
        match register {
            Register::CRC => Ok(()),
            Register::FAR if value == park => Ok(()),
            Register::CMD if value == Some(Command::DESYNC.0) => Ok(()),
            _ => Err(Reason::Order("something follows the start of the device")),
        }
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
        // Named once more: nothing changes, it is the same device.
        if self.device != Some(device) {
            self.device = Some(device);
            self.pipeline = Some(Pipeline::new(device, self.task.allowed, self.task.record));
        }
        Ok(())
    }

    fn option(&mut self, register: Register, value: u32) -> Result<(), Reason> {
        let Some(device) = self.device else {
            return Err(Reason::BeforeIdcode(register));
        };
        rules::value(device.family(), register, value)?;
        self.controls.write(device.family(), register, value)
    }

    fn end(self, end: usize) -> Result<SubStream, Reason> {
        let (Some(device), Some(pipeline)) = (self.device, self.pipeline) else {
            return Err(Reason::BeforeIdcode(Register::CMD));
        };
        if !self.summed || self.crc_checks == 0 {
            return Err(Reason::NoCrc);
        }
        self.controls.left_set()?;
        let frames = !pipeline.frames.is_empty();
        let marks = !pipeline.marks.is_empty();
        if frames && marks {
            return Err(Reason::Arrangement);
        }
        let kind = match (self.power, self.held) {
            (Power::Untouched, false) if marks => Kind::Marks,
            (Power::Untouched, false) if frames => Kind::Frames,
            (Power::Stopped, true) if !marks => Kind::Stops,
            (Power::Started, false) if !marks => Kind::Restarts,
            (Power::Stopped | Power::Restored, _) => return Err(Reason::LeftStopped),
            _ => return Err(Reason::Arrangement),
        };
        Ok(SubStream {
            kind,
            end,
            device,
            frames: pipeline.frames,
            marks: pipeline.marks,
            crc_checks: self.crc_checks,
            compressed: self.compressed,
            contents: pipeline.contents,
            released: self.released,
        })
    }
}
