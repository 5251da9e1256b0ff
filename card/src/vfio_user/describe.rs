//! How a server describes itself and its device: the parts of it that are
//! learned once, when a device is opened.

use serde_json::Value;

use crate::device::DeviceError;

use super::wire::{Answer, CONFIG_REGION, Reader, SHORT, Writer};

/// Bytes of a region's description, and of the longest with capabilities.
pub(super) const REGION_INFO_SIZE: usize = 32;
pub(super) const REGION_INFO_MOST: usize = 1024;
/// Bytes of the server's version message, at most.
pub(super) const VERSION_MOST: usize = 4096;
/// Bytes that are moved in one read or write, at most.
pub(super) const TRANSFER_MOST: usize = 1 << 20;

const DEVICE_RESETTABLE: u32 = 1;
const DEVICE_PCI: u32 = 2;
const REGION_MAPPABLE: u32 = 1 << 2;
const REGION_CAPABILITIES: u32 = 1 << 3;
const CAPABILITY_SPARSE: u16 = 1;
/// Vectors of one kind, at most: those of an MSI-X table.
const VECTORS_MOST: u32 = 2048;
/// Capabilities of one region, at most.
const CAPABILITIES_MOST: usize = 16;

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
pub(crate) struct RegionInfo {
    pub(crate) size: u64,
    /// Where the region begins in the file that came with it.
    pub(crate) file_offset: u64,
    /// What of it may be mapped.
    pub(crate) mappable: Vec<Area>,
}

/// A part of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Area {
    offset: u64,
    size: u64,
}

impl Area {
    /// First byte, from the region's begin on.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn covers(&self, offset: u64, length: u64) -> bool {
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

/// A region's description, as `linux/vfio.h` has it: the protocol took it over.
pub(crate) fn parse_region_info(body: &[u8], index: u32) -> Result<RegionInfo, DeviceError> {
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

/// Reads `data` as an answer of every kind. Returns how many made sense.
pub(crate) fn fuzz_reply(data: &[u8]) -> usize {
    let Some((header, body)) = data.split_first_chunk() else {
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
