//! The walk through a card's feature lists.
//!
//! Nothing that a card says is believed unchecked: every header lies on eight
//! bytes and within its BAR, none is met twice, their number is bounded, and a
//! register of all ones is no register. A card whose lists are damaged is not
//! used at all, since programming the wrong port hurts a neighbour; a card
//! that only lacks something is sound (cases/OPAE-07).

use std::collections::BTreeSet;

use uuid::Uuid;

use crate::device::{Bar, Device, Space, live};
use crate::pci;

use super::damage::{Place, WalkError};
use super::features::Feature;
use super::header::{Header, Kind, field, small};
use super::registers::{
    AFU_HEADER_SIZE, FME_BITSTREAM_ID, FME_BITSTREAM_MD, FME_CAP, FME_PORT_OFST, FME_SIZE,
    NEXT_AFU, PORT_CAP, PORT_OFST_IMPLEMENTED, PORT_SIZE, PR_INTFC_ID_H, PR_INTFC_ID_L, PR_SIZE,
};
use super::topology::{AccessSwitch, Afu, Fme, Port, PrFeature, Topology};

/// Headers on one card, at most.
const MAX_HEADERS: usize = 512;
/// Id of the partial reconfiguration feature of an FME.
const PR_FEATURE: u16 = 5;
/// Times the interface id is read again: it reads 0 for some 200 ns after a
/// reset, and a read takes longer than that.
const INTERFACE_ID_READS: usize = 16;

/// Reads a card's feature lists. Nothing is written.
///
/// # Errors
/// [`WalkError`]: such a card is not to be used.
pub fn walk<D: Device + ?Sized>(device: &mut D) -> Result<Topology, WalkError> {
    let vsec = pci::feature_lists(device)?;
    let mut walker = Walker {
        device,
        seen: BTreeSet::new(),
        topology: Topology::default(),
    };
    if let Some(lists) = vsec {
        // The card says where all its lists are.
        for (bar, offset) in lists {
            let bar = Bar::new(bar).ok_or(WalkError::NoSuchBar(bar))?;
            walker.list(Place { bar, offset })?;
        }
        walker.ports_of_fme(Follow::No)?;
    } else {
        walker.list(Place::new(Bar::ZERO, 0))?;
        walker.ports_of_fme(Follow::Yes)?;
    }
    walker.finish()
}

/// Whether the management unit's list of ports leads to lists of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Follow {
    Yes,
    No,
}

/// A walk under way.
pub(super) struct Walker<'device, D: ?Sized> {
    device: &'device mut D,
    /// Every header met so far.
    seen: BTreeSet<Place>,
    topology: Topology,
}

