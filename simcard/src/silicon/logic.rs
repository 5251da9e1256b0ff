//! The registers of the configuration logic and what writing them does: the
//! frame pipeline, commands, the checks that can stop a configuration.

use serde::Serialize;
use uuid::Uuid;

use super::crc;
use super::frames::{Frames, Written};
use super::geometry::{Geometry, Place};
use super::packets::{Packets, Word};
use super::registers::{Dangers, cmd, reg};
use crate::mark;
use crate::stats::count;

/// The upper four bits of an IDCODE are the revision of the silicon; this one's is 1.
const REVISION: u32 = 1 << 28;
const IDCODE_MASK: u32 = 0x0fff_ffff;

/// Why configuration stopped. What comes next is ignored until DESYNC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trouble {
    /// The IDCODE of another device.
    Idcode,
    /// Frames before any IDCODE.
    NoIdcode,
    /// The CRC register disagreed.
    Crc,
    /// A fault on demand.
    Injected,
}

/// What a word brought about, for the shell around.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    Nothing,
    /// A frame got content, which may name a function ([`mark`]).
    Frame(Option<Uuid>),
    /// The device reboots: nothing is left.
    Reboot,
    /// Configuration stopped.
    Stopped,
    /// DESYNC.
    End(Ending),
}

/// How a synchronised stretch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// No check failed, and one came after the last frame.
    Sound,
    /// Stopped, or nobody checked the last frames.
    Unsound,
}

/// Counts since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub(crate) struct Counts {
    pub(crate) syncs: u64,
    pub(crate) desyncs: u64,
    pub(crate) frames: u64,
    pub(crate) lost_frames: u64,
    pub(crate) unclean_pads: u64,
    pub(crate) crc_checks: u64,
    pub(crate) restores: u64,
    pub(crate) config_errors: u64,
    pub(crate) last_error: Option<Trouble>,
    pub(crate) dangers: Dangers,
}

/// The startup sequence: EOS is high from its end to the next shutdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Startup {
    Done,
    Shut,
    /// START was given; it takes effect with a DESYNC.
    Asked,
}

/// Whether the configuration goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    NoIdcode,
    Fine,
    Stopped,
}

/// The configuration logic of one die.
#[derive(Debug, Clone)]
pub(crate) struct Logic {
    geometry: Geometry,
    frames: Frames,
    packets: Packets,
    crc: u32,
    command: u32,
    mask: u32,
    ctl0: u32,
    place: Option<u32>,
    /// The frame that is coming in, and the one before it, which waits for it.
    coming: Vec<u32>,
    held: Option<Vec<u32>>,
    health: Health,
    /// CFGERR, until the shell resets it.
    error: Option<Trouble>,
    unchecked: u64,
    startup: Startup,
    pending: Option<(u8, u32)>,
    pub(crate) counts: Counts,
}

