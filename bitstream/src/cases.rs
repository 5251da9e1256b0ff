//! Files from the field: each one that this crate meets, by its id.

use std::path::PathBuf;

use crate::device::Device;
use crate::fence::{check, survey};
use crate::xilinx::{PAD, SYNC, WordOrder, XilinxStream};
use crate::{Container, ContainerError, Fact, Gbs, parse, parse_uuid};
use uuid::Uuid;

const REGION: Uuid = Uuid::from_u128(0x6d1f_0a3c_94be_4c27_8a15_5e0f_77c2_b9d4);
const FOREIGN: Uuid = Uuid::from_u128(0x0e5b_7a90_11d2_4f6e_b3a8_7c4d_2e1f_9a60);

/// A file of the shared folder; `None`, aloud, where the folder is missing.
fn shared(path: &str) -> Option<Vec<u8>> {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared"));
    if !root.is_dir() {
        eprintln!("SKIPPED: {path}: no folder {}", root.display());
        return None;
    }
    Some(std::fs::read(root.join(path)).unwrap())
}

fn refused(path: &str, code: &str) -> Option<ContainerError> {
    let bytes = shared(path)?;
    let error = parse(&bytes).expect_err(path);
    assert_eq!(error.code(), code, "{path}: {error}");
    Some(error)
}

fn read(bytes: &[u8]) -> Gbs<'_> {
    match parse(bytes).unwrap() {
        Container::Gbs(gbs) => gbs,
        other => panic!("no GBS: {other:?}"),
    }
}

#[test]
fn the_real_gbs_is_read() {
    let Some(bytes) = shared("bitstreams/intel_k8s_nlb.gbs") else {
        return;
    };
    let gbs = read(&bytes);
    assert_eq!(
        gbs.interface_id,
        parse_uuid("69528db6eb31577a8c3668f9faa081f6").unwrap()
    );
    assert_eq!(
        gbs.accelerator,
        parse_uuid("d8424dc4-a4a3-c413-f89e-433683f9040b").unwrap()
    );
    assert_eq!(gbs.name, "nlb_400");
    assert_eq!(gbs.payload, b"\n");
    assert_eq!(gbs.payload_offset, 425);
}

#[test]
fn opae_01_mismatch_names_both_ids() {
    let Some(bytes) = shared("cases/OPAE-01/foreign.gbs") else {
        return;
    };
    let error = read(&bytes).check_interface(REGION).unwrap_err();
    assert_eq!(
        (error.fact, error.expected, error.found),
        (Fact::InterfaceId, REGION, FOREIGN)
    );
    assert_eq!(error.code(), "interface-mismatch");
    assert!(error.to_string().contains(&REGION.to_string()), "{error}");
    assert!(error.to_string().contains(&FOREIGN.to_string()), "{error}");
}

#[test]
fn opae_02_one_canonical_form() {
    refused("cases/OPAE-02/legacy.gbs", "legacy-header");
    refused("cases/OPAE-02/reversed-magic.gbs", "reversed-magic");
    let Some(bytes) = shared("cases/OPAE-02/reversed-ifc.gbs") else {
        return;
    };
    let error = read(&bytes).check_interface(REGION).unwrap_err();
    assert!(error.is_reversed(), "{error}");
}

#[test]
fn opae_04_lengths_are_checked_before_use() {
    refused("cases/OPAE-04/empty.gbs", "empty-file");
    refused("cases/OPAE-04/19-bytes.gbs", "truncated");
    refused("cases/OPAE-04/mlen-0.gbs", "metadata-length");
    refused("cases/OPAE-04/mlen-max.gbs", "metadata-length");
    refused("cases/OPAE-04/no-payload.gbs", "no-payload");
    refused("cases/OPAE-04/not-json.gbs", "metadata-syntax");
    refused("cases/OPAE-04/utf8-bad.gbs", "metadata-syntax");
}

#[test]
fn opae_04_length_beyond_file() {
    let Some(error) = refused("cases/OPAE-04/mlen-plus1.gbs", "metadata-length") else {
        return;
    };
    assert_eq!(
        error,
        ContainerError::MetadataBeyondFile {
            len: 335,
            available: 334
        }
    );
}

#[test]
fn opae_05_exactly_one_accelerator() {
    for (file, found) in [("clusters-0.gbs", 0), ("clusters-2.gbs", 2)] {
        let Some(error) = refused(&format!("cases/OPAE-05/{file}"), "accelerator-count") else {
            return;
        };
        assert_eq!(error, ContainerError::ClusterCount { found });
    }
}

#[test]
fn k8s_05_a_new_accelerator_is_nothing_special() {
    let Some(bytes) = shared("cases/K8S-05/new-afu.gbs") else {
        return;
    };
    let gbs = read(&bytes);
    assert_eq!(
        gbs.accelerator,
        parse_uuid("9f3e2d1c-0b1a-4c2d-8e3f-5a6b7c8d9e0f").unwrap()
    );
}

#[test]
fn krn_02_odd_size_is_kept_as_it_is() {
    // Padding to whole words is the engine's, after every check; never here.
    let Some(bytes) = shared("cases/KRN-02/odd-size.gbs") else {
        return;
    };
    let gbs = read(&bytes);
    assert_eq!(gbs.payload.len(), 65);
    assert!(!gbs.fills_words());
}

