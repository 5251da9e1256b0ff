//! Bodies: one spelling each, and nothing else accepted.

use proptest::prelude::*;
use reconf_protocol::header::HEADER_LEN;
use reconf_protocol::kind::MAX_CONTROL_BODY;
use reconf_protocol::message::{
    Clear, DescribeReply, Digest, ErrorReply, FunctionId, ImageEntry, ImageRef, JobKey, List,
    ListReply, Load, Slot, SlotInfo, SlotState, WatchReply,
};
use reconf_protocol::{
    DecodeError, Detail, EncodeError, Frame, Header, Kind, Reply, ReplyError, Request,
    RequestError, Scanned, Scanner, Status, fuzz,
};

use crate::arbitrary::{reply, request};

/// A frame around any body, as the scanner would give it out.
fn with<T>(kind: Kind, body: &[u8], read: impl Fn(&Frame<'_>) -> T) -> T {
    let header = Header {
        kind,
        session: 1,
        sequence: 1,
        length: u32::try_from(body.len()).unwrap(),
        body_crc: crc32c::crc32c(body),
    };
    read(&Frame { header, body })
}

fn request_of(kind: Kind, body: &[u8]) -> Result<Request, RequestError> {
    with(kind, body, Request::from_frame)
}

fn reply_of(kind: Kind, body: &[u8]) -> Result<Reply, ReplyError> {
    with(kind, body, Reply::from_frame)
}

fn body(frame: &[u8]) -> Vec<u8> {
    frame[HEADER_LEN..].to_vec()
}

fn malformed(kind: Kind, cause: DecodeError) -> Result<Request, RequestError> {
    Err(RequestError::Malformed { kind, cause })
}

#[test]
fn g3_trailing_bytes_and_cut_bodies_are_refused() {
    let whole = body(
        &Request::List(List {
            slot: Some(Slot(1)),
            cursor: 7,
        })
        .to_frame(1, 1)
        .unwrap(),
    );
    for length in 0..whole.len() {
        assert_eq!(
            request_of(Kind::LIST, &whole[..length]),
            malformed(Kind::LIST, DecodeError::Malformed)
        );
    }
    let longer = [&whole[..], &[0, 0]].concat();
    assert_eq!(
        request_of(Kind::LIST, &longer),
        malformed(Kind::LIST, DecodeError::Trailing(2))
    );
}

#[test]
fn g3_bytes_that_are_no_bool_option_variant_or_text_are_refused() {
    let key = JobKey([1; 16]);
    let image = ImageRef::Name("a/b".to_owned());
    let load = Load {
        key,
        slot: None,
        image,
        if_not_loaded: false,
        force: false,
    };
    let good = body(&Request::Load(load).to_frame(1, 1).unwrap());
    assert!(request_of(Kind::LOAD, &good).is_ok());
    let last = good.len() - 1;
    // Option tag, variant, length of the text, text, bool.
    for (at, value) in [
        (16, 2),
        (17, 2),
        (20, 1),
        (21, 4),
        (28, 0x80),
        (29, 0xFF),
        (last, 2),
    ] {
        let mut bad = good.clone();
        bad[at] = value;
        assert_eq!(
            request_of(Kind::LOAD, &bad),
            malformed(Kind::LOAD, DecodeError::Malformed),
            "byte {at}"
        );
    }
}

#[test]
fn g9_there_is_no_field_to_name_a_place_on_the_host() {
    // What a request can say is a slot, an image, a key and two wishes; a body
    // with more to say is refused.
    let body = [&[1, 0, 0][..], b"0000:3b:00.0"].concat();
    assert_eq!(
        request_of(Kind::DESCRIBE, &body),
        malformed(Kind::DESCRIBE, DecodeError::Trailing(12))
    );
}

#[test]
fn xrt_05_unknown_kinds_are_answered_unsupported() {
    for kind in [
        Kind(0),
        Kind::HISTORY,
        Kind::UPLOAD_FIRST,
        Kind(0x7777),
        Kind::READY,
    ] {
        let error = request_of(kind, &[1, 2, 3]).unwrap_err();
        assert_eq!(error, RequestError::Unsupported(kind));
        let reply = error.to_reply();
        assert_eq!(
            (reply.status, reply.detail),
            (Status::Unsupported, Detail::None)
        );
    }
    assert_eq!(
        reply_of(Kind(0x8077), &[]),
        Err(ReplyError::Unknown(Kind(0x8077)))
    );
    assert_eq!(
        reply_of(Kind::PING, &[0; 8]),
        Err(ReplyError::Unknown(Kind::PING))
    );
}

#[test]
fn a_load_that_contradicts_itself_is_refused() {
    let image = ImageRef::Digest(Digest([1; 32]));
    let load = Load {
        key: JobKey([1; 16]),
        slot: None,
        image,
        if_not_loaded: true,
        force: true,
    };
    let error = request_of(
        Kind::LOAD,
        &body(&Request::Load(load).to_frame(1, 1).unwrap()),
    );
    assert_eq!(error, Err(RequestError::Contradiction));
    assert_eq!(error.unwrap_err().to_reply().status, Status::Protocol);
}

#[test]
fn g8_every_denied_is_the_same_byte_for_byte() {
    let denied = Reply::Error(ErrorReply::denied()).to_frame(1, 1).unwrap();
    let expected = [
        5, 0, 0, 0, /* detail */ 0, 0, 0, 0, /* job */ 0, /* slots */ 0, 0, 0, 0, 0,
        0, 0, 0,
    ];
    assert_eq!(body(&denied), expected);
}

/// A name of the greatest length.
fn longest_name() -> String {
    format!("{}/{}:{}", "p".repeat(64), "n".repeat(64), "v".repeat(64))
}

#[test]
fn the_longest_request_is_far_from_the_limit() {
    let image = ImageRef::Name(longest_name());
    let slot = Some(Slot(u16::MAX));
    let load = Request::Load(Load {
        key: JobKey([1; 16]),
        slot,
        image,
        if_not_loaded: true,
        force: false,
    });
    let bytes = body(&load.to_frame(1, 1).unwrap());
    assert_eq!(bytes.len(), 227);
    assert_eq!(request_of(Kind::LOAD, &bytes), Ok(load));
}

#[test]
fn every_list_that_fits_a_frame_can_be_read_again() {
    // Short on the wire, long in memory: what a second implementation may
    // send must not meet a limit that the specification does not tell.
    let info = SlotInfo {
        slot: Slot(0),
        state: SlotState::Empty,
        image: None,
        digest: None,
        function_id: None,
        since: None,
        guest_pci: None,
        development: false,
        job: None,
    };
    let entry = ImageEntry {
        slot: Slot(0),
        name: "a/b".to_owned(),
        digest: Digest([0; 32]),
        function_id: FunctionId([0; 16]),
        size: 0,
    };
    let of = |count: usize| {
        [
            Reply::Describe(DescribeReply {
                slots: vec![info.clone(); count],
            }),
            Reply::List(ListReply {
                entries: vec![entry.clone(); count],
                next: None,
            }),
            Reply::Watch(WatchReply {
                slots: vec![Slot(0); count],
            }),
        ]
    };
    let mut full = 0;
    for count in 0..2100 {
        for reply in of(count) {
            match reply.to_frame(1, 1) {
                Ok(frame) => {
                    assert_eq!(reply_of(reply.kind(), &body(&frame)), Ok(reply));
                    full = full.max(count);
                }
                Err(error) => assert_eq!(
                    error,
                    EncodeError {
                        max: MAX_CONTROL_BODY
                    }
                ),
            }
        }
    }
    assert_eq!(full, 2044, "slots in a frame");
}

#[test]
fn a_body_that_does_not_fit_is_an_error_and_no_frame() {
    let image = ImageRef::Name("x".repeat(5000));
    let load = Load {
        key: JobKey([1; 16]),
        slot: None,
        image,
        if_not_loaded: false,
        force: false,
    };
    assert_eq!(
        Request::Load(load).to_frame(1, 1),
        Err(EncodeError {
            max: MAX_CONTROL_BODY
        })
    );
}

#[test]
fn a_frame_is_one_buffer_with_its_header_in_front() {
    let request = Request::Clear(Clear {
        key: JobKey([7; 16]),
        slot: Some(Slot(3)),
    });
    let bytes = request.to_frame(0x0102_0304_0506_0708, 9).unwrap();
    let mut input = bytes.as_slice();
    let mut scanner = Scanner::host();
    let Some(Scanned::Frame(frame)) = scanner.next(&mut input) else {
        panic!("no frame")
    };
    assert_eq!(frame.wire_len(), bytes.len());
    assert_eq!(frame.header.session, 0x0102_0304_0506_0708);
    assert_eq!((frame.header.kind, frame.header.sequence), (Kind::CLEAR, 9));
    assert_eq!(Request::from_frame(&frame), Ok(request));
}

#[test]
fn kinds_print_for_people() {
    assert_eq!(Kind::LOAD.to_string(), "load");
    assert_eq!(Kind::LOAD.reply().to_string(), "load reply");
    assert_eq!(Kind::ERROR.to_string(), "error");
    assert_eq!(Kind(0x1234).to_string(), "kind 0x1234");
    assert_eq!(Kind(0x9234).to_string(), "kind 0x9234");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn requests_come_back(request in request(), session: u64, sequence: u32) {
        let bytes = request.to_frame(session, sequence).unwrap();
        prop_assert_eq!(request_of(request.kind(), &body(&bytes)), Ok(request));
    }

    #[test]
    fn replies_come_back(reply in reply(), session: u64, sequence: u32) {
        if let Ok(bytes) = reply.to_frame(session, sequence) {
            prop_assert_eq!(reply_of(reply.kind(), &body(&bytes)), Ok(reply));
        }
    }

    #[test]
    fn a_body_has_one_spelling(kind in 0x10..0x19_u16, change in any::<(prop::sample::Index, u8)>(),
                               request in request()) {
        // Any bytes that decode at all encode to the very same bytes.
        let mut bytes = body(&request.to_frame(1, 1).unwrap());
        let at = change.0.index(bytes.len());
        bytes[at] = change.1;
        if let Ok(read) = request_of(Kind(kind), &bytes) {
            prop_assert_eq!(body(&read.to_frame(1, 1).unwrap()), bytes);
        }
    }

    #[test]
    fn any_body_is_a_message_or_an_error(kind in any::<u16>(),
                                         bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = (request_of(Kind(kind), &bytes).is_ok(), reply_of(Kind(kind), &bytes).is_ok());
        for base in [0, 0x8000] {
            for offset in 0x10..0x19 {
                let kind = Kind(base | offset);
                let _ = (request_of(kind, &bytes).is_ok(), reply_of(kind, &bytes).is_ok());
            }
        }
    }

    #[test]
    fn the_fuzz_entries_hold_for_any_bytes(data in proptest::collection::vec(any::<u8>(), 0..2000)) {
        fuzz::guest_bytes(&data);
        fuzz::host_bytes(&data);
    }

    #[test]
    fn the_fuzz_entries_hold_for_sessions(
        mode in any::<u8>(),
        acts in proptest::collection::vec((any::<u8>(), proptest::collection::vec(any::<u8>(), 0..40)), 0..20),
    ) {
        // A hello and its confirm first, so that the rest meets a session.
        let mut data = vec![mode | 1, 0, 2, 0, 0, 1, 0];
        let mut reply = vec![mode | 1, 2, 2, 0, 0, 3, 14];
        reply.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 8, 0]);
        for (selector, body) in acts {
            for script in [&mut data, &mut reply] {
                script.extend([selector, u8::try_from(body.len()).unwrap()]);
                script.extend_from_slice(&body);
            }
        }
        fuzz::guest_bytes(&data);
        fuzz::host_bytes(&reply);
    }
}