impl Logic {
    pub(crate) fn new(geometry: Geometry) -> Self {
        Self {
            frames: Frames::new(&geometry),
            coming: Vec::with_capacity(geometry.family().frame_words()),
            geometry,
            packets: Packets::new(),
            crc: 0,
            command: cmd::NULL,
            mask: 0,
            ctl0: 0,
            place: None,
            held: None,
            health: Health::NoIdcode,
            error: None,
            unchecked: 0,
            startup: Startup::Done,
            pending: None,
            counts: Counts::default(),
        }
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Power off and on, or IPROG: content and registers are lost, counts stay.
    pub(crate) fn power_cycle(&mut self) {
        self.frames.lose();
        self.abort();
        self.command = cmd::NULL;
        (self.mask, self.ctl0, self.crc, self.place) = (0, 0, 0, None);
        self.startup = Startup::Done;
    }

    /// An abort at the port: the packet is dropped, the port is deaf, CFGERR falls.
    pub(crate) fn abort(&mut self) {
        self.desync();
        self.clear_error();
    }

    /// CFGERR falls.
    pub(crate) fn clear_error(&mut self) {
        self.error = None;
    }

    pub(crate) fn synced(&self) -> bool {
        self.packets.synced()
    }

    pub(crate) fn error(&self) -> Option<Trouble> {
        self.error
    }

    /// End of startup.
    pub(crate) fn started(&self) -> bool {
        self.startup == Startup::Done
    }

    pub(crate) fn written(&self) -> Written {
        self.frames.written(&self.geometry)
    }

    pub(crate) fn forget_written(&mut self) {
        self.frames.forget();
    }

    #[cfg(test)]
    pub(super) fn frame(&self, far: u32) -> &[u32] {
        let place = self.geometry.place(far).and_then(|at| self.geometry.at(at));
        match place {
            Some((Place::Frame(index), _)) => self.frames.get(index),
            _ => &[],
        }
    }

    /// Configuration stops here (also a fault on demand).
    pub(crate) fn stop(&mut self, trouble: Trouble) -> Moment {
        count(&mut self.counts.config_errors);
        self.counts.last_error = Some(trouble);
        self.error = Some(trouble);
        self.health = Health::Stopped;
        Moment::Stopped
    }

    /// A word out of the port, after a read packet went in. Only IDCODE says
    /// something; nothing asked for reads zero too.
    pub(crate) fn read(&mut self) -> u32 {
        match self.pending.take() {
            None => 0,
            Some((register, left)) => {
                let left = left.saturating_sub(1);
                self.pending = (left > 0).then_some((register, left));
                if register == reg::IDCODE {
                    self.geometry.idcode() | REVISION
                } else {
                    0
                }
            }
        }
    }

    /// A word into the port.
    pub(crate) fn take(&mut self, word: u32) -> Moment {
        match self.packets.take(word) {
            Word::Ignored | Word::Header => Moment::Nothing,
            Word::Sync => {
                count(&mut self.counts.syncs);
                Moment::Nothing
            }
            Word::Odd => {
                count(&mut self.counts.dangers.packets);
                Moment::Nothing
            }
            Word::Read { register, count } => {
                self.counts.dangers.read(register);
                self.pending = (count > 0).then_some((register, count));
                Moment::Nothing
            }
            Word::Data { register, last } => self.write(register, word, last),
        }
    }

    fn write(&mut self, register: u8, word: u32, last: bool) -> Moment {
        if self.health == Health::Stopped {
            return match (register, word) {
                (reg::CMD, cmd::DESYNC) => self.end(),
                _ => Moment::Nothing,
            };
        }
        self.counts.dangers.write(register);
        if register == reg::CRC {
            return self.check(word);
        }
        if register != reg::LOUT {
            self.crc = crc::update(self.crc, register, word);
        }
        match register {
            reg::FAR => {
                self.place = self.geometry.place(word);
                self.coming.clear();
                // The command that is held is executed again by a load of FAR.
                return self.execute();
            }
            reg::FDRI => return self.frame_word(word),
            reg::MFWR if last => return self.copy(),
            reg::CMD => {
                self.command = word;
                return self.execute();
            }
            reg::MASK => self.mask = word,
            reg::CTL0 => {
                self.ctl0 = (self.ctl0 & !self.mask) | (word & self.mask);
                self.counts.dangers.control(self.ctl0);
            }
            reg::IDCODE if word & IDCODE_MASK == self.geometry.idcode() & IDCODE_MASK => {
                self.health = Health::Fine;
            }
            reg::IDCODE => return self.stop(Trouble::Idcode),
            _ => {}
        }
        Moment::Nothing
    }

    fn check(&mut self, word: u32) -> Moment {
        count(&mut self.counts.crc_checks);
        let right = word == self.crc;
        self.crc = 0;
        if right {
            self.unchecked = 0;
            Moment::Nothing
        } else {
            self.stop(Trouble::Crc)
        }
    }

    fn execute(&mut self) -> Moment {
        self.counts.dangers.command(self.command);
        match self.command {
            cmd::WCFG => {
                self.held = None;
                self.coming.clear();
            }
            cmd::RCRC => self.crc = 0,
            cmd::START if self.startup == Startup::Shut => self.startup = Startup::Asked,
            cmd::SHUTDOWN => self.startup = Startup::Shut,
            cmd::GRESTORE => count(&mut self.counts.restores),
            cmd::DESYNC => return self.end(),
            cmd::IPROG => return Moment::Reboot,
            _ => {}
        }
        Moment::Nothing
    }

    fn end(&mut self) -> Moment {
        count(&mut self.counts.desyncs);
        let sound = self.health != Health::Stopped && self.unchecked == 0;
        if self.health == Health::Fine && self.startup == Startup::Asked {
            self.startup = Startup::Done;
        }
        self.desync();
        Moment::End(if sound {
            Ending::Sound
        } else {
            Ending::Unsound
        })
    }

    fn desync(&mut self) {
        self.packets.desync();
        self.coming.clear();
        self.held = None;
        self.pending = None;
        self.command = cmd::NULL;
        self.health = Health::NoIdcode;
        self.unchecked = 0;
    }

    /// A frame goes to its place when the next one has come in: the last frame
    /// of a block stays in the buffer.
    fn frame_word(&mut self, word: u32) -> Moment {
        if self.health == Health::NoIdcode {
            return self.stop(Trouble::NoIdcode);
        }
        if self.command != cmd::WCFG {
            return Moment::Nothing;
        }
        self.coming.push(word);
        if self.coming.len() < self.geometry.family().frame_words() {
            return Moment::Nothing;
        }
        let mut frame = self.held.take().unwrap_or_default();
        let waited = !frame.is_empty();
        std::mem::swap(&mut frame, &mut self.coming);
        let moment = if waited {
            let before = std::mem::take(&mut self.coming);
            let moment = self.commit(&before);
            self.coming = before;
            moment
        } else {
            Moment::Nothing
        };
        self.coming.clear();
        self.held = Some(frame);
        moment
    }

    /// Writes a frame where FAR stands, and moves FAR on.
    fn commit(&mut self, frame: &[u32]) -> Moment {
        let Some((place, next)) = self.place.and_then(|place| self.geometry.at(place)) else {
            count(&mut self.counts.lost_frames);
            return Moment::Nothing;
        };
        self.place = next;
        match place {
            Place::Frame(index) => self.store(index, frame),
            Place::Pad => {
                if frame.iter().any(|word| *word != 0) {
                    count(&mut self.counts.unclean_pads);
                }
                Moment::Nothing
            }
        }
    }

    /// MFWR: the frame in the buffer once more, where FAR stands. FAR stays; a
    /// pad is no place for a copy, the next row's first frame is.
    fn copy(&mut self) -> Moment {
        if self.health == Health::NoIdcode {
            return self.stop(Trouble::NoIdcode);
        }
        let Some(frame) = self.held.take_if(|_| self.command == cmd::MFW) else {
            return Moment::Nothing;
        };
        let mut at = self.place;
        let mut index = None;
        while let Some((place, next)) = at.and_then(|place| self.geometry.at(place)) {
            if let Place::Frame(found) = place {
                index = Some(found);
                break;
            }
            at = next;
        }
        let moment = if let Some(index) = index {
            self.store(index, &frame)
        } else {
            count(&mut self.counts.lost_frames);
            Moment::Nothing
        };
        self.held = Some(frame);
        moment
    }

    fn store(&mut self, index: u32, frame: &[u32]) -> Moment {
        self.frames.write(index, frame);
        count(&mut self.counts.frames);
        count(&mut self.unchecked);
        Moment::Frame(mark::read(frame))
    }
}
