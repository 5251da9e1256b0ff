//! Streams that hold anything, and the frames to be found in them.

use proptest::prelude::*;
use reconf_protocol::header::{HEADER_LEN, MAGIC};
use reconf_protocol::kind::{MAX_CONTROL_BODY, MAX_UPLOAD_FRAME};
use reconf_protocol::message::{Confirm, Hello};
use reconf_protocol::{
    Blame, FrameError, Header, Kind, Opening, PendingPart, Scanner, Status, Traffic, encode,
};

use crate::arbitrary::request;
use crate::make::{Seen, abandon, confirm, drain, frames, hello, ping, scan};

pub(crate) const SESSION: u64 = 0x1122_3344_5566_7788;

/// A frame with right checksums around any body.
pub(crate) fn frame_of(kind: Kind, body: &[u8]) -> Vec<u8> {
    let header = Header {
        kind,
        session: SESSION,
        sequence: 1,
        length: u32::try_from(body.len()).unwrap(),
        body_crc: crc32c::crc32c(body),
    };
    [&header.to_bytes()[..], body].concat()
}

/// A header that says it is good, with one byte changed.
fn header_with(at: usize, value: u8) -> Vec<u8> {
    let mut bytes = frame_of(Kind::PING, &[0; 8]);
    bytes[at] = value;
    let crc = crc32c::crc32c(&bytes[..28]);
    bytes[28..32].copy_from_slice(&crc.to_le_bytes());
    bytes
}

#[test]
fn frames_follow_each_other_without_a_gap() {
    let stream = [ping(SESSION, 1), hello([1; 16]), ping(SESSION, 2)].concat();
    for size in 1..=stream.len() {
        let seen = scan(&mut Scanner::host(), &stream, &[size]);
        assert_eq!(seen.len(), 3);
        assert_eq!(frames(&seen), [Kind::PING, Kind::HELLO, Kind::PING]);
    }
}

#[test]
fn g1_huge_length_is_refused_and_the_next_frame_found() {
    for (length, too_large) in [
        (0, false),
        (1, false),
        (4096, false),
        (4097, true),
        (1 << 31, true),
        (u32::MAX, true),
    ] {
        let header = Header {
            kind: Kind::LIST,
            session: SESSION,
            sequence: 1,
            length,
            body_crc: 0,
        };
        let stream = [&header.to_bytes()[..], &hello([2; 16])].concat();
        let seen = scan(&mut Scanner::host(), &stream, &[]);
        assert_eq!(
            frames(&seen).last(),
            Some(&Kind::HELLO),
            "{length}: {seen:?}"
        );
        let error = FrameError::TooLarge {
            len: length,
            max: 4096,
        };
        assert_eq!(
            seen.contains(&Seen::Broken(error)),
            too_large,
            "{length}: {seen:?}"
        );
        assert_eq!(error.status(), Status::TooLarge);
    }
}

#[test]
fn g2_a_part_that_is_awaited_can_be_seen_and_given_up() {
    let whole = ping(SESSION, 1);
    for length in 0..whole.len() {
        let mut scanner = Scanner::host();
        assert_eq!(scan(&mut scanner, &whole[..length], &[1]), []);
        let expected = match length {
            0 => None,
            1..HEADER_LEN => Some(PendingPart::Header),
            _ => Some(PendingPart::Body),
        };
        assert_eq!(scanner.pending(), expected, "{length}");
        abandon(&mut scanner);
        assert_eq!(scanner.pending(), None);
        assert_eq!(scanner.take_discarded(), u64::try_from(length).unwrap());
        assert_eq!(frames(&scan(&mut scanner, &whole, &[])), [Kind::PING]);
    }
    let mut scanner = Scanner::host();
    assert_eq!(frames(&scan(&mut scanner, &whole, &[])), [Kind::PING]);
    assert_eq!(
        scanner.pending(),
        None,
        "a frame that was given out is not awaited"
    );
}

#[test]
fn g2_one_half_frame_is_told_from_the_next() {
    // A busy peer may be in the middle of a header at every look, and is not
    // slow: it is another header each time.
    let whole = ping(SESSION, 1);
    let mut scanner = Scanner::host();
    let mut at = 0;
    scan(&mut scanner, &whole[..10], &[]);
    for _ in 0..5 {
        assert_eq!(
            (scanner.pending(), scanner.position()),
            (Some(PendingPart::Header), at)
        );
        scan(&mut scanner, &[&whole[10..], &whole[..10]].concat(), &[]);
        at += 40;
    }
    scan(&mut scanner, &whole[10..12], &[]);
    assert_eq!(scanner.position(), at, "more of the same frame");
    abandon(&mut scanner);
    assert_eq!(scanner.position(), at + 12);
}

