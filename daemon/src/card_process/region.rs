//! One region of the card: what the shell file says of it, what the card and
//! the journal say, and who reaches it now.
//!
//! Knows states and owners. Must not know how they are changed: that is the
//! pipeline's, the scrub's and the reconciliation's business.

use std::sync::Arc;
use std::time::Duration;

use card::RegionId;
use card::engine::load_budget;
use card::journal::{Content, OwnerTag, RegionState};
use policy::files::RegionFacts;
use uuid::Uuid;

use super::ending::Refusal;
use super::fitted::Fitted;
use crate::frames::Demand;
use crate::ipc::{self, Outcome, RegionIndex, RegionReport};

/// Who reaches a region, as far as this process proved it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gate {
    /// The host only: read back from the card.
    Shut,
    /// The guest, too.
    Guest,
}

/// Whether a region's part of the shell file is about this very card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fit {
    /// It is.
    Programmable,
    /// It is, but no tenant may load into it; what it holds may be used, and scrubbed.
    NoLoads(String),
    /// It is not: no bitstream is ever written to this region.
    Not(String),
}

/// Why a region cannot be scrubbed, or what it is scrubbed with.
#[derive(Debug, Clone)]
pub(super) enum Blank {
    /// Pinned by the shell file, held since the start.
    Held {
        /// Held against the region, as every bitstream is.
        fitted: Arc<Fitted>,
        /// The function that the region shows then, where container or shell file say it.
        function: Option<Uuid>,
    },
    /// The shell file names none.
    None,
    /// The one that it names is missing, not what is pinned, or not within the region's frames.
    Unusable(String),
}

/// How long a load may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pace {
    /// For every load.
    pub base: Duration,
    /// Bytes a second.
    pub rate: u64,
}

