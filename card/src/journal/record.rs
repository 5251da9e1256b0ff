//! One record of the journal: 128 bytes, little-endian.
//!
//! | at  | bytes | what                                             |
//! |-----|-------|--------------------------------------------------|
//! | 0   | 4     | magic `RCJR`                                     |
//! | 4   | 1     | format version, 1                                |
//! | 5   | 1     | kind                                             |
//! | 6   | 2     | region                                           |
//! | 8   | 8     | sequence number, one more than the record before |
//! | 16  | 8     | time, milliseconds since 1970                    |
//! | 24  | 1     | failed scrubs                                    |
//! | 25  | 1     | flags: bit 0, there is an owner                  |
//! | 26  | 2     | region again, inverted                           |
//! | 28  | 16    | job                                              |
//! | 44  | 32    | digest                                           |
//! | 76  | 32    | owner                                            |
//! | 108 | 16    | function                                         |
//! | 124 | 4     | CRC-32C of the 124 bytes before                  |
//!
//! Every version to come keeps the size, the first five bytes and the check
//! sum, so that an old program can tell a newer journal from a damaged one.
//! The region stands there twice, so that a damaged record still tells which
//! region is hurt.

use uuid::Uuid;

use crate::engine::RegionId;

use super::state::{Content, Job, OwnerTag, RegionState, Sha256};

/// Bytes of a record.
pub(super) const RECORD_SIZE: usize = 128;
/// Newest format that is understood.
pub(super) const VERSION: u8 = 1;

const MAGIC: [u8; 4] = *b"RCJR";
const HAS_OWNER: u8 = 1;

const INTENT: u8 = 1;
const COMMIT: u8 = 2;
const BLANK: u8 = 3;
const QUARANTINED: u8 = 4;

/// What is written down of one region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) sequence: u64,
    pub(super) region: RegionId,
    /// Never [`Content::Unknown`], which is the absence of a record.
    pub(super) state: RegionState,
}

/// Why bytes are no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// A newer program wrote it.
    Newer(u8),
    /// It is damaged; the region it was about, where that can be told.
    Damaged(Option<RegionId>),
}

impl Record {
    pub(super) fn encode(&self) -> [u8; RECORD_SIZE] {
        let nothing = (Job([0; 16]), Sha256([0; 32]), Uuid::nil(), 0);
        let (kind, (job, digest, function, failures)) = match self.state.content {
            Content::Writing { job, digest } => (INTENT, (job, digest, Uuid::nil(), 0)),
            Content::Active {
                job,
                digest,
                function,
            } => (COMMIT, (job, digest, function, 0)),
            Content::Blank => (BLANK, nothing),
            Content::Quarantined { failures } => {
                (QUARANTINED, (nothing.0, nothing.1, nothing.2, failures))
            }
            // Not written by anyone; what is not trusted is as good as it.
            Content::Unknown => (QUARANTINED, nothing),
        };
        let (flags, owner) = match self.state.owner {
            Some(owner) => (HAS_OWNER, owner),
            None => (0, OwnerTag([0; 32])),
        };
        let mut bytes = [0; RECORD_SIZE];
        let parts: [&[u8]; 11] = [
            &MAGIC,
            &[VERSION, kind],
            &self.region.0.to_le_bytes(),
            &self.sequence.to_le_bytes(),
            &self.state.since.to_le_bytes(),
            &[failures, flags],
            &(!self.region.0).to_le_bytes(),
            &job.0,
            &digest.0,
            &owner.0,
            function.as_bytes(),
        ];
        for (to, from) in bytes.iter_mut().zip(parts.into_iter().flatten()) {
            *to = *from;
        }
        let sum = check_sum(&bytes);
        if let Some(last) = bytes.last_chunk_mut() {
            *last = sum;
        }
        bytes
    }

    /// `expected` is the sequence number that should stand here, if known.
    pub(super) fn decode(
        bytes: &[u8; RECORD_SIZE],
        expected: Option<u64>,
    ) -> Result<Self, Unreadable> {
        let mut fields = Fields(bytes);
        let magic: [u8; 4] = fields.take();
        let [version, kind] = fields.take();
        let region = u16::from_le_bytes(fields.take());
        let sequence = u64::from_le_bytes(fields.take());
        let since = u64::from_le_bytes(fields.take());
        let [failures, flags] = fields.take();
        let inverted = u16::from_le_bytes(fields.take());

        let sound = bytes.last_chunk() == Some(&check_sum(bytes));
        if sound && magic == MAGIC && version > VERSION {
            return Err(Unreadable::Newer(version));
        }
        // One flipped bit leaves at least two of these three standing.
        let in_place = magic == MAGIC || Some(sequence) == expected;
        let told = (region == !inverted && in_place).then_some(RegionId(region));
        let damaged = Unreadable::Damaged(told);
        if !sound || magic != MAGIC || version != VERSION {
            return Err(damaged);
        }
        let (job, digest) = (Job(fields.take()), Sha256(fields.take()));
        let owner = OwnerTag(fields.take());
        let function = Uuid::from_bytes(fields.take());
        let content = match kind {
            INTENT => Content::Writing { job, digest },
            COMMIT => Content::Active {
                job,
                digest,
                function,
            },
            BLANK => Content::Blank,
            QUARANTINED => Content::Quarantined { failures },
            _ => return Err(damaged),
        };
        Ok(Self {
            sequence,
            region: RegionId(region),
            state: RegionState {
                owner: (flags & HAS_OWNER != 0).then_some(owner),
                content,
                since,
            },
        })
    }
}

fn check_sum(bytes: &[u8; RECORD_SIZE]) -> [u8; 4] {
    let (before, _sum) = bytes.split_last_chunk::<4>().unwrap_or((&[], &[0; 4]));
    crc32c::crc32c(before).to_le_bytes()
}

/// Takes fields from the front of a record; zeros where it is over.
struct Fields<'bytes>(&'bytes [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        match self.0.split_first_chunk() {
            Some((here, rest)) => {
                self.0 = rest;
                *here
            }
            None => [0; N],
        }
    }
}
