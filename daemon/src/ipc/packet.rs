//! The 512 bytes: where each value stands, and the strict way back.
//!
//! | bytes | what |
//! |---|---|
//! | 0..4 | magic `RCIP` |
//! | 4..6 | version, little-endian like all numbers here |
//! | 6..8 | kind |
//! | 8..24 | job |
//! | 24..26 | region |
//! | 26..28 | count of regions |
//! | 28..30 | content, stage or identity |
//! | 30..32 | flags: 1 a tag is there, 2 a function is there, 4 the guest has access |
//! | 32..64 | digest |
//! | 64..96 | owner's tag |
//! | 96..112 | function id |
//! | 112..120 | bytes done, or seconds of Unix time |
//! | 120..128 | bytes in all |
//! | 128..152 | control, status and error words |
//! | 152..154 | outcome |
//! | 154..156 | length of the text or target |
//! | 156..412 | the text or target |
//! | 412..420 | nanoseconds of device time |
//! | 420..428 | nanoseconds of durable writes |
//! | 428..432 | number of durable writes |
//! | 432..434 | failed scrubs |
//! | 434..512 | zeros |
//!
//! A field that its kind does not use is zero; anything else there is refused.

use super::{
    CardStage, Content, FromCard, HardwareWords, IdentityCheck, IpcError, JobEnd, JobId,
    MAX_TARGET, MAX_TEXT, Outcome, OwnerTag, RegionIndex, RegionReport, TargetPath, ToCard,
    VERSION,
};

/// Bytes of every packet.
pub const PACKET_LEN: usize = 512;

const MAGIC: u32 = u32::from_le_bytes(*b"RCIP");
const TAG: u16 = 1;
const FUNCTION: u16 = 2;
const ACCESS: u16 = 4;
const TEXT_ROOM: usize = 256;

/// The fields of a packet, before they mean anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    kind: u16,
    job: [u8; 16],
    region: u16,
    of: u16,
    small: u16,
    flags: u16,
    digest: [u8; 32],
    tag: [u8; 32],
    function: [u8; 16],
    done: u64,
    total: u64,
    words: HardwareWords,
    outcome: u16,
    text: String,
    device_ns: u64,
    sync_ns: u64,
    syncs: u32,
    failures: u16,
}

impl Packet {
    fn new(kind: u16) -> Self {
        Self {
            kind,
            job: [0; 16],
            region: 0,
            of: 0,
            small: 0,
            flags: 0,
            digest: [0; 32],
            tag: [0; 32],
            function: [0; 16],
            done: 0,
            total: 0,
            words: HardwareWords::default(),
            outcome: 0,
            text: String::new(),
            device_ns: 0,
            sync_ns: 0,
            syncs: 0,
            failures: 0,
        }
    }

