//! Who may speak about a target, and what they say.
//!
//! Knows verified documents; the bytes of delegated roles come through
//! [`RoleSource`]. The search is the specification's: depth first, in the order
//! of trust, each role once, ended by a terminating delegation, and by any
//! document that cannot be had or believed. Every delegation on the way is
//! verified with the keys of that delegator: that another one vouched for the
//! same bytes says nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::anchor::{Anchor, Current};
use super::delegation::Then;
use super::error::{Differs, TufError};
use super::hashes::{Hasher, Hashes};
use super::limits::{EDGES_KEPT_MAX, ROLES_VISITED_MAX};
use super::listing::{Listed, Snapshot};
use super::name::{Role, RoleName, TargetPath};
use super::root::Consistency;
use super::targets::{Facts, Targets};
use crate::ids::Digest;

/// Where the documents of delegated roles are.
pub trait RoleSource {
    /// Why one cannot be had.
    type Error: From<TufError>;

    /// The bytes that an earlier look-up left, if any. They are verified again.
    fn stored(&mut self, role: &Role) -> Option<Vec<u8>>;

    /// Fetches the listed document.
    ///
    /// # Errors
    ///
    /// The source's; the search ends.
    fn fetch(&mut self, role: &Role, listed: &Listed) -> Result<Vec<u8>, Self::Error>;

    /// Keeps a document that was fetched and believed.
    ///
    /// # Errors
    ///
    /// The store's; the search ends.
    fn keep(&mut self, document: &Current<Targets>) -> Result<(), Self::Error>;
}

/// A whole state of a repository, in which targets are looked up.
#[derive(Debug)]
pub struct Lookup {
    anchor: Anchor,
    snapshot: Current<Snapshot>,
    top: Current<Targets>,
    /// What was verified in this update: by who delegates (the digest of what it
    /// says) and to whom.
    edges: BTreeMap<(Digest, RoleName), Current<Targets>>,
}

impl Lookup {
    /// Joins what one anchor let through.
    #[must_use]
    pub fn new(anchor: Anchor, snapshot: Current<Snapshot>, top: Current<Targets>) -> Lookup {
        let edges = BTreeMap::new();
        Lookup {
            anchor,
            snapshot,
            top,
            edges,
        }
    }

    /// The rules under which it stands.
    #[must_use]
    pub fn anchor(&self) -> &Anchor {
        &self.anchor
    }

    /// The targets document of the top.
    #[must_use]
    pub fn top(&self) -> &Current<Targets> {
        &self.top
    }

    /// Finds what is signed about a target.
    ///
    /// # Errors
    ///
    /// [`TufError::NoSuchTarget`], or why a document on the way could not be had
    /// or believed.
    pub fn find<S: RoleSource>(
        &mut self,
        path: &TargetPath,
        source: &mut S,
    ) -> Result<Target, S::Error> {
        let mut visited: BTreeSet<RoleName> = BTreeSet::new();
        let mut ahead: Vec<(RoleName, Current<Targets>, Vec<Role>)> = Vec::new();
        let mut here = self.top.clone();
        let mut way = vec![Role::Targets];
        loop {
            if let Some(facts) = here.facts(path) {
                return Ok(Target::new(
                    path,
                    facts,
                    way,
                    self.anchor.root().consistency(),
                ));
            }
            let (names, then) = here.delegations().covering(path);
            if then == Then::Stop {
                ahead.clear();
            }
            ahead.extend(
                names
                    .into_iter()
                    .rev()
                    .map(|name| (name, here.clone(), way.clone())),
            );
            let next = loop {
                match ahead.pop() {
                    None => break None,
                    Some((name, ..)) if visited.contains(&name) => {}
                    Some(next) => break Some(next),
                }
            };
            let Some((name, delegator, above)) = next else {
                let path = path.clone();
                return Err(TufError::NoSuchTarget { path }.into());
            };
            if visited.len() >= ROLES_VISITED_MAX {
                let (path, max) = (path.clone(), ROLES_VISITED_MAX);
                return Err(TufError::TooManyRoles { path, max }.into());
            }
            here = self.load(&name, &delegator, source)?;
            way = above;
            way.push(Role::Delegated(name.clone()));
            visited.insert(name);
        }
    }

