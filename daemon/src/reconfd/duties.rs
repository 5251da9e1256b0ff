//! What the host owes a region, and when it tries again after it failed.
//!
//! Pure: facts go in, duties come out. Must not know how a duty is done.

use std::time::Duration;

use crate::ipc::{Content, OwnerTag, RegionReport};

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
    /// There are none yet: a new host. If all of it was lost instead, an owner may still be running.
    Blank,
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
        (Content::Unknown, _) if !report.guest_access => {
            Duty::Scrub("its content is unknown and no guest reaches it")
        }
        (Content::Unknown, _) if holders.is_empty() && memory != Memory::Lost => {
            Duty::Scrub("its content is unknown and no VM holds it")
        }
        (Content::Unknown, _) => {
            Duty::Hold("its content is unknown (no journal) and a guest reaches it".into())
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
            Memory::Lost | Memory::Blank => {
                Duty::Hold("it has an owner and the registrations were lost".into())
            }
        },
        (Content::Blank, None) => Duty::Nothing,
        (_, None) => Duty::Scrub("it is not blank and has no owner"),
    }
}

/// A duty that failed, and when it may be tried again. Whatever refuses it at once (a full
/// queue, a card that cannot be programmed, a full disk) must not be asked in a busy loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setback {
    /// How many in a row.
    pub count: u32,
    /// Not before this time since start.
    pub until: Duration,
    /// What the last one said.
    pub story: String,
}

/// The first pause after a setback; doubles up to [`PAUSE_MAX`].
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(60);

impl Setback {
    /// The next one, at `now`.
    #[must_use]
    pub fn after(before: Option<&Self>, story: &str, now: Duration) -> Self {
        let count = before.map_or(1, |before| before.count.saturating_add(1));
        let doublings = count.saturating_sub(1).min(16);
        let pause = PAUSE_MIN
            .saturating_mul(1u32.checked_shl(doublings).unwrap_or(u32::MAX))
            .min(PAUSE_MAX);
        Self {
            count,
            until: now.saturating_add(pause),
            story: story.to_owned(),
        }
    }
}

/// What is to be done about a region now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owed {
    /// Nothing, or whoever has it looks again when it is done.
    Nothing,
    /// It is held from now on: tell the operator.
    Held(String),
    /// Look again after this time.
    Later(Duration),
    /// Scrub it and end the ownership; it is reserved for that.
    Scrub(&'static str),
    /// Consent again; it is reserved for that.
    Reopen(OwnerTag, [u8; 32]),
}
