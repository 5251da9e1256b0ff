//! The guard of one load: whoever holds it is writing a region, and whoever
//! drops it half-way leaves the engine recovered and the region shut.
//!
//! It knows bytes, words and the announced size; what the words are pushed
//! into is the engine's ([`Loader`]). Bytes become 32-bit little-endian words
//! here, the last one padded with zeros: after every check of the bytes, never
//! before (cases/KRN-02).

use std::time::Duration;

use super::{ProgramCause, ProgramError, RawStatus, RegionId, RegionLeft, Stage};

/// Words handed to the engine at once; a page of payload.
const BATCH: usize = 1024;

/// Bytes between two calls of a progress function.
const PROGRESS_STEP: usize = 64 << 10;

/// The half of an engine that takes words. `deadline` counts on the engine's
/// own clock.
pub(crate) trait Loader {
    /// Pushes `words`, as fast as the hardware takes them.
    fn push(&mut self, words: &[u32], deadline: Duration) -> Result<(), Failure>;

    /// Ends the load and waits for the verdict.
    fn complete(&mut self, region: RegionId, deadline: Duration) -> Result<RawStatus, Failure>;

    /// Brings the engine back to rest after a failure or an abandoned load,
    /// and the region to where no guest reaches it.
    fn recover(&mut self, region: RegionId) -> RegionLeft;

    /// The registers as they are now, before anything clears them.
    fn raw_status(&mut self) -> RawStatus;

    /// The engine's clock.
    fn now(&self) -> Duration;
}

/// What went wrong inside a [`Loader`], with the registers of that moment.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) cause: ProgramCause,
    pub(crate) raw: RawStatus,
}

/// A load in progress. Dropped before [`Programming::finish`], it gives the
/// load up: the engine is reset and the region stays shut.
#[must_use = "a load that is dropped is given up"]
pub struct Programming<'engine> {
    loader: &'engine mut dyn Loader,
    region: RegionId,
    announced: u64,
    given: u64,
    started: Duration,
    deadline: Duration,
    /// Up to three bytes that wait for the rest of their word.
    rest: Rest,
    state: State,
}

/// Bytes of a word that is not complete.
#[derive(Debug, Clone, Copy, Default)]
struct Rest {
    word: u32,
    /// 0, 8, 16 or 24.
    bits: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    Failed,
    Done,
}

/// A load that the hardware took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Bytes of the payload, without padding.
    pub bytes: u64,
    /// From `begin` to the verdict.
    pub took: Duration,
    /// The registers at the end.
    pub raw: RawStatus,
}

impl<'engine> Programming<'engine> {
    /// A load of `announced` bytes that the engine is ready to take.
    pub(crate) fn new(
        loader: &'engine mut dyn Loader,
        region: RegionId,
        announced: u64,
        started: Duration,
        deadline: Duration,
    ) -> Self {
        Self {
            loader,
            region,
            announced,
            given: 0,
            started,
            deadline,
            rest: Rest::default(),
            state: State::Running,
        }
    }

    /// The region that is being written.
    #[must_use]
    pub fn region(&self) -> RegionId {
        self.region
    }

    /// Bytes taken so far.
    #[must_use]
    pub fn given(&self) -> u64 {
        self.given
    }

