//! What the cards' processes tell, taken in.
//!
//! Knows reports and whom they concern. Must not wait: it runs in the task that
//! reads the card's socket.

use protocol::message::EventKind;
use protocol::status::Status;
use tracing::{info, warn};
use uuid::Uuid;

use super::audit::Record;
use super::cards::CardEvents;
use super::duties::Memory;
use super::host::{Host, State};
use super::identity::owner_tag;
use super::orphans;
use super::plan::RegionKey;
use super::regions::LoadedImage;
use super::registry::Registration;
use crate::hex;
use crate::ipc::{Content, RegionReport};

impl CardEvents for Host {
    fn region(&self, card: usize, report: RegionReport) {
        let key = RegionKey {
            card,
            region: report.region,
        };
        let Some(plan) = self.plan.region(key) else {
            warn!(
                card,
                region = report.region.0,
                "a report of a region that no shell file names"
            );
            return;
        };
        info!(region = plan.name, content = ?report.content, access = report.guest_access, "a region's state");
        let content = report.content;
        let (lost, quarantined, remembered) = {
            let mut state = self.state();
            let lost = bereft(&state, key, &report);
            state.regions.report(key, report);
            let quarantined = state.regions.get_mut(key).is_some_and(|region| {
                let news = content == Content::Quarantined && !region.quarantine_told;
                region.quarantine_told = content == Content::Quarantined;
                news
            });
            (lost, quarantined, remember(&mut state))
        };
        if let Some((vm, slot)) = lost {
            self.tell(vm, slot, EventKind::Lost);
        }
        if quarantined {
            self.quarantined(key);
        }
        if remembered {
            info!("every region's owner is known again");
            self.save_registrations_later();
        }
        orphans::settle(self, key);
        recall(&mut self.state(), key);
        if remembered {
            // What was held for want of memory need not be any more.
            for (other, _card, _region) in self.plan.regions() {
                self.attend(other);
            }
        }
        self.attend(key);
    }

    fn lost(&self, card: usize) {
        self.state().regions.card_lost(card);
    }
}

impl Host {
    /// A region's content is not trusted any more.
    fn quarantined(&self, key: RegionKey) {
        let label = self.plan.label(key);
        warn!(region = label, "a region is in quarantine");
        self.note(&Record {
            event: "quarantine",
            region: Some(label),
            reason: Some("shut, its content not trusted; its card's process scrubs it".to_owned()),
            ..Record::default()
        });
    }
}

/// After a restart the image's name is in its owner's last job that led to these very bytes.
fn recall(state: &mut State, key: RegionKey) {
    let Some(region) = state.regions.get(key).filter(|there| there.image.is_none()) else {
        return;
    };
    let Some(report) = &region.report else { return };
    let (Content::Active, Some(tag)) = (report.content, report.tag) else {
        return;
    };
    let bitstream = report.digest;
    let digest = hex::encode(&bitstream);
    let mut jobs = state.jobs.all();
    jobs.reverse();
    let loaded = jobs.into_iter().map(|job| &job.record).find(|job| {
        job.bitstream.as_ref() == Some(&digest)
            && owner_tag(job.vm, &job.generation) == tag
            && job
                .result
                .as_ref()
                .is_some_and(|end| end.status == Status::Ok.code())
    });
    let image = loaded.and_then(|job| {
        Some(LoadedImage {
            name: job.image.clone()?,
            image_digest: hex::decode(job.image_digest.as_ref()?)?,
            bitstream,
        })
    });
    if let Some(region) = state.regions.get_mut(key) {
        region.image = image;
    }
}

/// Whose function goes with this report, if it goes by no job of its owner: that job's own end
/// tells of a clear.
fn bereft(state: &State, key: RegionKey, report: &RegionReport) -> Option<(Uuid, u16)> {
    let region = state.regions.get(key)?;
    let before = region.report.as_ref()?;
    let own_job = region
        .reserved
        .as_ref()
        .is_some_and(|reserved| reserved.by.is_some());
    let gone = match report.content {
        Content::Quarantined => true,
        Content::Blank | Content::Unknown => !own_job,
        Content::Active | Content::Writing => false,
    };
    let reached = before.content == Content::Active && before.guest_access;
    if !(gone && reached) {
        return None;
    }
    let owner = state
        .registry
        .all()
        .find(|vm| before.tag == Some(vm.tag()))?;
    let live = state.live.get(&owner.vm)?;
    let slot = live.slots.iter().find(|slot| slot.region == key)?;
    Some((owner.vm, slot.slot))
}

/// Lost registrations matter no more once every region was told of and has no owner but one
/// that is registered, or one of which it is known that it ended. Tells whether that is so now.
fn remember(state: &mut State) -> bool {
    if state.memory == Memory::Whole {
        return false;
    }
    let tags: Vec<_> = state.registry.all().map(Registration::tag).collect();
    let known = state.regions.iter().all(|(_key, region)| {
        region.report.as_ref().is_some_and(|report| {
            let in_use = report.content == Content::Unknown && report.guest_access;
            !in_use
                && report
                    .tag
                    .is_none_or(|tag| tags.contains(&tag) || state.ended.contains(&tag))
        })
    });
    if known {
        state.memory = Memory::Whole;
        state.ended.clear();
    }
    known
}
