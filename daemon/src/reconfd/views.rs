//! What an operator sees: the host's state in the words of the admin socket.
//!
//! Reads only. Knows what guests must not: cards, regions, other tenants.

use uuid::Uuid;

use super::host::Host;
use crate::admin::{AlarmView, CardView, JobView, RegionView, SlotView, StatusView, VmView};
use crate::hex;
use crate::ipc::Content;

/// Is all well, and if not, what comes next?
pub(super) fn status(host: &Host) -> StatusView {
    let list = host.judge.view();
    let mut alarms = Vec::new();
    if let Some(problem) = &list.problem {
        alarms.push(AlarmView {
            what: format!("signed list: {problem}"),
            next: "reconfctl trust show".to_owned(),
        });
    }
    let state = host.state();
    if let Some(reason) = &state.stopped {
        alarms.push(AlarmView {
            what: format!("new loads are stopped: {reason}"),
            next: "reconfctl resume".to_owned(),
        });
    }
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
    for card in cards.iter().filter(|card| !card.connected) {
        alarms.push(AlarmView {
            what: format!("the process of card {} is not connected", card.name),
            next: format!(
                "start reconf-card --card {} and look at its log",
                card.address
            ),
        });
    }
    for (key, region) in state.regions.iter() {
        let label = host.plan.label(key);
        if let Some(why) = &region.held {
            alarms.push(AlarmView {
                what: format!("region {label} is held: {why}"),
                next: format!("reconfctl region scrub {label}"),
            });
        }
    }
    StatusView {
        healthy: alarms.is_empty(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        since: host.since,
        stopped: state.stopped.clone(),
        list,
        cards,
        vms: u32::try_from(state.live.len()).unwrap_or(u32::MAX),
        sessions: u32::try_from(state.live.values().filter(|live| live.session).count())
            .unwrap_or(u32::MAX),
        jobs: state.running,
        alarms,
    }
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
        channel_state: if live.session { "session" } else { "waiting" }.to_owned(),
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
