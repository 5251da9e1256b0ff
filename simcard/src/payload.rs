//! The one payload format that the simulated fabric understands.
//!
//! | offset | size | what |
//! |---|---|---|
//! | 0 | 8 | magic `RCSIMPR1` |
//! | 8 | 16 | interface id, bytes in the order the UUID is written |
//! | 24 | 16 | AFU id, likewise |
//! | 40 | 4 | number of 32-bit words of filler, little-endian |
//! | 44 | 4 | CRC-32 (IEEE) of the filler, little-endian |
//! | 48 | 4 × words | filler |
//!
//! The filler stands for the configuration frames of a real bitstream. It may
//! be of any length, also empty.

use ring::digest::{Context, SHA256};
use uuid::Uuid;

use crate::table::{Digest, as_digest};

/// The first eight bytes.
pub const MAGIC: [u8; 8] = *b"RCSIMPR1";

/// Bytes before the filler.
pub const HEADER_LEN: usize = 48;

/// Words are hashed a page at a time: the hash is cheap by the page, dear by the word.
const PAGE: usize = 4096;

/// Makes a payload whose filler is `filler_len` bytes of noise grown from
/// `seed`, then zeros up to a multiple of four bytes.
///
/// The same arguments give the same bytes, always. A filler is at most
/// 4 × (2³² − 1) bytes; what is longer is cut there.
#[must_use]
pub fn build(interface_id: Uuid, afu_id: Uuid, filler_len: usize, seed: u64) -> Vec<u8> {
    let words = u32::try_from(filler_len.div_ceil(4)).unwrap_or(u32::MAX);
    let padded = usize::try_from(u64::from(words) << 2).unwrap_or(usize::MAX);
    let mut filler = Vec::with_capacity(padded);
    let mut noise = SplitMix(seed);
    while filler.len() < filler_len.min(padded) {
        filler.extend_from_slice(&noise.next().to_le_bytes());
    }
    filler.truncate(filler_len);
    filler.resize(padded, 0);

    let mut payload = Vec::with_capacity(filler.len().saturating_add(HEADER_LEN));
    payload.extend_from_slice(&MAGIC);
    payload.extend_from_slice(interface_id.as_bytes());
    payload.extend_from_slice(afu_id.as_bytes());
    payload.extend_from_slice(&words.to_le_bytes());
    payload.extend_from_slice(&crc32fast::hash(&filler).to_le_bytes());
    payload.extend_from_slice(&filler);
    payload
}

/// `SplitMix64` (Steele, Lea, Flood 2014): noise that is the same everywhere.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Follows a stream of words and says in the end what it was. Holds the header,
/// two running sums and one page, whatever the length of the stream.
#[derive(Clone)]
pub(crate) struct Recogniser {
    header: Vec<u8>,
    filler: u64,
    crc: crc32fast::Hasher,
    sha: Context,
    page: Vec<u8>,
}

impl std::fmt::Debug for Recogniser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recogniser")
            .field("filler", &self.filler)
            .finish_non_exhaustive()
    }
}

/// What a stream turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Received {
    /// SHA-256 of all words.
    pub(crate) digest: Digest,
    pub(crate) content: Content,
}

/// The verdict on a stream, before the card compares interface ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// Whole and sound.
    Sound { interface: Uuid, function: Uuid },
    /// It began as a payload of ours, and was cut, lengthened or changed after.
    Damaged { interface: Option<Uuid> },
    /// Not our format.
    Foreign,
}

impl Recogniser {
    pub(crate) fn new() -> Self {
        Self {
            header: Vec::with_capacity(HEADER_LEN),
            filler: 0,
            crc: crc32fast::Hasher::new(),
            sha: Context::new(&SHA256),
            page: Vec::with_capacity(PAGE),
        }
    }

    pub(crate) fn push(&mut self, word: u32) {
        self.page.extend_from_slice(&word.to_le_bytes());
        if self.page.len() >= PAGE {
            self.turn_page();
        }
    }

    fn turn_page(&mut self) {
        self.sha.update(&self.page);
        let missing = HEADER_LEN
            .saturating_sub(self.header.len())
            .min(self.page.len());
        let (header, filler) = self.page.split_at(missing);
        self.header.extend_from_slice(header);
        self.crc.update(filler);
        let filler = u64::try_from(filler.len()).unwrap_or(u64::MAX);
        self.filler = self.filler.saturating_add(filler);
        self.page.clear();
    }

