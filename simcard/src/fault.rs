//! Faults on demand: what can be made to go wrong, where and for how long.
//! The parts of the card ask here at the moment a fault would strike.

use serde::{Deserialize, Serialize};

/// One error bit of the partial reconfiguration feature's ERR register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PrError {
    /// b0: the sequence of operations was wrong.
    Operation,
    /// b1: the bitstream is damaged.
    Crc,
    /// b2: the bitstream is for another interface id.
    Incompatible,
    /// b3: the configuration engine's own protocol.
    Protocol,
    /// b4: more words than credits.
    FifoOverflow,
}

impl PrError {
    /// The bit in ERR.
    #[must_use]
    pub const fn bit(self) -> u64 {
        match self {
            Self::Operation => 1,
            Self::Crc => 1 << 1,
            Self::Incompatible => 1 << 2,
            Self::Protocol => 1 << 3,
            Self::FifoOverflow => 1 << 4,
        }
    }
}

/// At which point of a reconfiguration an error shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// START is refused.
    Start,
    /// With the first word.
    Data,
    /// When COMPLETE ends it.
    #[default]
    Complete,
}

/// How long a fault stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Times {
    /// Until it has struck once.
    #[default]
    Once,
    /// Until the control socket clears it.
    UntilCleared,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "fault", rename_all = "kebab-case")]
pub enum Kind {
    /// The next reconfiguration ends in these bits of ERR.
    PrError {
        /// Bits of ERR.
        bits: u64,
        /// When they show.
        at: Stage,
    },
    /// These bits of ERR are set now, before any start. Until-cleared: they
    /// come back when they are written away.
    StickyError {
        /// Bits of ERR.
        bits: u64,
    },
    /// COMPLETE never clears START.
    Hang,
    /// Credits do not come back during the next reconfiguration.
    CreditsStuck {
        /// How many there are from the start; all of the FIFO where none is given.
        credit: Option<u16>,
    },
    /// RST is never acknowledged.
    RstNoAck,
    /// STS b16 reads 1, whatever ERR says, from the next RST on.
    BusyStuck,
    /// Setting SFTRST is never acknowledged.
    PortNoAck,
    /// Clearing SFTRST leaves the acknowledge bit set.
    PortAckStuck,
    /// Stores to the access bit are lost.
    AccessIgnored,
    /// A good end, but another function than the bitstream's appears.
    WrongIdentity,
    /// The whole card reads all-ones and loses writes, after that many more data words.
    CardGone {
        /// Words still taken.
        after_words: u64,
    },
    /// Configuration stops (CFGERR) that many words into the next reconfiguration.
    ConfigError {
        /// Words still taken.
        after_words: u64,
    },
    /// The next reconfiguration runs at this speed.
    SlowRate {
        /// Bytes a second, never zero.
        bytes_per_second: u64,
    },
}

impl Kind {
    /// Whether a card of the DFL shape has what this fault breaks.
    pub(crate) fn is_of_dfl(&self) -> bool {
        !matches!(self, Self::ConfigError { .. })
    }

    /// Whether a card of the AMD shape has what this fault breaks.
    pub(crate) fn is_of_hwicap(&self) -> bool {
        matches!(
            self,
            Self::Hang
                | Self::AccessIgnored
                | Self::WrongIdentity
                | Self::CardGone { .. }
                | Self::ConfigError { .. }
                | Self::SlowRate { .. }
        )
    }
}

/// Why a fault was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FaultRefused {
    /// Too many wait already.
    #[error("no room: {MAX_FAULTS} faults wait")]
    Full,
    /// A fault of the whole card cannot be of one region.
    #[error("this fault is of the whole card, not of a region")]
    NotOfARegion,
    /// A state, not an event: only `until-cleared` means something.
    #[error("this fault lasts: give \"times\": \"until-cleared\"")]
    Lasting,
    /// Below one byte a second nothing ever ends; that is another fault.
    #[error("bytes_per_second is at least 1")]
    NoSpeed,
    /// What it would break, this card does not have.
    #[error("a card of this shape has nothing that this fault could break")]
    NotOfThisShape,
}

/// A fault that waits for its moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// What goes wrong.
    #[serde(flatten)]
    pub kind: Kind,
    /// In which region; any where none is given.
    pub region: Option<u8>,
    /// How long it stays.
    pub times: Times,
}

/// No more faults wait at once.
pub const MAX_FAULTS: usize = 64;

/// The faults that wait.
#[derive(Debug, Clone, Default)]
pub(crate) struct Faults(Vec<Fault>);

impl Faults {
    /// Whether there was room.
    pub(crate) fn add(&mut self, fault: Fault) -> Option<()> {
        (self.0.len() < MAX_FAULTS).then(|| self.0.push(fault))
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn all(&self) -> &[Fault] {
        &self.0
    }

    /// Strikes: gives the first fault that `pick` wants and that touches the
    /// region, and forgets it where it was to strike once.
    pub(crate) fn strike<T>(
        &mut self,
        region: Option<u8>,
        pick: impl Fn(&Kind) -> Option<T>,
    ) -> Option<T> {
        let touches = |fault: &Fault| fault.region.is_none() || fault.region == region;
        let (index, found) = self.0.iter().enumerate().find_map(|(index, fault)| {
            touches(fault)
                .then(|| pick(&fault.kind))
                .flatten()
                .map(|found| (index, found))
        })?;
        if self
            .0
            .get(index)
            .is_some_and(|fault| fault.times == Times::Once)
        {
            self.0.remove(index);
        }
        Some(found)
    }

    /// Whether a fault of this very kind strikes.
    pub(crate) fn strikes(&mut self, region: Option<u8>, kind: Kind) -> bool {
        self.strike(region, |waiting| (*waiting == kind).then_some(()))
            .is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_strikes_once_and_only_in_its_region() {
        let mut faults = Faults::default();
        faults
            .add(Fault {
                kind: Kind::Hang,
                region: Some(1),
                times: Times::Once,
            })
            .unwrap();
        assert!(!faults.strikes(Some(0), Kind::Hang));
        assert!(!faults.strikes(Some(1), Kind::RstNoAck));
        assert!(faults.strikes(Some(1), Kind::Hang));
        assert!(!faults.strikes(Some(1), Kind::Hang));
    }

    #[test]
    fn a_lasting_fault_stays_until_it_is_cleared() {
        let mut faults = Faults::default();
        faults
            .add(Fault {
                kind: Kind::Hang,
                region: None,
                times: Times::UntilCleared,
            })
            .unwrap();
        assert!(faults.strikes(Some(0), Kind::Hang));
        assert!(faults.strikes(Some(1), Kind::Hang));
        faults.clear();
        assert!(!faults.strikes(Some(0), Kind::Hang));
    }

    #[test]
    fn there_is_room_for_so_many_only() {
        let mut faults = Faults::default();
        let fault = Fault {
            kind: Kind::Hang,
            region: None,
            times: Times::Once,
        };
        for _ in 0..MAX_FAULTS {
            faults.add(fault).unwrap();
        }
        assert_eq!(faults.add(fault), None);
    }
}
