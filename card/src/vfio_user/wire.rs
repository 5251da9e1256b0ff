//! The messages of vfio-user 0.1, as bytes: made and taken apart without any
//! input or output. Numbers are little-endian.

use serde_json::Value;

use crate::device::{DeviceError, DmaMapping};

/// Bytes of the header that every message begins with.
pub(super) const HEADER_SIZE: usize = 16;
/// Index of configuration space among the regions; before it six BARs and ROM.
pub(super) const CONFIG_REGION: u32 = 7;
/// Kinds of interrupts that are known.
pub(super) const INTERRUPT_KINDS: u32 = 5;
/// Bytes of a region's description, and of the longest with capabilities.
pub(super) const REGION_INFO_SIZE: usize = 32;
pub(super) const REGION_INFO_MOST: usize = 1024;
/// Bytes of the server's version message, at most.
pub(super) const VERSION_MOST: usize = 4096;
/// Bytes that are moved in one read or write, at most.
pub(super) const TRANSFER_MOST: usize = 1 << 20;

/// What the device may do with memory.
pub(super) const DMA_READ: u32 = 1;
pub(super) const DMA_WRITE: u32 = 2;

const FLAG_REPLY: u32 = 1;
const FLAG_NO_REPLY: u32 = 1 << 4;
const FLAG_ERROR: u32 = 1 << 5;

const DEVICE_RESETTABLE: u32 = 1;
const DEVICE_PCI: u32 = 2;
const REGION_MAPPABLE: u32 = 1 << 2;
const REGION_CAPABILITIES: u32 = 1 << 3;
const CAPABILITY_SPARSE: u16 = 1;
/// `DATA_EVENTFD | ACTION_TRIGGER`.
const IRQ_EVENTFD_TRIGGER: u32 = (1 << 2) | (1 << 5);
/// Vectors of one kind, at most: those of an MSI-X table.
const VECTORS_MOST: u32 = 2048;
/// Capabilities of one region, at most.
const CAPABILITIES_MOST: usize = 16;

const SHORT: DeviceError = DeviceError::Protocol("an answer that is too short");

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

/// The client's half of the agreement on the protocol.
pub(super) fn version() -> Vec<u8> {
    let mut body = vec![0, 0, 1, 0];
    body.extend_from_slice(br#"{"capabilities":{"max_msg_fds":8,"max_data_xfer_size":1048576}}"#);
    body.push(0);
    body
}

/// What the server can take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    /// Bytes in one read or write.
    pub(super) transfer: usize,
}

/// The server's half of the agreement.
pub(super) fn parse_version(body: &[u8]) -> Result<Limits, DeviceError> {
    const NO_TEXT: DeviceError = DeviceError::Protocol("a version without capabilities");
    let mut reader = Reader(body);
    let (major, minor) = (reader.u16()?, reader.u16()?);
    if major != 0 || minor > 1 {
        return Err(DeviceError::Protocol("a version other than 0.0 or 0.1"));
    }
    let mut limits = Limits {
        transfer: TRANSFER_MOST,
    };
    let Some((0, text)) = reader.0.split_last() else {
        // The text may be left out altogether.
        return if reader.0.is_empty() {
            Ok(limits)
        } else {
            Err(NO_TEXT)
        };
    };
    let text: Value = serde_json::from_slice(text).map_err(|_syntax| NO_TEXT)?;
    if !text.is_object() {
        return Err(NO_TEXT);
    }
    if let Some(transfer) = text.pointer("/capabilities/max_data_xfer_size") {
        let transfer = transfer
            .as_u64()
            .and_then(|bytes| usize::try_from(bytes).ok());
        // A register has to fit.
        limits.transfer = transfer
            .filter(|bytes| *bytes >= 8)
            .ok_or(DeviceError::Protocol("a transfer size that is none"))?
            .min(TRANSFER_MOST);
    }
    Ok(limits)
}

/// What the device has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DeviceInfo {
    pub(super) resettable: bool,
    pub(super) interrupts: u32,
}

pub(super) const DEVICE_INFO_SIZE: usize = 16;

pub(super) fn device_info() -> [u8; DEVICE_INFO_SIZE] {
    let mut body = [0; DEVICE_INFO_SIZE];
    Writer(&mut body).u32(16);
    body
}

pub(super) fn parse_device_info(body: &[u8]) -> Result<DeviceInfo, DeviceError> {
    let mut reader = Reader(body);
    let (_argsz, flags) = (reader.u32()?, reader.u32()?);
    let (regions, interrupts) = (reader.u32()?, reader.u32()?);
    if flags & DEVICE_PCI == 0 {
        return Err(DeviceError::Protocol("a device that is no PCI device"));
    }
    if regions <= CONFIG_REGION {
        return Err(DeviceError::Protocol(
            "a device without configuration space",
        ));
    }
    Ok(DeviceInfo {
        resettable: flags & DEVICE_RESETTABLE != 0,
        interrupts,
    })
}

/// What is known of a region.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct RegionInfo {
    pub(super) size: u64,
    /// Where the region begins in the file that came with it.
    pub(super) file_offset: u64,
    /// What of it may be mapped.
    pub(super) mappable: Vec<Area>,
}