    fn load<S: RoleSource>(
        &mut self,
        name: &RoleName,
        delegator: &Current<Targets>,
        source: &mut S,
    ) -> Result<Current<Targets>, S::Error> {
        let edge = (delegator.signed_digest(), name.clone());
        if let Some(known) = self.edges.get(&edge) {
            return Ok(known.clone());
        }
        let role = Role::Delegated(name.clone());
        let listed = self.snapshot.listed(&role)?;
        let admit = |bytes: &[u8]| {
            self.anchor
                .delegated(&self.snapshot, delegator, name, bytes)
        };
        let stored = source.stored(&role).and_then(|bytes| admit(&bytes).ok());
        let document = if let Some(document) = stored {
            document
        } else {
            let document = admit(&source.fetch(&role, listed)?)?;
            source.keep(&document)?;
            document
        };
        if self.edges.len() < EDGES_KEPT_MAX {
            self.edges.insert(edge, document.clone());
        }
        Ok(document)
    }
}

/// What is signed about a target, and by whom.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    path: TargetPath,
    length: u64,
    hashes: Hashes,
    custom: Option<serde_json::Value>,
    roles: Vec<Role>,
    consistency: Consistency,
}

impl Target {
    fn new(path: &TargetPath, facts: &Facts, roles: Vec<Role>, consistency: Consistency) -> Target {
        Target {
            path: path.clone(),
            length: facts.length,
            hashes: facts.hashes.clone(),
            custom: facts.custom.clone(),
            roles,
            consistency,
        }
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &TargetPath {
        &self.path
    }

    /// Its length in bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Its SHA-256, where one is listed.
    #[must_use]
    pub fn sha256(&self) -> Option<Digest> {
        self.hashes.sha256().map(Digest)
    }

    /// The facts that are signed with it.
    #[must_use]
    pub fn custom(&self) -> Option<&serde_json::Value> {
        self.custom.as_ref()
    }

    /// Who vouches for it: from `targets` down to the role that lists it.
    #[must_use]
    pub fn roles(&self) -> &[Role] {
        &self.roles
    }

    /// Where it lies below the base of all targets, percent-encoded.
    #[must_use]
    pub fn reference(&self) -> String {
        let hash = match self.consistency {
            Consistency::Consistent => self.hashes.for_name(),
            Consistency::Plain => None,
        };
        self.path.reference(hash.as_deref())
    }

    /// Checks its bytes as they come.
    #[must_use]
    pub fn checker(&self) -> Checker<'_> {
        Checker {
            target: self,
            left: self.length,
            hasher: self.hashes.hasher(),
        }
    }
}

/// Holds the bytes of a target against what is signed.
pub struct Checker<'a> {
    target: &'a Target,
    left: u64,
    hasher: Hasher,
}

impl Checker<'_> {
    /// Takes the next bytes.
    ///
    /// # Errors
    ///
    /// [`TufError::WrongTarget`]: more bytes than are signed.
    pub fn update(&mut self, bytes: &[u8]) -> Result<(), TufError> {
        let len = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.left = self
            .left
            .checked_sub(len)
            .ok_or_else(|| self.wrong(Differs::Length))?;
        self.hasher.update(bytes);
        Ok(())
    }

    /// All bytes came.
    ///
    /// # Errors
    ///
    /// [`TufError::WrongTarget`]: fewer, or others, than are signed; or the
    /// signed facts have no hash of a kind that is known.
    pub fn finish(self) -> Result<(), TufError> {
        if self.left > 0 {
            return Err(self.wrong(Differs::Length));
        }
        let wrong = self.wrong(Differs::Hash);
        if self.hasher.matches() {
            Ok(())
        } else {
            Err(wrong)
        }
    }

    fn wrong(&self, what: Differs) -> TufError {
        let path = self.target.path.clone();
        TufError::WrongTarget { path, what }
    }
}
