//! What each region holds, and who has it reserved.
//!
//! Pure: reports of the cards' processes and reservations go in; time is given.
//! Must not know sockets, or how a duty is done.

use std::collections::BTreeMap;
use std::time::Duration;

use protocol::message::{JobKey, SlotState};
use uuid::Uuid;

use super::duties::{Duty, Memory, Owed, Setback, duty};
use super::plan::{HostPlan, RegionKey};
use crate::ipc::{Content, OwnerTag, RegionReport};

/// A reservation: one job at a time has a region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reserved {
    /// Whose job it is; nothing for the host's own.
    pub by: Option<(Uuid, JobKey)>,
    /// For operators: what the job is.
    pub what: String,
}

/// A region, as this process knows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Region {
    /// What its card's process told last; nothing while that is not connected.
    pub report: Option<RegionReport>,
    /// Who has it reserved.
    pub reserved: Option<Reserved>,
    /// The image in it, if this host loaded it.
    pub image: Option<LoadedImage>,
    /// Why it is held, if it is: nobody gets it until an operator acts.
    pub held: Option<String>,
    /// The host's own duties here that failed in a row.
    pub setback: Option<Setback>,
    /// It is in quarantine, and the audit says so.
    pub quarantine_told: bool,
    /// A timer will look at it again.
    armed: bool,
}

/// What was loaded by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedImage {
    /// `publisher/name:version`.
    pub name: String,
    /// The image's digest.
    pub image_digest: [u8; 32],
    /// The digest of the bitstream: stands only as long as the card reports the same.
    pub bitstream: [u8; 32],
}

/// Why a region cannot be reserved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotNow {
    /// Another job has it.
    Busy(Reserved),
    /// It is being made safe, or waits for that.
    Recovering,
    /// Its card's process is not connected, or it is held.
    Unavailable(String),
}

/// All regions of the host.
#[derive(Debug, Default)]
pub struct Regions {
    all: BTreeMap<RegionKey, Region>,
}

impl Regions {
    /// Every region of the plan, unknown as yet.
    #[must_use]
    pub fn new(plan: &HostPlan) -> Self {
        Self {
            all: plan
                .regions()
                .map(|(key, _card, _region)| (key, Region::default()))
                .collect(),
        }
    }

    /// A region.
    #[must_use]
    pub fn get(&self, key: RegionKey) -> Option<&Region> {
        self.all.get(&key)
    }

    /// A region, to change.
    pub fn get_mut(&mut self, key: RegionKey) -> Option<&mut Region> {
        self.all.get_mut(&key)
    }

    /// Every region.
    pub fn iter(&self) -> impl Iterator<Item = (RegionKey, &Region)> {
        self.all.iter().map(|(key, region)| (*key, region))
    }

    /// Takes a report in. An image is forgotten as soon as the card tells of another content
    /// (CYB-08).
    pub fn report(&mut self, key: RegionKey, report: RegionReport) {
        let Some(region) = self.all.get_mut(&key) else {
            return;
        };
        let still = report.content == Content::Active
            && region
                .image
                .as_ref()
                .is_some_and(|image| image.bitstream == report.digest);
        if !still && report.content != Content::Writing {
            region.image = None;
        }
        if report.content == Content::Blank {
            region.held = None;
        }
        region.report = Some(report);
    }

    /// A card's process is gone: nothing is known of its regions until it tells again.
    pub fn card_lost(&mut self, card: usize) {
        for (key, region) in &mut self.all {
            if key.card == card {
                region.report = None;
            }
        }
    }

    /// Reserves a region for a VM's load or clear.
    ///
    /// # Errors
    /// [`NotNow`]; nothing was changed.
    pub fn reserve(
        &mut self,
        key: RegionKey,
        tag: OwnerTag,
        reserved: Reserved,
    ) -> Result<(), NotNow> {
        let region = self
            .all
            .get_mut(&key)
            .ok_or_else(|| NotNow::Unavailable("no such region".into()))?;
        if let Some(other) = &region.reserved {
            return Err(if other.by.is_some() {
                NotNow::Busy(other.clone())
            } else {
                NotNow::Recovering
            });
        }
        if let Some(why) = &region.held {
            return Err(NotNow::Unavailable(why.clone()));
        }
        let report = region
            .report
            .as_ref()
            .ok_or_else(|| NotNow::Unavailable("its card's process is not connected".into()))?;
        match report.content {
            Content::Blank if report.tag.is_none_or(|owner| owner == tag) => {}
            Content::Active if report.tag == Some(tag) => {}
            Content::Unknown => return Err(NotNow::Unavailable("its content is unknown".into())),
            _ => return Err(NotNow::Recovering),
        }
        region.reserved = Some(reserved);
        Ok(())
    }

