//! GBS: every spelling that tools write, and every malformation that the
//! field has seen.

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::fuzz;

const INTERFACE: Uuid = Uuid::from_u128(0x6d1f_0a3c_94be_4c27_8a15_5e0f_77c2_b9d4);
const FUNCTION: Uuid = Uuid::from_u128(0xb41c_7de2_5f08_4a93_9e6d_3c2a_1f0b_8d75);

fn draft(payload: &[u8]) -> Draft<'_> {
    Draft {
        interface_id: INTERFACE,
        accelerator: FUNCTION,
        name: "demo",
        clocks: Clocks {
            high: Some(Clock::Khz(312_500)),
            low: Some(Clock::AutoUpTo(100_000)),
        },
        power: 42,
        payload,
    }
}

/// A file around metadata that the test words itself.
fn file(metadata: &str) -> Vec<u8> {
    let mut file = MAGIC.to_vec();
    file.extend_from_slice(&u32::try_from(metadata.len()).unwrap().to_le_bytes());
    file.extend_from_slice(metadata.as_bytes());
    file.extend_from_slice(b"ZZZZ");
    file
}

const GOOD: &str = r#"{"version": 1, "afu-image": {"interface-uuid": "6d1f0a3c-94be-4c27-8a15-5e0f77c2b9d4",
 "magic-no": 488605312, "accelerator-clusters": [{"name": "demo", "total-contexts": 1,
 "accelerator-type-uuid": "b41c7de2-5f08-4a93-9e6d-3c2a1f0b8d75"}]}}"#;

fn code(metadata: &str) -> &'static str {
    parse(&file(metadata)).unwrap_err().code()
}

#[test]
fn what_is_built_is_read() {
    let bytes = build(&draft(&[7; 100])).unwrap();
    let gbs = parse(&bytes).unwrap();
    assert_eq!(gbs.interface_id, INTERFACE);
    assert_eq!(gbs.accelerator, FUNCTION);
    assert_eq!(gbs.name, "demo");
    assert_eq!(gbs.clocks, draft(&[]).clocks);
    assert_eq!(gbs.power, 42);
    assert_eq!(gbs.payload, [7; 100]);
    assert_eq!(gbs.payload_offset, bytes.len() - 100);
    assert!(gbs.fills_words());
}

#[test]
fn a_draft_that_could_not_be_read_is_not_written() {
    let empty = build(&draft(&[])).unwrap_err();
    assert!(matches!(empty.0, ContainerError::PayloadMissing { .. }));
    let name = build(&Draft {
        name: "a\nb",
        ..draft(&[1])
    })
    .unwrap_err();
    assert_eq!(name.0.code(), "metadata-field");
}

#[test]
fn every_documented_version_and_no_other() {
    for (version, want) in [
        ("1", Some(SchemaVersion::V1)),
        ("640", Some(SchemaVersion::V640)),
        ("650", Some(SchemaVersion::V650)),
        ("2", None),
        ("1.5", None),
        ("-1", None),
        ("\"1\"", None),
        ("null", None),
    ] {
        let bytes = file(&GOOD.replace("\"version\": 1", &format!("\"version\": {version}")));
        assert_eq!(parse(&bytes).ok().map(|gbs| gbs.version), want, "{version}");
    }
}

#[test]
fn every_documented_clock_and_no_other() {
    for (text, want) in [
        ("200", Some(Clock::Khz(200_000))),
        ("312.5", Some(Clock::Khz(312_500))),
        ("200.0", Some(Clock::Khz(200_000))),
        ("\"200\"", Some(Clock::Khz(200_000))),
        ("\"auto\"", Some(Clock::Auto)),
        ("\"auto-300\"", Some(Clock::AutoUpTo(300_000))),
        ("\"auto-\"", None),
        ("\"AUTO\"", None),
        ("-1", None),
        ("1e30", None),
        ("true", None),
        ("[]", None),
    ] {
        let with = format!("\"clock-frequency-high\": {text}, \"magic-no\"");
        let bytes = file(&GOOD.replace("\"magic-no\"", &with));
        let read = parse(&bytes).ok().and_then(|gbs| gbs.clocks.high);
        assert_eq!(read, want, "{text}");
    }
}

#[test]
fn a_missing_or_wrong_field_is_named() {
    for (from, to, named) in [
        ("\"version\": 1, ", "", "version"),
        ("\"name\": \"demo\", ", "", "accelerator-clusters[0].name"),
        (
            "\"total-contexts\": 1",
            "\"total-contexts\": -1",
            "accelerator-clusters[0].total-contexts",
        ),
        (
            "6d1f0a3c-94be",
            "{6d1f0a3c-94be",
            "afu-image.interface-uuid",
        ),
        ("\"afu-image\"", "\"afu_image\"", "afu-image"),
    ] {
        let error = parse(&file(&GOOD.replacen(from, to, 1))).unwrap_err();
        assert!(
            matches!(&error, ContainerError::Field { field, .. } if *field == named),
            "{error}"
        );
    }
    assert_eq!(
        code(&GOOD.replace("488605312", "488605313")),
        "metadata-field"
    );
    assert_eq!(code("[]"), "metadata-field");
}