#[test]
fn g2_giving_up_finds_what_was_swallowed() {
    // Not an opening frame, so the scanner itself must wait for the body.
    let inside = ping(SESSION, 9);
    let outer = frame_of(Kind::LIST, &[0; 200]);
    let stream = [&outer[..50], &inside].concat();
    let mut scanner = Scanner::host();
    assert_eq!(scan(&mut scanner, &stream, &[]), []);
    assert_eq!(scanner.pending(), Some(PendingPart::Body));
    let seen = abandon(&mut scanner);
    assert_eq!(seen[0], Seen::Resynced(50));
    assert_eq!(frames(&seen), [Kind::PING]);
}

#[test]
fn g3_version_flags_and_checksums_have_their_own_errors() {
    let cases = [
        (header_with(4, 2), FrameError::Version(2)),
        (header_with(5, 1), FrameError::Flags(1)),
        (
            b"RCNF is no more than a word here....".to_vec(),
            FrameError::HeaderCrc,
        ),
        (b"junk".to_vec(), FrameError::BadMagic),
    ];
    for (bytes, error) in cases {
        let seen = scan(&mut Scanner::host(), &bytes, &[]);
        assert_eq!(seen.first(), Some(&Seen::Broken(error)));
        assert_eq!(
            (error.status(), error.blame()),
            (Status::Protocol, Blame::Peer)
        );
    }
    let mut bytes = ping(SESSION, 1);
    *bytes.last_mut().unwrap() ^= 1;
    assert_eq!(
        scan(&mut Scanner::host(), &bytes, &[]),
        [Seen::Broken(FrameError::BodyCrc)]
    );
}

#[test]
fn g15_every_flag_bit_is_refused() {
    for bit in 0..8 {
        let seen = scan(&mut Scanner::host(), &header_with(5, 1 << bit), &[]);
        assert_eq!(seen, [Seen::Broken(FrameError::Flags(1 << bit))]);
    }
}

#[test]
fn g3_every_changed_byte_is_noticed() {
    let good = ping(SESSION, 7);
    for at in 0..good.len() {
        for change in 1..=255_u8 {
            let mut bad = good.clone();
            bad[at] ^= change;
            let mut scanner = Scanner::host();
            let seen = scan(&mut scanner, &bad, &[]);
            assert_eq!(frames(&seen), [], "byte {at} changed by {change}");
            assert!(
                matches!(seen[0], Seen::Broken(_)),
                "byte {at} changed by {change}"
            );
            // And whoever comes next is heard.
            assert_eq!(
                frames(&scan(&mut scanner, &hello([3; 16]), &[])),
                [Kind::HELLO]
            );
        }
    }
}

#[test]
fn a_guest_that_rebooted_in_a_frame_is_not_blamed() {
    let dead = frame_of(Kind::LOAD, &[0x55; 300]);
    let seen = scan(
        &mut Scanner::host(),
        &[&dead[..100], &hello([1; 16])].concat(),
        &[],
    );
    assert_eq!(
        seen[..2],
        [Seen::Broken(FrameError::Interrupted), Seen::Resynced(100)]
    );
    assert_eq!(FrameError::Interrupted.blame(), Blame::Nobody);
}

#[test]
fn only_a_whole_opening_frame_cuts_a_body_off() {
    let mut broken = hello([1; 16]);
    broken[40] ^= 1;
    let in_session = encode(
        Kind::HELLO,
        5,
        0,
        &Hello {
            nonce: [1; 16],
            minor: 0,
        },
    )
    .unwrap();
    let other = encode(
        Kind::CONFIRM,
        0,
        0,
        &Confirm {
            host_nonce: [1; 16],
        },
    )
    .unwrap();
    for inside in [
        &hello([1; 16])[..49],
        &broken,
        &in_session,
        &other,
        &ping(SESSION, 1),
    ] {
        let outer = frame_of(Kind(0x7777), inside);
        for size in [1, 7, outer.len()] {
            let seen = scan(&mut Scanner::host(), &outer, &[size]);
            assert_eq!(seen, [Seen::Frame(Kind(0x7777), inside.to_vec())]);
        }
    }
}

#[test]
fn unknown_kinds_survive_with_control_bodies_only() {
    for kind in [
        Kind(0),
        Kind(0x19),
        Kind(0x20),
        Kind(0x27),
        Kind(0x3FFF),
        Kind(0xFFFE),
    ] {
        let seen = scan(&mut Scanner::host(), &frame_of(kind, &[1, 2, 3]), &[]);
        assert_eq!(seen, [Seen::Frame(kind, vec![1, 2, 3])]);
        let seen = scan(
            &mut Scanner::host(),
            &frame_of(kind, &[0; MAX_CONTROL_BODY + 1]),
            &[],
        );
        let error = FrameError::TooLarge {
            len: 4097,
            max: 4096,
        };
        assert_eq!(seen, [Seen::Broken(error)], "{kind}");
    }
}

