//! One signed document, and the only way to believe it.
//!
//! Knows the envelope that all documents share. The order is fixed: bounded
//! parse, canonical form, signatures, and only then the kind and the content. A
//! [`Trusted`] value comes out of [`admit`] and of nothing else, so that what was
//! not verified cannot be used, nor stored: the bytes to store come with it.

use std::ops::Deref;
use std::sync::Arc;

use super::error::{Bad, TufError};
use super::fields::Fields;
use super::json::{self, Json};
use super::key::Keyring;
use super::name::Role;
use super::signature::{Quorum, Signatures};
use super::{canonical, limits};
use crate::ids::Digest;
use crate::time::UnixTime;

/// A kind of document.
pub trait Document: Sized + sealed::Read {}

pub(super) mod sealed {
    use super::{Bad, Fields};

    /// Reads what a kind of document says beyond what all say.
    pub trait Read: Sized {
        /// Its `_type`.
        const TYPE: &'static str;
        /// Its longest form, in bytes.
        const MAX: usize;
        #[expect(
            private_interfaces,
            reason = "the trait is sealed: nobody outside names it"
        )]
        fn read(fields: &mut Fields) -> Result<Self, Bad>;
    }
}

/// A document whose signatures were verified. It may have expired.
#[derive(Debug, Clone)]
pub struct Trusted<T> {
    role: Role,
    version: u64,
    expires: UnixTime,
    signed: Digest,
    bytes: Arc<[u8]>,
    body: T,
}

impl<T> Trusted<T> {
    /// Whose document it is.
    #[must_use]
    pub fn role(&self) -> &Role {
        &self.role
    }

    /// Its version, at least 1.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// From then on it must not be followed.
    #[must_use]
    pub fn expires(&self) -> UnixTime {
        self.expires
    }

    /// The very bytes that were verified.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// SHA-256 of the signed part in canonical form: the same for the same
    /// content, whoever signed it how often.
    #[must_use]
    pub fn signed_digest(&self) -> Digest {
        self.signed
    }
}

impl<T> Deref for Trusted<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.body
    }
}

/// A document that was taken apart, and that nobody has vouched for.
pub(super) struct Envelope {
    role: Role,
    bytes: Arc<[u8]>,
    message: Vec<u8>,
    signed: Json,
    signatures: Signatures,
}

impl Envelope {
    pub(super) fn open(role: &Role, bytes: &[u8], max: usize) -> Result<Envelope, TufError> {
        if bytes.len() > max {
            return Err(TufError::TooLarge {
                role: role.clone(),
                len: bytes.len(),
                max,
            });
        }
        let parts = || {
            let mut fields = Fields::of(json::parse(bytes)?)?;
            let signatures = Signatures::read(fields.take("signatures")?)
                .map_err(|bad| bad.within("signatures"))?;
            Ok((fields.take("signed")?, signatures))
        };
        let (signed, signatures) = parts().map_err(|bad: Bad| bad.of(role))?;
        Ok(Envelope {
            role: role.clone(),
            bytes: bytes.into(),
            message: canonical::bytes(&signed),
            signed,
            signatures,
        })
    }

    pub(super) fn verify(
        &self,
        authority: &Role,
        ring: &Keyring,
        quorum: &Quorum,
    ) -> Result<(), TufError> {
        quorum
            .check(ring, &self.signatures, &self.message)
            .map_err(|few| TufError::Threshold {
                role: self.role.clone(),
                authority: authority.clone(),
                got: few.got,
                need: few.need,
            })
    }

    /// Reads the content. Whoever calls this has called [`Envelope::verify`], or,
    /// for a root, does so with the keys that come out.
    pub(super) fn read<T: Document>(self) -> Result<(Trusted<T>, Unread), TufError> {
        let role = self.role;
        let read = || -> Result<_, Result<String, Bad>> {
            let mut fields = Fields::of(self.signed).map_err(Err)?;
            let kind = fields.text("_type").map_err(Err)?;
            if kind != T::TYPE {
                return Err(Ok(kind));
            }
            let (version, expires) = head(&mut fields).map_err(Err)?;
            Ok((version, expires, T::read(&mut fields).map_err(Err)?))
        };
        match read() {
            Ok((version, expires, body)) => {
                let trusted = Trusted {
                    role,
                    version,
                    expires,
                    signed: Digest::of(&self.message),
                    bytes: self.bytes,
                    body,
                };
                let unread = Unread {
                    message: self.message,
                    signatures: self.signatures,
                };
                Ok((trusted, unread))
            }
            Err(Ok(found)) => Err(TufError::WrongType { role, found }),
            Err(Err(bad)) => Err(bad.of(&role)),
        }
    }
}

/// What is left of an envelope: enough to hold a root against its own keys.
pub(super) struct Unread {
    message: Vec<u8>,
    signatures: Signatures,
}

impl Unread {
    pub(super) fn verify(&self, ring: &Keyring, quorum: &Quorum) -> Result<(), TufError> {
        quorum
            .check(ring, &self.signatures, &self.message)
            .map_err(|few| TufError::Threshold {
                role: Role::Root,
                authority: Role::Root,
                got: few.got,
                need: few.need,
            })
    }
}

/// Believes a document that enough of its role's keys signed.
pub(super) fn admit<T: Document>(
    role: &Role,
    bytes: &[u8],
    authority: &Role,
    ring: &Keyring,
    quorum: &Quorum,
) -> Result<Trusted<T>, TufError> {
    let envelope = Envelope::open(role, bytes, T::MAX)?;
    envelope.verify(authority, ring, quorum)?;
    let (trusted, _) = envelope.read()?;
    Ok(trusted)
}

/// `spec_version`, `version`, `expires`.
fn head(fields: &mut Fields) -> Result<(u64, UnixTime), Bad> {
    let spec = fields.text("spec_version")?;
    let mut parts = spec.split('.');
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if parts.next() != Some("1")
        || !spec.split('.').all(digits)
        || !(1..=2).contains(&parts.count())
    {
        return Err(Bad::new(
            "spec_version: not of TUF 1, the specification that is known",
        ));
    }
    let version = fields.number("version")?;
    if version == 0 {
        return Err(Bad::new("version: 0; the first is 1"));
    }
    let expires = fields.text("expires")?;
    let expires = UnixTime::parse(&expires)
        .ok_or_else(|| Bad::new("expires: not a time, written 2030-01-31T23:59:59Z"))?;
    Ok((version, expires))
}

/// The most that is read of a document of this role, in bytes.
#[must_use]
pub fn longest(role: &Role) -> usize {
    match role {
        Role::Root => limits::ROOT_MAX,
        Role::Timestamp => limits::TIMESTAMP_MAX,
        Role::Snapshot => limits::SNAPSHOT_MAX,
        Role::Targets | Role::Delegated(_) => limits::TARGETS_MAX,
    }
}