#[test]
fn strict_json() {
    for bad in [
        format!("{GOOD} trailing"),
        format!("{GOOD}{GOOD}"),
        GOOD.replace("\"version\": 1", "\"version\": 1, \"version\": 1"),
        GOOD.replace(
            "\"name\": \"demo\"",
            "\"name\": \"demo\", \"name\": \"evil\"",
        ),
        GOOD.replace("\"version\": 1", "\"version\": NaN"),
        format!("\u{feff}{GOOD}"),
        "{\"version\": 1,".to_owned(),
    ] {
        assert_eq!(code(&bad), "metadata-syntax", "{bad}");
    }
    assert!(
        parse(&file(&format!("{GOOD}\n"))).is_ok(),
        "white space is not text"
    );
}

#[test]
fn a_syntax_error_names_its_byte() {
    let at = GOOD.find("488605312").unwrap();
    let error = parse(&file(&GOOD.replace("488605312", "?"))).unwrap_err();
    assert_eq!(error.offset(), HEADER_LEN + at, "{error}");
}

#[test]
fn g1_huge_length_allocates_nothing() {
    // A length is compared with limit and file before anything is made from it.
    let refusal = |len: u32| {
        let mut bytes = file("{}");
        bytes[16..20].copy_from_slice(&len.to_le_bytes());
        parse(&bytes).unwrap_err()
    };
    for len in [u32::MAX, 1 << 31, METADATA_MAX + 1] {
        assert_eq!(refusal(len), ContainerError::MetadataTooLong { len });
    }
    for len in [METADATA_MAX, 4097, 7] {
        assert_eq!(
            refusal(len),
            ContainerError::MetadataBeyondFile { len, available: 6 }
        );
    }
    assert_eq!(refusal(6), ContainerError::PayloadMissing { at: 26 });
}

#[test]
fn opae_02_reversed_id_is_a_mismatch_with_a_hint() {
    let bytes = build(&draft(&[1; 4])).unwrap();
    let gbs = parse(&bytes).unwrap();
    let backwards = crate::uuid::reversed(INTERFACE);
    let error = gbs.check_interface(backwards).unwrap_err();
    assert!(error.is_reversed());
    assert!(error.to_string().contains("in reverse"), "{error}");
    assert!(!gbs.check_interface(FUNCTION).unwrap_err().is_reversed());
    assert!(
        gbs.check_function(crate::uuid::reversed(FUNCTION))
            .unwrap_err()
            .is_reversed()
    );
    assert_eq!(gbs.check_interface(INTERFACE), Ok(()));
    assert_eq!(gbs.check_function(FUNCTION), Ok(()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_bytes_are_parsed_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        fuzz::container(&bytes);
    }

    #[test]
    fn any_metadata_is_parsed_or_refused(text in "\\PC{0,200}") {
        fuzz::container(&file(&text));
    }

    #[test]
    fn a_mutated_file_is_parsed_or_refused(
        edits in proptest::collection::vec((any::<Index>(), any::<u8>()), 1..6),
        cut in any::<Index>(),
    ) {
        let mut bytes = file(GOOD);
        for (at, value) in edits {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        fuzz::container(&bytes);
        bytes.truncate(cut.index(bytes.len()));
        fuzz::container(&bytes);
    }

    #[test]
    fn every_draft_survives_the_round_trip(
        ids in any::<(u128, u128)>(), khz in 0u32..=10_000_000, name in "[ -~é]{0,60}",
        payload in proptest::collection::vec(any::<u8>(), 1..40), power in 0u32..=10_000,
    ) {
        let draft = Draft {
            interface_id: Uuid::from_u128(ids.0),
            accelerator: Uuid::from_u128(ids.1),
            name: &name,
            clocks: Clocks { high: Some(Clock::Khz(khz)), low: Some(Clock::AutoUpTo(khz)) },
            power,
            payload: &payload,
        };
        let bytes = build(&draft).unwrap();
        let gbs = parse(&bytes).unwrap();
        prop_assert_eq!(gbs.interface_id, draft.interface_id);
        prop_assert_eq!(gbs.accelerator, draft.accelerator);
        prop_assert_eq!(&gbs.name, draft.name);
        prop_assert_eq!(gbs.clocks, draft.clocks);
        prop_assert_eq!(gbs.power, power);
        prop_assert_eq!(gbs.payload, payload.as_slice());
    }
}
