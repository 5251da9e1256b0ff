//! SHA-256, and how it is written.

use std::fmt;

use super::{IdError, IdKind, text_form};

/// SHA-256 of some bytes. Written `sha256:` and 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The prefix of the written form.
    pub const PREFIX: &'static str = "sha256:";

    /// The digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Digest {
        let mut digest = [0; 32];
        let hash = ring::digest::digest(&ring::digest::SHA256, bytes);
        digest
            .iter_mut()
            .zip(hash.as_ref())
            .for_each(|(to, from)| *to = *from);
        Digest(digest)
    }

    /// Reads the written form.
    ///
    /// # Errors
    ///
    /// [`IdError`] for anything but the prefix and 64 lower-case hex digits.
    pub fn parse(text: &str) -> Result<Digest, IdError> {
        text.strip_prefix(Digest::PREFIX)
            .and_then(crate::hex::decode)
            .map(Digest)
            .ok_or_else(|| IdError::new(IdKind::Digest, text))
    }

    /// The 64 digits alone.
    #[must_use]
    pub fn hex(&self) -> String {
        crate::hex::encode(&self.0)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", Digest::PREFIX, self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

text_form!(Digest);
