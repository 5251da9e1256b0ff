//! `inspect`, `diff` and `region learn`: what people see of the fence.

use std::path::PathBuf;

use super::*;

/// A file of the shared folder; `None`, aloud, where that is missing.
fn shared(file: &str) -> Option<String> {
    let root = PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../shared/bitstreams"
    ));
    if !root.is_dir() {
        eprintln!("SKIPPED: {file}: no folder {}", root.display());
        return None;
    }
    Some(root.join(file).display().to_string())
}

/// A shell file with the regions that `region learn` printed for these files.
fn shell(directory: &Path, names: &[(&str, &str)]) -> PathBuf {
    let mut text = String::from("name = \"two regions\"\n");
    for (number, (name, file)) in names.iter().enumerate() {
        let learnt = reconfctl(&["--json", "region", "learn", file]);
        assert_eq!(learnt.exit, Exit::Done, "{}", learnt.out);
        let learnt = learnt.json();
        if number == 0 {
            text.push_str(&format!("device = {}\n", learnt["device"]));
            text.push_str("[hwicap]\nbar = 0\noffset = 0x10000\n");
        }
        text.push_str(&format!(
            "[[region]]\nname = \"{name}\"\nport = {number}\n\
             interface_id = \"69528db6-eb31-577a-8c36-68f9faa081f{number}\"\n\
             region_type = \"test/region\"\nuser_functions = [\"pci:0000:3b:00.{}\"]\n\
             decoupler = {}\nfence = \"required\"\nframes = {}\n",
            number.saturating_add(1),
            number.saturating_mul(0x1000).saturating_add(0x2_0000),
            learnt["frames"]
        ));
    }
    let path = directory.join("shell.toml");
    std::fs::write(&path, text).unwrap();
    path
}

const LEFT: &str = "byu_z7020_ascii_s0_partial.bit";
const RIGHT: &str = "byu_z7020_gscreen_mux_partial.bit";

#[test]
fn b4_a_file_is_accepted_for_its_own_region_and_refused_for_the_other() {
    let (Some(left), Some(right)) = (shared(LEFT), shared(RIGHT)) else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let shell = shell(directory.path(), &[("left", &left), ("right", &right)]);
    let region = |name: &str| format!("--region={}#{name}", shell.display());
    let own = reconfctl(&["inspect", &left, &region("left")]);
    assert_eq!(own.exit, Exit::Done, "{}{}", own.out, own.err);
    assert!(own.out.trim_end().ends_with("accepted"), "{}", own.out);
    let other = reconfctl(&["--json", "inspect", &left, &region("right")]);
    assert_eq!(other.exit, Exit::No);
    let other = other.json();
    assert_eq!(other["verdict"], "refused");
    assert_eq!(other["refusal"]["code"], "outside-region");
    assert!(other["refusal"]["offset"].as_u64().unwrap() > 0);
    let frame = other["refusal"]["frame"].as_str().unwrap();
    assert!(
        frame.starts_with("logic, bottom row 1, column 2"),
        "{frame}"
    );
    // What needs no region went well, and what it writes is told all the same.
    let checks = other["checks"].as_array().unwrap();
    let failed = checks.iter().filter(|check| check["went"] != "passed");
    let failed: Vec<&str> = failed.filter_map(|check| check["check"].as_str()).collect();
    assert_eq!(failed, ["region"]);
    assert_eq!(other["writes"]["count"], 400);
    // A region must be named where there are two.
    let unnamed = reconfctl(&["inspect", &left, &format!("--region={}", shell.display())]);
    assert_eq!(unnamed.exit, Exit::Files);
    assert!(unnamed.err.contains("left, right"), "{}", unnamed.err);
}

#[test]
fn everything_that_needs_no_region_is_told_without_one() {
    let Some(left) = shared(LEFT) else { return };
    let report = reconfctl(&["--json", "inspect", &left]).json();
    assert_eq!(report["format"], "bit");
    assert_eq!(report["header"]["Version"], "2017.4");
    assert_eq!(report["device"]["idcode"], "03727093");
    assert_eq!(report["streams"][0]["crc_matching"], 3);
    assert_eq!(report["streams"][0]["commands"]["GRESTORE"], 1);
    assert_eq!(
        report["writes"]["lines"],
        serde_json::json!([
            "logic bottom row 1 columns 2-9",
            "bram bottom row 1 column 0"
        ])
    );
    let checks = report["checks"].as_array().unwrap();
    let went = |name: &str| {
        let check = checks.iter().find(|check| check["check"] == name).unwrap();
        check["went"].clone()
    };
    assert_eq!(
        (went("checksums"), went("region")),
        ("passed".into(), "not-asked".into())
    );
}

