//! Files from the field: each one that this crate meets, by its id.

use std::path::PathBuf;

use crate::{Container, ContainerError, Fact, Format, Gbs, parse, parse_uuid};
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
    let Container::Gbs(gbs) = parse(bytes).unwrap();
    gbs
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

#[test]
fn krn_04_byte_order_is_told_by_the_sync_word() {
    refused("cases/KRN-04/big-endian.bin", "format-not-loadable");
    refused("cases/KRN-04/swapped.bin", "wrong-byte-order");
    refused("cases/KRN-04/bitswapped.bin", "wrong-byte-order");
    refused("cases/KRN-04/no-sync.bin", "not-a-bitstream");
}

#[test]
fn bit_08_content_counts_and_the_name_does_not() {
    for (file, format) in [
        ("is-bin.bit", Format::XilinxBin),
        ("is-bit.bin", Format::XilinxBit),
    ] {
        let Some(error) = refused(&format!("cases/BIT-08/{file}"), "format-not-loadable") else {
            return;
        };
        assert_eq!(error, ContainerError::NotLoadable { format });
    }
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
    for (file, format) in [
        ("byu_z7020_ascii_s0_partial.bit", Format::XilinxBit),
        ("byu_z7020_gscreen_mux_partial.bit", Format::XilinxBit),
        ("yunqu_z7020_led_0_partial.bit", Format::XilinxBit),
        ("yunqu_zu7ev_led_0_partial.bit", Format::XilinxBit),
        (
            "confuzz_basys3_write_fdri_bbram_test_key.bit",
            Format::XilinxBin,
        ),
    ] {
        let Some(error) = refused(&format!("bitstreams/{file}"), "format-not-loadable") else {
            return;
        };
        assert_eq!(error, ContainerError::NotLoadable { format }, "{file}");
    }
}