    /// As bytes for the socket.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; PACKET_LEN] {
        let mut out = Writer {
            bytes: [0; PACKET_LEN],
            at: 0,
        };
        out.put(&MAGIC.to_le_bytes());
        out.put(&VERSION.to_le_bytes());
        out.put(&self.kind.to_le_bytes());
        out.put(&self.job);
        out.put(&self.region.to_le_bytes());
        out.put(&self.of.to_le_bytes());
        out.put(&self.small.to_le_bytes());
        out.put(&self.flags.to_le_bytes());
        out.put(&self.digest);
        out.put(&self.tag);
        out.put(&self.function);
        out.put(&self.done.to_le_bytes());
        out.put(&self.total.to_le_bytes());
        out.put(&self.words.control.to_le_bytes());
        out.put(&self.words.status.to_le_bytes());
        out.put(&self.words.error.to_le_bytes());
        out.put(&self.outcome.to_le_bytes());
        let mut text = [0u8; TEXT_ROOM];
        for (to, from) in text.iter_mut().zip(self.text.as_bytes()) {
            *to = *from;
        }
        let len = u16::try_from(self.text.len().min(TEXT_ROOM)).unwrap_or(0);
        out.put(&len.to_le_bytes());
        out.put(&text);
        out.put(&self.device_ns.to_le_bytes());
        out.put(&self.sync_ns.to_le_bytes());
        out.put(&self.syncs.to_le_bytes());
        out.put(&self.failures.to_le_bytes());
        out.bytes
    }

    /// Reads the fields.
    ///
    /// # Errors
    /// Any length but 512, a foreign magic or version, text that is not UTF-8
    /// or too long, bytes that are not zero where they must be.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, IpcError> {
        if bytes.len() != PACKET_LEN {
            return Err(IpcError::Length { len: bytes.len() });
        }
        let mut from = Reader { rest: bytes };
        let magic = u32::from_le_bytes(from.take()?);
        let version = u16::from_le_bytes(from.take()?);
        if magic != MAGIC || version != VERSION {
            return Err(IpcError::Version { magic, version });
        }
        let kind = u16::from_le_bytes(from.take()?);
        let job = from.take()?;
        let region = u16::from_le_bytes(from.take()?);
        let of = u16::from_le_bytes(from.take()?);
        let small = u16::from_le_bytes(from.take()?);
        let flags = u16::from_le_bytes(from.take()?);
        let digest = from.take()?;
        let tag = from.take()?;
        let function = from.take()?;
        let done = u64::from_le_bytes(from.take()?);
        let total = u64::from_le_bytes(from.take()?);
        let words = HardwareWords {
            control: u64::from_le_bytes(from.take()?),
            status: u64::from_le_bytes(from.take()?),
            error: u64::from_le_bytes(from.take()?),
        };
        let outcome = u16::from_le_bytes(from.take()?);
        let text_len = usize::from(u16::from_le_bytes(from.take()?));
        let room: [u8; TEXT_ROOM] = from.take()?;
        let (used, unused) = room.split_at_checked(text_len).ok_or(IpcError::Field {
            field: "text length",
        })?;
        if text_len > MAX_TARGET || unused.iter().any(|byte| *byte != 0) {
            return Err(IpcError::Field { field: "text" });
        }
        let text = std::str::from_utf8(used)
            .map_err(|_utf8| IpcError::Field { field: "text" })?
            .to_owned();
        let device_ns = u64::from_le_bytes(from.take()?);
        let sync_ns = u64::from_le_bytes(from.take()?);
        let syncs = u32::from_le_bytes(from.take()?);
        let failures = u16::from_le_bytes(from.take()?);
        if from.rest.iter().any(|byte| *byte != 0) {
            return Err(IpcError::Field { field: "padding" });
        }
        Ok(Self {
            kind,
            job,
            region,
            of,
            small,
            flags,
            digest,
            tag,
            function,
            done,
            total,
            words,
            outcome,
            text,
            device_ns,
            sync_ns,
            syncs,
            failures,
        })
    }

    fn with_tag(mut self, tag: Option<OwnerTag>) -> Self {
        if let Some(tag) = tag {
            self.flags |= TAG;
            self.tag = tag.0;
        }
        self
    }

    fn tag(&self) -> Option<OwnerTag> {
        (self.flags & TAG != 0).then_some(OwnerTag(self.tag))
    }

    fn needed_tag(&self) -> Result<OwnerTag, IpcError> {
        self.tag().ok_or(IpcError::Field { field: "tag" })
    }

    fn job(&self) -> JobId {
        JobId(self.job)
    }

    fn region(&self) -> RegionIndex {
        RegionIndex(self.region)
    }
}

struct Writer {
    bytes: [u8; PACKET_LEN],
    at: usize,
}

impl Writer {
    /// The layout above sums to less than a packet, so that nothing is ever cut.
    fn put(&mut self, value: &[u8]) {
        for (to, from) in self.bytes.iter_mut().skip(self.at).zip(value) {
            *to = *from;
        }
        self.at = self.at.saturating_add(value.len());
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], IpcError> {
        let (value, rest) = self.rest.split_first_chunk::<N>().ok_or(IpcError::Length {
            len: self.rest.len(),
        })?;
        self.rest = rest;
        Ok(*value)
    }
}

impl From<&ToCard> for Packet {
    fn from(message: &ToCard) -> Self {
        match message {
            ToCard::Hello => Self::new(1),
            ToCard::Offer {
                job,
                region,
                digest,
                tag,
                target,
            } => Self {
                job: job.0,
                region: region.0,
                digest: *digest,
                text: target.as_str().to_owned(),
                ..Self::new(2)
            }
            .with_tag(Some(*tag)),
            ToCard::Go { job } => Self {
                job: job.0,
                ..Self::new(3)
            },
            ToCard::Commit { job } => Self {
                job: job.0,
                ..Self::new(4)
            },
            ToCard::Abort { job } => Self {
                job: job.0,
                ..Self::new(5)
            },
            ToCard::Scrub { job, region, keep } => Self {
                job: job.0,
                region: region.0,
                ..Self::new(6)
            }
            .with_tag(*keep),
            ToCard::Reset { job, region, tag } => Self {
                job: job.0,
                region: region.0,
                ..Self::new(7)
            }
            .with_tag(Some(*tag)),
            ToCard::Reopen {
                job,
                region,
                tag,
                digest,
            } => Self {
                job: job.0,
                region: region.0,
                digest: *digest,
                ..Self::new(8)
            }
            .with_tag(Some(*tag)),
        }
    }
}

