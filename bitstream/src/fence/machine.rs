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
struct Write<'a> {
    register: Register,
    data: crate::xilinx::Words<'a>,
    /// The number of the first word in the stream.
    begin: usize,
}

#[derive(PartialEq, Eq)]
enum Went {
    On,
    Ended,
}

/// How far start-up is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Power {
    /// As it was found.
    Untouched,
    /// Stopped.
    Stopped,
    /// Flip-flops were restored.
    Restored,
    /// Started again: nothing but the end may follow.
    Started,
}

struct Machine<'s, 'a> {
    task: Task<'s, 'a>,
    crc: Crc,
    /// The checksum was begun.
    begun: bool,
    /// There is a checksum over all frames so far.
    summed: bool,
    crc_checks: u32,
    controls: Controls,
    command: Command,
    power: Power,
    held: bool,
    released: bool,
    cleared: bool,
    copies: u32,
    compressed: bool,
    /// Made when the device is named.
    pipeline: Option<Pipeline<'s>>,
    device: Option<Device>,
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

    fn command(&mut self, command: Command, here: impl Fn(Reason) -> Fault) -> Result<Went, Fault> {
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
        self.command = command;
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
            Command::URAM => self.cleared = true,
            Command::WCFG => {
                if let Some(pipeline) = &mut self.pipeline {
                    pipeline.arm();
                }
            }
            Command::MFW => {
                self.copies = 0;
                self.compressed = true;
            }
            Command::AGHIGH => self.held = true,
            Command::LFRM => {
                self.held = false;
                self.released = true;
            }
            Command::DESYNC => return Ok(Went::Ended),
            _ => self.power(command, here)?,
        }
        Ok(Went::On)
    }

    /// Stop, restore, start: each only after the one before.
    fn power(&mut self, command: Command, here: impl Fn(Reason) -> Fault) -> Result<(), Fault> {
        self.power = match (command, self.power) {
            (Command::SHUTDOWN, Power::Untouched) => Power::Stopped,
            (Command::GRESTORE, Power::Stopped) => {
                let series7 = self.device.map(Device::family) == Some(Family::Series7);
                if let (true, Some(pipeline)) = (series7, &self.pipeline) {
                    pipeline.may_restore().map_err(|(reason, frame)| Fault {
                        frame,
                        ..here(reason)
                    })?;
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

    fn address(&mut self, value: u32, begin: usize) -> Result<(), Fault> {
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
        pipeline
            .address(value)
            .map_err(|(reason, frame)| fault(reason, frame))
    }

    fn data(&mut self, write: &Write<'_>) -> Result<(), Fault> {
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
        if self.command != Command::WCFG {
            let why = "frame data, and the last command is not to write";
            return Err(here(Reason::Order(why)));
        }
        let Some(pipeline) = &mut self.pipeline else {
            return Err(here(Reason::BeforeIdcode(Register::FDRI)));
        };
        self.summed = false;
        pipeline.data(write.data, write.begin, self.controls.writes_masks())
    }

    /// MFWR: eight empty words the first time after the command, then four.
    fn copy(&mut self, write: &Write<'_>) -> Result<(), Fault> {
        let fault = |reason, frame| Fault {
            reason,
            word: write.begin,
            frame,
        };
        if self.command != Command::MFW {
            let why = "a frame is copied, and copying was not commanded";
            return Err(fault(Reason::Order(why), None));
        }
        let due = if self.copies == 0 { 8 } else { 4 };
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
            .copy()
            .map_err(|(reason, frame)| fault(reason, frame))
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