#[test]
fn upload_frames_are_taken_where_uploads_are() {
    let body = vec![0x5A; MAX_UPLOAD_FRAME - HEADER_LEN];
    let chunk = frame_of(Kind::UPLOAD_FIRST, &body);
    assert_eq!(chunk.len(), MAX_UPLOAD_FRAME);
    let mut scanner = Scanner::new(Opening::Hello, Traffic::Uploads);
    let stream = [&chunk[..], &ping(SESSION, 1)].concat();
    let seen = scan(&mut scanner, &stream, &[1000]);
    assert_eq!(seen[0], Seen::Frame(Kind::UPLOAD_FIRST, body));
    assert_eq!(frames(&seen), [Kind::UPLOAD_FIRST, Kind::PING]);

    let longer = frame_of(Kind::UPLOAD_FIRST, &[0; MAX_UPLOAD_FRAME - HEADER_LEN + 1]);
    let error = FrameError::TooLarge {
        len: 32_737,
        max: 32_736,
    };
    assert_eq!(scan(&mut scanner, &longer, &[])[0], Seen::Broken(error));
    let control = frame_of(Kind::LIST, &[0; MAX_CONTROL_BODY + 1]);
    let error = FrameError::TooLarge {
        len: 4097,
        max: 4096,
    };
    assert!(scan(&mut scanner, &control, &[]).contains(&Seen::Broken(error)));
}

#[test]
fn vser_03_half_a_frame_an_old_reply_and_a_new_request_in_one_stream() {
    let half = &ping(SESSION, 1)[..20];
    let old = encode(
        Kind::PING.reply(),
        3,
        1,
        &reconf_protocol::message::Pong { payload: 1 },
    );
    let stream = [half, &old.unwrap(), &ping(SESSION, 2)].concat();
    let seen = scan(&mut Scanner::host(), &stream, &[]);
    assert_eq!(frames(&seen), [Kind::PING.reply(), Kind::PING]);
}

/// Junk that looks like frames: pieces of good ones, bare magic, dead headers.
pub(crate) fn debris() -> impl Strategy<Value = Vec<u8>> {
    let whole = prop_oneof![
        any::<[u8; 16]>().prop_map(hello),
        any::<[u8; 16]>().prop_map(confirm),
        request().prop_map(|request| request.to_frame(SESSION, 1).unwrap()),
        proptest::collection::vec(any::<u8>(), 0..300).prop_map(|b| frame_of(Kind(0x123), &b)),
    ];
    prop_oneof![
        4 => whole.clone(),
        3 => (whole.clone(), any::<prop::sample::Index>())
            .prop_map(|(bytes, at)| bytes[..at.index(bytes.len())].to_vec()),
        2 => (whole, any::<prop::sample::Index>(), 1..=255_u8).prop_map(|(mut bytes, at, change)| {
            let at = at.index(bytes.len());
            bytes[at] ^= change;
            bytes
        }),
        1 => proptest::collection::vec(any::<u8>(), 0..40),
        1 => Just(MAGIC.to_vec()),
        1 => (4090..5000_u32).prop_map(|length| {
            let header = Header { kind: Kind::LIST, session: 1, sequence: 1, length, body_crc: 0 };
            header.to_bytes().to_vec()
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn how_a_stream_is_cut_changes_nothing(
        parts in proptest::collection::vec(debris(), 1..12),
        sizes in proptest::collection::vec(1..200_usize, 1..8),
    ) {
        let stream = parts.concat();
        let mut whole = Scanner::host();
        let mut cut = Scanner::host();
        prop_assert_eq!(scan(&mut whole, &stream, &[]), scan(&mut cut, &stream, &sizes));
        prop_assert_eq!(whole.pending(), cut.pending());
        prop_assert_eq!(whole.position(), cut.position());
        prop_assert_eq!(whole.take_discarded(), cut.take_discarded());
        prop_assert_eq!(abandon(&mut whole), abandon(&mut cut));
    }

    #[test]
    fn every_byte_is_in_a_frame_or_counted(
        parts in proptest::collection::vec(debris(), 1..12),
    ) {
        let stream = parts.concat();
        let mut scanner = Scanner::host();
        let mut seen = scan(&mut scanner, &stream, &[]);
        seen.extend(abandon(&mut scanner));
        let counted = seen.iter().fold(scanner.take_discarded(), |sum, one| match one {
            Seen::Frame(_, body) => sum.saturating_add(32).saturating_add(body.len() as u64),
            Seen::Broken(_) | Seen::Resynced(_) => sum,
        });
        prop_assert_eq!(counted, stream.len() as u64);
    }

    #[test]
    fn noise_never_panics_and_seldom_is_a_frame(
        noise in proptest::collection::vec(any::<u8>(), 0..5000),
        sizes in proptest::collection::vec(1..500_usize, 1..4),
    ) {
        let mut scanner = Scanner::guest();
        let seen = scan(&mut scanner, &noise, &sizes);
        prop_assert_eq!(frames(&seen), []);
        let mut rest = Vec::new();
        drain(&mut scanner, &mut &[][..], &mut rest);
        prop_assert_eq!(rest, []);
    }
}
