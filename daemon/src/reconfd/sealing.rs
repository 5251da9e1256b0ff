//! Bytes on their way into sealed memory, beside whatever else their job waits for.
//!
//! Knows where bytes come from. Must not know whether they are what was signed:
//! that is found out on the sealed bytes, and nothing is done with them before.

use tokio::task::JoinHandle;

use super::host::Host;
use super::judge::{Granted, Question};
use super::outcome::Failure;
use super::plan::RegionKey;
use super::seal::{BytesError, Sealed};
use protocol::status::{Detail, Status};

/// A load whose bytes are on their way.
#[derive(Debug)]
pub(super) struct Loading {
    /// What was asked.
    pub(super) question: Question,
    /// What was granted.
    pub(super) granted: Box<Granted>,
    /// Its bytes.
    pub(super) coming: Coming,
}

impl Loading {
    /// Begins with the bytes. Nothing but the region's reservation is needed for that.
    pub(super) fn begin(
        host: &Host,
        region: RegionKey,
        question: Question,
        granted: Box<Granted>,
    ) -> Self {
        let coming = Coming::begin(host, region, &granted);
        Self {
            question,
            granted,
            coming,
        }
    }

    /// Waits until nothing is copied any more, so that a guest that is refused again and again
    /// has one copy under way at most.
    pub(super) async fn abandon(self) {
        let _unused = self.coming.sealed().await;
    }
}

/// Sealed bytes, now or soon.
#[derive(Debug)]
pub(super) enum Coming {
    /// Kept from a load before.
    Kept(Sealed),
    /// Being copied.
    Copied(JoinHandle<Result<Sealed, BytesError>>),
}

impl Coming {
    /// Takes what is kept, or begins to copy.
    fn begin(host: &Host, region: RegionKey, granted: &Granted) -> Self {
        if let Some(sealed) = host.sealed.get(&granted.facts, region, granted.revision) {
            return Self::Kept(sealed);
        }
        let targets = host.layout.targets();
        let (path, facts) = (granted.path.clone(), granted.facts.clone());
        Self::Copied(tokio::task::spawn_blocking(move || {
            Sealed::from_file(&targets, &path, facts)
        }))
    }

    /// Waits for them.
    ///
    /// # Errors
    /// They cannot be read or sealed.
    pub(super) async fn sealed(self) -> Result<Sealed, Failure> {
        match self {
            Self::Kept(sealed) => Ok(sealed),
            Self::Copied(copied) => copied
                .await
                .map_err(|error| {
                    Failure::new(Status::Failed, Detail::None, "seal-task", error.to_string())
                })?
                .map_err(Failure::from),
        }
    }
}
