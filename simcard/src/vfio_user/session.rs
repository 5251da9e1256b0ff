//! One client's session: messages in, replies out. Knows no sockets.

use super::wire::{self, Access, Answer, Command, Errno, HEADER_LEN, Header, MAX_DATA};

/// VFIO's fixed region indexes of a PCI device.
const BAR0_REGION: u32 = 0;
const CONFIG_REGION: u32 = 7;
const REGION_COUNT: u32 = 9;
const REGION_READABLE_WRITABLE: u32 = 3;
/// Line, MSI, MSI-X, error, request: all empty.
const IRQ_COUNT: u32 = 5;
/// A PCI device that can be reset.
const DEVICE_FLAGS: u32 = 3;

/// No more than this, and one reply, is ever held for a client.
const ENOUGH_REPLIES: usize = 256 << 10;

const MAJOR: u16 = 0;
const MINOR: u16 = 1;
const CAPABILITIES: &str = concat!(
    r#"{"capabilities":{"max_msg_fds":1,"max_data_xfer_size":1048576,"#,
    r#""migration":{"pgsize":4096}}}"#
);

/// What is served: a PCI function.
pub(crate) trait Device {
    /// Size of a region in bytes.
    fn size(&self, region: Region) -> u64;
    /// Reads inside the region.
    fn read(&self, region: Region, offset: u64, out: &mut [u8]);
    /// Writes inside the region.
    fn write(&self, region: Region, offset: u64, bytes: &[u8]);
    /// Resets the function.
    fn reset(&self);
}

/// The regions that have a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Region {
    Bar0,
    Config,
}

impl Region {
    fn from_index(index: u32) -> Option<Self> {
        match index {
            BAR0_REGION => Some(Self::Bar0),
            CONFIG_REGION => Some(Self::Config),
            _ => None,
        }
    }
}

/// Whether the session can go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// So many bytes of the input were used; the message that follows needs so many in all.
    More {
        /// Bytes to drop from the front.
        used: usize,
        /// Length of the message that is not whole yet, as far as known.
        wanted: usize,
    },
    /// Enough replies wait: send them, drop so many bytes, and come back with the rest.
    Full {
        /// Bytes to drop from the front.
        used: usize,
    },
    /// The client lost the thread: say what is in `out` and hang up.
    HangUp,
}

/// How far version negotiation got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Strangers,
    Agreed,
}

/// The state of a session: almost none.
#[derive(Debug)]
pub(crate) struct Session {
    stage: Stage,
    scratch: Vec<u8>,
}

impl Session {
    pub(crate) fn new() -> Self {
        Self {
            stage: Stage::Strangers,
            scratch: Vec::new(),
        }
    }

    /// Answers the whole messages in `input`, until enough replies wait.
    pub(crate) fn feed(&mut self, input: &[u8], out: &mut Vec<u8>, device: &dyn Device) -> Next {
        let mut rest = input;
        loop {
            let used = input.len().saturating_sub(rest.len());
            if out.len() >= ENOUGH_REPLIES {
                return Next::Full { used };
            }
            let Some(header) = Header::parse(rest) else {
                return Next::More {
                    used,
                    wanted: HEADER_LEN,
                };
            };
            // From a size that cannot be, no way leads to the next message.
            let command = header.command();
            if header.size < HEADER_LEN || header.size > command.max_len() || !header.is_command() {
                refuse(header, out, Errno::Invalid);
                return Next::HangUp;
            }
            let Some((message, after)) = rest.split_at_checked(header.size) else {
                return Next::More {
                    used,
                    wanted: header.size,
                };
            };
            let body = message.get(HEADER_LEN..).unwrap_or_default();
            if (command == Command::Version) == (self.stage == Stage::Agreed) {
                refuse(header, out, Errno::Invalid);
                return Next::HangUp;
            }
            if let Err(errno) = self.answer(header, body, out, device) {
                refuse(header, out, errno);
                if self.stage == Stage::Strangers {
                    return Next::HangUp;
                }
            }
            rest = after;
        }
    }

    fn answer(
        &mut self,
        header: Header,
        body: &[u8],
        out: &mut Vec<u8>,
        device: &dyn Device,
    ) -> Result<(), Errno> {
        match header.command() {
            Command::RegionWrite => write(header, body, out, device),
            Command::RegionRead => self.read(header, body, out, device),
            Command::Version => self.agree(header, body, out),
            Command::DeviceInfo => {
                let argsz = 16u32;
                reply_words(header, out, &[argsz, DEVICE_FLAGS, REGION_COUNT, IRQ_COUNT])
            }
            Command::RegionInfo => region_info(header, body, out, device),
            Command::IrqInfo => irq_info(header, body, out),
            Command::SetIrqs => set_irqs(header, body, out),
            Command::DmaMap => dma_map(header, body, out),
            Command::DmaUnmap => dma_unmap(header, body, out),
            Command::Reset => {
                device.reset();
                reply(header, out, &[])
            }
            Command::Other => Err(Errno::Unsupported),
        }
    }

    fn agree(&mut self, header: Header, body: &[u8], out: &mut Vec<u8>) -> Result<(), Errno> {
        let mut rest = body;
        let major = wire::take_u16(&mut rest).ok_or(Errno::Invalid)?;
        let minor = wire::take_u16(&mut rest).ok_or(Errno::Invalid)?;
        if major != MAJOR || header.answer() == Answer::Unwanted {
            return Err(Errno::Invalid);
        }
        if let Some((zero, text)) = rest.split_last() {
            // What the client can do does not matter to us, but nonsense is no client of ours.
            let text: Result<serde_json::Map<String, serde_json::Value>, _> =
                serde_json::from_slice(text);
            if *zero != 0 || text.is_err() {
                return Err(Errno::Invalid);
            }
        }
        let version = [MAJOR.to_le_bytes(), minor.min(MINOR).to_le_bytes()].concat();
        self.stage = Stage::Agreed;
        reply(header, out, &[&version, CAPABILITIES.as_bytes(), &[0]])
    }

