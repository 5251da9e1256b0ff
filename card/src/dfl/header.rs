//! The 64-bit header that every feature begins with.

/// A device feature header (DFH).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    /// What it is, within its kind.
    pub(super) id: u16,
    /// Revision of the feature.
    pub(super) revision: u8,
    /// Bytes from this header to the next one; 0 for none.
    pub(super) next: u64,
    /// Whether this header says that it is the last.
    pub(super) last: bool,
    /// Layout of what follows the header.
    pub(super) version: u8,
    /// What kind of thing this is.
    pub(super) kind: Kind,
}

/// The kinds of features.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A tenant's function.
    Afu,
    /// A private feature of the interface unit before it.
    Private,
    /// An FPGA interface unit that manages the card.
    Fme,
    /// An FPGA interface unit with a region behind it.
    Port,
    /// Anything else; skipped.
    Other,
}

impl Header {
    pub(super) fn parse(word: u64) -> Self {
        let id = field(word, 0, 12);
        let kind = match (field(word, 60, 4), id) {
            (1, _) => Kind::Afu,
            (3, _) => Kind::Private,
            (4, 0) => Kind::Fme,
            (4, 1) => Kind::Port,
            _ => Kind::Other,
        };
        Self {
            id: u16::try_from(id).unwrap_or(u16::MAX),
            revision: small(word, 12, 4),
            next: field(word, 16, 24),
            last: field(word, 40, 1) == 1,
            version: small(word, 52, 8),
            kind,
        }
    }
}

/// `width` bits of `word` from `low` on.
pub(super) fn field(word: u64, low: u32, width: u32) -> u64 {
    let mask = 1u64
        .checked_shl(width)
        .map_or(u64::MAX, |bit| bit.wrapping_sub(1));
    word.checked_shr(low).unwrap_or(0) & mask
}

/// A field of at most eight bits.
pub(super) fn small(word: u64, low: u32, width: u32) -> u8 {
    u8::try_from(field(word, low, width.min(8))).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_a_real_card() {
        // From the traces of the vendor's RTL: PR feature and port.
        let pr = Header::parse(0x3000_0000_1000_1005);
        assert_eq!(
            (pr.kind, pr.id, pr.revision, pr.next),
            (Kind::Private, 5, 1, 0x1000)
        );
        let port = Header::parse(0x4000_0000_1000_2001);
        assert_eq!(
            (port.kind, port.revision, port.last),
            (Kind::Port, 2, false)
        );
    }
}
