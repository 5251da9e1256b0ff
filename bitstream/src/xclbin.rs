//! AMD's xclbin: recognised and described. No engine takes one yet.
//!
//! Knows the header and the table of sections. Must not interpret a section.

use crate::detect::{Format, u32_at};
use crate::error::ContainerError;

/// Kinds that are written to a device: a bitstream, a clearing bitstream, a PDI
/// and a partial PDI.
const PAYLOADS: [u32; 4] = [0, 1, 18, 19];
/// Names of the kinds, by number.
const KINDS: [&str; 37] = [
    "BITSTREAM",
    "CLEARING_BITSTREAM",
    "EMBEDDED_METADATA",
    "FIRMWARE",
    "DEBUG_DATA",
    "SCHED_FIRMWARE",
    "MEM_TOPOLOGY",
    "CONNECTIVITY",
    "IP_LAYOUT",
    "DEBUG_IP_LAYOUT",
    "DESIGN_CHECK_POINT",
    "CLOCK_FREQ_TOPOLOGY",
    "MCS",
    "BMC",
    "BUILD_METADATA",
    "KEYVALUE",
    "USER_METADATA",
    "DNA_CERTIFICATE",
    "PDI",
    "BITSTREAM_PARTIAL_PDI",
    "PARTITION_METADATA",
    "EMULATION_DATA",
    "SYSTEM_METADATA",
    "SOFT_KERNEL",
    "ASK_FLASH",
    "AIE_METADATA",
    "ASK_GROUP_TOPOLOGY",
    "ASK_GROUP_CONNECTIVITY",
    "SMARTNIC",
    "AIE_RESOURCES",
    "OVERLAY",
    "VENDER_METADATA",
    "AIE_PARTITION",
    "IP_METADATA",
    "AIE_RESOURCES_BIN",
    "AIE_TRACE_METADATA",
    "DTBO",
];
const COUNT: usize = 448;
const SECTIONS: usize = 456;
const SECTION: usize = 40;
const PLATFORM: (usize, usize) = (352, 64);
/// Sections that are listed; no genuine file has as many.
const MOST_SECTIONS: usize = 256;

/// What an xclbin says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Xclbin<'a> {
    /// The platform that it is for, as the tool wrote it.
    pub platform: Option<&'a str>,
    /// Its sections, in the order of the file.
    pub sections: Vec<XclbinSection<'a>>,
}

/// One section, as the table has it; none of it is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct XclbinSection<'a> {
    /// Its kind.
    pub kind: u32,
    /// The name that the tool gave it.
    pub name: Option<&'a str>,
    /// The byte of the file where it begins.
    pub offset: u64,
    /// Its bytes.
    pub size: u64,
}

impl XclbinSection<'_> {
    /// The vendor's name of its kind.
    #[must_use]
    pub fn kind_name(&self) -> Option<&'static str> {
        KINDS.get(usize::try_from(self.kind).ok()?).copied()
    }

    /// It is written to a device.
    #[must_use]
    pub fn is_payload(&self) -> bool {
        PAYLOADS.contains(&self.kind)
    }
}

impl<'a> Xclbin<'a> {
    /// Reads header and table.
    ///
    /// # Errors
    ///
    /// The file ends before its table does.
    pub fn read(file: &'a [u8]) -> Result<Self, ContainerError> {
        let truncated = ContainerError::XclbinTruncated { len: file.len() };
        let count = u32_at(file, COUNT).ok_or_else(|| truncated.clone())?;
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let table = file.get(SECTIONS..).unwrap_or_default();
        // The file ends before a count that lies does.
        let sections: Vec<XclbinSection<'_>> = table
            .chunks_exact(SECTION)
            .take(count.min(MOST_SECTIONS))
            .map_while(section)
            .collect();
        if sections.len() < count {
            return Err(truncated);
        }
        Ok(Self {
            platform: text(file, PLATFORM.0, PLATFORM.1),
            sections,
        })
    }
}

fn section(entry: &[u8]) -> Option<XclbinSection<'_>> {
    Some(XclbinSection {
        kind: u32_at(entry, 0)?,
        name: text(entry, 4, 16),
        offset: u64_at(entry, 24)?,
        size: u64_at(entry, 32)?,
    })
}

/// A text that ends with NUL or its field; none where it cannot be shown.
fn text(bytes: &[u8], at: usize, length: usize) -> Option<&str> {
    let field = bytes.get(at..at.checked_add(length)?)?;
    let text = field.split(|byte| *byte == 0).next()?;
    let text = std::str::from_utf8(text).ok()?;
    let shown = !text.is_empty() && !text.chars().any(char::is_control);
    shown.then_some(text)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let word: [u8; 8] = bytes.get(at..at.checked_add(8)?)?.try_into().ok()?;
    Some(u64::from_le_bytes(word))
}

/// Tells an xclbin from one that has nothing to load.
pub(crate) fn recognise(file: &[u8]) -> Result<Format, ContainerError> {
    let xclbin = Xclbin::read(file)?;
    if xclbin.sections.iter().any(XclbinSection::is_payload) {
        Ok(Format::Xclbin)
    } else {
        Err(ContainerError::XclbinWithoutPayload)
    }
}
