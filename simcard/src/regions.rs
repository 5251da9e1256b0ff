//! The regions of a card, by number. A number that came from a register may
//! name none.

use crate::config::REGIONS;
use crate::region::Region;

/// A region that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RegionId(u8);

impl RegionId {
    /// Every region of a card, in order.
    pub const ALL: [Self; REGIONS] = [Self(0), Self(1)];

    /// The region of that number, where the card has it.
    #[must_use]
    pub fn new(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|region| region.0 == number)
    }

    /// Its number: region field of CTRL, port number, index of `PORT_OFST`.
    #[must_use]
    pub fn number(self) -> u8 {
        self.0
    }

    /// Its number, to index with.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// All regions.
#[derive(Debug, Clone)]
pub(crate) struct Regions([Region; REGIONS]);

impl Regions {
    pub(crate) fn new() -> Self {
        Self([Region::new(0), Region::new(1)])
    }

    pub(crate) fn get(&self, number: u8) -> Option<&Region> {
        self.0.get(usize::from(number))
    }

    pub(crate) fn get_mut(&mut self, number: u8) -> Option<&mut Region> {
        self.0.get_mut(usize::from(number))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Region> {
        self.0.iter()
    }

    /// The region's place is there for every id, by its construction.
    pub(crate) fn of(&mut self, id: RegionId) -> &mut Region {
        let [first, second] = &mut self.0;
        if id.0 == 0 { first } else { second }
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Region> {
        self.0.iter_mut()
    }
}