impl Pace {
    /// The budget of a load of `bytes`.
    pub(super) fn budget(self, bytes: u64) -> Duration {
        load_budget(bytes, self.base, self.rate)
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Region {
    /// Its place in the shell file.
    pub index: RegionIndex,
    /// How many regions the shell file has.
    pub of: u16,
    /// Its number on the card; the journal knows it by this one, so that the
    /// order of the shell file may change.
    pub id: RegionId,
    /// Its name in the shell file.
    pub name: String,
    /// Whether shell file and card agree.
    pub fit: Fit,
    /// The blank image.
    pub blank: Blank,
    /// What a target must fit: interface id, region type, size.
    pub facts: RegionFacts,
    /// What the shell file demands of the frames of whatever is written to it.
    pub demand: Demand,
    /// How long a load may take.
    pub pace: Pace,
    /// What it holds, as far as this process knows.
    pub state: RegionState,
    /// What the journal says: the same; unknown after a write of it that failed.
    pub recorded: RegionState,
    /// Who reaches it.
    pub gate: Gate,
}

impl Region {
    /// Whether a tenant's bitstream may ever be written to it.
    ///
    /// # Errors
    /// The story of why not.
    pub(super) fn loadable(&self) -> Result<(), Refusal> {
        match &self.fit {
            Fit::Programmable => Ok(()),
            Fit::NoLoads(why) | Fit::Not(why) => Err(self.unfit(why)),
        }
    }

    /// Whether it is a region of this card at all: it can be scrubbed, opened and reset.
    ///
    /// # Errors
    /// The story of the mismatch.
    pub(super) fn programmable(&self) -> Result<(), Refusal> {
        match &self.fit {
            Fit::Programmable | Fit::NoLoads(_) => Ok(()),
            Fit::Not(why) => Err(self.unfit(why)),
        }
    }

    fn unfit(&self, why: &str) -> Refusal {
        let text = format!("region {} is not programmable: {why}", self.name);
        Refusal::new(Outcome::Refused, text)
    }

    /// Whether `tag` may load into it now: it owns the region, or nobody does and it is blank
    /// (INV2).
    ///
    /// # Errors
    /// [`Outcome::WrongState`] where only a scrub leads on, [`Outcome::NotScrubbed`] where it is
    /// another's.
    pub(super) fn may_load(&self, tag: OwnerTag) -> Result<(), Refusal> {
        match (self.state.content, self.state.owner) {
            (Content::Unknown | Content::Quarantined { .. } | Content::Writing { .. }, _) => {
                Err(Refusal::new(
                    Outcome::WrongState,
                    format!("region {} must be scrubbed first", self.name),
                ))
            }
            (Content::Blank | Content::Active { .. }, Some(owner)) if owner == tag => Ok(()),
            (Content::Blank, None) => Ok(()),
            (Content::Blank | Content::Active { .. }, _) => Err(Refusal::new(
                Outcome::NotScrubbed,
                format!("region {} is another owner's", self.name),
            )),
        }
    }

    /// Whether `keep` may be the owner after a scrub: it is the owner, or there is none.
    ///
    /// # Errors
    /// [`Outcome::NotScrubbed`] where it is another's.
    pub(super) fn may_keep(&self, keep: Option<OwnerTag>) -> Result<(), Refusal> {
        match (keep, self.state.owner) {
            (Some(tag), Some(owner)) if tag != owner => Err(Refusal::new(
                Outcome::NotScrubbed,
                format!("region {} is another owner's", self.name),
            )),
            _ => Ok(()),
        }
    }

    /// How many scrubs failed since the last that did not.
    pub(super) fn scrub_failures(&self) -> u8 {
        match self.state.content {
            Content::Quarantined { failures } => failures,
            Content::Unknown
            | Content::Blank
            | Content::Writing { .. }
            | Content::Active { .. } => 0,
        }
    }

    /// What `reconfd` is told of it.
    pub(super) fn report(&self) -> RegionReport {
        let (content, digest, function) = match self.state.content {
            Content::Unknown => (ipc::Content::Unknown, [0; 32], None),
            Content::Blank => (ipc::Content::Blank, [0; 32], None),
            Content::Writing { digest, .. } => (ipc::Content::Writing, digest.0, None),
            Content::Active {
                digest, function, ..
            } => (ipc::Content::Active, digest.0, Some(function.into_bytes())),
            Content::Quarantined { .. } => (ipc::Content::Quarantined, [0; 32], None),
        };
        RegionReport {
            region: self.index,
            of: self.of,
            content,
            digest,
            tag: self.state.owner.map(|owner| ipc::OwnerTag(owner.0)),
            function,
            guest_access: self.gate == Gate::Guest,
            scrub_failures: u16::from(self.scrub_failures()),
            since: self.state.since / 1000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use card::journal::{Job, Sha256};
    use policy::files::Engine;
    use policy::ids::{InterfaceId, RegionType};
    use uuid::Uuid;

    const MINE: OwnerTag = OwnerTag([1; 32]);
    const THEIRS: OwnerTag = OwnerTag([2; 32]);

    fn region(content: Content, owner: Option<OwnerTag>) -> Region {
        let state = RegionState {
            owner,
            content,
            since: 5000,
        };
        Region {
            index: RegionIndex(0),
            of: 1,
            id: RegionId(0),
            name: "left".to_owned(),
            fit: Fit::Programmable,
            facts: RegionFacts {
                interface_id: InterfaceId(Uuid::nil()),
                region_type: RegionType::parse("test.org/region").unwrap(),
                bitstream_max: 1,
                engine: Engine::Dfl,
            },
            blank: Blank::None,
            demand: Demand::Nothing,
            pace: Pace {
                base: Duration::ZERO,
                rate: 1,
            },
            state,
            recorded: state,
            gate: Gate::Shut,
        }
    }

    fn contents() -> [Content; 5] {
        let (job, digest) = (Job([3; 16]), Sha256([4; 32]));
        [
            Content::Unknown,
            Content::Blank,
            Content::Writing { job, digest },
            Content::Active {
                job,
                digest,
                function: Uuid::nil(),
            },
            Content::Quarantined { failures: 2 },
        ]
    }

    #[test]
    fn inv2_every_content_and_every_owner() {
        for content in contents() {
            for owner in [None, Some(MINE), Some(THEIRS)] {
                let may = region(content, owner).may_load(MINE);
                let want = match (content, owner) {
                    (Content::Blank, None | Some(MINE)) | (Content::Active { .. }, Some(MINE)) => {
                        None
                    }
                    (Content::Blank | Content::Active { .. }, _) => Some(Outcome::NotScrubbed),
                    _ => Some(Outcome::WrongState),
                };
                let got = may.err().map(|refusal| refusal.outcome);
                assert_eq!(got, want, "{content:?} {owner:?}");
            }
        }
    }

    #[test]
    fn inv2_a_scrub_keeps_no_region_for_another() {
        for content in contents() {
            assert!(region(content, Some(THEIRS)).may_keep(Some(MINE)).is_err());
            assert!(region(content, Some(MINE)).may_keep(Some(MINE)).is_ok());
            assert!(region(content, None).may_keep(Some(MINE)).is_ok());
            assert!(region(content, Some(THEIRS)).may_keep(None).is_ok());
        }
    }

    #[test]
    fn a_report_tells_the_state_and_nothing_else() {
        let report = region(contents()[4], Some(MINE)).report();
        assert_eq!(report.content, ipc::Content::Quarantined);
        assert_eq!((report.scrub_failures, report.since), (2, 5));
        assert_eq!((report.digest, report.function), ([0; 32], None));
        let report = region(contents()[3], Some(MINE)).report();
        assert_eq!(report.digest, [4; 32]);
        assert!(!report.guest_access);
    }
}
