//! Names, digests and keys: one spelling each.

use proptest::prelude::*;
use reconf_protocol::header::HEADER_LEN;
use reconf_protocol::message::{Digest, FunctionId, ImageRef, JobKey, Load};
use reconf_protocol::{
    Detail, Frame, Header, ImageName, Kind, NameError, Request, RequestError, Status,
};

use crate::arbitrary::name;
use crate::make::shared;

/// What a host makes of a load of this text.
fn load_of(text: &str) -> Result<Request, RequestError> {
    let load = Load {
        key: JobKey([1; 16]),
        slot: None,
        image: ImageRef::Name(text.to_owned()),
        if_not_loaded: false,
        force: false,
    };
    let bytes = Request::Load(load).to_frame(1, 1).unwrap();
    let body = &bytes[HEADER_LEN..];
    let header = Header {
        kind: Kind::LOAD,
        session: 1,
        sequence: 1,
        length: u32::try_from(body.len()).unwrap(),
        body_crc: crc32c::crc32c(body),
    };
    Request::from_frame(&Frame { header, body })
}

fn refused_everywhere(text: &str) {
    assert_eq!(ImageName::parse(text), Err(NameError::Image), "{text:?}");
    let error = load_of(text).unwrap_err();
    assert_eq!(error, RequestError::BadName, "{text:?}");
    let reply = error.to_reply();
    assert_eq!(
        (reply.status, reply.detail),
        (Status::Protocol, Detail::BadName)
    );
}

#[test]
fn names_have_three_parts() {
    let name = ImageName::parse("acme/crypto-2.x_y:V1.0-rc_2").unwrap();
    assert_eq!(
        (name.publisher(), name.name(), name.version()),
        ("acme", "crypto-2.x_y", Some("V1.0-rc_2"))
    );
    let name = ImageName::parse("0/9").unwrap();
    assert_eq!(
        (name.publisher(), name.name(), name.version()),
        ("0", "9", None)
    );
    assert_eq!(name.to_string(), "0/9");
}

#[test]
fn names_at_and_over_their_lengths() {
    let (part, over) = ("a".repeat(64), "a".repeat(65));
    assert!(ImageName::parse(&format!("{part}/{part}:{part}")).is_ok());
    for text in [
        format!("{over}/{part}:{part}"),
        format!("{part}/{over}:{part}"),
        format!("{part}/{part}:{over}"),
    ] {
        refused_everywhere(&text);
    }
}

#[test]
fn what_is_no_name_is_refused() {
    for text in [
        "",
        "/",
        "a",
        "a/",
        "/a",
        "a/b:",
        "a/b:c:d",
        "a/b/c",
        "a//b",
        "A/b",
        "a/B",
        "-a/b",
        ".a/b",
        "_a/b",
        "a/.b",
        "a/..",
        "../b",
        "a/b:c/d",
        "a/b: c",
        " a/b",
        "a/b ",
        "a/b@c",
        "a/ä",
        "a/b:ß",
        "a/\u{ff42}",
        "a/b\u{200b}",
    ] {
        refused_everywhere(text);
    }
}

#[test]
fn aws_05_ids_of_another_kind_are_refused_at_the_edge() {
    let Some(ids) = shared("cases/AWS-05/ids.txt") else {
        return;
    };
    let ids = String::from_utf8(ids).unwrap();
    assert!(ids.lines().count() >= 6);
    for id in ids.lines() {
        refused_everywhere(id);
        match ImageRef::parse(id) {
            Ok(ImageRef::Digest(digest)) => assert_eq!(digest.to_string(), id),
            other => assert_eq!(other, Err(NameError::Image), "{id}"),
        }
    }
}

#[test]
fn cyb_07_no_spelling_of_a_uuid_is_half_accepted() {
    let Some(ids) = shared("cases/CYB-07/ids.txt") else {
        return;
    };
    let ids = String::from_utf8(ids).unwrap();
    for id in ids.split('\n') {
        refused_everywhere(id);
        for text in [id.to_owned(), format!("sha256:{id}")] {
            assert_eq!(ImageRef::parse(&text), Err(NameError::Image), "{text:?}");
        }
    }
}

#[test]
fn cyb_07_digests_and_keys_have_one_spelling() {
    let digest = Digest([0xAB; 32]);
    let text = digest.to_string();
    assert_eq!(Digest::parse(&text), Ok(digest));
    assert_eq!(ImageRef::parse(&text), Ok(ImageRef::Digest(digest)));
    for bad in [
        text.to_uppercase(),
        format!("sha256:{}", "AB".repeat(32)),
        "ab".repeat(32),
        format!("{text}0"),
        format!("{text}00"),
        text.strip_suffix("ab").unwrap().to_owned() + "a",
        text.replace("sha256:", "sha512:"),
        text.replace('a', "\u{ff41}"),
        format!(" {text}"),
        format!("{text}\n"),
        text.replacen("ab", "+b", 1),
    ] {
        assert_eq!(
            Digest::parse(&bad),
            Err(NameError::Hex { digits: 64 }),
            "{bad:?}"
        );
        assert_eq!(ImageRef::parse(&bad), Err(NameError::Image), "{bad:?}");
    }
    let key = JobKey([0x5F; 16]);
    assert_eq!(JobKey::parse(&key.to_string()), Ok(key));
    assert_eq!(JobKey::parse("5f"), Err(NameError::Hex { digits: 32 }));
}

#[test]
fn function_ids_print_as_uuids() {
    let id = FunctionId([
        0x5a, 0x7e, 0x2c, 0x10, 0x3d, 0x4b, 0x4f, 0x68, 0x92, 0xa1, 0xc0, 0xd9, 0xe8, 0xb7, 0xa6,
        0xf5,
    ]);
    assert_eq!(id.to_string(), "5a7e2c10-3d4b-4f68-92a1-c0d9e8b7a6f5");
}

#[test]
fn g10_control_bytes_and_format_characters_are_no_names() {
    for control in (0..0x20_u8).chain([0x7F]) {
        for text in [
            format!("acme/x{}y", char::from(control)),
            format!("acme/x:1{}", char::from(control)),
            format!("{}acme/x", char::from(control)),
        ] {
            refused_everywhere(&text);
        }
    }
    for text in [
        "acme/%n",
        "acme/x\r\nMESSAGE=forged",
        "acme/x\u{1b}[2J",
        "a/b:\u{202e}",
        "a/{}",
    ] {
        refused_everywhere(text);
        let shown = ImageRef::Name(text.to_owned()).to_string();
        assert!(!shown.chars().any(char::is_control), "{shown}");
    }
}

proptest! {
    #[test]
    fn every_name_of_the_grammar_is_read_and_prints_the_same(name in name()) {
        prop_assert_eq!(ImageName::parse(&name).unwrap().to_string(), name.clone());
        prop_assert_eq!(ImageRef::parse(&name).unwrap().to_string(), name.clone());
        prop_assert!(load_of(&name).is_ok());
    }

    #[test]
    fn any_text_is_a_name_or_an_error(text in "\\PC{0,80}") {
        let parts = ImageName::parse(&text);
        prop_assert_eq!(parts.is_err(), load_of(&text).is_err());
        if let Ok(name) = parts {
            prop_assert!(name.as_str().is_ascii());
        }
    }
}
