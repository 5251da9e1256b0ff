//! The messages of vfio-user 0.1, as bytes: made and taken apart without any
//! input or output. Numbers are little-endian.

use crate::device::{DeviceError, DmaMapping};

/// Bytes of the header that every message begins with.
pub(super) const HEADER_SIZE: usize = 16;
/// Index of configuration space among the regions; before it six BARs and ROM.
pub(super) const CONFIG_REGION: u32 = 7;
/// Kinds of interrupts that are known.
pub(super) const INTERRUPT_KINDS: u32 = 5;

/// What the device may do with memory.
pub(super) const DMA_READ: u32 = 1;
pub(super) const DMA_WRITE: u32 = 2;

const FLAG_REPLY: u32 = 1;
const FLAG_NO_REPLY: u32 = 1 << 4;
const FLAG_ERROR: u32 = 1 << 5;

/// `DATA_EVENTFD | ACTION_TRIGGER`.
const IRQ_EVENTFD_TRIGGER: u32 = (1 << 2) | (1 << 5);

/// What every message that ends too soon is told as.
pub(super) const SHORT: DeviceError = DeviceError::Protocol("an answer that is too short");

/// The requests that this client makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub(super) enum Command {
    Version = 1,
    DmaMap = 2,
    DmaUnmap = 3,
    DeviceInfo = 4,
    RegionInfo = 5,
    InterruptInfo = 7,
    SetIrqs = 8,
    RegionRead = 9,
    RegionWrite = 10,
    Reset = 13,
}

impl Command {
    fn number(self) -> u16 {
        self as u16
    }
}

/// Whether a request is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answered {
    Yes,
    /// The request is posted.
    No,
}

/// The header of a request.
pub(super) fn request(
    id: u16,
    command: Command,
    body: usize,
    answered: Answered,
) -> [u8; HEADER_SIZE] {
    let size = u32::try_from(body.saturating_add(HEADER_SIZE)).unwrap_or(u32::MAX);
    let flags = match answered {
        Answered::Yes => 0,
        Answered::No => FLAG_NO_REPLY,
    };
    let mut header = [0; HEADER_SIZE];
    Writer(&mut header)
        .u16(id)
        .u16(command.number())
        .u32(size)
        .u32(flags);
    header
}

/// The header of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) id: u16,
    command: u16,
    pub(super) outcome: Outcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A body of so many bytes follows.
    Body(usize),
    /// The request was refused, for this reason as the kernel numbers them.
    Refused(u32),
}

impl Answer {
    /// Takes a header apart; `most` is the longest body that is wanted.
    pub(super) fn parse(header: &[u8; HEADER_SIZE], most: usize) -> Result<Self, DeviceError> {
        let mut reader = Reader(header);
        let (id, command) = (reader.u16()?, reader.u16()?);
        let (size, flags, errno) = (reader.u32()?, reader.u32()?, reader.u32()?);
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let body = size
            .checked_sub(HEADER_SIZE)
            .ok_or(DeviceError::Protocol("an answer shorter than its header"))?;
        let outcome = match flags {
            FLAG_REPLY if body <= most => Outcome::Body(body),
            FLAG_REPLY => return Err(DeviceError::Protocol("an answer that is too long")),
            _ if flags == FLAG_REPLY | FLAG_ERROR && body == 0 => Outcome::Refused(errno),
            _ => return Err(DeviceError::Protocol("something that is no answer")),
        };
        Ok(Self {
            id,
            command,
            outcome,
        })
    }

    pub(super) fn is_to(&self, command: Command) -> bool {
        self.command == command.number()
    }
}

/// One vector; whether it is set or unset says the presence of a descriptor.
pub(super) fn set_irqs(index: u32, vector: u32) -> [u8; 20] {
    let mut body = [0; 20];
    Writer(&mut body)
        .u32(20)
        .u32(IRQ_EVENTFD_TRIGGER)
        .u32(index)
        .u32(vector)
        .u32(1);
    body
}

pub(super) fn dma_map(mapping: &DmaMapping, rights: u32) -> [u8; 32] {
    let mut body = [0; 32];
    Writer(&mut body)
        .u32(32)
        .u32(rights)
        .u64(mapping.offset)
        .u64(mapping.iova)
        .u64(mapping.size);
    body
}

pub(super) fn dma_unmap(iova: u64, size: u64) -> [u8; 24] {
    let mut body = [0; 24];
    Writer(&mut body).u32(24).u32(0).u64(iova).u64(size);
    body
}

/// What precedes the data of a read or write, in requests and answers.
pub(super) const ACCESS_SIZE: usize = 16;

pub(super) fn access(region: u32, offset: u64, count: usize) -> [u8; ACCESS_SIZE] {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    let mut body = [0; ACCESS_SIZE];
    Writer(&mut body).u64(offset).u32(region).u32(count);
    body
}

/// Puts numbers one behind the other into a message of fixed size. What does
/// not fit is left out; the sizes above are all there is.
pub(super) struct Writer<'bytes>(pub(super) &'bytes mut [u8]);

impl<'bytes> Writer<'bytes> {
    fn put(self, bytes: &[u8]) -> Self {
        match self.0.split_at_mut_checked(bytes.len()) {
            Some((here, rest)) => {
                here.copy_from_slice(bytes);
                Writer(rest)
            }
            None => Writer(&mut []),
        }
    }

    pub(super) fn u16(self, value: u16) -> Writer<'bytes> {
        self.put(&value.to_le_bytes())
    }

    pub(super) fn u32(self, value: u32) -> Writer<'bytes> {
        self.put(&value.to_le_bytes())
    }

    pub(super) fn u64(self, value: u64) -> Writer<'bytes> {
        self.put(&value.to_le_bytes())
    }
}

/// Takes numbers from the front of a message.
pub(super) struct Reader<'bytes>(pub(super) &'bytes [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], DeviceError> {
        let (here, rest) = self.0.split_first_chunk::<N>().ok_or(SHORT)?;
        self.0 = rest;
        Ok(*here)
    }

    pub(super) fn u16(&mut self) -> Result<u16, DeviceError> {
        self.take().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, DeviceError> {
        self.take().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, DeviceError> {
        self.take().map(u64::from_le_bytes)
    }
}
