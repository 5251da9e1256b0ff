//! PCI configuration space, as far as this room reads it: identity, and two
//! extended capabilities. The list of these is followed with a bound.
//!
//! The check that a user function has no bus mastering belongs here.

use crate::device::{Device, DeviceError, SerialNumber, Space};

/// First extended capability.
const EXTENDED: u16 = 0x100;
/// Room for capabilities of eight bytes in 4096 bytes.
const MAX_CAPABILITIES: usize = 480;

/// Capability id: device serial number.
const SERIAL_NUMBER: u16 = 0x0003;
/// Capability id: vendor-specific.
const VENDOR_SPECIFIC: u16 = 0x000b;
/// Vendor-specific id of the table of feature lists.
const VSEC_FEATURE_LISTS: u16 = 0x0043;
/// Entries of that table, at most.
const MAX_LISTS: u32 = 32;

/// Vendor and device id.
///
/// # Errors
/// [`DeviceError::Gone`] where nothing answers.
pub fn ids<D: Device + ?Sized>(device: &mut D) -> Result<(u16, u16), DeviceError> {
    let word = config32(device, 0)?;
    if word == u32::MAX {
        return Err(DeviceError::Gone("configuration space reads as all ones"));
    }
    let [v0, v1, d0, d1] = word.to_le_bytes();
    Ok((u16::from_le_bytes([v0, v1]), u16::from_le_bytes([d0, d1])))
}

/// The device serial number, where the device has one.
///
/// # Errors
/// As [`Device::read`].
pub fn serial_number<D: Device + ?Sized>(
    device: &mut D,
) -> Result<Option<SerialNumber>, DeviceError> {
    let Some(at) = find(device, |_device, id, _at| Ok(id == SERIAL_NUMBER))? else {
        return Ok(None);
    };
    let low = config32(device, at.saturating_add(4))?;
    let high = config32(device, at.saturating_add(8))?;
    Ok(serial(low, high))
}

/// The serial number in configuration space as sysfs gives it: all of it, or as much as
/// the reader may see.
#[must_use]
pub fn serial_in(config: &[u8]) -> Option<SerialNumber> {
    let word = |at: u16| {
        let at = usize::from(at);
        let bytes = config.get(at..at.checked_add(4)?)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    };
    let mut at = EXTENDED;
    for _ in 0..MAX_CAPABILITIES {
        let header = word(at)?;
        let (id, next) = split(header)?;
        if id == SERIAL_NUMBER {
            let (low, high) = (word(at.checked_add(4)?)?, word(at.checked_add(8)?)?);
            return serial(low, high);
        }
        at = next?;
    }
    None
}

/// Id and next offset of an extended capability; `None`: there is none.
fn split(header: u32) -> Option<(u16, Option<u16>)> {
    if header == 0 || header == u32::MAX {
        return None;
    }
    let [id0, id1, next0, next1] = header.to_le_bytes();
    // [19:16] is a version, [31:20] the next capability.
    let next = (u16::from_le_bytes([next0, next1]) >> 4) & !3;
    Some((
        u16::from_le_bytes([id0, id1]),
        Some(next).filter(|next| *next >= EXTENDED),
    ))
}

fn serial(low: u32, high: u32) -> Option<SerialNumber> {
    let serial = u64::from(high).wrapping_shl(32) | u64::from(low);
    Some(SerialNumber(serial)).filter(|_| serial != 0 && serial != u64::MAX)
}

/// Where the device's feature lists begin, as BAR and offset, if it has a
/// table that tells. The BAR is as written there, unchecked.
///
/// # Errors
/// [`DeviceError::Protocol`] for a table that is longer than any.
pub fn feature_lists<D: Device + ?Sized>(
    device: &mut D,
) -> Result<Option<Vec<(u8, u64)>>, DeviceError> {
    let is_table = |device: &mut D, id, at: u16| {
        if id != VENDOR_SPECIFIC {
            return Ok(false);
        }
        let vsec = config32(device, at.saturating_add(4))?;
        Ok(vsec & 0xffff == u32::from(VSEC_FEATURE_LISTS))
    };
    let Some(at) = find(device, is_table)? else {
        return Ok(None);
    };
    let count = config32(device, at.saturating_add(8))?;
    if count > MAX_LISTS {
        return Err(DeviceError::Protocol("a table of too many feature lists"));
    }
    let mut lists = Vec::new();
    let mut entry = at.saturating_add(12);
    for _ in 0..count {
        let [low, ..] = config32(device, entry)?.to_le_bytes();
        let offset = config32(device, entry)? & !7;
        lists.push((low & 7, u64::from(offset)));
        entry = entry.saturating_add(4);
    }
    Ok(Some(lists))
}

/// Offset of the first extended capability that `wanted` says yes to, given
/// its id and offset.
fn find<D: Device + ?Sized>(
    device: &mut D,
    mut wanted: impl FnMut(&mut D, u16, u16) -> Result<bool, DeviceError>,
) -> Result<Option<u16>, DeviceError> {
    let mut at = EXTENDED;
    if device.size(Space::Config) <= u64::from(EXTENDED) {
        return Ok(None);
    }
    for _ in 0..MAX_CAPABILITIES {
        let Some((id, next)) = split(config32(device, at)?) else {
            return Ok(None);
        };
        if wanted(device, id, at)? {
            return Ok(Some(at));
        }
        let Some(next) = next else {
            return Ok(None);
        };
        at = next;
    }
    Ok(None)
}

fn config32<D: Device + ?Sized>(device: &mut D, offset: u16) -> Result<u32, DeviceError> {
    let mut word = [0; 4];
    device.read(Space::Config, u64::from(offset), &mut word)?;
    Ok(u32::from_le_bytes(word))
}
