//! Which device: by its IDCODE, by a part name, or by what a file's header says.
//!
//! Knows the names that vendors' tools write. Must not trust one: an IDCODE in
//! a stream is the fact, a name is what an operator says or a file claims.

use std::fmt;

use super::family::Family;
use super::geometry::Geometry;
use super::table::table;

/// The upper four bits of an IDCODE are the revision of the silicon.
const WITHOUT_REVISION: u32 = 0x0fff_ffff;

/// A name with package, speed and grade is no longer than this.
const LONGEST_NAME: usize = 40;

/// All parts of one IDCODE, as a table says.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) idcode: u32,
    pub(super) family: Family,
    /// Never empty; the fullest part first.
    pub(super) names: Vec<String>,
    pub(super) shape: Shape,
}

/// What is known of a part's columns.
#[derive(Debug)]
pub(super) enum Shape {
    Unknown,
    Layout(usize),
    /// In configuration order; empty where no table is known.
    Dies(Vec<PartDie>),
}

/// One die of a part of several, as a table says.
#[derive(Debug)]
pub(super) struct PartDie {
    pub(super) name: String,
    pub(super) idcode: u32,
    pub(super) layout: usize,
}

/// One die of a device of several.
#[derive(Debug, Clone, Copy)]
pub struct Die {
    /// Its name: `SLR0` and so on.
    pub name: &'static str,
    /// Its own IDCODE, without the revision.
    pub idcode: u32,
    /// Its frames.
    pub geometry: &'static Geometry,
}

/// A device that is known by its IDCODE.
///
/// Two of them are equal where their IDCODEs are, whatever name they were asked
/// for by: a stream cannot tell such parts apart.
#[derive(Clone, Copy)]
pub struct Device {
    part: &'static Part,
    name: &'static str,
}

impl Device {
    /// The device with an IDCODE; the revision in its upper four bits is not
    /// compared. Of a device of several dies, the IDCODE of the die that is
    /// configured first.
    #[must_use]
    pub fn find(idcode: u32) -> Option<Device> {
        let wanted = idcode & WITHOUT_REVISION;
        let part = table().parts.iter().find(|part| part.idcode == wanted)?;
        Some(Device {
            part,
            name: part.names.first()?,
        })
    }

    /// The device with a name: `xc7z020`, `7z020clg400`,
    /// `xczu7ev-ffvc1156-2-e`, or an IDCODE as `0x03727093`.
    #[must_use]
    pub fn named(text: &str) -> Option<Device> {
        if text.len() > LONGEST_NAME || !text.is_ascii() {
            return None;
        }
        let text = text.to_ascii_lowercase();
        if let Some(digits) = text.strip_prefix("0x") {
            let plain = digits.len() <= 8 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            let idcode = if plain {
                u32::from_str_radix(digits, 16).ok()?
            } else {
                return None;
            };
            return Device::find(idcode);
        }
        // 7-series tools leave the two letters out.
        let text = if text.starts_with('7') {
            format!("xc{text}")
        } else {
            text
        };
        Device::all()
            .filter(|device| device.is_called(&text))
            // "xcu250-figd2104" is no "xcu25".
            .max_by_key(|device| device.name.len())
    }

    /// Every part name, each as a device of its own.
    pub fn all() -> impl Iterator<Item = Device> {
        table()
            .parts
            .iter()
            .flat_map(|part| part.names.iter().map(move |name| Device { part, name }))
    }

    /// `text` is this part's name, alone or with package, speed and grade.
    fn is_called(self, text: &str) -> bool {
        let Some(rest) = text.strip_prefix(self.name) else {
            return false;
        };
        let Some(first) = rest.bytes().next() else {
            return true;
        };
        let divided = first == b'-';
        let package = self.family() == Family::Series7 && first.is_ascii_lowercase();
        (divided || package)
            && rest.len() > 1
            && rest
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    }

    /// The part's name without package: the one it was asked for by, else the
    /// fullest part with this IDCODE.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.name
    }

    /// Every known part with this IDCODE, which bitstreams cannot tell apart.
    #[must_use]
    pub fn names(self) -> &'static [String] {
        &self.part.names
    }

    /// The family.
    #[must_use]
    pub fn family(self) -> Family {
        self.part.family
    }

    /// The IDCODE, without the revision.
    #[must_use]
    pub fn idcode(self) -> u32 {
        self.part.idcode
    }

    /// An IDCODE is this device's, whatever the revision.
    #[must_use]
    pub fn has_idcode(self, idcode: u32) -> bool {
        idcode & WITHOUT_REVISION == self.part.idcode
    }

    /// The device's frames; `None` where no table is known, and for a device
    /// of several dies, whose bitstreams are several streams in one.
    #[must_use]
    pub fn geometry(self) -> Option<&'static Geometry> {
        match self.part.shape {
            Shape::Layout(layout) => layout_at(layout),
            Shape::Unknown | Shape::Dies(_) => None,
        }
    }

    /// The device is of several dies (SLRs).
    #[must_use]
    pub fn is_multi_die(self) -> bool {
        matches!(self.part.shape, Shape::Dies(_))
    }

    /// The dies of a device of several, in configuration order; empty for one
    /// of a single die, and where no table is known.
    #[must_use]
    pub fn dies(self) -> Vec<Die> {
        let Shape::Dies(dies) = &self.part.shape else {
            return Vec::new();
        };
        dies.iter()
            .filter_map(|die| {
                let geometry = layout_at(die.layout)?;
                Some(Die {
                    name: &die.name,
                    idcode: die.idcode,
                    geometry,
                })
            })
            .collect()
    }
}

fn layout_at(layout: usize) -> Option<&'static Geometry> {
    table().layouts.get(layout).map(|(_, geometry)| geometry)
}

impl PartialEq for Device {
    fn eq(&self, other: &Device) -> bool {
        self.part.idcode == other.part.idcode
    }
}

impl Eq for Device {}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({self})")
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (IDCODE {:08x})", self.name, self.part.idcode)
    }
}
