//! The control protocol: one JSON object a line, one line in answer. What a
//! test or a person says to the card from behind, past all registers.
//! README.md lists the lines.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::card::Card;
use crate::fault::{Fault, Kind, PrError, Stage, Times};
use crate::regions::RegionId;

/// A line is at most this long.
pub const MAX_LINE: usize = 4096;

/// Why a line was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum Refused {
    #[error("not understood: {0}")]
    NotUnderstood(String),
    #[error("exactly one of \"get\", \"do\", \"fault\", \"clear\" is wanted")]
    NotOne,
    #[error("\"{0}\" belongs to another fault")]
    Stray(&'static str),
    #[error("this fault needs \"{0}\"")]
    Missing(&'static str),
    #[error("the card has no region {0}")]
    NoRegion(u8),
    #[error("nobody knows the frames of a card of this shape")]
    NoFrames,
    #[error("{0}")]
    Fault(#[from] crate::fault::FaultRefused),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    get: Option<Get>,
    #[serde(rename = "do")]
    act: Option<Act>,
    clear: Option<Clear>,
    fault: Option<Name>,
    region: Option<u8>,
    times: Option<Times>,
    bits: Option<Vec<PrError>>,
    at: Option<Stage>,
    credit: Option<u16>,
    after_words: Option<u64>,
    bytes_per_second: Option<u64>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Get {
    Stats,
    State,
    Faults,
    Frames,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Act {
    PowerCycle,
    Mark,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Clear {
    Faults,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Name {
    PrError,
    StickyError,
    Hang,
    CreditsStuck,
    RstNoAck,
    BusyStuck,
    PortNoAck,
    PortAckStuck,
    AccessIgnored,
    WrongIdentity,
    CardGone,
    ConfigError,
    SlowRate,
}

/// Does what a line says and gives the answer, without its newline.
#[must_use]
pub fn answer(card: &mut Card, line: &[u8]) -> String {
    let value = match serve(card, line) {
        Ok(value) => value,
        Err(refused) => json!({"ok": false, "error": refused.to_string()}),
    };
    value.to_string()
}

fn serve(card: &mut Card, line: &[u8]) -> Result<Value, Refused> {
    let line: Line =
        serde_json::from_slice(line).map_err(|error| Refused::NotUnderstood(error.to_string()))?;
    match line {
        Line {
            get: Some(get),
            act: None,
            clear: None,
            fault: None,
            ..
        } => {
            line.only(&[])?;
            Ok(match get {
                Get::Stats => json!({"ok": true, "stats": card.stats()}),
                Get::State => json!({"ok": true, "state": card.state()}),
                Get::Faults => json!({"ok": true, "faults": card.faults()}),
                Get::Frames => {
                    let frames = card.written().ok_or(Refused::NoFrames)?;
                    json!({"ok": true, "frames": frames})
                }
            })
        }
        Line {
            get: None,
            act: Some(act),
            clear: None,
            fault: None,
            ..
        } => {
            line.only(&[])?;
            match act {
                Act::PowerCycle => card.power_cycle(),
                Act::Mark => card.mark().ok_or(Refused::NoFrames)?,
            }
            Ok(json!({"ok": true}))
        }
        Line {
            get: None,
            act: None,
            clear: Some(Clear::Faults),
            fault: None,
            ..
        } => {
            line.only(&[])?;
            card.clear_faults();
            Ok(json!({"ok": true}))
        }
        Line {
            get: None,
            act: None,
            clear: None,
            fault: Some(name),
            ..
        } => {
            card.inject(line.into_fault(name)?)?;
            Ok(json!({"ok": true}))
        }
        _ => Err(Refused::NotOne),
    }
}

impl Line {
    /// Whether no other parameter than these was given.
    fn only(&self, wanted: &[&str]) -> Result<(), Refused> {
        let given = [
            ("region", self.region.is_some()),
            ("times", self.times.is_some()),
            ("bits", self.bits.is_some()),
            ("at", self.at.is_some()),
            ("credit", self.credit.is_some()),
            ("after_words", self.after_words.is_some()),
            ("bytes_per_second", self.bytes_per_second.is_some()),
        ];
        match given
            .into_iter()
            .find(|(name, given)| *given && !wanted.contains(name))
        {
            Some((name, _)) => Err(Refused::Stray(name)),
            None => Ok(()),
        }
    }

    fn into_fault(self, name: Name) -> Result<Fault, Refused> {
        let parameters: &[&str] = match name {
            Name::PrError => &["region", "times", "bits", "at"],
            Name::StickyError => &["region", "times", "bits"],
            Name::CreditsStuck => &["region", "times", "credit"],
            Name::CardGone | Name::ConfigError => &["region", "times", "after_words"],
            Name::SlowRate => &["region", "times", "bytes_per_second"],
            _ => &["region", "times"],
        };
        self.only(parameters)?;
        if let Some(region) = self.region
            && RegionId::new(region).is_none()
        {
            return Err(Refused::NoRegion(region));
        }
        let kind = match name {
            Name::PrError => Kind::PrError {
                bits: self.error_bits()?,
                at: self.at.unwrap_or_default(),
            },
            Name::StickyError => Kind::StickyError {
                bits: self.error_bits()?,
            },
            Name::Hang => Kind::Hang,
            Name::CreditsStuck => Kind::CreditsStuck {
                credit: self.credit,
            },
            Name::RstNoAck => Kind::RstNoAck,
            Name::BusyStuck => Kind::BusyStuck,
            Name::PortNoAck => Kind::PortNoAck,
            Name::PortAckStuck => Kind::PortAckStuck,
            Name::AccessIgnored => Kind::AccessIgnored,
            Name::WrongIdentity => Kind::WrongIdentity,
            Name::CardGone => Kind::CardGone {
                after_words: self.after_words.unwrap_or(0),
            },
            Name::ConfigError => Kind::ConfigError {
                after_words: self.after_words.unwrap_or(0),
            },
            Name::SlowRate => Kind::SlowRate {
                bytes_per_second: self
                    .bytes_per_second
                    .ok_or(Refused::Missing("bytes_per_second"))?,
            },
        };
        Ok(Fault {
            kind,
            region: self.region,
            times: self.times.unwrap_or_default(),
        })
    }

    fn error_bits(&self) -> Result<u64, Refused> {
        match self.bits.as_deref() {
            None | Some([]) => Err(Refused::Missing("bits")),
            Some(bits) => Ok(bits.iter().fold(0, |all, bit| all | bit.bit())),
        }
    }
}

#[cfg(test)]
mod tests;