impl TryFrom<&Packet> for ToCard {
    type Error = IpcError;

    fn try_from(packet: &Packet) -> Result<Self, IpcError> {
        let job = packet.job();
        let region = packet.region();
        let message = match packet.kind {
            1 => Self::Hello,
            2 => Self::Offer {
                job,
                region,
                digest: packet.digest,
                tag: packet.needed_tag()?,
                target: TargetPath::new(packet.text.clone())?,
            },
            3 => Self::Go { job },
            4 => Self::Commit { job },
            5 => Self::Abort { job },
            6 => Self::Scrub {
                job,
                region,
                keep: packet.tag(),
            },
            7 => Self::Reset {
                job,
                region,
                tag: packet.needed_tag()?,
            },
            8 => Self::Reopen {
                job,
                region,
                tag: packet.needed_tag()?,
                digest: packet.digest,
            },
            other => return Err(IpcError::Kind(other)),
        };
        // Whatever the kind does not use must be zero: one way to say a thing.
        if Self::strictly(&message) != *packet {
            return Err(IpcError::Field { field: "unused" });
        }
        Ok(message)
    }
}

impl ToCard {
    fn strictly(&self) -> Packet {
        Packet::from(self)
    }
}

impl From<&FromCard> for Packet {
    fn from(message: &FromCard) -> Self {
        match message {
            FromCard::Region(report) => {
                let mut packet = Self {
                    region: report.region.0,
                    of: report.of,
                    small: content_code(report.content),
                    digest: report.digest,
                    done: report.since,
                    failures: report.scrub_failures,
                    ..Self::new(9)
                }
                .with_tag(report.tag);
                if let Some(function) = report.function {
                    packet.flags |= FUNCTION;
                    packet.function = function;
                }
                if report.guest_access {
                    packet.flags |= ACCESS;
                }
                packet
            }
            FromCard::Progress {
                job,
                stage,
                done,
                total,
            } => Self {
                job: job.0,
                small: stage_code(*stage),
                done: *done,
                total: *total,
                ..Self::new(10)
            },
            FromCard::Written { job, identity } => Self {
                job: job.0,
                small: identity_code(*identity),
                ..Self::new(11)
            },
            FromCard::Done(end) => Self {
                job: end.job.0,
                region: end.region.0,
                small: stage_code(end.stage),
                outcome: outcome_code(end.outcome),
                words: end.words,
                text: cut(&end.text),
                device_ns: end.device_ns,
                sync_ns: end.sync_ns,
                syncs: end.syncs,
                ..Self::new(12)
            },
        }
    }
}

impl TryFrom<&Packet> for FromCard {
    type Error = IpcError;

    fn try_from(packet: &Packet) -> Result<Self, IpcError> {
        let job = packet.job();
        let message = match packet.kind {
            9 => Self::Region(RegionReport {
                region: packet.region(),
                of: packet.of,
                content: content_of(packet.small)?,
                digest: packet.digest,
                tag: packet.tag(),
                function: (packet.flags & FUNCTION != 0).then_some(packet.function),
                guest_access: packet.flags & ACCESS != 0,
                scrub_failures: packet.failures,
                since: packet.done,
            }),
            10 => Self::Progress {
                job,
                stage: stage_of(packet.small)?,
                done: packet.done,
                total: packet.total,
            },
            11 => Self::Written {
                job,
                identity: identity_of(packet.small)?,
            },
            12 => Self::Done(JobEnd {
                job,
                region: packet.region(),
                outcome: outcome_of(packet.outcome)?,
                stage: stage_of(packet.small)?,
                words: packet.words,
                text: packet.text.clone(),
                device_ns: packet.device_ns,
                sync_ns: packet.sync_ns,
                syncs: packet.syncs,
            }),
            other => return Err(IpcError::Kind(other)),
        };
        if Packet::from(&message) != *packet {
            return Err(IpcError::Field { field: "unused" });
        }
        Ok(message)
    }
}

/// At most [`MAX_TEXT`] bytes, cut at a character's edge.
fn cut(text: &str) -> String {
    let mut out = String::new();
    for character in text.chars() {
        if out.len().saturating_add(character.len_utf8()) > MAX_TEXT {
            break;
        }
        out.push(character);
    }
    out
}

macro_rules! codes {
    ($to:ident, $from:ident, $type:ident, $field:literal, { $($variant:ident = $number:literal),+ $(,)? }) => {
        fn $to(value: $type) -> u16 {
            match value { $($type::$variant => $number),+ }
        }
        fn $from(number: u16) -> Result<$type, IpcError> {
            match number {
                $($number => Ok($type::$variant),)+
                _ => Err(IpcError::Field { field: $field }),
            }
        }
    };
}

