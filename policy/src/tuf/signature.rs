//! Signatures, and how many keys of a role made them.
//!
//! Knows keys and bytes. Each key counts once, by its bytes, whatever ids it is
//! listed under and however often it signed.

use std::collections::BTreeSet;

use super::error::Bad;
use super::fields::{Fields, list, text};
use super::json::Json;
use super::key::{Key, KeyId, Keyring};
use super::limits::{ROLE_KEYS_MAX, SIGNATURE_MAX, SIGNATURES_MAX};

/// The signatures of one document, at most one for an id.
#[derive(Debug)]
pub(super) struct Signatures(Vec<(KeyId, Vec<u8>)>);

impl Signatures {
    pub(super) fn read(json: Json) -> Result<Signatures, Bad> {
        let mut ids = BTreeSet::new();
        let mut signatures = Vec::new();
        for entry in list(json, SIGNATURES_MAX)? {
            let mut entry = Fields::of(entry)?;
            let id = KeyId::parse(entry.text("keyid")?)?;
            if !ids.insert(id.clone()) {
                return Err(Bad::new(format!("two signatures of the key {id}")));
            }
            // One that is not even hex counts for nothing, as one that is wrong.
            if let Some(bytes) = unhex(&entry.text("sig")?) {
                signatures.push((id, bytes));
            }
        }
        Ok(Signatures(signatures))
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
        return None;
    };
    if pairs.is_empty() || pairs.len() > SIGNATURE_MAX {
        return None;
    }
    pairs
        .iter()
        .map(|[high, low]| {
            let digit = |byte: u8| char::from(byte).to_digit(16);
            u8::try_from((digit(*high)? << 4) | digit(*low)?).ok()
        })
        .collect()
}

/// Whose signatures make a role's document valid: a threshold of these keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Quorum {
    keys: BTreeSet<KeyId>,
    threshold: usize,
}

/// Too few signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooFew {
    pub(super) got: usize,
    pub(super) need: usize,
}

impl Quorum {
    /// Reads `keyids` and `threshold`. A threshold that its keys cannot reach is
    /// valid, and is never reached.
    pub(super) fn read(fields: &mut Fields) -> Result<Quorum, Bad> {
        let mut keys = BTreeSet::new();
        for id in fields.list("keyids", ROLE_KEYS_MAX)? {
            let id = KeyId::parse(text(id).map_err(|bad| bad.within("keyids"))?)?;
            if !keys.insert(id) {
                return Err(Bad::new("keyids: one comes twice"));
            }
        }
        let threshold = usize::try_from(fields.number("threshold")?)
            .ok()
            .filter(|threshold| *threshold > 0)
            .ok_or_else(|| Bad::new("threshold: not a number of keys, which is at least 1"))?;
        Ok(Quorum { keys, threshold })
    }

    pub(super) fn check(
        &self,
        ring: &Keyring,
        signatures: &Signatures,
        message: &[u8],
    ) -> Result<(), TooFew> {
        let mut signed: BTreeSet<&Key> = BTreeSet::new();
        for (id, signature) in &signatures.0 {
            let key = ring.get(id).filter(|_| self.keys.contains(id));
            if let Some(key) = key
                && !signed.contains(key)
                && key.verifies(message, signature)
            {
                signed.insert(key);
            }
            if signed.len() >= self.threshold {
                return Ok(());
            }
        }
        Err(TooFew {
            got: signed.len(),
            need: self.threshold,
        })
    }
}
