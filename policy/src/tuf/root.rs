//! The root: whose keys count, and how one root follows another.
//!
//! Knows keys and thresholds of the four roles of the top. Must not know time:
//! an expired root may still lead to the next.

use super::document::sealed::Read;
use super::document::{Document, Envelope, Trusted, admit};
use super::error::{Bad, TufError};
use super::fields::Fields;
use super::key::Keyring;
use super::limits::ROOT_MAX;
use super::name::Role;
use super::signature::Quorum;

/// What a root says.
#[derive(Debug, Clone)]
pub struct Root {
    keys: Keyring,
    root: Quorum,
    timestamp: Quorum,
    snapshot: Quorum,
    targets: Quorum,
    consistent: Consistency,
}

/// Whether versions and hashes stand in the names of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consistency {
    /// `7.targets.json`, `HASH.fft.gbs`: a state can be read while the next is written.
    Consistent,
    /// `targets.json`, `fft.gbs`.
    Plain,
}

impl Document for Root {}

impl Read for Root {
    const TYPE: &'static str = "root";
    const MAX: usize = ROOT_MAX;

    #[expect(private_interfaces, reason = "as the trait's")]
    fn read(fields: &mut Fields) -> Result<Root, Bad> {
        let keys = Keyring::read(fields.map("keys")?).map_err(|bad| bad.within("keys"))?;
        let mut roles = Fields::of(fields.take("roles")?).map_err(|bad| bad.within("roles"))?;
        let mut role = |name: &str| {
            let mut fields = Fields::of(roles.take(name)?)?;
            Quorum::read(&mut fields).map_err(|bad| bad.within(name))
        };
        Ok(Root {
            keys,
            root: role("root")?,
            timestamp: role("timestamp")?,
            snapshot: role("snapshot")?,
            targets: role("targets")?,
            consistent: match fields.flag("consistent_snapshot")? {
                Some(true) => Consistency::Consistent,
                Some(false) | None => Consistency::Plain,
            },
        })
    }
}

impl Root {
    /// Whether versions and hashes stand in the names of files.
    #[must_use]
    pub fn consistency(&self) -> Consistency {
        self.consistent
    }

    fn quorum(&self, role: &Role) -> Option<&Quorum> {
        match role {
            Role::Root => Some(&self.root),
            Role::Timestamp => Some(&self.timestamp),
            Role::Snapshot => Some(&self.snapshot),
            Role::Targets => Some(&self.targets),
            Role::Delegated(_) => None,
        }
    }

    /// Believes a document of a role of the top, the root excepted.
    pub(super) fn admit<T: Document>(
        &self,
        role: &Role,
        bytes: &[u8],
    ) -> Result<Trusted<T>, TufError> {
        let quorum = self.quorum(role).ok_or_else(|| TufError::NotDelegated {
            role: role.clone(),
            by: Role::Root,
        })?;
        admit(role, bytes, &Role::Root, &self.keys, quorum)
    }
}

impl Trusted<Root> {
    /// Takes a root that somebody vouches for from elsewhere: the enrolled one, or
    /// the one in store. It must be signed by its own keys.
    ///
    /// # Errors
    ///
    /// [`TufError`]: it is malformed, or not signed as it itself demands.
    pub fn enrolled(bytes: &[u8]) -> Result<Trusted<Root>, TufError> {
        let (root, rest) = Envelope::open(&Role::Root, bytes, ROOT_MAX)?.read::<Root>()?;
        rest.verify(&root.keys, &root.root)?;
        Ok(root)
    }

    /// The root after this one, signed as both this one and itself demand.
    ///
    /// # Errors
    ///
    /// [`TufError::Threshold`], [`TufError::RootSequence`], or a malformed document.
    pub fn next(&self, bytes: &[u8]) -> Result<Trusted<Root>, TufError> {
        let envelope = Envelope::open(&Role::Root, bytes, ROOT_MAX)?;
        envelope.verify(&Role::Root, &self.keys, &self.root)?;
        let (next, rest) = envelope.read::<Root>()?;
        rest.verify(&next.keys, &next.root)?;
        if Some(next.version()) == self.version().checked_add(1) {
            Ok(next)
        } else {
            Err(TufError::RootSequence {
                have: self.version(),
                got: next.version(),
            })
        }
    }
}
