//! One reconfiguration, from START to its end: the words it got, what went
//! wrong on the way, and the verdict.

use uuid::Uuid;

use crate::fault::{Faults, Kind, PrError};
use crate::functions;
use crate::payload::{Content, Recogniser};
use crate::table::Table;

/// A reconfiguration that is under way.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) region: u8,
    pub(crate) recogniser: Recogniser,
    pub(crate) words: u64,
    /// Errors so far: the outcome, also where ERR was written away meanwhile.
    pub(crate) errors: u64,
    /// A fault: errors that show with the first word.
    pub(crate) at_data: u64,
    /// A fault: errors that show at the end.
    pub(crate) at_complete: u64,
    ending: Ending,
}

/// How a run ends when nothing in it goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    AsTold,
    WrongIdentity,
    Never,
}

impl Run {
    /// Begins; a fault that changes the ending strikes now.
    pub(crate) fn begin(region: u8, faults: &mut Faults) -> Self {
        let ending = if faults.strikes(Some(region), Kind::Hang) {
            Ending::Never
        } else if faults.strikes(Some(region), Kind::WrongIdentity) {
            Ending::WrongIdentity
        } else {
            Ending::AsTold
        };
        Self {
            region,
            recogniser: Recogniser::new(),
            words: 0,
            errors: 0,
            at_data: 0,
            at_complete: 0,
            ending,
        }
    }

    /// Whether COMPLETE ends it.
    pub(crate) fn can_end(&self) -> bool {
        self.ending != Ending::Never
    }

    /// The function that appears, or the ERR bits it ends in. What was seen on
    /// the way outweighs what the words look like: they were ruined by it.
    pub(crate) fn verdict(self, interface: Uuid, table: &Table) -> Result<Uuid, u64> {
        let seen = self.errors | self.at_complete;
        if seen != 0 {
            return Err(seen);
        }
        let function = judge(self.recogniser, interface, table).map_err(PrError::bit)?;
        match self.ending {
            Ending::WrongIdentity => Ok(functions::WRONG),
            Ending::AsTold | Ending::Never => Ok(function),
        }
    }
}

/// What the words make on a card with this interface id.
fn judge(words: Recogniser, own: Uuid, table: &Table) -> Result<Uuid, PrError> {
    let received = words.finish();
    let otherwise = match received.content {
        Content::Sound {
            interface,
            function,
        } if interface == own => return Ok(function),
        Content::Sound { .. } => return Err(PrError::Incompatible),
        Content::Damaged {
            interface: Some(interface),
        } if interface != own => {
            return Err(PrError::Incompatible);
        }
        Content::Damaged { .. } => PrError::Crc,
        Content::Foreign => PrError::Incompatible,
    };
    table.get(&received.digest).ok_or(otherwise)
}