    /// Writes the next bytes of the payload, in pieces of any length.
    ///
    /// # Errors
    /// The load is over: the engine was reset, the region is shut.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), ProgramError> {
        self.running(Stage::Writing)?;
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let given = self.given.saturating_add(length);
        if given > self.announced {
            let announced = self.announced;
            return Err(self.give_up(Stage::Writing, ProgramCause::TooLong { announced }));
        }
        let mut words = [0u32; BATCH];
        for piece in bytes.chunks(BATCH.saturating_mul(4)) {
            let filled = self.rest.fill(piece, &mut words);
            let ready = words.get(..filled).unwrap_or_default();
            if let Err(failure) = self.loader.push(ready, self.deadline) {
                return Err(self.fail(Stage::Writing, failure));
            }
        }
        self.given = given;
        Ok(())
    }

    /// Writes a payload and tells `progress` how many bytes of it are in.
    ///
    /// # Errors
    /// As [`Programming::write`].
    pub fn write_all(
        &mut self,
        payload: &[u8],
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), ProgramError> {
        for piece in payload.chunks(PROGRESS_STEP) {
            self.write(piece)?;
            progress(self.given);
        }
        Ok(())
    }

    /// Ends the load and returns the hardware's verdict.
    ///
    /// # Errors
    /// The engine was reset, the region is shut.
    pub fn finish(mut self) -> Result<Written, ProgramError> {
        self.running(Stage::Completing)?;
        if self.given != self.announced {
            let (announced, given) = (self.announced, self.given);
            let cause = ProgramCause::TooShort { announced, given };
            return Err(self.give_up(Stage::Completing, cause));
        }
        let (region, deadline) = (self.region, self.deadline);
        let last = self.rest.padded();
        let verdict = match self.loader.push(last.as_slice(), deadline) {
            Ok(()) => self.loader.complete(region, deadline),
            Err(failure) => Err(failure),
        };
        match verdict {
            Ok(raw) => {
                self.state = State::Done;
                Ok(Written {
                    bytes: self.given,
                    took: self.loader.now().saturating_sub(self.started),
                    raw,
                })
            }
            Err(failure) => Err(self.fail(Stage::Completing, failure)),
        }
    }

    fn running(&self, stage: Stage) -> Result<(), ProgramError> {
        if self.state == State::Running {
            return Ok(());
        }
        Err(ProgramError {
            region: self.region,
            stage,
            cause: ProgramCause::AlreadyFailed,
            raw: RawStatus::default(),
            left: RegionLeft::AsItWas,
        })
    }

    fn give_up(&mut self, stage: Stage, cause: ProgramCause) -> ProgramError {
        let raw = self.loader.raw_status();
        self.fail(stage, Failure { cause, raw })
    }

    fn fail(&mut self, stage: Stage, failure: Failure) -> ProgramError {
        self.state = State::Failed;
        ProgramError {
            region: self.region,
            stage,
            cause: failure.cause,
            raw: failure.raw,
            left: self.loader.recover(self.region),
        }
    }
}

impl Drop for Programming<'_> {
    fn drop(&mut self) {
        if self.state == State::Running {
            let left = self.loader.recover(self.region);
            tracing::warn!(region = self.region.0, %left, "a load was given up half-way");
        }
    }
}

impl std::fmt::Debug for Programming<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Programming")
            .field("region", &self.region)
            .field("announced", &self.announced)
            .field("given", &self.given)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl Rest {
    /// Turns bytes into words and returns how many; keeps what is over.
    /// `words` has room for one word more than `bytes` fill.
    fn fill(&mut self, bytes: &[u8], words: &mut [u32; BATCH]) -> usize {
        let mut filled = 0usize;
        let mut bytes = bytes;
        // The usual case: nothing is waiting, and whole words come.
        if self.bits == 0 {
            let (whole, over) = bytes.as_chunks::<4>();
            for (word, four) in words.iter_mut().zip(whole) {
                *word = u32::from_le_bytes(*four);
            }
            filled = whole.len();
            bytes = over;
        }
        for byte in bytes {
            self.word |= u32::from(*byte).wrapping_shl(self.bits);
            self.bits = self.bits.wrapping_add(8);
            if self.bits == 32 {
                if let Some(word) = words.get_mut(filled) {
                    *word = self.word;
                    filled = filled.saturating_add(1);
                }
                *self = Self::default();
            }
        }
        filled
    }

    /// The last word, with zeros behind what is there; none if nothing is.
    fn padded(&mut self) -> Option<u32> {
        let last = (self.bits != 0).then_some(self.word);
        *self = Self::default();
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn krn_02_pieces_of_any_size_give_the_same_words_padded_with_zeros(
            payload in proptest::collection::vec(any::<u8>(), 0..9000),
            cut in 1usize..4096,
        ) {
            let mut rest = Rest::default();
            let mut words = [0; BATCH];
            let mut got = Vec::new();
            for piece in payload.chunks(cut) {
                let filled = rest.fill(piece, &mut words);
                got.extend_from_slice(&words[..filled]);
            }
            got.extend(rest.padded());
            let mut padded = payload;
            padded.resize(padded.len().next_multiple_of(4), 0);
            let want: Vec<u32> = padded
                .chunks(4)
                .map(|four| u32::from_le_bytes(four.try_into().unwrap()))
                .collect();
            prop_assert_eq!(got, want);
        }
    }
}
