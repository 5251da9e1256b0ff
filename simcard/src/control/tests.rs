//! What the control socket is told and answers.

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

fn amd() -> Card {
    let table = include_str!("../../../bitstream/geometry/series7.txt");
    let geometry = crate::Geometry::parse(table, "xc7z010").unwrap();
    Card::new(Config {
        shape: crate::Shape::Hwicap(Box::new(geometry)),
        ..Config::new(1, Uuid::nil())
    })
}

#[test]
fn frames_are_told_by_the_shape_that_has_them() {
    let mut card = amd();
    let frames = ask(&mut card, r#"{"get":"frames"}"#);
    assert_eq!(frames["frames"]["frames"], 0);
    assert_eq!(frames["frames"]["ranges"], json!([]));
    assert_eq!(ask(&mut card, r#"{"do":"mark"}"#), json!({"ok": true}));
    let stats = ask(&mut card, r#"{"get":"stats"}"#);
    assert_eq!(stats["stats"]["hwicap"]["frames_while_coupled"], 0);
    assert_eq!(stats["stats"]["hwicap"]["dangers"]["reboots"], 0);
    let state = ask(&mut card, r#"{"get":"state"}"#);
    assert_eq!(state["state"]["device"], "xc7z010");
    let fault = r#"{"fault":"config-error","after_words":7}"#;
    assert_eq!(ask(&mut card, fault), json!({"ok": true}));
    assert_eq!(ask(&mut card, r#"{"fault":"rst-no-ack"}"#)["ok"], false);

    let mut dfl = self::card();
    for line in [
        r#"{"get":"frames"}"#,
        r#"{"do":"mark"}"#,
        r#"{"fault":"config-error"}"#,
    ] {
        assert_eq!(ask(&mut dfl, line)["ok"], false, "{line}");
    }
    let stats = ask(&mut dfl, r#"{"get":"stats"}"#);
    assert_eq!(stats["stats"].get("hwicap"), None);
}