    fn read(
        &mut self,
        header: Header,
        body: &[u8],
        out: &mut Vec<u8>,
        device: &dyn Device,
    ) -> Result<(), Errno> {
        let mut rest = body;
        let access = Access::take(&mut rest).ok_or(Errno::Invalid)?;
        if !rest.is_empty() || header.answer() == Answer::Unwanted {
            return Err(Errno::Invalid);
        }
        let region = bounded(access, device)?;
        let count = usize::try_from(access.count).map_err(|_too_big| Errno::TooBig)?;
        self.scratch.clear();
        self.scratch.resize(count, 0);
        device.read(region, access.offset, &mut self.scratch);
        reply(header, out, &[&access.bytes(), &self.scratch])
    }
}

fn write(header: Header, body: &[u8], out: &mut Vec<u8>, device: &dyn Device) -> Result<(), Errno> {
    let mut data = body;
    let access = Access::take(&mut data).ok_or(Errno::Invalid)?;
    if usize::try_from(access.count) != Ok(data.len()) {
        return Err(Errno::Invalid);
    }
    let region = bounded(access, device)?;
    device.write(region, access.offset, data);
    reply(header, out, &[&access.bytes()])
}

/// The region of an access that lies inside it and is not too long.
fn bounded(access: Access, device: &dyn Device) -> Result<Region, Errno> {
    if access.count > MAX_DATA {
        return Err(Errno::TooBig);
    }
    let region = Region::from_index(access.region).ok_or(Errno::Invalid)?;
    let end = access
        .offset
        .checked_add(u64::from(access.count))
        .ok_or(Errno::Invalid)?;
    if end > device.size(region) {
        Err(Errno::Invalid)
    } else {
        Ok(region)
    }
}

fn region_info(
    header: Header,
    body: &[u8],
    out: &mut Vec<u8>,
    device: &dyn Device,
) -> Result<(), Errno> {
    let mut rest = body;
    let asked: [Option<u32>; 3] = std::array::from_fn(|_| wire::take_u32(&mut rest));
    let [Some(_argsz), Some(_flags), Some(index)] = asked else {
        return Err(Errno::Invalid);
    };
    if index >= REGION_COUNT {
        return Err(Errno::Invalid);
    }
    let region = Region::from_index(index);
    let size = region.map_or(0, |region| device.size(region));
    let flags = if region.is_some() {
        REGION_READABLE_WRITABLE
    } else {
        0
    };
    let argsz = 32u32;
    let words: Vec<u8> = [argsz, flags, index, 0]
        .into_iter()
        .flat_map(u32::to_le_bytes)
        .collect();
    let offset = 0u64;
    reply(
        header,
        out,
        &[&words, &size.to_le_bytes(), &offset.to_le_bytes()],
    )
}

fn irq_info(header: Header, body: &[u8], out: &mut Vec<u8>) -> Result<(), Errno> {
    let mut rest = body;
    let asked: [Option<u32>; 3] = std::array::from_fn(|_| wire::take_u32(&mut rest));
    match asked {
        [Some(_argsz), Some(_flags), Some(index)] if index < IRQ_COUNT => {
            let (argsz, flags, count) = (16, 0, 0);
            reply_words(header, out, &[argsz, flags, index, count])
        }
        _ => Err(Errno::Invalid),
    }
}

/// There are no interrupts: turning all of them off is the only thing that works.
fn set_irqs(header: Header, body: &[u8], out: &mut Vec<u8>) -> Result<(), Errno> {
    let mut rest = body;
    let asked: [Option<u32>; 5] = std::array::from_fn(|_| wire::take_u32(&mut rest));
    match asked {
        [Some(_argsz), Some(_flags), Some(index), Some(0), Some(0)] if index < IRQ_COUNT => {
            reply(header, out, &[])
        }
        _ => Err(Errno::Invalid),
    }
}

/// The card masters no bus: what is mapped is taken note of by saying yes.
fn dma_map(header: Header, body: &[u8], out: &mut Vec<u8>) -> Result<(), Errno> {
    if body.len() < 32 {
        Err(Errno::Invalid)
    } else {
        reply(header, out, &[])
    }
}

fn dma_unmap(header: Header, body: &[u8], out: &mut Vec<u8>) -> Result<(), Errno> {
    let request = body.get(..24).ok_or(Errno::Invalid)?;
    reply(header, out, &[request])
}

fn reply_words(header: Header, out: &mut Vec<u8>, words: &[u32]) -> Result<(), Errno> {
    let bytes: Vec<u8> = words.iter().copied().flat_map(u32::to_le_bytes).collect();
    reply(header, out, &[&bytes])
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "so that an answer reads as one line"
)]
fn reply(header: Header, out: &mut Vec<u8>, parts: &[&[u8]]) -> Result<(), Errno> {
    if header.answer() == Answer::Wanted {
        header.reply(out, parts);
    }
    Ok(())
}

/// A posted message is never answered: its sender is not listening.
fn refuse(header: Header, out: &mut Vec<u8>, errno: Errno) {
    if header.answer() == Answer::Wanted {
        header.refuse(out, errno);
    }
}
