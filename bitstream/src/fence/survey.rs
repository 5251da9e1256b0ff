//! What is in a stream, whether it is accepted or not: for people who look.
//!
//! Knows how to read on where the fence would have stopped. Decides nothing,
//! and is bounded in what it remembers.

use std::collections::BTreeMap;

use super::crc::Crc;
use crate::device::{Device, FrameAddress};
use crate::xilinx::{Command, Packet, PacketFault, Packets, Register, SYNC, XilinxStream};

/// Sub-streams that are told apart.
const MOST_STREAMS: usize = 32;
/// Blocks of frames that are listed for each.
const MOST_BLOCKS: usize = 1 << 14;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Survey {
    /// The sub-streams, in the order of the file.
    pub streams: Vec<SurveyedStream>,
    /// There are more than were read.
    pub more: bool,
}

/// One sub-stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SurveyedStream {
    /// The byte of the file after its sync word.
    pub offset: usize,
    /// The IDCODE that it names, and the first other one that it names besides;
    /// genuine files name one, however often.
    pub idcodes: [Option<u32>; 2],
    /// How often each register is written.
    pub registers: BTreeMap<Register, u64>,
    /// How often each command is given.
    pub commands: BTreeMap<Command, u64>,
    /// The values that each register of options is given, in order of size.
    pub values: BTreeMap<Register, Vec<u32>>,
    /// Writes of frame data.
    pub blocks: Vec<SurveyedBlock>,
    /// There are more blocks than are listed.
    pub more_blocks: bool,
    /// Copies of a frame (MFWR).
    pub copies: u64,
    /// NOPs.
    pub nops: u64,
    /// Checksums that match.
    pub crc_matching: u64,
    /// Checksums that do not.
    pub crc_wrong: u64,
    /// Where it could not be read on: the byte of the file, and why.
    pub stopped: Option<(usize, PacketFault)>,
    /// It ends with the command for that.
    pub ended: bool,
}

/// One write of frame data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SurveyedBlock {
    /// The byte of the file where the data begins.
    pub offset: usize,
    /// The frame address in force, as written; `None`: there was none.
    pub address: Option<u32>,
    /// Words of data.
    pub words: usize,
}

impl SurveyedStream {
    fn names(&mut self, idcode: u32) {
        let [first, other] = &mut self.idcodes;
        let first = *first.get_or_insert(idcode);
        if first != idcode {
            other.get_or_insert(idcode);
        }
    }
}

impl SurveyedBlock {
    /// The address in the device's terms, where it has a meaning.
    #[must_use]
    pub fn frame(&self, device: Device) -> Option<FrameAddress> {
        FrameAddress::parse(device.family(), self.address?).ok()
    }

    /// Whole frames in the data, the one that stays in the buffer counted.
    #[must_use]
    pub fn frames(&self, device: Device) -> usize {
        let length = device.family().frame_words();
        self.words.checked_div(length).unwrap_or(0)
    }
}

impl Survey {
    /// The IDCODEs that the sub-streams name, in their order.
    pub fn idcodes(&self) -> impl Iterator<Item = u32> + '_ {
        let all = self.streams.iter().flat_map(|stream| stream.idcodes);
        all.flatten()
    }

    /// The device of the first IDCODE, if it is known.
    #[must_use]
    pub fn device(&self) -> Option<Device> {
        Device::find(self.idcodes().next()?)
    }
}

/// Looks at every sub-stream.
#[must_use]
pub fn survey(stream: &XilinxStream<'_>) -> Survey {
    let words = stream.words();
    let mut survey = Survey::default();
    let mut at = 0;
    loop {
        let mut rest = words.slice(at..words.len()).iter();
        let Some(distance) = rest.position(|word| word == SYNC) else {
            return survey;
        };
        if survey.streams.len() == MOST_STREAMS {
            survey.more = true;
            return survey;
        }
        let begin = at.saturating_add(distance).saturating_add(1);
        let (surveyed, end) = one(stream, begin);
        survey.streams.push(surveyed);
        at = end;
    }
}

fn one(stream: &XilinxStream<'_>, begin: usize) -> (SurveyedStream, usize) {
    let words = stream.words();
    let mut packets = Packets::new(words, begin);
    let mut seen = SurveyedStream {
        offset: stream.offset_of(begin),
        ..SurveyedStream::default()
    };
    let mut crc = Crc::default();
    let mut address = None;
    loop {
        let at = packets.at();
        let (register, data) = match packets.next_packet() {
            Ok(Some(Packet::Write { register, data })) => (register, data),
            Ok(Some(Packet::Nop)) => {
                add(&mut seen.nops);
                continue;
            }
            Ok(None) => return (seen, at),
            Err(fault) => {
                seen.stopped = Some((stream.offset_of(at), fault));
                return (seen, at.saturating_add(1));
            }
        };
        add(seen.registers.entry(register).or_default());
        let offset = stream.offset_of(data.start);
        let data = words.slice(data);
        let value = data.get(0);
        if register == Register::CRC {
            let matches = value == Some(crc.value());
            add(if matches {
                &mut seen.crc_matching
            } else {
                &mut seen.crc_wrong
            });
            crc.reset();
            continue;
        }
        crc.words(register, data);
        match (register, value) {
            (Register::FAR, value) => address = value,
            (Register::IDCODE, Some(value)) => seen.names(value),
            (Register::MFWR, _) => add(&mut seen.copies),
            (Register::FDRI, _) if seen.blocks.len() == MOST_BLOCKS => seen.more_blocks = true,
            (Register::FDRI, _) => seen.blocks.push(SurveyedBlock {
                offset,
                address,
                words: data.len(),
            }),
            (Register::CMD, Some(value)) => {
                let command = Command(value & 0x1f);
                add(seen.commands.entry(command).or_default());
                match command {
                    Command::RCRC => crc.reset(),
                    Command::DESYNC => {
                        seen.ended = true;
                        return (seen, packets.at());
                    }
                    _ => {}
                }
            }
            (register, Some(value)) => {
                let values = seen.values.entry(register).or_default();
                if let (Err(place), true) = (values.binary_search(&value), values.len() < 64) {
                    values.insert(place, value);
                }
            }
            (_, None) => {}
        }
    }
}

fn add(count: &mut u64) {
    *count = count.saturating_add(1);
}
