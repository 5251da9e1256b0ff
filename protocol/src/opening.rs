//! How the beginning of a frame, and of a session, is known among other bytes.
//!
//! Knows the magic and the two frames that open a session. Must not know
//! where in a stream they stand.

use crate::header::{HEADER_LEN, Header, MAGIC};
use crate::kind::{Kind, Traffic};

/// Which frame opens a session for this receiver, and so ends a dead body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// At the host.
    Hello,
    /// At the guest.
    Welcome,
}

impl Opening {
    const fn kind(self) -> Kind {
        match self {
            Self::Hello => Kind::HELLO,
            Self::Welcome => Kind::WELCOME,
        }
    }

    /// Bytes of the whole frame: the nonces and the minor version have a fixed
    /// size.
    pub(crate) const fn frame_len(self) -> usize {
        match self {
            Self::Hello => HEADER_LEN + 16 + 2,
            Self::Welcome => HEADER_LEN + 16 + 16 + 2,
        }
    }

    /// Whether a whole opening frame stands at the beginning of these bytes.
    pub(crate) fn stands_in(self, bytes: &[u8]) -> bool {
        let Some((frame, _)) = bytes.split_at_checked(self.frame_len()) else {
            return false;
        };
        let Some((head, body)) = frame.split_first_chunk() else {
            return false;
        };
        Header::parse(head, Traffic::Control)
            .is_ok_and(|h| h.kind == self.kind() && h.session == 0 && h.matches(body))
    }
}

/// Where, from `from` on, the magic stands, or where a part of it stands at
/// the end; else the length.
pub(crate) fn find_magic(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(rest) = bytes.get(at..) {
        let Some(four) = rest.first_chunk::<4>() else {
            // A beginning of the magic, cut off by the end of what is here.
            if MAGIC.starts_with(rest) {
                return at;
            }
            at = at.saturating_add(1);
            continue;
        };
        if *four == MAGIC {
            return at;
        }
        // The four letters differ, so the last of these four bytes tells how
        // far the next possible beginning is.
        at = at.saturating_add(match four[3] {
            b'R' => 3,
            b'C' => 2,
            b'N' => 1,
            _ => 4,
        });
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The same, slowly.
    fn slowly(bytes: &[u8], from: usize) -> usize {
        (from..bytes.len())
            .find(|&at| bytes[at..].starts_with(&MAGIC) || MAGIC.starts_with(&bytes[at..]))
            .unwrap_or(bytes.len())
    }

    proptest! {
        #[test]
        fn skipping_finds_what_looking_everywhere_finds(
            letters in proptest::collection::vec(
                prop::sample::select(b"RCNFx".to_vec()), 0..30),
            from in 0..32_usize,
        ) {
            prop_assert_eq!(find_magic(&letters, from), slowly(&letters, from));
        }
    }
}