/// A part of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Area {
    offset: u64,
    size: u64,
}

impl Area {
    pub(super) fn covers(&self, offset: u64, length: u64) -> bool {
        let end = offset.checked_add(length);
        let own_end = self.offset.checked_add(self.size);
        offset >= self.offset && end.is_some() && end <= own_end
    }
}

pub(super) fn region_info(index: u32) -> [u8; REGION_INFO_SIZE] {
    let most = u32::try_from(REGION_INFO_MOST).unwrap_or(u32::MAX);
    let mut body = [0; REGION_INFO_SIZE];
    Writer(&mut body).u32(most).u32(0).u32(index).u32(0);
    body
}

pub(super) fn parse_region_info(body: &[u8], index: u32) -> Result<RegionInfo, DeviceError> {
    let mut reader = Reader(body);
    let (_argsz, flags) = (reader.u32()?, reader.u32()?);
    let (found, capabilities) = (reader.u32()?, reader.u32()?);
    let (size, file_offset) = (reader.u64()?, reader.u64()?);
    if found != index {
        return Err(DeviceError::Protocol("the description of another region"));
    }
    let mut info = RegionInfo {
        size,
        file_offset,
        mappable: Vec::new(),
    };
    if flags & REGION_MAPPABLE != 0 {
        let sparse = match flags & REGION_CAPABILITIES {
            0 => None,
            _ => sparse_areas(body, capabilities)?,
        };
        info.mappable = sparse.unwrap_or_else(|| vec![Area { offset: 0, size }]);
    }
    Ok(info)
}

/// The list of what may be mapped; `None` where no capability tells.
fn sparse_areas(body: &[u8], first: u32) -> Result<Option<Vec<Area>>, DeviceError> {
    let mut at = usize::try_from(first).unwrap_or(usize::MAX);
    // 0 ends the list; what lies within the description itself is no list.
    for _ in 0..CAPABILITIES_MOST {
        if at == 0 {
            return Ok(None);
        }
        let rest = body.get(at..).filter(|_| at >= REGION_INFO_SIZE);
        let mut reader = Reader(rest.ok_or(SHORT)?);
        let (id, _version, next) = (reader.u16()?, reader.u16()?, reader.u32()?);
        if id == CAPABILITY_SPARSE {
            let (count, _reserved) = (reader.u32()?, reader.u32()?);
            let mut areas = Vec::new();
            // Ends with the bytes that are there, whatever the count says.
            for _ in 0..count {
                let (offset, size) = (reader.u64()?, reader.u64()?);
                areas.push(Area { offset, size });
            }
            return Ok(Some(areas));
        }
        at = usize::try_from(next).unwrap_or(usize::MAX);
    }
    Err(DeviceError::Protocol(
        "a list of capabilities without an end",
    ))
}

pub(super) const INTERRUPT_INFO_SIZE: usize = 16;

pub(super) fn interrupt_info(index: u32) -> [u8; INTERRUPT_INFO_SIZE] {
    let mut body = [0; INTERRUPT_INFO_SIZE];
    Writer(&mut body).u32(16).u32(0).u32(index);
    body
}

/// How many vectors there are.
pub(super) fn parse_interrupt_info(body: &[u8], index: u32) -> Result<u32, DeviceError> {
    let mut reader = Reader(body);
    let (_argsz, _flags) = (reader.u32()?, reader.u32()?);
    let (found, count) = (reader.u32()?, reader.u32()?);
    if found != index {
        return Err(DeviceError::Protocol(
            "the description of another interrupt",
        ));
    }
    if count > VECTORS_MOST {
        return Err(DeviceError::Protocol("more vectors than a device can have"));
    }
    Ok(count)
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
struct Writer<'bytes>(&'bytes mut [u8]);

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

    fn u16(self, value: u16) -> Writer<'bytes> {
        self.put(&value.to_le_bytes())
    }

    fn u32(self, value: u32) -> Writer<'bytes> {
        self.put(&value.to_le_bytes())
    }

    fn u64(self, value: u64) -> Writer<'bytes> {
        self.put(&value.to_le_bytes())
    }
}

/// Takes numbers from the front of a message.
struct Reader<'bytes>(&'bytes [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], DeviceError> {
        let (here, rest) = self.0.split_first_chunk::<N>().ok_or(SHORT)?;
        self.0 = rest;
        Ok(*here)
    }

    fn u16(&mut self) -> Result<u16, DeviceError> {
        self.take().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, DeviceError> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, DeviceError> {
        self.take().map(u64::from_le_bytes)
    }
}

/// Reads `data` as an answer of every kind. Returns how many made sense.
pub(crate) fn fuzz_reply(data: &[u8]) -> usize {
    let Some((header, body)) = data.split_first_chunk::<HEADER_SIZE>() else {
        return 0;
    };
    [
        Answer::parse(header, REGION_INFO_MOST).is_ok(),
        parse_version(body).is_ok(),
        parse_device_info(body).is_ok(),
        parse_region_info(body, 0).is_ok(),
        parse_interrupt_info(body, 0).is_ok(),
    ]
    .into_iter()
    .filter(|sound| *sound)
    .count()
}
