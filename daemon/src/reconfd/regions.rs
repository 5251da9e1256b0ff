//! What each region holds, who has it reserved, and what the host owes it.
//!
//! Pure: reports of the cards' processes and registrations go in, duties come
//! out. Must not know sockets, time or how a duty is done.

use std::collections::BTreeMap;

use protocol::message::{JobKey, SlotState};
use uuid::Uuid;

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

/// What the host has to do about a region, from facts alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Duty {
    /// Nothing.
    Nothing,
    /// Scrub it and end the ownership.
    Scrub(&'static str),
    /// Leave it alone, give it to nobody, tell the operator.
    Hold(String),
    /// It was committed for its present owner and is shut: consent again.
    Reopen(OwnerTag, [u8; 32]),
}

/// Whether the registrations of before this start are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// They were read: an owner that is not among the holders is over.
    Whole,
    /// They were lost: an owner that nobody knows may still be running.
    Lost,
}

/// What is owed to a region that `report` tells of, while the VMs with these tags hold
/// functions that end in it. After `tries` scrubs that failed in a row it is the operator's.
#[must_use]
pub fn duty(report: &RegionReport, holders: &[OwnerTag], memory: Memory, tries: u32) -> Duty {
    if u32::from(report.scrub_failures) >= tries && report.content != Content::Blank {
        return Duty::Hold(format!("{} scrubs failed in a row", report.scrub_failures));
    }
    let owner_is_holder = report.tag.is_some_and(|tag| holders.contains(&tag));
    match (report.content, report.tag) {
        (Content::Unknown, _) if holders.is_empty() => {
            Duty::Scrub("its content is unknown and no VM holds it")
        }
        (Content::Unknown, _) => {
            Duty::Hold("its content is unknown (no journal) and a VM holds it".into())
        }
        (Content::Active, Some(tag)) if owner_is_holder && !report.guest_access => {
            Duty::Reopen(tag, report.digest)
        }
        (_, Some(_)) if owner_is_holder => Duty::Nothing,
        (_, Some(_)) if !holders.is_empty() => {
            Duty::Scrub("its owner is over and another VM holds it")
        }
        (_, Some(_)) => match memory {
            Memory::Whole => Duty::Scrub("its owner is over"),
            Memory::Lost => Duty::Hold("it has an owner and the registrations were lost".into()),
        },
        (Content::Blank, None) => Duty::Nothing,
        (_, None) => Duty::Scrub("it is not blank and has no owner"),
    }
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
mod tests {
    use super::super::plan::tests::two_cards;
    use super::*;
    use crate::ipc::RegionIndex;
    use proptest::prelude::*;

    const MINE: OwnerTag = OwnerTag([1; 32]);
    const OTHER: OwnerTag = OwnerTag([2; 32]);

    fn report(content: Content, tag: Option<OwnerTag>) -> RegionReport {
        RegionReport {
            region: RegionIndex(0),
            of: 2,
            content,
            digest: [7; 32],
            tag,
            function: None,
            guest_access: content == Content::Active,
            scrub_failures: 0,
            since: 0,
        }
    }

    fn reserved() -> Reserved {
        Reserved {
            by: Some((Uuid::nil(), JobKey([1; 16]))),
            what: "load".into(),
        }
    }

    #[test]
    fn inv2_a_foreign_content_is_scrubbed_before_anyone_gets_it() {
        assert!(matches!(
            duty(
                &report(Content::Active, Some(OTHER)),
                &[MINE],
                Memory::Whole,
                3
            ),
            Duty::Scrub(_)
        ));
        assert!(matches!(
            duty(
                &report(Content::Active, Some(OTHER)),
                &[MINE],
                Memory::Lost,
                3
            ),
            Duty::Scrub(_)
        ));
        assert!(matches!(
            duty(&report(Content::Blank, Some(OTHER)), &[], Memory::Whole, 3),
            Duty::Scrub(_)
        ));
        assert_eq!(
            duty(&report(Content::Blank, None), &[MINE], Memory::Whole, 3),
            Duty::Nothing
        );
        assert_eq!(
            duty(
                &report(Content::Active, Some(MINE)),
                &[MINE],
                Memory::Whole,
                3
            ),
            Duty::Nothing
        );
    }

    #[test]
    fn loss_of_registrations_holds_and_loss_of_the_journal_scrubs_or_holds() {
        assert!(matches!(
            duty(&report(Content::Active, Some(OTHER)), &[], Memory::Lost, 3),
            Duty::Hold(_)
        ));
        assert!(matches!(
            duty(&report(Content::Unknown, None), &[], Memory::Whole, 3),
            Duty::Scrub(_)
        ));
        assert!(matches!(
            duty(&report(Content::Unknown, None), &[MINE], Memory::Whole, 3),
            Duty::Hold(_)
        ));
    }

    #[test]
    fn d9_three_failed_scrubs_are_the_operators() {
        let mut failed = report(Content::Quarantined, None);
        failed.scrub_failures = 2;
        assert!(matches!(
            duty(&failed, &[], Memory::Whole, 3),
            Duty::Scrub(_)
        ));
        failed.scrub_failures = 3;
        assert!(matches!(
            duty(&failed, &[MINE], Memory::Whole, 3),
            Duty::Hold(_)
        ));
    }

    #[test]
    fn committed_and_shut_is_consented_again_for_its_owner_only() {
        let mut shut = report(Content::Active, Some(MINE));
        shut.guest_access = false;
        assert_eq!(
            duty(&shut, &[MINE], Memory::Whole, 3),
            Duty::Reopen(MINE, [7; 32])
        );
        assert!(matches!(
            duty(&shut, &[OTHER], Memory::Whole, 3),
            Duty::Scrub(_)
        ));
    }

    #[test]
    fn xrt_11_g16_one_job_has_a_region() {
        let plan = two_cards();
        let key = plan.region_of("vf:0.0").unwrap();
        let mut regions = Regions::new(&plan);
        assert!(matches!(
            regions.reserve(key, MINE, reserved()),
            Err(NotNow::Unavailable(_))
        ));
        regions.report(key, report(Content::Blank, None));
        regions.reserve(key, MINE, reserved()).unwrap();
        assert_eq!(
            regions.reserve(key, MINE, reserved()),
            Err(NotNow::Busy(reserved()))
        );
        regions.release(key);
        regions.reserve(key, MINE, reserved()).unwrap();
    }

    #[test]
    fn xrt_01_cyb_08_an_image_is_remembered_only_while_the_card_says_the_same() {
        let plan = two_cards();
        let key = plan.region_of("vf:0.0").unwrap();
        let mut regions = Regions::new(&plan);
        regions.report(key, report(Content::Active, Some(MINE)));
        regions.get_mut(key).unwrap().image = Some(LoadedImage {
            name: "acme/a:1".into(),
            image_digest: [1; 32],
            bitstream: [7; 32],
        });
        regions.report(key, report(Content::Active, Some(MINE)));
        assert!(regions.get(key).unwrap().image.is_some());
        regions.report(key, report(Content::Quarantined, Some(MINE)));
        assert!(regions.get(key).unwrap().image.is_none());
    }

    fn contents() -> impl Strategy<Value = Content> {
        prop::sample::select(vec![
            Content::Unknown,
            Content::Blank,
            Content::Writing,
            Content::Active,
            Content::Quarantined,
        ])
    }

    proptest! {
        /// A region is never reserved for a VM unless it is blank without an owner, or that VM's own.
        #[test]
        fn inv2_no_reservation_of_what_was_not_scrubbed(content in contents(), tag in prop::option::of(prop::sample::select(vec![MINE, OTHER]))) {
            let plan = two_cards();
            let key = plan.region_of("vf:0.0").unwrap();
            let mut regions = Regions::new(&plan);
            regions.report(key, report(content, tag));
            if regions.reserve(key, MINE, reserved()).is_ok() {
                prop_assert!(tag != Some(OTHER));
                prop_assert!(matches!(content, Content::Blank | Content::Active));
            }
        }
    }
}
