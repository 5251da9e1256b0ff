//! From the root in store to the newest one.
//!
//! Knows roots, one after the other, and nothing of the time: whether the last
//! one expired is asked when it becomes an [`Anchor`](super::Anchor).

use super::document::Trusted;
use super::error::TufError;
use super::limits::ROOT_HOPS_MAX;
use super::root::Root;

/// A chain of roots that is being followed.
#[derive(Debug, Clone)]
pub struct Chain {
    root: Trusted<Root>,
    hops: u32,
}

impl Chain {
    /// Begins with the root in store.
    ///
    /// # Errors
    ///
    /// [`TufError`]: as [`Trusted::enrolled`].
    pub fn begin(stored: &[u8]) -> Result<Chain, TufError> {
        let root = Trusted::enrolled(stored)?;
        Ok(Chain { root, hops: 0 })
    }

    /// The newest root so far. Each is to be made durable before the next is asked for.
    #[must_use]
    pub fn root(&self) -> &Trusted<Root> {
        &self.root
    }

    /// The version to ask for next; `None` after 32 in one update.
    #[must_use]
    pub fn wants(&self) -> Option<u64> {
        (self.hops < ROOT_HOPS_MAX)
            .then(|| self.root.version().checked_add(1))
            .flatten()
    }

    /// Takes the next root.
    ///
    /// # Errors
    ///
    /// [`TufError`], and the chain is as it was.
    pub fn extend(&mut self, bytes: &[u8]) -> Result<(), TufError> {
        self.root = self.root.next(bytes)?;
        self.hops = self.hops.saturating_add(1);
        Ok(())
    }

    pub(super) fn into_root(self) -> Trusted<Root> {
        self.root
    }
}
