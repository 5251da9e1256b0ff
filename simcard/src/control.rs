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
    #[error("{0}")]
    Fault(#[from] crate::card::FaultRefused),
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
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Act {
    PowerCycle,
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
            })
        }
        Line {
            get: None,
            act: Some(Act::PowerCycle),
            clear: None,
            fault: None,
            ..
        } => {
            line.only(&[])?;
            card.power_cycle();
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
            Name::CardGone => &["region", "times", "after_words"],
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
mod tests {
    use super::*;
    use crate::config::Config;
    use uuid::Uuid;

    fn ask(card: &mut Card, line: &str) -> Value {
        serde_json::from_str(&answer(card, line.as_bytes())).unwrap()
    }

    fn card() -> Card {
        Card::new(Config::new(0xabc, Uuid::from_u128(1)))
    }

    #[test]
    fn state_and_stats_are_told() {
        let mut card = card();
        let state = ask(&mut card, r#"{"get":"state"}"#);
        assert_eq!(state["state"]["serial"], "0000000000000abc");
        assert_eq!(state["state"]["regions"][1]["access"], "host");
        assert_eq!(state["state"]["regions"][0]["function"], Value::Null);
        let stats = ask(&mut card, r#"{"get":"stats"}"#);
        assert_eq!(stats["stats"]["regions"][0]["pr_starts"], 0);
        assert_eq!(ask(&mut card, r#"{"do":"power-cycle"}"#)["ok"], true);
        assert_eq!(
            ask(&mut card, r#"{"get":"stats"}"#)["stats"]["power_cycles"],
            1
        );
    }

    #[test]
    fn every_fault_can_be_said() {
        let mut card = card();
        for line in [
            r#"{"fault":"pr-error","bits":["crc","incompatible"],"region":1,"at":"data"}"#,
            r#"{"fault":"sticky-error","bits":["operation"],"times":"until-cleared"}"#,
            r#"{"fault":"hang","region":0}"#,
            r#"{"fault":"credits-stuck","credit":1}"#,
            r#"{"fault":"credits-stuck"}"#,
            r#"{"fault":"rst-no-ack"}"#,
            r#"{"fault":"busy-stuck"}"#,
            r#"{"fault":"port-no-ack","region":0}"#,
            r#"{"fault":"port-ack-stuck"}"#,
            r#"{"fault":"access-ignored"}"#,
            r#"{"fault":"wrong-identity"}"#,
            r#"{"fault":"card-gone","times":"until-cleared","after_words":7}"#,
            r#"{"fault":"slow-rate","bytes_per_second":1000}"#,
        ] {
            assert_eq!(ask(&mut card, line), json!({"ok": true}), "{line}");
        }
        let faults = ask(&mut card, r#"{"get":"faults"}"#);
        assert_eq!(faults["faults"].as_array().unwrap().len(), 13);
        assert_eq!(faults["faults"][0]["fault"], "pr-error");
        ask(&mut card, r#"{"clear":"faults"}"#);
        assert_eq!(ask(&mut card, r#"{"get":"faults"}"#)["faults"], json!([]));
    }

    #[test]
    fn nonsense_is_refused_with_a_reason() {
        let mut card = card();
        for line in [
            "",
            "{}",
            "[]",
            r#"{"get":"state","do":"power-cycle"}"#,
            r#"{"get":"state","region":0}"#,
            r#"{"get":"weather"}"#,
            r#"{"fault":"hang","bits":["crc"]}"#,
            r#"{"fault":"hang","region":2}"#,
            r#"{"fault":"rst-no-ack","region":0}"#,
            r#"{"fault":"pr-error"}"#,
            r#"{"fault":"pr-error","bits":[]}"#,
            r#"{"fault":"slow-rate"}"#,
            r#"{"fault":"slow-rate","bytes_per_second":0}"#,
            r#"{"fault":"card-gone"}"#,
            r#"{"fault":"hang","extra":1}"#,
        ] {
            let reply = ask(&mut card, line);
            assert_eq!(reply["ok"], false, "{line}");
            assert!(!reply["error"].as_str().unwrap().is_empty());
        }
        assert!(card.faults().is_empty());
    }
}
