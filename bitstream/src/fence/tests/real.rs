//! Genuine partial bitstreams, and what was read from them by another parser.

use std::path::PathBuf;

use super::*;
use crate::{Container, parse};

const PARTIALS: [&str; 4] = [
    "byu_z7020_ascii_s0_partial.bit",
    "byu_z7020_gscreen_mux_partial.bit",
    "yunqu_z7020_led_0_partial.bit",
    "yunqu_zu7ev_led_0_partial.bit",
];
const HOSTILE: [&str; 4] = [
    "confuzz_basys3_write_fdri_bbram_test_key.bit",
    "confuzz_basys3_write_wbstar_bbram_test_key_dec.bit",
    "confuzz_kcu105_write_wbstar_bbram_test_key.bit",
    "confuzz_xem8320_write_fdri_bbram_test_key.bit",
];

fn shared(file: &str) -> Option<Vec<u8>> {
    let root = PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../shared/bitstreams"
    ));
    if !root.is_dir() {
        eprintln!("SKIPPED: {file}: no folder {}", root.display());
        return None;
    }
    Some(std::fs::read(root.join(file)).unwrap())
}

fn stream(file: &[u8]) -> XilinxStream<'_> {
    match parse(file).unwrap() {
        Container::Xilinx(stream) => stream,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_genuine_partial_is_accepted_for_its_own_region_and_for_no_other() {
    let mut learnt = Vec::new();
    let files: Vec<Vec<u8>> = PARTIALS.iter().filter_map(|file| shared(file)).collect();
    for file in &files {
        learnt.push(learn(&[stream(file)], None).unwrap());
    }
    for (own, file) in files.iter().enumerate() {
        let stream = stream(file);
        for (other, of) in learnt.iter().enumerate() {
            let (device, region) = (&of.device, &of.frames);
            let verdict = check(&stream, Some(*device), Some(region));
            if own == other {
                let fenced = verdict.unwrap();
                assert_eq!(fenced.frames(), region);
                assert!(fenced.restores_flip_flops());
                assert!(of.restores.is_empty());
            } else {
                let code = code(verdict);
                let foreign = *device != learnt[own].device;
                assert!(
                    if foreign {
                        code == "wrong-device"
                    } else {
                        code == "outside-region"
                    },
                    "{code}"
                );
            }
        }
    }
}

#[test]
fn what_is_encrypted_is_refused_as_that() {
    for name in HOSTILE {
        let Some(file) = shared(name) else { return };
        assert_eq!(
            code(check(&stream(&file), None, None)),
            "encrypted",
            "{name}"
        );
    }
}

#[test]
fn the_survey_says_what_another_parser_said() {
    let Some(expected) = shared("expected.json") else {
        return;
    };
    let expected: serde_json::Value = serde_json::from_slice(&expected).unwrap();
    for name in PARTIALS {
        let file = shared(name).unwrap();
        let survey = survey(&stream(&file));
        let expected = &expected[name];
        let hex =
            |value: &serde_json::Value| u32::from_str_radix(value.as_str().unwrap(), 16).unwrap();
        let idcodes: Vec<u32> = expected["idcode"]
            .as_array()
            .unwrap()
            .iter()
            .map(hex)
            .collect();
        assert!(
            survey.idcodes().all(|idcode| idcodes.contains(&idcode)),
            "{name}"
        );
        assert_eq!(
            survey.streams.len(),
            usize::try_from(expected["syncs"].as_u64().unwrap()).unwrap()
        );
        let sum = |pick: fn(&SurveyedStream) -> u64| survey.streams.iter().map(pick).sum::<u64>();
        assert_eq!(
            sum(|s| s.crc_matching),
            expected["crc_count"].as_u64().unwrap(),
            "{name}"
        );
        assert_eq!(sum(|s| s.crc_wrong), 0, "{name}");
        for (register, count) in expected["regs"].as_object().unwrap() {
            // Its counts take the two forms of frame data for two writes.
            if register == "FDRI" {
                continue;
            }
            let found: u64 = survey
                .streams
                .iter()
                .flat_map(|s| &s.registers)
                .filter(|(known, _)| known.name() == Some(register))
                .map(|(_, count)| count)
                .sum();
            assert_eq!(Some(found), count.as_u64(), "{name}: {register}");
        }
        let blocks: Vec<(u32, u64)> = survey
            .streams
            .iter()
            .flat_map(|s| &s.blocks)
            .map(|block| (block.address.unwrap(), u64::try_from(block.words).unwrap()))
            .collect();
        let listed = expected["fdri"].as_array().unwrap();
        assert_eq!(
            expected["fdri_count"].as_u64(),
            u64::try_from(blocks.len()).ok(),
            "{name}"
        );
        for (block, listed) in blocks.iter().zip(listed) {
            assert_eq!(
                *block,
                (hex(&listed[0]), listed[1].as_u64().unwrap()),
                "{name}"
            );
        }
    }
}

#[test]
fn a_flipped_bit_anywhere_is_refused() {
    let Some(file) = shared(PARTIALS[1]) else {
        return;
    };
    let begin = stream(&file).payload_offset();
    for at in (begin + 48..file.len()).step_by(997) {
        let mut file = file.clone();
        file[at] ^= 0x10;
        let refused = match parse(&file) {
            Ok(Container::Xilinx(stream)) => check(&stream, None, None).is_err(),
            _ => true,
        };
        assert!(refused, "byte {at}");
    }
}
