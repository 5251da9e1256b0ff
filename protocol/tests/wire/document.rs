//! `docs/protocol.md` says what the code does, number by number.

use reconf_protocol::handshake::{JUNK_BUDGET, MINOR};
use reconf_protocol::header::{HEADER_LEN, MAGIC, VERSION};
use reconf_protocol::kind::{MAX_CONTROL_BODY, MAX_UPLOAD_FRAME};
use reconf_protocol::message::{Confirm, Hello, Ping, Pong, Ready, Slot, Welcome};
use reconf_protocol::{Detail, FrameError, Kind, Reply, Request, Status, encode};

use crate::cases::{GUEST_NONCE, HOST_NONCE, SESSION};
use crate::json::hex;
use crate::vectors::error_name;

fn document() -> String {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/protocol.md")).unwrap()
}

/// The rows of the table whose head begins with this cell, as their cells.
fn table(document: &str, first: &str) -> Vec<Vec<String>> {
    let head = format!("| {first} |");
    let lines: Vec<&str> = document.lines().collect();
    let is_head = |pair: &[&str]| pair[0].starts_with(&head) && pair[1].starts_with("|---");
    let at = lines.windows(2).position(is_head).expect(first);
    let rows = lines
        .iter()
        .skip(at)
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let inner = row.trim_start_matches("| ").trim_end_matches(" |");
        inner
            .split(" | ")
            .map(|cell| cell.trim().to_owned())
            .collect()
    })
    .collect()
}

#[test]
fn every_kind_stands_in_the_document() {
    let rows = table(&document(), "kind");
    for (kind, name) in Kind::NAMED {
        let row = rows.iter().find(|row| row[1] == name).expect(name);
        assert_eq!(row[0], format!("{:#06x}", kind.0), "{name}");
        let reply = format!("{:#06x}", kind.reply().0);
        if (0x10..0x19).contains(&kind.0) {
            assert!(row[4].starts_with(&reply), "{name}: {}", row[4]);
        }
    }
    let uploads = format!(
        "{:#06x} to {:#06x}",
        Kind::UPLOAD_FIRST.0,
        Kind::UPLOAD_LAST.0
    );
    assert!(rows.iter().any(|row| row[0] == uploads));
    assert_eq!(
        rows.len(),
        Kind::NAMED.len().saturating_add(1),
        "and nothing else does"
    );
}

#[test]
fn every_status_and_detail_stands_in_the_document() {
    let expected: Vec<Vec<String>> = Status::ALL
        .iter()
        .map(|s| {
            vec![
                s.code().to_string(),
                s.name().to_owned(),
                s.remedy().to_owned(),
            ]
        })
        .collect();
    assert_eq!(table(&document(), "status"), expected);
    let expected: Vec<Vec<String>> = Detail::ALL
        .iter()
        .map(|d| {
            let remedy = d.remedy().unwrap_or("(as the status says)");
            vec![d.code().to_string(), d.name().to_owned(), remedy.to_owned()]
        })
        .collect();
    assert_eq!(table(&document(), "detail"), expected);
}

#[test]
fn every_framing_error_stands_in_the_document() {
    let rows = table(&document(), "error");
    let errors = [
        FrameError::BadMagic,
        FrameError::HeaderCrc,
        FrameError::Version(2),
        FrameError::Flags(1),
        FrameError::TooLarge { len: 0, max: 0 },
        FrameError::Interrupted,
        FrameError::BodyCrc,
    ];
    let names: Vec<String> = errors.map(|e| format!("`{}`", error_name(e))).to_vec();
    assert_eq!(
        rows.iter().map(|row| row[0].clone()).collect::<Vec<_>>(),
        names
    );
}

#[test]
fn the_numbers_in_the_document_are_those_of_the_code() {
    let document = document();
    for sentence in [
        format!("A frame is a header of {HEADER_LEN} bytes and a body."),
        format!(
            "| 0 | 4 | magic | `52 43 4e 46`, the letters `{}` |",
            MAGIC.escape_ascii()
        ),
        format!("| 4 | 1 | version | {VERSION} |"),
        format!("| control body | {MAX_CONTROL_BODY} bytes |"),
        format!("at most {MAX_CONTROL_BODY} bytes"),
        format!("| thrown away before one protocol error | {JUNK_BUDGET} bytes |"),
        format!("This text is minor version {MINOR}."),
        format!("{:#x}", crc32c::crc32c(b"123456789"))
            .to_uppercase()
            .replace('X', "x"),
    ] {
        assert!(document.contains(&sentence), "missing: {sentence}");
    }
    assert_eq!(MAX_UPLOAD_FRAME, 32_768);
    assert!(document.contains("32 768 bytes"));
}

#[test]
fn the_worked_example_is_right() {
    let welcome = Welcome {
        guest_nonce: GUEST_NONCE,
        host_nonce: HOST_NONCE,
        minor: MINOR,
    };
    let ready = Ready {
        slots: vec![Slot(0)],
        max_control: 4096,
        window: 8,
    };
    let frames = [
        encode(
            Kind::HELLO,
            0,
            0,
            &Hello {
                nonce: GUEST_NONCE,
                minor: MINOR,
            },
        )
        .unwrap(),
        encode(Kind::WELCOME, 0, 0, &welcome).unwrap(),
        encode(
            Kind::CONFIRM,
            0,
            0,
            &Confirm {
                host_nonce: HOST_NONCE,
            },
        )
        .unwrap(),
        encode(Kind::READY, SESSION, 0, &ready).unwrap(),
        Request::Ping(Ping { payload: 7 })
            .to_frame(SESSION, 1)
            .unwrap(),
        Reply::Ping(Pong { payload: 7 })
            .to_frame(SESSION, 1)
            .unwrap(),
    ];
    let document = document();
    let example = document
        .lines()
        .skip_while(|line| *line != "## A worked example")
        .skip(1);
    let example = example.take_while(|line| !line.starts_with("## "));
    let is_hex = |line: &&str| {
        line.chars()
            .all(|c| matches!(c, '0'..='9' | 'a'..='f' | ' '))
    };
    let told: String = example.filter(is_hex).collect::<String>().replace(' ', "");
    assert_eq!(told, hex(&frames.concat()));
}
