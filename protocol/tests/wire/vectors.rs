//! `docs/protocol-vectors.json`: what other implementations are tried with.
//!
//! The cases are stated in `cases`; the file must say exactly the same. After
//! a change on purpose: `RECONF_BLESS=1 cargo test -p reconf-protocol vectors`.

use std::path::Path;

use reconf_protocol::message::{Confirm, Hello, Ready, Welcome};
use reconf_protocol::{
    Body, Frame, FrameError, Kind, Reply, Request, RequestError, Scanned, Scanner, decode, encode,
};
use serde_json::{Value, json};

use crate::cases::{broken, handshake, refused, replies, requests, streams};
use crate::json::{body, hex, unhex};

pub(crate) fn error_name(error: FrameError) -> &'static str {
    match error {
        FrameError::BadMagic => "bad-magic",
        FrameError::HeaderCrc => "header-crc",
        FrameError::Version(_) => "version",
        FrameError::Flags(_) => "flags",
        FrameError::TooLarge { .. } => "too-large",
        FrameError::BodyCrc => "body-crc",
        FrameError::Interrupted => "interrupted",
    }
}

fn refusal_name(error: RequestError) -> &'static str {
    match error {
        RequestError::Unsupported(_) => "unsupported",
        RequestError::Malformed { .. } => "malformed",
        RequestError::BadName => "bad-name",
        RequestError::Contradiction => "contradiction",
    }
}

/// Everything that a host's scanner comes upon.
fn found(stream: &[u8]) -> Vec<Value> {
    let mut scanner = Scanner::host();
    let mut input = stream;
    let mut found = Vec::new();
    while let Some(one) = scanner.next(&mut input) {
        found.push(match one {
            Scanned::Frame(frame) => json!({ "frame": frame.header.kind.0 }),
            Scanned::Broken(error) => json!({ "broken": error_name(error) }),
            Scanned::Resynced { discarded } => json!({ "discarded": discarded }),
        });
    }
    found
}

/// Calls `read` with the only frame in these bytes.
fn only<T>(bytes: &[u8], mut read: impl FnMut(&Frame<'_>) -> T) -> T {
    let mut scanner = Scanner::host();
    let mut input = bytes;
    let Some(Scanned::Frame(frame)) = scanner.next(&mut input) else {
        panic!("not a frame")
    };
    assert!(input.is_empty() && frame.wire_len() == bytes.len());
    read(&frame)
}

fn document() -> Value {
    let good = [handshake(), requests(), replies()].concat();
    let frames: Vec<Value> = good
        .iter()
        .map(|(name, bytes)| {
            only(bytes, |frame| {
                let header = &frame.header;
                json!({
                    "name": name, "hex": hex(bytes), "kind": header.kind.0,
                    "session": header.session, "sequence": header.sequence, "body": body(frame),
                })
            })
        })
        .collect();
    let broken: Vec<Value> = broken()
        .iter()
        .map(|(name, bytes)| {
            let first = found(bytes).first().cloned().unwrap();
            json!({ "name": name, "hex": hex(bytes), "error": first["broken"] })
        })
        .collect();
    let refused: Vec<Value> = refused()
        .iter()
        .map(|(name, bytes)| {
            let error = only(bytes, Request::from_frame).unwrap_err();
            let reply = error.to_reply();
            json!({
                "name": name, "hex": hex(bytes), "error": refusal_name(error),
                "status": reply.status.name(), "detail": reply.detail.name(),
            })
        })
        .collect();
    let streams: Vec<Value> = streams()
        .iter()
        .map(|(name, bytes)| json!({ "name": name, "hex": hex(bytes), "found": found(bytes) }))
        .collect();
    json!({ "frames": frames, "broken": broken, "refused": refused, "streams": streams })
}

fn path() -> &'static Path {
    Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../docs/protocol-vectors.json"
    ))
}

#[test]
fn vectors_file_says_what_the_code_says() {
    let now = document();
    if std::env::var_os("RECONF_BLESS").is_some() {
        let text = serde_json::to_string_pretty(&now).unwrap() + "\n";
        std::fs::write(path(), text).unwrap();
    }
    assert!(
        written() == now,
        "docs/protocol-vectors.json differs; see the top of vectors.rs"
    );
}

fn written() -> Value {
    serde_json::from_slice(&std::fs::read(path()).unwrap()).unwrap()
}

#[test]
fn vectors_decode_and_encode_to_the_same_bytes() {
    let written = written();
    let frames = written["frames"].as_array().unwrap();
    let mut kinds: Vec<u16> = Vec::new();
    for vector in frames {
        let bytes = unhex(vector["hex"].as_str().unwrap());
        only(&bytes, |frame| {
            assert_eq!(body(frame), vector["body"], "{}", vector["name"]);
            let header = frame.header;
            kinds.push(header.kind.0);
            let (session, sequence) = (header.session, header.sequence);
            let again = match header.kind {
                Kind::HELLO => again::<Hello>(frame),
                Kind::WELCOME => again::<Welcome>(frame),
                Kind::CONFIRM => again::<Confirm>(frame),
                Kind::READY => again::<Ready>(frame),
                kind if kind.is_from_host() => Reply::from_frame(frame)
                    .unwrap()
                    .to_frame(session, sequence)
                    .unwrap(),
                _ => Request::from_frame(frame)
                    .unwrap()
                    .to_frame(session, sequence)
                    .unwrap(),
            };
            assert_eq!(again, bytes, "{}", vector["name"]);
        });
    }
    for (kind, name) in Kind::NAMED {
        assert!(
            kinds.contains(&kind.0) || kind == Kind::HISTORY,
            "no vector of {name}"
        );
        let asked = (0x10..0x19).contains(&kind.0);
        assert!(
            !asked || kinds.contains(&kind.reply().0),
            "no vector of the {name} reply"
        );
    }
}

fn again<T: Body>(frame: &Frame<'_>) -> Vec<u8> {
    let message: T = decode(frame).unwrap();
    encode(
        frame.header.kind,
        frame.header.session,
        frame.header.sequence,
        &message,
    )
    .unwrap()
}
