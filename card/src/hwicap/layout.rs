//! Where a shell has what: stated by the operator, checked against the BAR.

use uuid::Uuid;

use crate::device::Bar;
use crate::engine::RegionId;

use super::core::WINDOW;

/// Bytes of a decoupler's register.
const DECOUPLER: u64 = 4;
/// Bytes of an identity: two registers of 64 bits, the low half first.
const IDENTITY: u64 = 16;

/// An AMD shell, as its shell file says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// The BAR that all of it lies in.
    pub bar: Bar,
    /// Where the HWICAP core begins in it, in bytes.
    pub core: u64,
    /// The IDCODE of the device; its revision (the upper four bits) does not count.
    pub idcode: u32,
    /// The regions.
    pub regions: Vec<RegionLayout>,
}

/// One region of the shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegionLayout {
    /// Its number.
    pub id: RegionId,
    /// Which partial bitstreams fit it. No card tells: the operator's word.
    pub interface_id: Uuid,
    /// Where its decoupler's register lies, in bytes.
    pub decoupler: u64,
    /// Where the identifier of its function can be read, in bytes.
    pub identity: Option<u64>,
}

/// A layout that cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// It goes beyond the end of the BAR.
    #[error("{what} at {offset:#x} lies outside of {bar}, which has {size:#x} bytes")]
    Outside {
        /// What does.
        what: &'static str,
        /// Where it was said to begin.
        offset: u64,
        /// The BAR.
        bar: Bar,
        /// Its bytes.
        size: u64,
    },
    /// It would be split into two accesses.
    #[error("{what} at {offset:#x} is not aligned")]
    Unaligned {
        /// What is not.
        what: &'static str,
        /// Where it was said to begin.
        offset: u64,
    },
    /// Two things are said to lie in one place.
    #[error("{what} at {offset:#x} lies where {other} lies")]
    Overlap {
        /// The second of them.
        what: &'static str,
        /// Where it was said to begin.
        offset: u64,
        /// The first of them.
        other: &'static str,
    },
    /// Two regions have one number.
    #[error("region {0} is there twice")]
    Twice(RegionId),
    /// There is no region at all.
    #[error("there is no region")]
    NoRegion,
}

impl Layout {
    /// Checks that everything lies in a BAR of `size` bytes, aligned and apart.
    ///
    /// # Errors
    /// The first thing that does not.
    pub(super) fn check(&self, size: u64) -> Result<(), LayoutError> {
        if self.regions.is_empty() {
            return Err(LayoutError::NoRegion);
        }
        let mut taken = vec![("the HWICAP core", self.core, WINDOW)];
        let mut seen: Vec<RegionId> = Vec::new();
        for region in &self.regions {
            if seen.contains(&region.id) {
                return Err(LayoutError::Twice(region.id));
            }
            seen.push(region.id);
            taken.push(("a decoupler", region.decoupler, DECOUPLER));
            taken.extend(region.identity.map(|at| ("an identity", at, IDENTITY)));
        }
        let mut before: Vec<(&'static str, u64, u64)> = Vec::new();
        for (what, offset, length) in taken {
            let align = if length == IDENTITY { 8 } else { 4 };
            if !offset.is_multiple_of(align) {
                return Err(LayoutError::Unaligned { what, offset });
            }
            let end = offset.checked_add(length).filter(|end| *end <= size);
            let Some(end) = end else {
                return Err(LayoutError::Outside {
                    what,
                    offset,
                    bar: self.bar,
                    size,
                });
            };
            let meets = |(_, begin, stop): &&(&str, u64, u64)| offset < *stop && *begin < end;
            if let Some((other, ..)) = before.iter().find(meets) {
                let other = *other;
                return Err(LayoutError::Overlap {
                    what,
                    offset,
                    other,
                });
            }
            before.push((what, offset, end));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> Layout {
        let region = |number: u16, decoupler, identity| RegionLayout {
            id: RegionId(number),
            interface_id: Uuid::nil(),
            decoupler,
            identity,
        };
        Layout {
            bar: Bar::ZERO,
            core: 0x1000,
            idcode: 0x0372_7093,
            regions: vec![region(0, 0x2000, Some(0x3000)), region(1, 0x2004, None)],
        }
    }

    #[test]
    fn what_lies_apart_and_inside_is_taken() {
        assert_eq!(layout().check(0x3010), Ok(()));
        let outside = layout().check(0x300f).unwrap_err();
        assert!(outside.to_string().contains("0x3000"), "{outside}");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let edit = |edit: fn(&mut Layout)| {
            let mut layout = layout();
            edit(&mut layout);
            layout.check(0x1_0000).unwrap_err()
        };
        assert_eq!(edit(|l| l.regions.clear()), LayoutError::NoRegion);
        let twice = edit(|l| l.regions[1].id = RegionId(0));
        assert_eq!(twice, LayoutError::Twice(RegionId(0)));
        for overlap in [
            edit(|l| l.regions[1].decoupler = 0x2000),
            edit(|l| l.regions[1].decoupler = 0x1114),
            edit(|l| l.regions[0].identity = Some(0x1ff8)),
        ] {
            assert!(matches!(overlap, LayoutError::Overlap { .. }), "{overlap}");
        }
        for unaligned in [
            edit(|l| l.core = 0x1002),
            edit(|l| l.regions[0].identity = Some(0x3004)),
        ] {
            assert!(matches!(unaligned, LayoutError::Unaligned { .. }));
        }
        let beyond = edit(|l| l.regions[0].decoupler = u64::MAX - 3);
        assert!(matches!(beyond, LayoutError::Outside { .. }));
    }
}
