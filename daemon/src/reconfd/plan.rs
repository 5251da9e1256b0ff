//! The regions of this host and the user functions that end in them, as the
//! operator's files tell.
//!
//! Pure. Knows names and addresses. Must not know VMs or what a region holds.

use std::collections::BTreeMap;

use crate::ipc::RegionIndex;

/// One region of one card of this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegionKey {
    /// Which card, in the order of host.toml.
    pub card: usize,
    /// Which region of it, in the order of its shell file.
    pub region: RegionIndex,
}

/// A card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardPlan {
    /// The name that operators use; also the name of its socket and state.
    pub name: String,
    /// Its address.
    pub address: String,
    /// Its regions, by index.
    pub regions: Vec<RegionPlan>,
}

/// A region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegionPlan {
    /// Its name in the shell file.
    pub name: String,
    /// The user functions that end in it, by address on the host.
    pub functions: Vec<String>,
    /// Bytes a second that the card takes.
    pub rate: u64,
}

/// All cards of this host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostPlan {
    cards: Vec<CardPlan>,
    by_function: BTreeMap<String, RegionKey>,
}

impl HostPlan {
    /// Indexes the cards. The files' reader has refused functions that end in two regions.
    #[must_use]
    pub fn new(cards: Vec<CardPlan>) -> Self {
        let mut by_function = BTreeMap::new();
        for (card, plan) in cards.iter().enumerate() {
            for (number, region) in (0u16..).zip(&plan.regions) {
                for function in &region.functions {
                    by_function.insert(
                        function.clone(),
                        RegionKey {
                            card,
                            region: RegionIndex(number),
                        },
                    );
                }
            }
        }
        Self { cards, by_function }
    }

    /// Whether both have the same cards, regions and user functions, in the same order.
    #[must_use]
    pub fn has_shape_of(&self, other: &Self) -> bool {
        let shape = |plan: &Self| -> Vec<_> {
            plan.regions()
                .map(|(key, card, region)| {
                    let functions = region.functions.clone();
                    (key, card.address.clone(), region.name.clone(), functions)
                })
                .collect()
        };
        shape(self) == shape(other)
    }

    /// Every card, in order.
    #[must_use]
    pub fn cards(&self) -> &[CardPlan] {
        &self.cards
    }

    /// Every region, in order.
    pub fn regions(&self) -> impl Iterator<Item = (RegionKey, &CardPlan, &RegionPlan)> {
        self.cards.iter().enumerate().flat_map(|(card, plan)| {
            (0u16..).zip(&plan.regions).map(move |(number, region)| {
                (
                    RegionKey {
                        card,
                        region: RegionIndex(number),
                    },
                    plan,
                    region,
                )
            })
        })
    }

    /// The region in which a user function ends.
    #[must_use]
    pub fn region_of(&self, function: &str) -> Option<RegionKey> {
        self.by_function.get(function).copied()
    }

    /// A region's plan.
    #[must_use]
    pub fn region(&self, key: RegionKey) -> Option<&RegionPlan> {
        self.cards
            .get(key.card)?
            .regions
            .get(usize::from(key.region.0))
    }

    /// `card/region`, for operators only: a guest never sees it.
    #[must_use]
    pub fn label(&self, key: RegionKey) -> String {
        match (self.cards.get(key.card), self.region(key)) {
            (Some(card), Some(region)) => format!("{}/{}", card.name, region.name),
            _ => format!("{}/{}", key.card, key.region.0),
        }
    }

    /// Finds a region by `card/region`, or by its own name where only one has it.
    #[must_use]
    pub fn find(&self, label: &str) -> Option<RegionKey> {
        let mut hits = self
            .regions()
            .filter(|(_key, card, region)| {
                region.name == label
                    || label
                        .strip_suffix(&region.name)
                        .and_then(|head| head.strip_suffix('/'))
                        == Some(card.name.as_str())
            })
            .map(|(key, _card, _region)| key);
        let first = hits.next()?;
        hits.next().is_none().then_some(first)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Two cards of two regions: `vf:CARD.REGION` ends in each, and the first has a second function.
    pub(crate) fn two_cards() -> HostPlan {
        HostPlan::new(
            (0..2)
                .map(|card| CardPlan {
                    name: format!("card{card}"),
                    address: format!("vfio-user:/card{card}"),
                    regions: (0..2)
                        .map(|region| RegionPlan {
                            name: format!("r{region}"),
                            functions: if (card, region) == (0, 0) {
                                vec!["vf:0.0".into(), "vf:0.0b".into()]
                            } else {
                                vec![format!("vf:{card}.{region}")]
                            },
                            rate: 1_000_000,
                        })
                        .collect(),
                })
                .collect(),
        )
    }

    #[test]
    fn k8s_02_a_function_names_one_region_of_one_card() {
        let plan = two_cards();
        let first = plan.region_of("vf:0.1").unwrap();
        let second = plan.region_of("vf:1.1").unwrap();
        assert_ne!(first, second);
        assert_eq!(plan.label(second), "card1/r1");
        assert_eq!(plan.find("card1/r1"), Some(second));
        assert_eq!(plan.find("r1"), None, "two regions have that name");
        assert_eq!(plan.region_of("vf:9.9"), None);
    }
}
