//! Bytes into a shut region: what a load and a scrub do alike.
//!
//! Knows the engine's order of calls and what may interrupt it. Must not know
//! journal entries or owners.

use std::time::{Duration, Instant};

use bitstream::xilinx::WordOrder;
use card::{Identity, Payload};
use uuid::Uuid;

use super::bench::Bench;
use super::ending::Failure;
use super::fitted::Fitted;
use super::inbox::{ConnectionId, GivenUp, Inbox};
use super::outlet::Outlet;
use super::region::Region;
use super::steps::Step;
use crate::ipc::{CardStage, FromCard, JobId, Outcome};

/// Bytes between two looks at whether the job was given up.
const PIECE: usize = 64 << 10;

/// Least time between two words about progress.
const BETWEEN: Duration = Duration::from_millis(50);

/// Who hears about progress, and who may give the work up.
#[derive(Debug, Clone, Copy)]
pub(super) enum Talk {
    /// A load: its connection hears, and may give it up.
    Load(JobId, ConnectionId),
    /// A scrub that was asked for: its connection hears, and can no longer stop it.
    Scrub(JobId, ConnectionId),
    /// A scrub of our own.
    Alone,
}

impl Talk {
    /// Tells how far it is.
    pub(super) fn progress(&self, outlet: &Outlet, stage: CardStage, done: u64, total: u64) {
        let (Self::Load(job, to) | Self::Scrub(job, to)) = *self else {
            return;
        };
        let message = FromCard::Progress {
            job,
            stage,
            done,
            total,
        };
        outlet.say(to, &message);
    }

    fn given_up(&self, inbox: &Inbox) -> Option<GivenUp> {
        match *self {
            Self::Load(job, from) => inbox.given_up(job, from),
            Self::Scrub(..) | Self::Alone => inbox.stopping().then_some(GivenUp::Stopping),
        }
    }
}

/// Takes the region from the guest, before anything else is done to it.
///
/// # Errors
/// It could not be proven shut, or the job was given up.
pub(super) fn shut(region: &mut Region, bench: &mut Bench, talk: &Talk) -> Result<(), Failure> {
    talk.progress(&bench.outlet, CardStage::Isolating, 0, 0);
    bench.shut(region, CardStage::Isolating)?;
    bench.steps.reached(Step::Shut);
    match talk.given_up(&bench.inbox) {
        Some(why) => Err(Failure::given_up(CardStage::Isolating, why)),
        None => Ok(()),
    }
}

/// Writes the payload of what was held against this region, and returns what the card needed for
/// it: from the first data store to its verdict.
///
/// # Errors
/// The card's, or that the job was given up; the engine is at rest again, the region shut.
pub(super) fn payload(
    region: &Region,
    bench: &mut Bench,
    fitted: &Fitted,
    talk: &Talk,
) -> Result<Duration, Failure> {
    if fitted.region() != region.index {
        // What was proven for one region says nothing of another.
        let text = "the bytes were held against another region";
        return Err(Failure::new(Outcome::Violation, CardStage::Writing, text));
    }
    let image = fitted.image();
    tracing::info!(
        region = %region.name,
        words = %image.order(),
        proven = %fitted.proof(),
        "writing"
    );
    let payload = image.payload();
    let order = image.order();
    let total = u64::try_from(payload.len()).unwrap_or(u64::MAX);
    let announced = Payload {
        bytes: total,
        order: match order {
            WordOrder::BigEndian => card::WordOrder::BigEndian,
            WordOrder::LittleEndian => card::WordOrder::LittleEndian,
        },
    };
    talk.progress(&bench.outlet, CardStage::Writing, 0, total);
    let Bench {
        engine,
        inbox,
        outlet,
        steps,
        ..
    } = bench;
    let mut programming = engine
        .begin(region.id, announced, region.pace.budget(total))
        .map_err(|error| Failure::program(&error))?;
    steps.reached(Step::Begun);
    let first_store = Instant::now();
    let mut told = first_store;
    for piece in payload.chunks(PIECE) {
        programming
            .write(piece)
            .map_err(|error| Failure::program(&error))?;
        let done = programming.given();
        if done < total {
            steps.reached(Step::PartWritten);
        }
        if let Some(why) = talk.given_up(inbox) {
            // The guard is dropped here: engine at rest, region shut.
            return Err(Failure::given_up(CardStage::Writing, why));
        }
        if told.elapsed() >= BETWEEN {
            told = Instant::now();
            talk.progress(outlet, CardStage::Writing, done, total);
        }
    }
    steps.reached(Step::AllWritten);
    programming
        .finish()
        .map_err(|error| Failure::program(&error))?;
    let took = first_store.elapsed();
    steps.reached(Step::Finished);
    talk.progress(outlet, CardStage::Checking, total, total);
    Ok(took)
}

/// Asks the region what it is, while only the host reaches it.
///
/// # Errors
/// It is not `expected`, where that is known and the engine can tell.
pub(super) fn identity(
    region: &Region,
    bench: &mut Bench,
    expected: Option<Uuid>,
) -> Result<Identity, Failure> {
    let stage = CardStage::Checking;
    let identity = bench
        .engine
        .identity(region.id)
        .map_err(|error| Failure::engine(stage, &error))?;
    if let (Identity::Function(found), Some(expected)) = (identity, expected)
        && found != expected
    {
        let text = format!("the region shows {found}, not {expected}");
        return Err(Failure::new(Outcome::Identity, stage, text));
    }
    bench.steps.reached(Step::Identified);
    Ok(identity)
}