#[test]
fn exit_codes_tell_accepted_refused_and_not_understood() {
    for (file, exit, code) in [
        ("yunqu_zu7ev_led_0_partial.bit", Exit::Done, None),
        ("intel_k8s_nlb.gbs", Exit::Done, None),
        (
            "confuzz_xem8320_write_fdri_bbram_test_key.bit",
            Exit::No,
            Some("encrypted"),
        ),
        ("pynq_default.xclbin", Exit::No, Some("no-payload")),
        ("expected.json", Exit::Usage, None),
    ] {
        let Some(path) = shared(file) else { return };
        let ran = reconfctl(&["--json", "inspect", &path]);
        assert_eq!(ran.exit, exit, "{file}: {}", ran.out);
        if let Some(code) = code {
            assert_eq!(ran.json()["refusal"]["code"], code, "{file}");
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let junk = directory.path().join("junk.bit");
    std::fs::write(&junk, b"not a bitstream").unwrap();
    assert_eq!(
        reconfctl(&["inspect", junk.to_str().unwrap()]).exit,
        Exit::Usage
    );
    std::fs::remove_file(&junk).unwrap();
    assert_eq!(
        reconfctl(&["inspect", junk.to_str().unwrap()]).exit,
        Exit::Files
    );
}

#[test]
fn a_damaged_file_is_refused_with_the_checksum_as_the_check_that_failed() {
    let Some(left) = shared(LEFT) else { return };
    let directory = tempfile::tempdir().unwrap();
    let mut bytes = std::fs::read(left).unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    let damaged = directory.path().join("damaged.bit");
    std::fs::write(&damaged, bytes).unwrap();
    let report = reconfctl(&["--json", "inspect", damaged.to_str().unwrap()]).json();
    assert_eq!(report["refusal"]["code"], "crc-mismatch");
    let failed: Vec<&str> = report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["went"] == "failed")
        .map(|check| check["check"].as_str().unwrap())
        .collect();
    assert_eq!(failed, ["checksums"]);
}

#[test]
fn a_drawing_goes_to_the_terminal_or_into_a_file() {
    let Some(left) = shared(LEFT) else { return };
    let shown = reconfctl(&["inspect", &left, "--draw"]);
    assert!(
        shown.out.contains("bottom 1 logic") && shown.out.contains('█'),
        "{}",
        shown.out
    );
    let directory = tempfile::tempdir().unwrap();
    let svg = directory.path().join("left.svg");
    let draw = format!("--draw={}", svg.display());
    assert_eq!(reconfctl(&["inspect", &left, &draw]).exit, Exit::Done);
    assert!(std::fs::read_to_string(svg).unwrap().starts_with("<svg "));
}

#[test]
fn differences_are_told_by_frame() {
    let (Some(left), Some(right)) = (shared(LEFT), shared(RIGHT)) else {
        return;
    };
    assert_eq!(reconfctl(&["diff", &left, &left]).exit, Exit::Done);
    let differ = reconfctl(&["--json", "diff", &left, &right]);
    assert_eq!(differ.exit, Exit::No);
    let differ = differ.json();
    assert_eq!(differ["only_left"]["frames"], 400);
    assert_eq!(differ["only_right"]["frames"], 138);
    assert_eq!(differ["differ"]["frames"], 0);
    let Some(gbs) = shared("intel_k8s_nlb.gbs") else {
        return;
    };
    assert_eq!(reconfctl(&["diff", &left, &gbs]).exit, Exit::Usage);
    let Some(other) = shared("yunqu_zu7ev_led_0_partial.bit") else {
        return;
    };
    let foreign = reconfctl(&["diff", &left, &other]);
    assert_eq!(foreign.exit, Exit::Usage);
    assert!(foreign.err.contains("xczu7ev"), "{}", foreign.err);
}

#[test]
fn a_region_is_shown_as_the_shell_file_states_it() {
    let sample = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../docs/samples/shell-hwicap.toml"
    );
    let shown = reconfctl(&["region", "show", &format!("{sample}#left"), "--draw"]);
    assert_eq!(shown.exit, Exit::Done, "{}", shown.err);
    for part in [
        "400 frames of xc7z020",
        "bram bottom row 1 column 0",
        "bottom 1 logic",
    ] {
        assert!(shown.out.contains(part), "{part}: {}", shown.out);
    }
    let json = reconfctl(&["--json", "region", "show", &format!("{sample}#left")]).json();
    assert_eq!(json["count"], 400);
    assert_eq!(json["device"], "xc7z020");
    let nameless = reconfctl(&["region", "show", sample]);
    assert_eq!(nameless.exit, Exit::Files);
    // A drawing replaces what was there, whole, or leaves it.
    let directory = tempfile::tempdir().unwrap();
    let svg = directory.path().join("left.svg");
    std::fs::write(&svg, "old").unwrap();
    let draw = format!("--draw={}", svg.display());
    let drawn = reconfctl(&["region", "show", &format!("{sample}#left"), &draw]);
    assert_eq!(drawn.exit, Exit::Done, "{}", drawn.err);
    assert!(std::fs::read_to_string(&svg).unwrap().starts_with("<svg "));
    let nowhere = reconfctl(&[
        "region",
        "show",
        &format!("{sample}#left"),
        "--draw=/nowhere/a.svg",
    ]);
    assert_eq!(nowhere.exit, Exit::Files, "{}", nowhere.err);
}

#[test]
fn references_that_disagree_teach_nothing() {
    let (Some(left), Some(right)) = (shared(LEFT), shared(RIGHT)) else {
        return;
    };
    let page = reconfctl(&["region", "learn", &left, &left]);
    assert_eq!(page.exit, Exit::Done);
    assert!(
        page.out
            .contains("frames = [\n    \"logic bottom row 1 columns 2-9\",")
    );
    let disagree = reconfctl(&["region", "learn", &left, &right]);
    assert_eq!(disagree.exit, Exit::No);
    assert!(disagree.err.contains(RIGHT) && disagree.err.contains("only one of them has"));
    let device = reconfctl(&["region", "learn", "--device", "xc7a35t", &left]);
    assert_eq!(device.exit, Exit::No);
    let unknown = reconfctl(&["region", "learn", "--device", "xc9z", &left]);
    assert_eq!(unknown.exit, Exit::Usage);
}