impl<D: Device + ?Sized> Walker<'_, D> {
    pub(super) fn size(&self, bar: Bar) -> u64 {
        self.device.size(Space::Bar(bar))
    }

    /// Reads the register `offset` bytes behind `place`.
    pub(super) fn register(&mut self, place: Place, offset: u64) -> Result<u64, WalkError> {
        let here = Place {
            bar: place.bar,
            offset: place.offset.saturating_add(offset),
        };
        self.room(here, 8)?;
        let word = self.device.load64(here.bar, here.offset)?;
        if word != u64::MAX {
            return Ok(word);
        }
        // Is it this register, or the whole card?
        live(self.device.load64(Bar::ZERO, 0)?)?;
        Err(WalkError::AllOnes(here))
    }

    /// Checks that `length` bytes lie at `place`, on eight bytes.
    fn room(&self, place: Place, length: u64) -> Result<(), WalkError> {
        if !place.offset.is_multiple_of(8) {
            return Err(WalkError::Unaligned(place));
        }
        match place.offset.checked_add(length) {
            Some(end) if end <= self.size(place.bar) => Ok(()),
            _ => Err(WalkError::BeyondBar(place)),
        }
    }

    /// Follows one list to its end. Offsets only grow, so it has one.
    fn list(&mut self, start: Place) -> Result<(), WalkError> {
        let mut place = start;
        loop {
            self.room(place, 8)?;
            if self.seen.len() >= MAX_HEADERS {
                return Err(WalkError::TooManyHeaders);
            }
            if !self.seen.insert(place) {
                return Err(WalkError::Overlap(place));
            }
            let header = Header::parse(self.register(place, 0)?);
            let end = match header.next {
                0 => self.size(place.bar),
                next => place.offset.saturating_add(next),
            };
            if end > self.size(place.bar) {
                return Err(WalkError::BeyondBar(place));
            }
            self.feature(header, place, end)?;
            if header.last || header.next == 0 {
                return Ok(());
            }
            place.offset = end;
        }
    }

    fn feature(&mut self, header: Header, place: Place, end: u64) -> Result<(), WalkError> {
        match header.kind {
            Kind::Fme => self.fme(header, place),
            Kind::Port => self.port(header, place),
            Kind::Private => {
                let feature = Feature::read(self, header, place, end)?;
                if feature.id == PR_FEATURE {
                    self.pr_feature(&feature)?;
                }
                self.topology.features.push(feature);
                Ok(())
            }
            // A function in a list of its own is reached through its port.
            Kind::Afu | Kind::Other => Ok(()),
        }
    }

    fn fme(&mut self, header: Header, place: Place) -> Result<(), WalkError> {
        self.room(place, FME_SIZE)?;
        layout_zero(header, place)?;
        if self.topology.fme.is_some() {
            return Err(WalkError::SecondFme(place));
        }
        let capability = self.register(place, FME_CAP)?;
        self.topology.fme = Some(Fme {
            place,
            ports: small(capability, 17, 3),
            bitstream_id: self.register(place, FME_BITSTREAM_ID)?,
            bitstream_metadata: self.register(place, FME_BITSTREAM_MD)?,
        });
        Ok(())
    }

    fn pr_feature(&mut self, feature: &Feature) -> Result<(), WalkError> {
        let place = feature.place;
        if self.topology.programming.is_some() {
            return Err(WalkError::SecondPrFeature(place));
        }
        // Of other versions and revisions it is not known where the id is.
        let known = feature.version == 0 && feature.revision <= 1;
        let interface_id = if known {
            self.interface_id(place)?
        } else {
            None
        };
        self.topology.programming = Some(PrFeature {
            place,
            revision: feature.revision,
            version: feature.version,
            interface_id,
        });
        Ok(())
    }

    fn interface_id(&mut self, place: Place) -> Result<Option<Uuid>, WalkError> {
        self.room(place, PR_SIZE)?;
        for _ in 0..INTERFACE_ID_READS {
            let low = self
                .device
                .load64(place.bar, place.offset.saturating_add(PR_INTFC_ID_L))?;
            let high = self
                .device
                .load64(place.bar, place.offset.saturating_add(PR_INTFC_ID_H))?;
            match (high, low) {
                (u64::MAX, u64::MAX) => return Ok(None),
                // One half may still be on its way.
                (0, _) | (_, 0) => {}
                _ => return Ok(Some(Uuid::from_u64_pair(high, low))),
            }
        }
        Ok(None)
    }

    fn port(&mut self, header: Header, place: Place) -> Result<(), WalkError> {
        self.room(place, PORT_SIZE)?;
        layout_zero(header, place)?;
        let (number, afu_size) = Port::capability(self.register(place, PORT_CAP)?);
        if self.topology.ports.iter().any(|port| port.number == number) {
            return Err(WalkError::DuplicatePort(number));
        }
        let afu = match field(self.register(place, NEXT_AFU)?, 0, 24) {
            0 => None,
            next => {
                let offset = place.offset.saturating_add(next);
                let place = Place::new(place.bar, offset);
                let too_small = next < PORT_SIZE || afu_size < AFU_HEADER_SIZE;
                if too_small || self.room(place, afu_size).is_err() {
                    return Err(WalkError::AfuPlace(place));
                }
                Some(Afu {
                    place,
                    size: afu_size,
                })
            }
        };
        self.topology.ports.push(Port {
            number,
            revision: header.revision,
            place,
            afu,
            switch: None,
        });
        Ok(())
    }

    /// Goes through the ports that the management unit knows: follows them to
    /// their lists, and takes down their access switches.
    fn ports_of_fme(&mut self, follow: Follow) -> Result<(), WalkError> {
        let Some(fme) = self.topology.fme else {
            return Ok(());
        };
        for number in 0..fme.ports {
            let offset = FME_PORT_OFST.saturating_add(u64::from(number).saturating_mul(8));
            let word = self.register(fme.place, offset)?;
            if word & PORT_OFST_IMPLEMENTED == 0 {
                continue;
            }
            let start = field(word, 0, 24);
            match (follow, small(word, 32, 3)) {
                // BAR 7: the port stands in a list that was walked, or nowhere.
                (Follow::No, _) | (Follow::Yes, 7) => {}
                (Follow::Yes, bar) => {
                    let bar = Bar::new(bar).ok_or(WalkError::NoSuchBar(bar))?;
                    self.port_list(Place::new(bar, start), number)?;
                }
            }
            let switch = Place::new(fme.place.bar, fme.place.offset.saturating_add(offset));
            for port in &mut self.topology.ports {
                if port.number == number {
                    port.switch = Some(AccessSwitch { place: switch });
                }
            }
        }
        Ok(())
    }

    /// A list that begins with the port that the management unit calls
    /// `expected`.
    fn port_list(&mut self, start: Place, expected: u8) -> Result<(), WalkError> {
        self.list(start)?;
        let port = self.topology.ports.iter().find(|port| port.place == start);
        match port {
            None => Err(WalkError::NoPort(start)),
            Some(port) if port.number != expected => Err(WalkError::PortNumber {
                place: start,
                expected,
                found: port.number,
            }),
            Some(_) => Ok(()),
        }
    }

    /// Checks what can only be checked at the end: that no function's
    /// registers reach into a header or another function's.
    fn finish(mut self) -> Result<Topology, WalkError> {
        self.topology.ports.sort_by_key(|port| port.number);
        let mut afus: Vec<Afu> = self
            .topology
            .ports
            .iter()
            .filter_map(|port| port.afu)
            .collect();
        afus.sort_by_key(|afu| afu.place);
        let mut before: Option<Afu> = None;
        for afu in afus {
            let end = Place::new(afu.place.bar, afu.place.offset.saturating_add(afu.size));
            // A header of its own is the one thing that may stand there.
            let taken = self
                .seen
                .range(afu.place..end)
                .any(|place| *place != afu.place);
            let crossed = before.is_some_and(|other| {
                other.place.bar == afu.place.bar
                    && other.place.offset.saturating_add(other.size) > afu.place.offset
            });
            if taken || crossed {
                return Err(WalkError::AfuPlace(afu.place));
            }
            before = Some(afu);
        }
        Ok(self.topology)
    }
}

/// Interface units are only known with headers of version 0.
fn layout_zero(header: Header, place: Place) -> Result<(), WalkError> {
    match header.version {
        0 => Ok(()),
        version => Err(WalkError::Version { place, version }),
    }
}

#[cfg(test)]
mod tests;
