//! How vfio-user messages are spelled. All numbers are little-endian: the
//! protocol says "of the host", and we serve on the same machine.

/// Bytes of a message header.
pub(super) const HEADER_LEN: usize = 16;
/// The most data that one region access carries, in bytes.
pub(super) const MAX_DATA: u32 = 1 << 20;
/// No other message is longer than this.
pub(super) const MAX_CONTROL: usize = 4096;
/// Header, offset, region, count.
pub(super) const ACCESS_LEN: usize = HEADER_LEN + 16;

const FLAGS_TYPE: u32 = 0xf;
const FLAGS_REPLY: u32 = 1;
const FLAGS_NO_REPLY: u32 = 1 << 4;
const FLAGS_ERROR: u32 = 1 << 5;

/// Errors that a reply carries, as Linux numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Errno {
    /// EINVAL
    Invalid = 22,
    /// E2BIG
    TooBig = 7,
    /// EOPNOTSUPP
    Unsupported = 95,
}

/// What a client can ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    Version,
    DmaMap,
    DmaUnmap,
    DeviceInfo,
    RegionInfo,
    IrqInfo,
    SetIrqs,
    RegionRead,
    RegionWrite,
    Reset,
    /// Known or not, nothing we serve.
    Other,
}

impl Command {
    fn from_code(code: u16) -> Self {
        match code {
            1 => Self::Version,
            2 => Self::DmaMap,
            3 => Self::DmaUnmap,
            4 => Self::DeviceInfo,
            5 => Self::RegionInfo,
            7 => Self::IrqInfo,
            8 => Self::SetIrqs,
            9 => Self::RegionRead,
            10 => Self::RegionWrite,
            13 => Self::Reset,
            _ => Self::Other,
        }
    }

    /// The longest message of this kind, header included.
    pub(super) fn max_len(self) -> usize {
        match self {
            Self::RegionWrite => {
                ACCESS_LEN.saturating_add(usize::try_from(MAX_DATA).unwrap_or(usize::MAX))
            }
            _ => MAX_CONTROL,
        }
    }
}

/// Whether the client waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Wanted,
    /// A posted message: never answered, not even with an error.
    Unwanted,
}

/// The header of a message from a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    id: u16,
    code: u16,
    pub(super) size: usize,
    flags: u32,
}

impl Header {
    /// Reads the header at the beginning of `bytes`; `None` where there are too few.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let header = Self {
            id: take_u16(&mut rest)?,
            code: take_u16(&mut rest)?,
            size: usize::try_from(take_u32(&mut rest)?).ok()?,
            flags: take_u32(&mut rest)?,
        };
        let _error: u32 = take_u32(&mut rest)?;
        Some(header)
    }

    pub(super) fn command(self) -> Command {
        Command::from_code(self.code)
    }

    pub(super) fn is_command(self) -> bool {
        self.flags & FLAGS_TYPE == 0
    }

    pub(super) fn answer(self) -> Answer {
        if self.flags & FLAGS_NO_REPLY == 0 {
            Answer::Wanted
        } else {
            Answer::Unwanted
        }
    }

    /// Puts a reply with these parts behind what is already in `out`.
    pub(super) fn reply(self, out: &mut Vec<u8>, parts: &[&[u8]]) {
        let body = parts
            .iter()
            .fold(0usize, |sum, part| sum.saturating_add(part.len()));
        self.reply_header(out, body, FLAGS_REPLY, 0);
        for part in parts {
            out.extend_from_slice(part);
        }
    }

    /// Puts an error reply.
    pub(super) fn refuse(self, out: &mut Vec<u8>, errno: Errno) {
        self.reply_header(out, 0, FLAGS_REPLY | FLAGS_ERROR, errno as u32);
    }

    fn reply_header(self, out: &mut Vec<u8>, body: usize, flags: u32, error: u32) {
        let size = u32::try_from(body.saturating_add(HEADER_LEN)).unwrap_or(u32::MAX);
        out.extend_from_slice(&self.id.to_le_bytes());
        out.extend_from_slice(&self.code.to_le_bytes());
        out.extend_from_slice(&size.to_le_bytes());
        out.extend_from_slice(&flags.to_le_bytes());
        out.extend_from_slice(&error.to_le_bytes());
    }
}

/// Offset, region and count: how region reads and writes begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) offset: u64,
    pub(super) region: u32,
    pub(super) count: u32,
}

impl Access {
    pub(super) fn take(rest: &mut &[u8]) -> Option<Self> {
        Some(Self {
            offset: take_u64(rest)?,
            region: take_u32(rest)?,
            count: take_u32(rest)?,
        })
    }

    pub(super) fn bytes(self) -> [u8; 16] {
        let mut out = [0; 16];
        let parts = self
            .offset
            .to_le_bytes()
            .into_iter()
            .chain(self.region.to_le_bytes())
            .chain(self.count.to_le_bytes());
        for (to, from) in out.iter_mut().zip(parts) {
            *to = from;
        }
        out
    }
}

pub(super) fn take_u16(rest: &mut &[u8]) -> Option<u16> {
    take(rest).map(u16::from_le_bytes)
}

pub(super) fn take_u32(rest: &mut &[u8]) -> Option<u32> {
    take(rest).map(u32::from_le_bytes)
}

pub(super) fn take_u64(rest: &mut &[u8]) -> Option<u64> {
    take(rest).map(u64::from_le_bytes)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk::<N>()?;
    *rest = tail;
    Some(*head)
}