    pub(crate) fn finish(mut self) -> Received {
        self.turn_page();
        let content = self.content();
        Received {
            digest: as_digest(self.sha.finish().as_ref()),
            content,
        }
    }

    fn content(&self) -> Content {
        // A stream that ends inside the magic may have been one of ours.
        let magic = self.header.iter().zip(MAGIC).all(|(a, b)| *a == b);
        if !magic {
            return Content::Foreign;
        }
        let Some(header) = Header::parse(&self.header) else {
            return Content::Damaged { interface: None };
        };
        if u64::from(header.words) << 2 == self.filler && header.crc == self.crc.clone().finalize()
        {
            Content::Sound {
                interface: header.interface,
                function: header.function,
            }
        } else {
            Content::Damaged {
                interface: Some(header.interface),
            }
        }
    }
}

struct Header {
    interface: Uuid,
    function: Uuid,
    words: u32,
    crc: u32,
}

impl Header {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(&MAGIC)?;
        let (interface, rest) = rest.split_first_chunk::<16>()?;
        let (function, rest) = rest.split_first_chunk::<16>()?;
        let (words, rest) = rest.split_first_chunk::<4>()?;
        let (crc, _) = rest.split_first_chunk::<4>()?;
        Some(Self {
            interface: Uuid::from_bytes(*interface),
            function: Uuid::from_bytes(*function),
            words: u32::from_le_bytes(*words),
            crc: u32::from_le_bytes(*crc),
        })
    }
}

#[cfg(test)]
#[expect(
    clippy::arithmetic_side_effects,
    reason = "a test may stop at an overflow"
)]
mod tests {
    use super::*;
    use crate::table::padded_digest;
    use proptest::prelude::*;

    const INTERFACE: Uuid = Uuid::from_u128(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff);
    const AFU: Uuid = Uuid::from_u128(0x1111);

    fn recognise(bytes: &[u8]) -> Received {
        let mut recogniser = Recogniser::new();
        for word in bytes.chunks(4) {
            let mut padded = [0; 4];
            padded[..word.len()].copy_from_slice(word);
            recogniser.push(u32::from_le_bytes(padded));
        }
        recogniser.finish()
    }

    #[test]
    fn the_header_is_as_documented() {
        let payload = build(INTERFACE, AFU, 5, 1);
        assert_eq!(payload.len(), 48 + 8);
        assert_eq!(&payload[..8], b"RCSIMPR1");
        assert_eq!(payload[8..12], [0x00, 0x11, 0x22, 0x33]);
        assert_eq!(payload[40..44], 2u32.to_le_bytes());
        assert_eq!(
            payload[44..48],
            crc32fast::hash(&payload[48..]).to_le_bytes()
        );
        assert_eq!(payload[53..], [0, 0, 0]);
    }

    #[test]
    fn sound_payloads_of_any_length_are_known() {
        for len in [0, 1, 4, 4047, 4048, 4049, 100_000] {
            let payload = build(INTERFACE, AFU, len, 3);
            let received = recognise(&payload);
            assert_eq!(
                received.content,
                Content::Sound {
                    interface: INTERFACE,
                    function: AFU
                }
            );
            assert_eq!(received.digest, padded_digest(&payload));
        }
    }

    #[test]
    fn nothing_at_all_is_a_truncated_payload() {
        assert_eq!(recognise(&[]).content, Content::Damaged { interface: None });
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_cut_is_seen(len in 0usize..9000, cut in 0usize..9048) {
            let payload = build(INTERFACE, AFU, len, 9);
            let cut = cut % (payload.len() / 4);
            let damaged = matches!(recognise(&payload[..cut * 4]).content, Content::Damaged { .. });
            prop_assert!(damaged);
        }

        #[test]
        fn every_flipped_bit_of_the_filler_is_seen(len in 1usize..9000, bit: usize) {
            let mut payload = build(INTERFACE, AFU, len, 9);
            let bit = bit % ((payload.len() - HEADER_LEN) * 8);
            payload[HEADER_LEN + bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(recognise(&payload).content, Content::Damaged { interface: Some(INTERFACE) });
        }

        #[test]
        fn other_bytes_are_foreign(bytes in prop::collection::vec(any::<u8>(), 8..200)) {
            prop_assume!(!bytes.starts_with(&MAGIC));
            prop_assert_eq!(recognise(&bytes).content, Content::Foreign);
        }
    }
}
