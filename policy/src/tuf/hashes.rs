//! Hashes that a signed document lists for other bytes.
//!
//! Knows SHA-256 and SHA-512; others are passed over, but one that is known there must be.

use std::collections::BTreeMap;

use ring::digest::{Context, SHA256, SHA512};

use super::error::Bad;
use super::json::Json;
use crate::hex;

/// The listed hashes that can be checked; perhaps none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hashes {
    sha256: Option<[u8; 32]>,
    sha512: Option<[u8; 64]>,
}

impl Hashes {
    pub(super) fn read(map: BTreeMap<String, Json>) -> Result<Hashes, Bad> {
        let (mut sha256, mut sha512) = (None, None);
        if map.is_empty() {
            return Err(Bad::new("no hash"));
        }
        for (kind, json) in map {
            let Json::Text(text) = json else {
                return Err(Bad::new(format!("{kind}: not a text")));
            };
            let bad = || Bad::new(format!("{kind}: not in lower-case hexadecimal digits"));
            match kind.as_str() {
                "sha256" => sha256 = Some(hex::decode(&text).ok_or_else(bad)?),
                "sha512" => sha512 = Some(hex::decode(&text).ok_or_else(bad)?),
                _ => {}
            }
        }
        Ok(Hashes { sha256, sha512 })
    }

    /// The hash that stands in a file's name.
    pub(super) fn for_name(&self) -> Option<String> {
        let sha256 = self.sha256.map(|hash| hex::encode(&hash));
        sha256.or_else(|| self.sha512.map(|hash| hex::encode(&hash)))
    }

    pub(super) fn sha256(&self) -> Option<[u8; 32]> {
        self.sha256
    }

    pub(super) fn hasher(&self) -> Hasher {
        Hasher {
            sha256: self.sha256.map(|hash| (Context::new(&SHA256), hash)),
            sha512: self.sha512.map(|hash| (Context::new(&SHA512), hash)),
        }
    }

    pub(super) fn match_bytes(&self, bytes: &[u8]) -> bool {
        let mut hasher = self.hasher();
        hasher.update(bytes);
        hasher.matches()
    }
}

/// Hashes bytes as they come.
#[derive(Clone)]
pub(super) struct Hasher {
    sha256: Option<(Context, [u8; 32])>,
    sha512: Option<(Context, [u8; 64])>,
}

impl Hasher {
    pub(super) fn update(&mut self, bytes: &[u8]) {
        if let Some((context, _)) = &mut self.sha256 {
            context.update(bytes);
        }
        if let Some((context, _)) = &mut self.sha512 {
            context.update(bytes);
        }
    }

    /// Every listed hash is right, and there is one.
    pub(super) fn matches(self) -> bool {
        let any = self.sha256.is_some() || self.sha512.is_some();
        let is = |context: Context, want: &[u8]| context.finish().as_ref() == want;
        any && self.sha256.is_none_or(|(context, want)| is(context, &want))
            && self.sha512.is_none_or(|(context, want)| is(context, &want))
    }
}