codes!(content_code, content_of, Content, "content", {
    Unknown = 1, Blank = 2, Writing = 3, Active = 4, Quarantined = 5,
});
codes!(stage_code, stage_of, CardStage, "stage", {
    Verifying = 1, Isolating = 2, Writing = 3, Checking = 4, Committing = 5,
});
codes!(identity_code, identity_of, IdentityCheck, "identity", {
    Checked = 1, EngineStatus = 2, None = 3,
});
codes!(outcome_code, outcome_of, Outcome, "outcome", {
    Done = 1, Refused = 2, NotScrubbed = 3, WrongState = 4, Busy = 5, DeviceGone = 6,
    DecoupleFailed = 7, ProgramError = 8, Deadline = 9, Identity = 10, NotCommitted = 11,
    Journal = 12, ScrubFailed = 13, Violation = 14, Unfit = 15,
    NotOffered = 16,
});

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn samples_to() -> Vec<ToCard> {
        let job = JobId([7; 16]);
        let region = RegionIndex(1);
        let tag = OwnerTag([9; 32]);
        let target = TargetPath::new("acme/adder-1.0.gbs").unwrap();
        vec![
            ToCard::Hello,
            ToCard::Offer {
                job,
                region,
                digest: [3; 32],
                tag,
                target,
            },
            ToCard::Go { job },
            ToCard::Commit { job },
            ToCard::Abort { job },
            ToCard::Scrub {
                job,
                region,
                keep: None,
            },
            ToCard::Scrub {
                job,
                region,
                keep: Some(tag),
            },
            ToCard::Reset { job, region, tag },
            ToCard::Reopen {
                job,
                region,
                tag,
                digest: [4; 32],
            },
        ]
    }

    #[test]
    fn to_card_there_and_back() {
        for message in samples_to() {
            let bytes = Packet::from(&message).to_bytes();
            assert_eq!(
                ToCard::try_from(&Packet::from_bytes(&bytes).unwrap()).unwrap(),
                message
            );
        }
    }

    #[test]
    fn from_card_there_and_back_and_long_text_is_cut() {
        let end = JobEnd {
            job: JobId([1; 16]),
            region: RegionIndex(0),
            outcome: Outcome::ProgramError,
            stage: CardStage::Writing,
            words: HardwareWords {
                control: 1,
                status: 2,
                error: 4,
            },
            text: "ä".repeat(200),
            device_ns: 5,
            sync_ns: 6,
            syncs: 7,
        };
        let packet = Packet::from(&FromCard::Done(end));
        let FromCard::Done(back) =
            FromCard::try_from(&Packet::from_bytes(&packet.to_bytes()).unwrap()).unwrap()
        else {
            panic!("another kind");
        };
        assert_eq!(back.text.len(), MAX_TEXT);
        let report = FromCard::Region(RegionReport {
            region: RegionIndex(1),
            of: 2,
            content: Content::Active,
            digest: [1; 32],
            tag: Some(OwnerTag([2; 32])),
            function: Some([3; 16]),
            guest_access: true,
            scrub_failures: 2,
            since: 99,
        });
        let bytes = Packet::from(&report).to_bytes();
        assert_eq!(
            FromCard::try_from(&Packet::from_bytes(&bytes).unwrap()).unwrap(),
            report
        );
    }

    #[test]
    fn h6_a_byte_where_none_belongs_is_refused() {
        for message in samples_to() {
            let good = Packet::from(&message).to_bytes();
            for at in 8..PACKET_LEN {
                let mut bad = good;
                bad[at] ^= 0x41;
                if let Ok(other) =
                    Packet::from_bytes(&bad).and_then(|packet| ToCard::try_from(&packet))
                {
                    // It may say another thing, but then it says it in the one way.
                    assert_eq!(Packet::from(&other).to_bytes(), bad);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn h6_any_bytes_are_decoded_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _decoded = Packet::from_bytes(&bytes).map(|packet| {
                (ToCard::try_from(&packet).is_ok(), FromCard::try_from(&packet).is_ok())
            });
        }

        #[test]
        fn h6_any_tail_behind_a_good_head(kind in 0u16..16, tail in proptest::collection::vec(any::<u8>(), 504)) {
            let mut bytes = Vec::from(&MAGIC.to_le_bytes()[..]);
            bytes.extend_from_slice(&VERSION.to_le_bytes());
            bytes.extend_from_slice(&kind.to_le_bytes());
            bytes.extend_from_slice(&tail);
            let _decoded = Packet::from_bytes(&bytes).map(|packet| {
                (ToCard::try_from(&packet).is_ok(), FromCard::try_from(&packet).is_ok())
            });
        }
    }
}
