//! Entry points for fuzzing: whatever the bytes, what is stated here holds.
//!
//! Knows how a receiver puts scanner, handshake and messages together. Must
//! not be called by anything but fuzzers and tests: a broken invariant panics.
//!
//! The first byte chooses. Even: the rest is the stream. Odd: the rest is a
//! script, from which frames with right checksums, echoed nonces and live
//! session ids are made, for a fuzzer seldom guesses a checksum. Its other
//! bits say in what pieces the stream arrives.

use crate::handshake::{
    Fresh, GuestHandshake, GuestStep, HostHandshake, HostStep, JUNK_BUDGET, MINOR, Nonce,
};
use crate::header::Header;
use crate::kind::{Kind, MAX_CONTROL_BODY};
use crate::reply::Reply;
use crate::request::Request;
use crate::scanner::{Scanned, Scanner};

/// Nonces and ids that a script can echo.
const NONCE: Nonce = [7; 16];
const SESSION: u64 = 0x5e55;

struct Fixed;

impl Fresh for Fixed {
    fn nonce(&mut self) -> Nonce {
        NONCE
    }

    fn session_id(&mut self) -> u64 {
        SESSION
    }
}

/// What a host does with bytes from a guest.
pub fn guest_bytes(data: &[u8]) {
    let Some((mode, stream)) = stream_of(data) else {
        return;
    };
    let mut scanner = Scanner::host();
    let mut handshake = HostHandshake::new(MINOR);
    for mut piece in pieces(mode, &stream) {
        while let Some(found) = scanner.next(&mut piece) {
            let Scanned::Frame(frame) = found else {
                continue;
            };
            assert!(
                frame.body.len() <= MAX_CONTROL_BODY,
                "a body longer than allowed"
            );
            let before = handshake.session();
            match handshake.on_frame(&frame, &mut Fixed) {
                HostStep::Opened(session) => {
                    assert_eq!(handshake.session(), Some(session), "not the session told");
                }
                HostStep::Request(session) => {
                    assert_eq!(before, Some(session), "a request without a session");
                    assert_eq!(frame.header.session, session.id.get(), "a foreign request");
                    if let Ok(request) = Request::from_frame(&frame) {
                        let again = request.to_frame(session.id.get(), frame.header.sequence);
                        assert_same(again.as_ref().ok(), &frame);
                    }
                }
                HostStep::Stale(_) | HostStep::Misdirected => {
                    assert!(before.is_some(), "an answer before the echo");
                }
                HostStep::Welcome(_) | HostStep::Discarded | HostStep::Overrun => {}
            }
        }
        let discarded = scanner.take_discarded();
        let step = handshake.on_discarded(discarded);
        assert!(
            discarded <= JUNK_BUDGET || step == HostStep::Overrun,
            "over budget, unseen"
        );
    }
    abandon_to_the_end(scanner);
}

/// What a guest does with bytes from a host.
pub fn host_bytes(data: &[u8]) {
    let Some((mode, stream)) = stream_of(data) else {
        return;
    };
    let mut scanner = Scanner::guest();
    let mut handshake = GuestHandshake::new(NONCE, MINOR);
    for mut piece in pieces(mode, &stream) {
        while let Some(found) = scanner.next(&mut piece) {
            let Scanned::Frame(frame) = found else {
                continue;
            };
            let before = handshake.session();
            match handshake.on_frame(&frame) {
                GuestStep::Opened(session, _) => {
                    assert_eq!(before, None, "opened twice");
                    assert_eq!(handshake.session(), Some(session), "not the session told");
                }
                GuestStep::Reply(session) => {
                    assert_eq!(before, Some(session), "a reply without a session");
                    if let Ok(reply) = Reply::from_frame(&frame) {
                        let again = reply.to_frame(session.id.get(), frame.header.sequence);
                        assert_same(again.as_ref().ok(), &frame);
                    }
                }
                GuestStep::Confirm(_) | GuestStep::Discarded => {}
            }
        }
    }
    abandon_to_the_end(scanner);
}

/// A body that decodes has no second spelling.
fn assert_same(again: Option<&Vec<u8>>, frame: &crate::frame::Frame<'_>) {
    let mut whole = frame.header.to_bytes().to_vec();
    whole.extend_from_slice(frame.body);
    assert_eq!(again, Some(&whole), "a body with two spellings");
}

/// However often a caller gives up, the buffer empties.
fn abandon_to_the_end(mut scanner: Scanner) {
    let mut left = MAX_CONTROL_BODY.saturating_mul(2);
    while scanner.pending().is_some() {
        assert!(left > 0, "abandoning does not end");
        left = left.saturating_sub(1);
        scanner.abandon_partial();
        while scanner.next(&mut &[][..]).is_some() {}
    }
}

fn stream_of(data: &[u8]) -> Option<(u8, Vec<u8>)> {
    let (mode, rest) = data.split_first()?;
    let stream = if mode & 1 == 0 {
        rest.to_vec()
    } else {
        play(rest)
    };
    Some((*mode, stream))
}

fn pieces(mode: u8, stream: &[u8]) -> impl Iterator<Item = &[u8]> {
    let size = match mode >> 1 {
        0 => stream.len().max(1),
        n => usize::from(n),
    };
    stream.chunks(size)
}

/// A script is a row of: selector, length, that many bytes.
fn play(mut script: &[u8]) -> Vec<u8> {
    const KINDS: [Kind; 16] = [
        Kind::HELLO,
        Kind::CONFIRM,
        Kind::WELCOME,
        Kind::READY,
        Kind::LIST,
        Kind::DESCRIBE,
        Kind::LOAD,
        Kind::CLEAR,
        Kind::RESET,
        Kind::JOB,
        Kind::CANCEL,
        Kind::WATCH,
        Kind::PING,
        Kind::EVENT,
        Kind::ERROR,
        Kind(0x77),
    ];
    let mut stream = Vec::new();
    let mut sequence = 0_u32;
    while let Some(([selector, length], rest)) = script.split_first_chunk() {
        let (given, rest) = rest
            .split_at_checked(usize::from(*length))
            .unwrap_or((rest, &[]));
        script = rest;
        let kind = KINDS
            .get(usize::from(selector & 0xF))
            .copied()
            .unwrap_or(Kind::ERROR);
        let opening = matches!(kind, Kind::HELLO | Kind::CONFIRM | Kind::WELCOME);
        let mut body = given.to_vec();
        if opening {
            // Nonces that fit: those of the script come first, as junk might.
            let nonces = if kind == Kind::WELCOME { 32 } else { 16 };
            body.splice(..0, std::iter::repeat_n(NONCE[0], nonces));
        }
        let kind = if selector & 0x10 != 0 {
            kind.reply()
        } else {
            kind
        };
        if selector & 0x20 == 0 {
            sequence = sequence.wrapping_add(1);
        }
        let session = if opening { 0 } else { SESSION };
        let Some(header) = Header::for_body(kind, session, sequence, &body) else {
            continue;
        };
        let mut frame = header.to_bytes().to_vec();
        frame.append(&mut body);
        if selector & 0x40 != 0 {
            // Its sender dies in the middle.
            frame.truncate(frame.len().saturating_sub(usize::from(*length) / 2).max(1));
        }
        if selector & 0x80 != 0 {
            stream.extend_from_slice(given);
        }
        stream.append(&mut frame);
    }
    stream
}