    /// Reserves a region for the host's own scrub.
    ///
    /// # Errors
    /// [`NotNow`]; nothing was changed.
    pub fn reserve_for_host(&mut self, key: RegionKey, what: &str) -> Result<(), NotNow> {
        let region = self
            .all
            .get_mut(&key)
            .ok_or_else(|| NotNow::Unavailable("no such region".into()))?;
        if let Some(other) = &region.reserved {
            return Err(NotNow::Busy(other.clone()));
        }
        region.reserved = Some(Reserved {
            by: None,
            what: what.to_owned(),
        });
        Ok(())
    }

    /// Finds what is owed to a region at `now`, and reserves it where that is a deed: between
    /// the look and the deed nobody else can get it.
    pub fn take_duty(
        &mut self,
        key: RegionKey,
        holders: &[OwnerTag],
        memory: Memory,
        tries: u32,
        now: Duration,
    ) -> Owed {
        let Some(region) = self.all.get_mut(&key) else {
            return Owed::Nothing;
        };
        let (Some(report), None) = (&region.report, &region.reserved) else {
            return Owed::Nothing;
        };
        let owed = match duty(report, holders, memory, tries) {
            Duty::Hold(why) => {
                let news = region.held.as_ref() != Some(&why);
                region.held = Some(why.clone());
                return if news { Owed::Held(why) } else { Owed::Nothing };
            }
            Duty::Nothing => Owed::Nothing,
            Duty::Scrub(why) => Owed::Scrub(why),
            Duty::Reopen(tag, digest) => Owed::Reopen(tag, digest),
        };
        region.held = None;
        if owed == Owed::Nothing {
            region.setback = None;
            return owed;
        }
        let pause = region
            .setback
            .as_ref()
            .map_or(Duration::ZERO, |setback| setback.until.saturating_sub(now));
        if !pause.is_zero() {
            let first = !region.armed;
            region.armed = true;
            return if first {
                Owed::Later(pause)
            } else {
                Owed::Nothing
            };
        }
        region.reserved = Some(Reserved {
            by: None,
            what: match &owed {
                Owed::Scrub(why) => format!("a scrub: {why}"),
                _ => "consent after a restart".to_owned(),
            },
        });
        owed
    }

    /// The timer of [`Owed::Later`] rang.
    pub fn disarm(&mut self, key: RegionKey) {
        if let Some(region) = self.all.get_mut(&key) {
            region.armed = false;
        }
    }

    /// A duty of the host ended. Tells whether that is news for the operator: a failure that
    /// repeats itself is none.
    pub fn duty_ended(&mut self, key: RegionKey, failed: Option<&str>, now: Duration) -> bool {
        let Some(region) = self.all.get_mut(&key) else {
            return true;
        };
        let Some(story) = failed else {
            region.setback = None;
            return true;
        };
        let next = Setback::after(region.setback.as_ref(), story, now);
        let news = region
            .setback
            .as_ref()
            .is_none_or(|before| before.story != next.story);
        region.setback = Some(next);
        news
    }

    /// Ends a reservation.
    pub fn release(&mut self, key: RegionKey) {
        if let Some(region) = self.all.get_mut(&key) {
            region.reserved = None;
        }
    }

    /// What the VM with this tag may see of a region.
    #[must_use]
    pub fn slot_state(&self, key: RegionKey, tag: OwnerTag) -> SlotState {
        let Some(region) = self.all.get(&key) else {
            return SlotState::Unavailable;
        };
        let Some(report) = &region.report else {
            return SlotState::Unavailable;
        };
        if region.held.is_some() {
            return SlotState::Unavailable;
        }
        match (&region.reserved, report.content) {
            (Some(Reserved { by: Some(_), .. }), _) => SlotState::Changing,
            (None, Content::Unknown) => SlotState::Unavailable,
            (None, Content::Blank) => SlotState::Empty,
            (None, Content::Active) if report.tag == Some(tag) && report.guest_access => {
                SlotState::Active
            }
            // Being made safe, or committed and not reached yet.
            _ => SlotState::Recovering,
        }
    }
}

#[cfg(test)]
mod tests;
