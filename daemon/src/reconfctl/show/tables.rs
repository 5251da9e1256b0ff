//! Regions, VMs, jobs and the audit trail, a row each.

use std::io::{self, Write};

use super::super::time::{moment, now, relative};
use super::{Paint, Table, clean};
use crate::admin::{ChannelSpec, JobView, RegionView, VmView};

pub(super) fn regions(views: &[RegionView], paint: Paint, out: &mut dyn Write) -> io::Result<()> {
    if views.is_empty() {
        return writeln!(
            out,
            "no regions: host.toml has no cards, or their processes are not connected"
        );
    }
    let now = now();
    let mut table = Table::new(&[
        "REGION",
        "CONTENT",
        "IMAGE",
        "REACHED BY",
        "VM",
        "SLOT",
        "TENANT",
        "JOB",
        "SINCE",
    ]);
    for view in views {
        let content = match view.scrub_failures {
            0 => view.content.clone(),
            1 => format!("{} (1 scrub failed)", view.content),
            failures => format!("{} ({failures} scrubs failed)", view.content),
        };
        // Without a name the digest is all that is known of an image.
        let image = view
            .image
            .clone()
            .or_else(|| view.digest.as_deref().map(short));
        table.row([
            &view.region,
            &content,
            &image.unwrap_or_default(),
            if view.guest_access { "guest" } else { "host" },
            &text(view.vm),
            &text(view.slot),
            view.tenant.as_deref().unwrap_or_default(),
            view.job.as_deref().unwrap_or_default(),
            &relative(view.since, now),
        ]);
    }
    table.write(paint, out)
}

pub(super) fn vms(views: &[VmView], paint: Paint, out: &mut dyn Write) -> io::Result<()> {
    if views.is_empty() {
        return writeln!(out, "no VM is attached (next: reconfctl vm attach --help)");
    }
    for view in views {
        let name = if view.name.is_empty() {
            String::new()
        } else {
            format!("  {}", clean(&view.name))
        };
        writeln!(out, "{}{name}", paint.bold(&view.vm.to_string()))?;
        writeln!(out, "  tenant      {}", clean(&view.tenant))?;
        writeln!(out, "  generation  {}", clean(&view.generation))?;
        writeln!(
            out,
            "  channel     {}: {}",
            channel(&view.channel),
            clean(&view.channel_state)
        )?;
        if let Some(pid) = view.pid {
            writeln!(out, "  served by   pid {pid}")?;
        }
        for slot in &view.slots {
            let guest = slot.guest_pci.as_deref().unwrap_or("address not known");
            writeln!(
                out,
                "  slot {:<6} {} through {} (in the guest: {})",
                slot.slot,
                clean(&slot.region),
                clean(&slot.functions.join(", ")),
                clean(guest)
            )?;
        }
    }
    Ok(())
}

fn channel(channel: &ChannelSpec) -> String {
    match channel {
        ChannelSpec::Listen { path: Some(path) } => format!("listening at {}", clean(path)),
        ChannelSpec::Listen { path: None } => "listening at its default place".to_owned(),
        ChannelSpec::Connect { path } => format!("connecting to {}", clean(path)),
    }
}

pub(super) fn jobs(views: &[JobView], paint: Paint, out: &mut dyn Write) -> io::Result<()> {
    if views.is_empty() {
        return writeln!(out, "no jobs are kept");
    }
    let mut table = Table::new(&["JOB", "VM", "SLOT", "KIND", "IMAGE", "STAGE", "RESULT"]);
    for view in views {
        table.row([
            &view.job,
            &text(Some(view.vm)),
            &view.slot.to_string(),
            &view.kind,
            view.image.as_deref().unwrap_or_default(),
            &view.stage,
            view.result.as_deref().unwrap_or_default(),
        ]);
    }
    table.write(paint, out)
}

/// One record a line, as `time key=value …`: for eyes and for grep. `--json` has the records.
pub(super) fn audit(records: &[serde_json::Value], out: &mut dyn Write) -> io::Result<()> {
    if records.is_empty() {
        return writeln!(out, "the audit trail is empty");
    }
    for record in records {
        writeln!(out, "{}", audit_line(record))?;
    }
    Ok(())
}

fn audit_line(record: &serde_json::Value) -> String {
    let Some(fields) = record.as_object() else {
        return clean(&record.to_string());
    };
    let mut words = Vec::new();
    if let Some(time) = fields.get("time").and_then(serde_json::Value::as_u64) {
        words.push(moment(time));
    }
    // What happened comes first; the rest in the order of its names.
    let first = ["event", "phase"];
    let head = first.iter().filter_map(|key| fields.get_key_value(*key));
    let rest = fields
        .iter()
        .filter(|(key, _)| *key != "time" && !first.contains(&key.as_str()));
    for (key, value) in head.chain(rest).filter(|(_, value)| !value.is_null()) {
        let value = match value.as_str() {
            Some(text) if !text.is_empty() && !text.contains([' ', '"', '=']) => text.to_owned(),
            _ => value.to_string(),
        };
        words.push(format!("{}={}", clean(key), clean(&value)));
    }
    words.join(" ")
}

fn short(digest: &str) -> String {
    let hex = digest.strip_prefix("sha256:").unwrap_or(digest);
    format!("sha256:{}…", hex.chars().take(12).collect::<String>())
}

fn text<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_audit_record_is_one_greppable_line() {
        let record = json!({
            "time": 86_400, "event": "load", "vm": null, "why": "two words", "n": 3, "x": "a\u{1b}b",
        });
        let line = audit_line(&record);
        assert!(
            line.starts_with("1970-01-02T00:00:00Z event=load "),
            "{line}"
        );
        for part in ["event=load", "why=\"two words\"", "n=3"] {
            assert!(line.contains(part), "{line}");
        }
        assert!(!line.contains("vm=") && !line.contains('\u{1b}'), "{line}");
    }

    #[test]
    fn a_digest_is_shortened_whatever_it_is() {
        assert_eq!(short("sha256:0123456789abcdef"), "sha256:0123456789ab…");
        assert_eq!(short("é"), "sha256:é…");
    }
}
