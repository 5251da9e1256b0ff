//! Whose turn it is at a card: a bounded queue, fair between regions.
//!
//! Pure: knows regions and the order of arrival. Must not know jobs or time.
//! A card has one configuration engine, so that one turn is out at a time; the
//! region that was served longest ago goes first, so that a region with many
//! jobs cannot starve its neighbour (D15).

use std::collections::BTreeMap;

/// A place in the queue, given at arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

/// Why nobody may join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueFull;

/// The queue. `R` names a region.
#[derive(Debug)]
pub struct Turns<R> {
    waiting: BTreeMap<Ticket, R>,
    served: BTreeMap<R, u64>,
    running: Option<Ticket>,
    next_ticket: u64,
    clock: u64,
    bound: usize,
}

impl<R: Ord + Copy> Turns<R> {
    /// A queue that holds at most `bound` waiters beside the one that runs.
    #[must_use]
    pub fn new(bound: usize) -> Self {
        Self {
            waiting: BTreeMap::new(),
            served: BTreeMap::new(),
            running: None,
            next_ticket: 0,
            clock: 0,
            bound,
        }
    }

    /// Joins the queue.
    ///
    /// # Errors
    /// [`QueueFull`] if the bound is reached.
    pub fn join(&mut self, region: R) -> Result<Ticket, QueueFull> {
        if self.waiting.len() >= self.bound {
            return Err(QueueFull);
        }
        let ticket = Ticket(self.next_ticket);
        self.next_ticket = self.next_ticket.wrapping_add(1);
        self.waiting.insert(ticket, region);
        Ok(ticket)
    }

    /// The next turn, if none is out.
    pub fn grant(&mut self) -> Option<Ticket> {
        if self.running.is_some() {
            return None;
        }
        let (ticket, region) = self
            .waiting
            .iter()
            .min_by_key(|(ticket, region)| {
                (self.served.get(region).copied().unwrap_or(0), **ticket)
            })
            .map(|(ticket, region)| (*ticket, *region))?;
        self.waiting.remove(&ticket);
        self.clock = self.clock.wrapping_add(1);
        self.served.insert(region, self.clock);
        self.running = Some(ticket);
        Some(ticket)
    }

    /// Leaves the queue, or ends the turn.
    pub fn leave(&mut self, ticket: Ticket) {
        if self.running == Some(ticket) {
            self.running = None;
        } else {
            self.waiting.remove(&ticket);
        }
    }

    /// How many wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether nobody waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn d15_a_busy_region_does_not_starve_its_neighbour() {
        let mut turns = Turns::new(8);
        let first = turns.join(0).unwrap();
        assert_eq!(turns.grant(), Some(first));
        let again = turns.join(0).unwrap();
        let other = turns.join(1).unwrap();
        assert_eq!(turns.grant(), None, "one turn at a time");
        turns.leave(first);
        assert_eq!(
            turns.grant(),
            Some(other),
            "the region served longest ago goes first"
        );
        turns.leave(other);
        assert_eq!(turns.grant(), Some(again));
    }

    #[test]
    fn the_bound_holds_and_leaving_makes_room() {
        let mut turns = Turns::new(1);
        let one = turns.join(0).unwrap();
        assert_eq!(turns.join(1), Err(QueueFull));
        turns.leave(one);
        assert!(turns.join(1).is_ok());
    }

    proptest! {
        /// Whatever comes and goes: one turn at most, nobody is lost, nobody waits while the
        /// card is idle, and between two turns of one region every other waiting region has one.
        #[test]
        fn d15_fair_and_complete(steps in proptest::collection::vec((0u8..3, 0u8..4), 1..200)) {
            let mut turns = Turns::new(8);
            let mut regions = BTreeMap::new();
            let mut running: Option<Ticket> = None;
            let mut passed: BTreeMap<Ticket, BTreeMap<u8, u32>> = BTreeMap::new();
            for (what, region) in steps {
                match what {
                    0 => if let Ok(ticket) = turns.join(region) {
                        regions.insert(ticket, region);
                        passed.insert(ticket, BTreeMap::new());
                    },
                    1 => if let Some(ticket) = turns.grant() {
                        prop_assert!(running.is_none());
                        running = Some(ticket);
                        passed.remove(&ticket);
                        let served = regions[&ticket];
                        for (waiter, counts) in &mut passed {
                            if regions[waiter] != served {
                                let count = counts.entry(served).or_insert(0);
                                *count = u32::saturating_add(*count, 1);
                                // Of its own region at most eight may stand before it, and each of
                                // those lets every other region pass once.
                                prop_assert!(*count <= 9);
                            }
                        }
                    } else {
                        prop_assert!(running.is_some() || turns.is_empty());
                    },
                    _ => if let Some(ticket) = running.take() {
                        turns.leave(ticket);
                    },
                }
            }
        }
    }
}
