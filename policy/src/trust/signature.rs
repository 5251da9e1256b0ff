//! Signatures, and the proof that a bad one is refused.

use std::collections::BTreeSet;
use std::fmt;

use ring::signature::{ED25519, UnparsedPublicKey};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::error::{Document, TrustError, read};
use super::{PublicKey, Root, SMALL_MAX};
use crate::hex;
use crate::ids::Digest;

/// The file `images.json.sig`: who signed the very bytes of `images.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignatureFile {
    /// The format: 1.
    pub reconf_signature: u32,
    /// One for each key that signed.
    pub signatures: Vec<SignatureEntry>,
}

/// One key's signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignatureEntry {
    /// SHA-256 of the public key's bytes.
    pub keyid: Digest,
    /// Ed25519 over the list's bytes, in lower-case hex.
    pub sig: Signature,
}

/// An ed25519 signature: 64 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signature(pub [u8; 64]);

impl Serialize for Signature {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Signature {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Signature, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        hex::decode(&text).map(Signature).ok_or_else(|| {
            serde::de::Error::custom("a signature is 128 lower-case hexadecimal digits")
        })
    }
}

/// Most signatures that are looked at.
const SIGNATURES_MAX: usize = 32;

/// Counts the enrolled keys that signed `message`, each once by its bytes.
pub(super) fn check(root: &Root, message: &[u8], file: &[u8]) -> Result<(), TrustError> {
    let file: SignatureFile = read(Document::Signature, file, SMALL_MAX)?;
    let bad = |why: &str| TrustError::malformed(Document::Signature, why);
    if file.reconf_signature != 1 {
        return Err(bad("`reconf_signature` is not 1, the format that is known"));
    }
    if file.signatures.len() > SIGNATURES_MAX {
        return Err(bad("more than 32 signatures"));
    }
    let mut signed: BTreeSet<&PublicKey> = BTreeSet::new();
    for entry in &file.signatures {
        let key = root.keys().iter().find(|key| key.id() == entry.keyid);
        signed.extend(key.filter(|key| is_valid(key, message, &entry.sig)));
    }
    if signed.len() >= root.threshold() {
        Ok(())
    } else {
        Err(TrustError::BadSignature {
            got: signed.len(),
            need: root.threshold(),
        })
    }
}

fn is_valid(key: &PublicKey, message: &[u8], signature: &Signature) -> bool {
    UnparsedPublicKey::new(&ED25519, &key.0)
        .verify(message, &signature.0)
        .is_ok()
}

/// The signature check does not do what it is for. A process that gets this
/// must not start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SelfTestFailed {
    /// The right signature of a known message was refused.
    #[error("self-test: a good signature was refused")]
    GoodRefused,
    /// A wrong one was accepted.
    #[error("self-test: a bad signature was accepted ({0})")]
    BadAccepted(BadSignature),
}

/// How the accepted signature was bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadSignature {
    /// One bit of the signature was changed.
    Changed,
    /// It was that of another message.
    OtherMessage,
    /// It was that of another key.
    OtherKey,
    /// It was all zeros.
    Zeros,
}

impl fmt::Display for BadSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BadSignature::Changed => "a bit was changed",
            BadSignature::OtherMessage => "of another message",
            BadSignature::OtherKey => "of another key",
            BadSignature::Zeros => "all zeros",
        })
    }
}

/// RFC 8032, 7.1, test 2: key, signature of the message `72`.
const KEY: &str = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
const SIGNATURE: &str = "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da\
                         085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00";
/// The same place, test 1: another key.
const OTHER_KEY: &str = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";

/// Shows, with a known key, that the check accepts a good signature and
/// refuses bad ones. To be called at every start, before anything is believed.
///
/// # Errors
///
/// [`SelfTestFailed`]: this program must not decide anything.
pub fn self_test() -> Result<(), SelfTestFailed> {
    run(is_valid)
}

fn run(valid: fn(&PublicKey, &[u8], &Signature) -> bool) -> Result<(), SelfTestFailed> {
    let broken = SelfTestFailed::GoodRefused;
    let key = PublicKey(hex::decode(KEY).ok_or(broken)?);
    let other_key = PublicKey(hex::decode(OTHER_KEY).ok_or(broken)?);
    let good = Signature(hex::decode(SIGNATURE).ok_or(broken)?);
    let message = b"\x72";
    if !valid(&key, message, &good) {
        return Err(broken);
    }
    let mut changed = good;
    changed.0.iter_mut().take(1).for_each(|byte| *byte ^= 1);
    for (bad, key, message, signature) in [
        (BadSignature::Changed, &key, message, &changed),
        (BadSignature::OtherMessage, &key, b"\x73", &good),
        (BadSignature::OtherKey, &other_key, message, &good),
        (BadSignature::Zeros, &key, message, &Signature([0; 64])),
    ] {
        if valid(key, message, signature) {
            return Err(SelfTestFailed::BadAccepted(bad));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cyb_02_the_self_test_notices_a_check_that_does_nothing() {
        assert_eq!(self_test(), Ok(()));
        let all = run(|_, _, _| true);
        assert_eq!(all, Err(SelfTestFailed::BadAccepted(BadSignature::Changed)));
        assert_eq!(run(|_, _, _| false), Err(SelfTestFailed::GoodRefused));
        let forgets_message = run(|key, _, signature| is_valid(key, b"\x72", signature));
        let other = BadSignature::OtherMessage;
        assert_eq!(forgets_message, Err(SelfTestFailed::BadAccepted(other)));
    }
}
