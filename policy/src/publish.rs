//! The other side of trust: keys, roots, and signed lists.
//!
//! For `reconfctl repo`, for tests and for the demo. Nothing that decides uses
//! it. It refuses to sign a list that no host would believe.

use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::trust::list::{self, ImageList};
use crate::trust::{
    PublicKey, Root, RootFile, Signature, SignatureEntry, SignatureFile, TrustError,
};

/// What went wrong while publishing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PublishError {
    /// The system gave no randomness.
    #[error("the system gave no random bytes for a new key")]
    NoRandomness,
    /// Not a PKCS#8 ed25519 key.
    #[error("this is no ed25519 key in PKCS#8 form")]
    BadKey,
    /// The document would be refused.
    #[error("no host would believe it: {0}")]
    Refused(#[from] TrustError),
}

/// A private key. Its bytes are wiped when it is dropped.
///
/// `ring` keeps an expanded copy of its own while a signature is made, and
/// does not wipe that.
pub struct SigningKey {
    pkcs8: Zeroizing<Vec<u8>>,
    public: PublicKey,
}

impl SigningKey {
    /// Makes a new key.
    ///
    /// # Errors
    ///
    /// [`PublishError::NoRandomness`].
    pub fn generate() -> Result<SigningKey, PublishError> {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new())
            .ok()
            .ok_or(PublishError::NoRandomness)?;
        SigningKey::from_pkcs8(document.as_ref())
    }

    /// Reads a key in PKCS#8 form (DER).
    ///
    /// # Errors
    ///
    /// [`PublishError::BadKey`].
    pub fn from_pkcs8(der: &[u8]) -> Result<SigningKey, PublishError> {
        let pair = Ed25519KeyPair::from_pkcs8(der)
            .ok()
            .ok_or(PublishError::BadKey)?;
        let public = pair
            .public_key()
            .as_ref()
            .try_into()
            .ok()
            .ok_or(PublishError::BadKey)?;
        Ok(SigningKey {
            pkcs8: Zeroizing::new(der.to_vec()),
            public: PublicKey(public),
        })
    }

    /// The key in PKCS#8 form (DER), to be stored where only its owner reads.
    #[must_use]
    pub fn to_pkcs8(&self) -> &[u8] {
        &self.pkcs8
    }

    /// The public half.
    #[must_use]
    pub fn public_key(&self) -> PublicKey {
        self.public
    }

    fn sign(&self, message: &[u8]) -> Result<SignatureEntry, PublishError> {
        let pair = Ed25519KeyPair::from_pkcs8(&self.pkcs8)
            .ok()
            .ok_or(PublishError::BadKey)?;
        let signature = pair
            .sign(message)
            .as_ref()
            .try_into()
            .ok()
            .ok_or(PublishError::BadKey)?;
        Ok(SignatureEntry {
            keyid: self.public.id(),
            sig: Signature(signature),
        })
    }
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SigningKey")
            .field("public", &self.public)
            .finish_non_exhaustive()
    }
}

/// The bytes of `root.json`.
///
/// # Errors
///
/// [`PublishError::Refused`]: no keys, one twice, or a threshold that cannot be met.
pub fn root(version: u64, keys: &[PublicKey], threshold: u32) -> Result<Vec<u8>, PublishError> {
    let file = RootFile {
        reconf_root: 1,
        version,
        keys: keys.to_vec(),
        threshold,
    };
    let bytes = to_bytes(&file);
    Root::parse(&bytes)?;
    Ok(bytes)
}

/// The bytes of `images.json`.
///
/// # Errors
///
/// [`PublishError::Refused`]: the list contradicts itself, or is too long.
pub fn list(list: &ImageList) -> Result<Vec<u8>, PublishError> {
    let bytes = to_bytes(list);
    list::parse(&bytes)?;
    Ok(bytes)
}

/// The bytes of `images.json.sig`, over the very bytes of `images.json`.
///
/// # Errors
///
/// [`PublishError::Refused`]: the list is none that a host would believe.
pub fn sign(list_bytes: &[u8], keys: &[&SigningKey]) -> Result<Vec<u8>, PublishError> {
    list::parse(list_bytes)?;
    sign_unchecked(list_bytes, keys)
}

fn sign_unchecked(bytes: &[u8], keys: &[&SigningKey]) -> Result<Vec<u8>, PublishError> {
    let signatures = keys
        .iter()
        .map(|key| key.sign(bytes))
        .collect::<Result<_, _>>()?;
    Ok(to_bytes(&SignatureFile {
        reconf_signature: 1,
        signatures,
    }))
}

/// Signs whatever it is given: for tests of what is signed and wrong.
#[cfg(test)]
pub(crate) fn sign_anything(bytes: &[u8], keys: &[&SigningKey]) -> Vec<u8> {
    sign_unchecked(bytes, keys).unwrap()
}

/// Pretty JSON with a final line feed. The types have string keys only, so
/// that writing them cannot fail; if it did, nothing would be published, since
/// what is written is read back.
fn to_bytes<T: serde::Serialize>(value: &T) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(value).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}