/// Reads a file of the shared folder as configuration words.
fn words<R>(path: &str, look: impl FnOnce(&XilinxStream<'_>) -> R) -> Option<R> {
    let bytes = shared(path)?;
    match parse(&bytes).expect(path) {
        Container::Xilinx(stream) => Some(look(&stream)),
        other => panic!("{path}: {other:?}"),
    }
}

#[test]
fn krn_04_byte_order_is_told_by_the_sync_word() {
    let order = |file: &str| {
        let mut order = None;
        words(&format!("cases/KRN-04/{file}"), |stream| {
            order = Some(stream.order());
        });
        order
    };
    let big = order("big-endian.bin");
    assert!(big.is_none_or(|order| order == WordOrder::BigEndian));
    let swapped = order("swapped.bin");
    assert!(swapped.is_none_or(|order| order == WordOrder::LittleEndian));
    refused("cases/KRN-04/bitswapped.bin", "wrong-byte-order");
    refused("cases/KRN-04/no-sync.bin", "not-a-bitstream");
}

#[test]
fn bit_01_names_of_any_length_do_not_move_the_words() {
    for file in [
        "short-name.bit",
        "long-name.bit",
        "odd-date.bit",
        "utf8-name.bit",
    ] {
        words(&format!("cases/BIT-01/{file}"), |stream| {
            let header = stream.header.expect(file);
            assert!(header.name().is_some() && header.part.is_some(), "{file}");
            assert!(stream.words().iter().any(|word| word == SYNC), "{file}");
        });
    }
}

#[test]
fn bit_02_new_keys_and_options_do_not_make_a_good_file_bad() {
    for file in ["compress.bit", "field-f.bit", "no-equals.bit", "sw-crc.bit"] {
        words(&format!("cases/BIT-02/{file}"), |stream| {
            assert!(stream.header.is_some(), "{file}");
        });
    }
}

#[test]
fn bit_04_next_to_nothing_is_refused() {
    refused("cases/BIT-04/data-0.bit", "no-payload");
    refused("cases/BIT-04/data-1.bit", "truncated");
    refused("cases/BIT-04/data-3.bit", "truncated");
    refused("cases/BIT-04/data-99.bit", "truncated");
}

#[test]
fn bit_05_the_idcode_counts_and_the_header_does_not() {
    let idcode = |file: &str| {
        words(&format!("cases/BIT-05/{file}"), |stream| {
            let part = stream
                .header
                .and_then(|header| header.part.map(str::to_owned));
            (survey(stream).idcodes().next(), part)
        })
    };
    if let Some((idcode, part)) = idcode("part-fasm.bit") {
        let device = Device::find(idcode.expect("an IDCODE")).expect("a device");
        assert!(Device::named(&part.expect("a part")).is_none(), "{device}");
    }
    if let Some((idcode, part)) = idcode("foreign-idcode.bit") {
        let named = Device::named(&part.expect("a part")).expect("a device");
        assert!(idcode.is_some_and(|idcode| !named.has_idcode(idcode)));
    }
    assert!(idcode("no-idcode.bit").is_none_or(|(idcode, _)| idcode.is_none()));
}

#[test]
fn bit_07_what_cannot_be_inspected_or_is_dangerous_is_refused() {
    for (file, code) in [
        ("ctl0-decrypt.bit", "encrypted"),
        ("iprog.bit", "forbidden-register"),
        ("mfwr.bit", "out-of-order"),
    ] {
        words(&format!("cases/BIT-07/{file}"), |stream| {
            let refusal = check(stream, None, None).expect_err(file);
            assert_eq!(refusal.code(), code, "{file}: {refusal:?}");
        });
    }
}

#[test]
fn bit_08_content_counts_and_the_name_does_not() {
    words("cases/BIT-08/is-bin.bit", |stream| {
        assert!(stream.header.is_none());
    });
    words("cases/BIT-08/is-bit.bin", |stream| {
        assert!(stream.header.is_some());
        // The header is never among the words.
        assert_eq!(stream.words().get(0), Some(PAD));
    });
}

#[test]
fn xrt_02_no_payload_kind_slips_past_the_interface_check() {
    // Kind 19, a partial PDI: recognised, and refused before any interface id counts.
    refused(
        "cases/XRT-02/partial-pdi-foreign-uuid.xclbin",
        "format-not-loadable",
    );
}

#[test]
fn xrt_04_bad_images_are_told_apart() {
    let all = [
        refused("cases/XRT-04/elf.xclbin", "not-a-bitstream"),
        refused("cases/XRT-04/magic0.xclbin", "not-a-bitstream"),
        refused("cases/XRT-04/no-bitstream.xclbin", "no-payload"),
    ];
    let texts: std::collections::BTreeSet<String> =
        all.iter().flatten().map(ToString::to_string).collect();
    assert_eq!(
        texts.len(),
        all.iter().flatten().count(),
        "each has a sentence of its own"
    );
}

#[test]
fn real_xilinx_files_are_recognised() {
    // PYNQ's default describes a platform, and has indeed no bitstream in it.
    refused("bitstreams/pynq_default.xclbin", "no-payload");
    for file in [
        "byu_z7020_ascii_s0_partial.bit",
        "byu_z7020_gscreen_mux_partial.bit",
        "yunqu_z7020_led_0_partial.bit",
        "yunqu_zu7ev_led_0_partial.bit",
    ] {
        words(&format!("bitstreams/{file}"), |stream| {
            let header = stream.header.expect(file);
            assert_eq!(header.option("PARTIAL"), Some("TRUE"), "{file}");
        });
    }
    words(
        "bitstreams/confuzz_basys3_write_fdri_bbram_test_key.bit",
        |stream| {
            assert!(stream.header.is_none());
        },
    );
}
