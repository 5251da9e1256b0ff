//! The commands that ask one thing and print the answer: list, describe,
//! reset, ping.
//!
//! Knows how each answer reads.

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use protocol::message::{Digest, Slot, SlotInfo, SlotState};

use super::args::ListArgs;
use super::table::{Table, bytes};
use super::ui::{Form, Ink, Ui};
use super::views::{Fine, Image, Images, PingView, ResetView, SlotView, Slots};
use super::{Host, Outcome};
use crate::text;

pub(super) async fn list(ui: &mut Ui<'_>, host: &Host<'_>, args: &ListArgs) -> Outcome {
    let client = host.connect().await?;
    let entries = client.list(args.slot.slot).await?;
    let loaded: HashSet<(Slot, Digest)> = client
        .describe(args.slot.slot)
        .await?
        .into_iter()
        .filter(|info| info.state == SlotState::Active)
        .filter_map(|info| Some((info.slot, info.digest?)))
        .collect();
    let entries = entries
        .iter()
        .map(|entry| (entry, loaded.contains(&(entry.slot, entry.digest))));
    if ui.form() == Form::Json {
        let images = entries
            .map(|(entry, loaded)| Image::new(entry, loaded))
            .collect();
        ui.json(&Fine::new(Images { images }))?;
        return Ok(());
    }
    let mut table = Table::new(["SLOT", "IMAGE", "SIZE", "FUNCTION", "LOADED"]);
    let mut digests = Table::new(["IMAGE", "DIGEST"]);
    let mut named = HashSet::new();
    for (entry, loaded) in entries {
        let name = text::foreign(&entry.name);
        if named.insert((entry.name.clone(), entry.digest)) {
            digests.row([name.clone(), entry.digest.to_string()]);
        }
        table.row([
            entry.slot.to_string(),
            name,
            bytes(entry.size),
            entry.function_id.to_string(),
            if loaded {
                ui.ink(Ink::Good, "yes")
            } else {
                String::new()
            },
        ]);
    }
    if named.is_empty() {
        ui.hint("no image may be loaded here; ask your operator for a grant")?;
        return Ok(());
    }
    ui.result(&table.render())?;
    if args.digests {
        ui.result(&format!("\n{}", digests.render()))?;
    }
    Ok(())
}

pub(super) async fn describe(ui: &mut Ui<'_>, host: &Host<'_>, slot: Option<Slot>) -> Outcome {
    let slots = host.connect().await?.describe(slot).await?;
    if ui.form() == Form::Json {
        ui.json(&Fine::new(Slots {
            slots: slots.iter().map(SlotView::from).collect(),
        }))?;
        return Ok(());
    }
    if slots.is_empty() {
        ui.hint("this VM has no slots; ask your operator")?;
    }
    for info in &slots {
        let sheet = sheet(ui, info);
        ui.result(&sheet)?;
    }
    Ok(())
}

/// One slot, for people.
fn sheet(ui: &Ui<'_>, info: &SlotInfo) -> String {
    let state = text::state(info.state);
    let state = match info.state {
        SlotState::Active => ui.ink(Ink::Good, state),
        SlotState::Recovering | SlotState::Unavailable => ui.ink(Ink::Bad, state),
        SlotState::Empty | SlotState::Changing => state.to_owned(),
    };
    let mut sheet = format!("slot {}: {state}\n", info.slot);
    let mut line = |label: &str, value: Option<String>| {
        if let Some(value) = value {
            sheet.push_str(&format!("  {label:<10}{value}\n"));
        }
    };
    line("image", info.image.as_deref().map(text::foreign));
    line("digest", info.digest.map(|digest| digest.to_string()));
    line("function", info.function_id.map(|id| id.to_string()));
    line("PCI", info.guest_pci.as_deref().map(text::foreign));
    line("for", info.since.map(age));
    line("job", info.job.map(|key| key.to_string()));
    line(
        "note",
        info.development
            .then(|| "loaded with a development key".to_owned()),
    );
    sheet
}

/// How long ago, by this machine's clock.
fn age(since: u64) -> String {
    let then = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(since));
    let seconds = then
        .and_then(|then| SystemTime::now().duration_since(then).ok())
        .map_or(0, |age| age.as_secs());
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

pub(super) async fn reset(ui: &mut Ui<'_>, host: &Host<'_>, slot: Option<Slot>) -> Outcome {
    let slot = host.connect().await?.reset(slot).await?;
    match ui.form() {
        Form::Json => ui.json(&Fine::new(ResetView { slot: slot.0 }))?,
        Form::Text => ui.result(&format!("slot {slot}: the function was reset\n"))?,
    }
    Ok(())
}

pub(super) async fn ping(ui: &mut Ui<'_>, host: &Host<'_>) -> Outcome {
    let milliseconds = host.connect().await?.ping().await?.as_secs_f64() * 1e3;
    match ui.form() {
        Form::Json => ui.json(&Fine::new(PingView { milliseconds }))?,
        Form::Text => ui.result(&format!("the host answered in {milliseconds:.2} ms\n"))?,
    }
    Ok(())
}
