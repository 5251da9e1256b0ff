//! Whom this host believes: the enrolled keys.

use serde::{Deserialize, Serialize};

use super::SMALL_MAX;
use super::error::{Document, TrustError, read};
use crate::hex;
use crate::ids::Digest;

/// An ed25519 public key: 32 bytes, written in lower-case hex.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PublicKey(pub [u8; 32]);

impl PublicKey {
    /// SHA-256 of the key's bytes: how signatures name it. A name is a hint;
    /// keys are counted by their bytes.
    #[must_use]
    pub fn id(&self) -> Digest {
        Digest::of(&self.0)
    }
}

impl Serialize for PublicKey {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for PublicKey {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<PublicKey, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        hex::decode(&text)
            .map(PublicKey)
            .ok_or_else(|| serde::de::Error::custom("a key is 64 lower-case hexadecimal digits"))
    }
}

/// The file `root.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RootFile {
    pub(crate) reconf_root: u32,
    pub(crate) version: u64,
    pub(crate) keys: Vec<PublicKey>,
    pub(crate) threshold: u32,
}

/// Most keys that a root names.
const KEYS_MAX: usize = 32;

/// The keys that were enrolled, and how many of them must sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    version: u64,
    keys: Vec<PublicKey>,
    threshold: usize,
    digest: Digest,
}

impl Root {
    /// Reads `root.json`. That it is the right one is decided by whoever
    /// enrolled it; compare [`Root::digest`].
    ///
    /// # Errors
    ///
    /// [`TrustError`] where it is too long or malformed: a key given twice, a
    /// threshold of 0 or above the number of keys.
    pub fn parse(bytes: &[u8]) -> Result<Root, TrustError> {
        let file: RootFile = read(Document::Root, bytes, SMALL_MAX)?;
        let bad = |why: &str| TrustError::malformed(Document::Root, why);
        if file.reconf_root != 1 {
            return Err(bad("`reconf_root` is not 1, the format that is known"));
        }
        if file.keys.is_empty() || file.keys.len() > KEYS_MAX {
            return Err(bad("1 to 32 keys are allowed"));
        }
        let mut sorted = file.keys.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.len() != file.keys.len() {
            return Err(bad("a key is given twice"));
        }
        let threshold = usize::try_from(file.threshold).unwrap_or(usize::MAX);
        if !(1..=sorted.len()).contains(&threshold) {
            return Err(bad(
                "`threshold` must be at least 1, and not above the number of keys",
            ));
        }
        Ok(Root {
            version: file.version,
            keys: sorted,
            threshold,
            digest: Digest::of(bytes),
        })
    }

    /// SHA-256 of the file: what an operator compares before enrolling.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The root's own version.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// How many keys must sign.
    #[must_use]
    pub fn threshold(&self) -> usize {
        self.threshold
    }

    /// The keys, each once.
    #[must_use]
    pub fn keys(&self) -> &[PublicKey] {
        &self.keys
    }
}
