//! Private features, with the longer headers of DFH version 1.

use crate::device::Device;

use super::damage::{Place, WalkError};
use super::header::{Header, field};
use super::walk::Walker;

/// Parameters of one feature, at most.
const MAX_PARAMETERS: usize = 64;

/// Version 1: where its registers are; bit 0 says how the address counts.
const V1_ADDRESS: u64 = 0x18;
/// Version 1: their size, and whether parameters follow.
const V1_SIZE: u64 = 0x20;
/// Version 1: the first parameter.
const V1_PARAMETERS: u64 = 0x28;

/// A private feature of a card or a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feature {
    /// What it is.
    pub id: u16,
    /// Its revision.
    pub revision: u8,
    /// Version of its header.
    pub version: u8,
    /// Where its header is.
    pub place: Place,
    /// Parameters of a version 1 header.
    pub parameters: Vec<Parameter>,
}

/// A parameter of a version 1 header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// What it is; 1 is MSI-X.
    pub id: u16,
    /// Version of its layout.
    pub version: u16,
    /// Where its data begins.
    pub place: Place,
}

impl Feature {
    /// Reads what follows `header` at `place`; all of it lies before `end`.
    pub(super) fn read<D: Device + ?Sized>(
        walker: &mut Walker<'_, D>,
        header: Header,
        place: Place,
        end: u64,
    ) -> Result<Self, WalkError> {
        let parameters = match header.version {
            1 => parameters(walker, place, end)?,
            // Version 0 has none. What a later version has is not known, and
            // nothing here uses such a feature.
            _ => Vec::new(),
        };
        Ok(Self {
            id: header.id,
            revision: header.revision,
            version: header.version,
            place,
            parameters,
        })
    }
}

fn parameters<D: Device + ?Sized>(
    walker: &mut Walker<'_, D>,
    place: Place,
    end: u64,
) -> Result<Vec<Parameter>, WalkError> {
    let damaged = || WalkError::Parameters { place };
    let size_word = walker.register(place, V1_SIZE)?;
    let address = walker.register(place, V1_ADDRESS)?;
    // A relative block of registers has to lie where its header is.
    let relative = field(address, 0, 1) == 0;
    let registers = place
        .offset
        .checked_add(address & !1)
        .and_then(|start| start.checked_add(field(size_word, 32, 32)));
    if relative && registers.is_none_or(|end| end > walker.size(place.bar)) {
        return Err(damaged());
    }
    let mut found = Vec::new();
    if field(size_word, 31, 1) == 0 {
        return Ok(found);
    }
    let mut at = place.offset.saturating_add(V1_PARAMETERS);
    while found.len() < MAX_PARAMETERS {
        let data = at
            .checked_add(8)
            .filter(|data| *data <= end)
            .ok_or_else(damaged)?;
        let here = Place {
            bar: place.bar,
            offset: at,
        };
        let word = walker.register(here, 0)?;
        // The length counts this header too, so 0 would stay where it is.
        let length = field(word, 35, 29).saturating_mul(8);
        let next = at.checked_add(length).filter(|next| *next <= end);
        let next = next.filter(|next| *next >= data).ok_or_else(damaged)?;
        found.push(Parameter {
            id: u16::try_from(field(word, 0, 16)).unwrap_or(u16::MAX),
            version: u16::try_from(field(word, 16, 16)).unwrap_or(u16::MAX),
            place: Place {
                bar: place.bar,
                offset: data,
            },
        });
        if field(word, 32, 1) == 1 {
            return Ok(found);
        }
        at = next;
    }
    Err(damaged())
}
