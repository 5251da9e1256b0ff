//! What an operator sees: the host's state in the words of the admin socket.
//!
//! Reads only. Knows what guests must not: cards, regions, other tenants.

use uuid::Uuid;

use super::host::{Host, State};
use crate::admin::{
    AlarmView, CardView, JobView, ListView, RegionView, SlotView, StatusView, VmView,
};
use crate::hex;
use crate::ipc::Content;

/// Is all well, and if not, what comes next?
pub(super) fn status(host: &Host) -> StatusView {
    let list = host.judge.view();
    let state = host.state();
    let cards: Vec<CardView> = host
        .plan
        .cards()
        .iter()
        .zip(&host.cards)
        .map(|(plan, link)| CardView {
            name: plan.name.clone(),
            address: plan.address.clone(),
            connected: link.connected(),
            queued: u32::try_from(link.queued()).unwrap_or(u32::MAX),
        })
        .collect();
    let alarms = alarms(host, &state, &list, &cards);
    StatusView {
        healthy: alarms.is_empty(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        since: host.since,
        stopped: state.stopped.clone(),
        list,
        cards,
        vms: u32::try_from(state.live.len()).unwrap_or(u32::MAX),
        sessions: u32::try_from(state.live.values().filter(|live| live.sessions > 0).count())
            .unwrap_or(u32::MAX),
        jobs: state.running,
        alarms,
    }
}

/// What needs the operator, and what comes next.
fn alarms(host: &Host, state: &State, list: &ListView, cards: &[CardView]) -> Vec<AlarmView> {
    let mut alarms = Vec::new();
    let mut alarm = |what: String, next: String| alarms.push(AlarmView { what, next });
    if let Some(problem) = &list.problem {
        alarm(
            format!("signed list: {problem}"),
            "reconfctl trust show".to_owned(),
        );
    }
    if let Some(reason) = &state.stopped {
        alarm(
            format!("new loads are stopped: {reason}"),
            "reconfctl resume".to_owned(),
        );
    }
    let unwritten = host.audit.trouble().map(|error| ("the audit", error));
    for (what, error) in unwritten.into_iter().chain(host.troubles.all()) {
        alarm(
            format!("{what} cannot be written, so that loads are refused: {error}"),
            format!("make room in {}", host.layout.reconfd_dir().display()),
        );
    }
    for card in cards.iter().filter(|card| !card.connected) {
        alarm(
            format!("the process of card {} is not connected", card.name),
            format!(
                "start reconf-card --card {} and look at its log",
                card.address
            ),
        );
    }
    for (vm, live) in &state.live {
        if let Some(trouble) = &live.trouble {
            alarm(
                format!("VM {vm} is not wholly back after a restart: {trouble}"),
                format!("reconfctl vm detach {vm} once it is down, and attach it again"),
            );
        }
    }
    for (key, region) in state.regions.iter() {
        let label = host.plan.label(key);
        let silent = region.report.is_none() && cards.get(key.card).is_some_and(|c| c.connected);
        if let Some(why) = &region.held {
            alarm(
                format!("region {label} is held: {why}"),
                format!("reconfctl region scrub {label}"),
            );
        } else if let Some(setback) = &region.setback {
            alarm(
                format!(
                    "region {label} cannot be made safe, tried {} times: {}",
                    setback.count, setback.story
                ),
                "look at the log of its card's process".to_owned(),
            );
        } else if silent {
            alarm(
                format!("the card of region {label} is connected and tells nothing of it"),
                "look at the log of its card's process, and whether its shell file is ours"
                    .to_owned(),
            );
        }
    }
    alarms
}

/// Every region.
pub(super) fn regions(host: &Host) -> Vec<RegionView> {
    let state = host.state();
    state
        .regions
        .iter()
        .map(|(key, region)| {
            let report = region.report.as_ref();
            let owner = report.and_then(|report| report.tag).and_then(|tag| {
                state
                    .registry
                    .holders(&host.plan, key)
                    .find(|vm| vm.tag() == tag)
            });
            // Before its first load a VM holds a region without owning its content.
            let holder = owner.or_else(|| state.registry.holders(&host.plan, key).next());
            let slot = holder.and_then(|vm| {
                state
                    .live
                    .get(&vm.vm)?
                    .slots
                    .iter()
                    .find(|slot| slot.region == key)
            });
            let active = report.is_some_and(|report| report.content == Content::Active);
            RegionView {
                region: host.plan.label(key),
                content: report
                    .map_or("absent", |report| content_word(report.content))
                    .to_owned(),
                image: region.image.as_ref().map(|image| image.name.clone()),
                digest: report
                    .filter(|_| active)
                    .map(|report| hex::encode(&report.digest)),
                function: report
                    .and_then(|report| report.function)
                    .map(Uuid::from_bytes),
                guest_access: report.is_some_and(|report| report.guest_access),
                vm: holder.map(|vm| vm.vm),
                tenant: holder.map(|vm| vm.tenant.clone()),
                slot: slot.map(|slot| slot.slot),
                job: region
                    .reserved
                    .as_ref()
                    .map(|reserved| reserved.what.clone()),
                scrub_failures: report.map_or(0, |report| report.scrub_failures),
                since: report.map_or(0, |report| report.since),
            }
        })
        .collect()
}

/// Every VM.
pub(super) fn vms(host: &Host) -> Vec<VmView> {
    let all: Vec<Uuid> = host.state().registry.all().map(|vm| vm.vm).collect();
    all.into_iter().filter_map(|id| vm(host, id)).collect()
}

/// One VM.
pub(super) fn vm(host: &Host, vm: Uuid) -> Option<VmView> {
    let state = host.state();
    let registration = state.registry.get(vm)?;
    let live = state.live.get(&vm)?;
    Some(VmView {
        vm,
        name: registration.name.clone(),
        tenant: registration.tenant.clone(),
        generation: registration.generation.as_str().to_owned(),
        slots: live
            .slots
            .iter()
            .map(|slot| SlotView {
                slot: slot.slot,
                region: host.plan.label(slot.region),
                functions: slot.functions.clone(),
                guest_pci: slot.guest_pci.clone(),
            })
            .collect(),
        channel: registration.channel.clone(),
        channel_state: if live.sessions > 0 {
            "session"
        } else {
            "waiting"
        }
        .to_owned(),
        pid: registration.process.map(|process| process.pid),
    })
}

/// Every job.
pub(super) fn jobs(host: &Host) -> Vec<JobView> {
    let state = host.state();
    state
        .jobs
        .all()
        .into_iter()
        .map(|job| JobView {
            key: job.record.key.clone(),
            job: job.record.id.clone(),
            vm: job.record.vm,
            kind: job.record.kind.clone(),
            slot: job.record.slot,
            image: job.record.image.clone(),
            stage: format!("{:?}", job.stage).to_lowercase(),
            result: job.result.map(|result| {
                let words = job
                    .record
                    .result
                    .as_ref()
                    .map_or("", |stored| stored.words.as_str());
                format!("{}: {words}", result.status.name())
            }),
        })
        .collect()
}

fn content_word(content: Content) -> &'static str {
    match content {
        Content::Unknown => "unknown",
        Content::Blank => "blank",
        Content::Writing => "writing",
        Content::Active => "active",
        Content::Quarantined => "quarantined",
    }
}
