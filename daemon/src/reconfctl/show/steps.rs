//! `explain`: the checks of a decision, one a line, and the verdict.
//!
//! Reads the object that `policy` writes (`policy::decide::Explanation`). Another version
//! may have written it, so whatever is not there is left out and nothing is assumed.

use std::io::{self, Write};

use serde_json::Value;

use super::{Paint, clean};

/// Whether the verdict is yes; anything unclear is no.
pub(in super::super) fn allows(explanation: &Value) -> bool {
    explanation
        .get("verdict")
        .and_then(|verdict| verdict.get("allowed"))
        .is_some_and(Value::is_object)
}

pub(super) fn write(explanation: &Value, paint: Paint, out: &mut dyn Write) -> io::Result<()> {
    if let Some(ask) = explanation.get("ask") {
        let region = ask.get("region").unwrap_or(&Value::Null);
        writeln!(
            out,
            "May the VM {} of tenant {} load {} into {} port {}?",
            word(ask, "vm"),
            word(ask, "tenant"),
            word(ask, "image"),
            word(region, "card"),
            word(region, "port")
        )?;
    }
    let steps = explanation.get("steps").and_then(Value::as_array);
    for step in steps.into_iter().flatten() {
        let mark = match step.get("outcome").and_then(Value::as_str) {
            Some("pass") => paint.good("pass"),
            _ => paint.bad("FAIL"),
        };
        let image = match step.get("image") {
            Some(_) => format!("{}: ", word(step, "image")),
            None => String::new(),
        };
        writeln!(
            out,
            "  {mark}  {:<10}  {image}{}",
            word(step, "check"),
            word(step, "why")
        )?;
    }
    let verdict = explanation.get("verdict").unwrap_or(&Value::Null);
    if let Some(grant) = verdict.get("allowed") {
        return writeln!(
            out,
            "{}: {}, signed as {}",
            paint.good("ALLOWED"),
            word(grant, "image"),
            word(grant, "role")
        );
    }
    let denied = verdict.get("denied").unwrap_or(&Value::Null);
    writeln!(out, "{}: {}", paint.bad("DENIED"), word(denied, "why"))?;
    writeln!(out, "  next: {}", word(denied, "remedy"))
}

/// A field of any scalar kind, as a word.
fn word(object: &Value, key: &str) -> String {
    match object.get(key) {
        Some(Value::String(text)) => clean(text),
        Some(Value::Null) | None => "-".to_owned(),
        Some(other) => clean(&other.to_string()),
    }
}
