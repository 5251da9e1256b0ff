//! Public keys, known by their bytes.
//!
//! Knows the three schemes of the specification that ring verifies: `ed25519`,
//! `ecdsa-sha2-nistp256`, `rsassa-pss-sha256`. A key of another kind, or one
//! that is listed under an id that is not its own, is kept out and never counts.

use std::collections::BTreeMap;
use std::fmt;

use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ED25519, RSA_PSS_2048_8192_SHA256, UnparsedPublicKey,
    VerificationAlgorithm,
};

use super::error::Bad;
use super::fields::Fields;
use super::json::Json;
use super::limits::{KEY_ID_MAX, KEY_TEXT_MAX, KEYS_MAX};
use super::{canonical, der};
use crate::hex;
use crate::ids::Digest;

/// What a document calls a key. Only a hint where to look: keys are counted by
/// their bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct KeyId(String);

impl KeyId {
    pub(super) fn parse(text: String) -> Result<KeyId, Bad> {
        if text.len() > KEY_ID_MAX {
            return Err(Bad::new(format!("a key id longer than {KEY_ID_MAX} bytes")));
        }
        Ok(KeyId(text))
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.escape_debug().fmt(f)
    }
}

/// How a key signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Scheme {
    Ed25519,
    EcdsaP256,
    RsaPss,
}

/// A key that can be used: two are one exactly if scheme and bytes are the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    scheme: Scheme,
    /// The 32 bytes, the uncompressed point, or the PKCS #1 key.
    bytes: Vec<u8>,
}

impl Key {
    /// `None`: a kind that is not known, or no key of its kind.
    fn parse(kind: &str, scheme: &str, public: &str) -> Option<Key> {
        let (scheme, bytes) = match (kind, scheme) {
            ("ed25519", "ed25519") => (Scheme::Ed25519, hex::decode::<32>(public)?.to_vec()),
            ("ecdsa" | "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp256") => {
                let der = der::from_pem(public)?;
                (Scheme::EcdsaP256, der::p256_point(&der)?.to_vec())
            }
            ("rsa", "rsassa-pss-sha256") => {
                let der = der::from_pem(public)?;
                (Scheme::RsaPss, der::rsa_public_key(&der)?.to_vec())
            }
            _ => return None,
        };
        Some(Key { scheme, bytes })
    }

    pub(super) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let algorithm: &'static dyn VerificationAlgorithm = match self.scheme {
            Scheme::Ed25519 => &ED25519,
            Scheme::EcdsaP256 => &ECDSA_P256_SHA256_ASN1,
            Scheme::RsaPss => &RSA_PSS_2048_8192_SHA256,
        };
        UnparsedPublicKey::new(algorithm, &self.bytes)
            .verify(message, signature)
            .is_ok()
    }
}

/// The keys that a document lists, those that can be used.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Keyring(BTreeMap<KeyId, Key>);

impl Keyring {
    pub(super) fn read(keys: BTreeMap<String, Json>) -> Result<Keyring, Bad> {
        if keys.len() > KEYS_MAX {
            return Err(Bad::new(format!("more than {KEYS_MAX} keys")));
        }
        let mut ring = BTreeMap::new();
        for (id, json) in keys {
            // The specification: the id must be right, and clients must check it.
            let digest = Digest::of(&canonical::bytes(&json));
            let own_id = hex::encode(&digest.0);
            let key = read_key(json).map_err(|bad| bad.within("a key"))?;
            if let Some(key) = key.filter(|_| own_id == id) {
                ring.insert(KeyId::parse(id)?, key);
            }
        }
        Ok(Keyring(ring))
    }

    pub(super) fn get(&self, id: &KeyId) -> Option<&Key> {
        self.0.get(id)
    }
}

fn read_key(json: Json) -> Result<Option<Key>, Bad> {
    let mut fields = Fields::of(json)?;
    let kind = fields.text("keytype")?;
    let scheme = fields.text("scheme")?;
    let mut value = Fields::of(fields.take("keyval")?).map_err(|bad| bad.within("keyval"))?;
    // A key of an unknown kind may well have no `public`.
    let Ok(public) = value.text("public") else {
        return Ok(None);
    };
    if public.len() > KEY_TEXT_MAX {
        return Err(Bad::new(format!("longer than {KEY_TEXT_MAX} bytes")));
    }
    Ok(Key::parse(&kind, &scheme, &public))
}
