//! Which feature lies where in BAR0 of the management function.

use crate::dfl;

/// What lies at an offset of the management function's BAR0, with the offset inside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Block {
    Fme,
    Thermal(u64),
    Errors(u64),
    Pr(u64),
    Port(u8, u64),
    Hole,
    Outside,
}

impl Block {
    pub(crate) fn at(offset: u64) -> Self {
        let within = |base: u64, size: u64| offset.checked_sub(base).filter(|inner| *inner < size);
        if offset >= dfl::MANAGEMENT_BAR {
            return Self::Outside;
        }
        if offset < dfl::THERMAL {
            return Self::Fme;
        }
        if let Some(register) = within(dfl::THERMAL, dfl::FEATURE_SIZE) {
            return Self::Thermal(register);
        }
        if let Some(register) = within(dfl::ERRORS, dfl::FEATURE_SIZE) {
            return Self::Errors(register);
        }
        if let Some(register) = within(dfl::PR, dfl::FEATURE_SIZE) {
            return Self::Pr(register);
        }
        for (number, base) in (0..).zip(dfl::PORTS) {
            if let Some(register) = within(base, dfl::USER_BAR) {
                return Self::Port(number, register);
            }
        }
        Self::Hole
    }
}
