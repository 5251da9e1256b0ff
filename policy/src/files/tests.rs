//! The samples are read; everything that people get wrong is refused, with its place.

use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::fuzz;
use crate::ids::{CardAddress, ImageName, TenantName, VmId};
use crate::testing::shared;

const HOST: &str = include_str!("../../../docs/samples/host.toml");
const SHELL: &str = include_str!("../../../docs/samples/shell.toml");
const GRANTS: &str = include_str!("../../../docs/samples/grants.toml");

fn host(text: &str) -> Result<Host, FileError> {
    Host::parse(Path::new("/etc/reconf/host.toml"), text.as_bytes())
}

fn shell(text: &str) -> Result<Shell, FileError> {
    Shell::parse(Path::new("/etc/reconf/shells/a.toml"), text.as_bytes())
}

fn grants(text: &str) -> Result<Grants, FileError> {
    Grants::parse(Path::new("grants.toml"), text.as_bytes())
}

/// The refusal of a file: code, line, column.
fn refusal<T: std::fmt::Debug>(
    result: Result<T, FileError>,
) -> (FileError, &'static str, u32, u32) {
    let error = result.unwrap_err();
    let code = error.code();
    let (line, column) = (error.line, error.column);
    assert!(error.to_string().ends_with('.'), "{error}");
    (error, code, line, column)
}

#[test]
fn the_samples_are_read() {
    let host = host(HOST).unwrap();
    assert_eq!(host.cards.len(), 1);
    assert_eq!(
        host.cards[0].shell,
        Path::new("/etc/reconf/shells/shell.toml")
    );
    assert_eq!(host.grants, Path::new("/etc/reconf/grants.toml"));
    let shell = shell(SHELL).unwrap();
    assert_eq!(shell.regions.len(), 2);
    let function = CardAddress::parse("pci:0000:3b:00.3").unwrap();
    assert_eq!(shell.region_of(&function).unwrap().port, 1);
    let engine = host.cards[0].engine;
    let facts = shell
        .region(0)
        .unwrap()
        .facts(engine, host.limits.bitstream_max);
    assert_eq!(facts.bitstream_max, 64 << 20);
    let grants = grants(GRANTS).unwrap();
    assert_eq!(grants.rules().len(), 2);
    let vm = VmId::parse("8b6f1c0e-2a44-4e19-8f0d-112233445566").unwrap();
    assert_eq!(grants.tenant_of(vm).unwrap().as_str(), "blue");
}

#[test]
fn the_sample_states_the_defaults() {
    let empty = host("").unwrap();
    let sample = host(HOST).unwrap();
    assert_eq!(sample.limits, empty.limits);
    assert_eq!(sample.state_dir, empty.state_dir);
    assert_eq!(sample.run_dir, empty.run_dir);
    assert_eq!(sample.repository, empty.repository);
    assert_eq!(sample.grants, empty.grants);
    assert_eq!(sample.log, empty.log);
    assert_eq!(empty.limits.commit_wait, Duration::from_secs(5));
}

#[test]
fn every_directory_can_be_set_and_the_repository_follows() {
    let host = host("[host]\nstate_dir = \"state\"\nrun_dir = \"/tmp/run\"").unwrap();
    assert_eq!(host.state_dir, Path::new("/etc/reconf/state"));
    assert_eq!(host.repository, Path::new("/etc/reconf/state/repo/current"));
    assert_eq!(host.run_dir, Path::new("/tmp/run"));
}

#[test]
fn cfg_01_each_wrong_key_is_refused_at_its_line_with_the_nearest_name() {
    let typo = host("[limits]\njobs_per_vm = 1\ncomit_wait_ms = 1\n");
    let (error, code, line, column) = refusal(typo);
    assert_eq!((code, line, column), ("unknown-key", 3, 1), "{error}");
    assert!(error.remedy().contains("`commit_wait_ms`"), "{error}");

    let hyphen = refusal(host("[host]\nstate-dir = \"/x\"\n"));
    assert!(hyphen.0.remedy().contains("`state_dir`"), "{}", hyphen.0);

    let (error, code, line, _) = refusal(host("[host]\nload_rate = \"1 MB/s\"\n"));
    assert_eq!((code, line), ("unknown-key", 2));
    assert!(error.remedy().contains("[limits]"), "{error}");

    let (error, code, line, _) = refusal(host("[limit]\njobs_per_vm = 1\n"));
    assert_eq!((code, line), ("unknown-key", 1));
    assert!(error.remedy().contains("`limits`"), "{error}");

    assert_eq!(
        refusal(host("[limits]\n[host]\n[limits]\n")).1,
        "file-syntax"
    );
    assert_eq!(refusal(host("[limits]\njobs_per_vm = -1\n")).1, "bad-value");
    assert_eq!(refusal(host("[limits]\njobs_per_vm = 0\n")).1, "bad-value");
    assert_eq!(
        refusal(host("[limits]\nload_rate = \"1 MB\"\n")).1,
        "bad-value"
    );
    assert_eq!(
        refusal(host("[limits]\nbitstream_max = \"1 GiB\"\n")).1,
        "conflict"
    );
    let region = SHELL.replace("development = false", "development = \"false\"");
    assert_eq!(refusal(shell(&region)).1, "bad-value");
    assert!(
        host("\u{feff}[host]\r\nlog = \"warn\"\r\n").is_ok(),
        "a mark and CRLF mean nothing"
    );
}

#[test]
fn cfg_01_the_files_themselves_are_refused() {
    for (file, code, line) in [
        ("bom-crlf.toml", "unknown-key", 1),
        ("bool-string.toml", "unknown-key", 1),
        ("dup.toml", "file-syntax", 3),
        ("hyphen.toml", "unknown-key", 1),
        ("negative.toml", "unknown-key", 2),
        ("typo.toml", "unknown-key", 2),
        ("wrong-section.toml", "unknown-key", 1),
    ] {
        let Some(bytes) = shared(&format!("cases/CFG-01/{file}")) else {
            return;
        };
        let error = Host::parse(Path::new(file), &bytes).unwrap_err();
        assert_eq!((error.code(), error.line), (code, line), "{error}");
    }
}

#[test]
fn cyb_01_an_empty_file_permits_nothing() {
    for text in ["", "# nothing here\n", "[[tenant]]\nname = \"blue\"\n"] {
        assert!(grants(text).unwrap().rules().is_empty());
    }
    for file in ["comment-only.toml", "empty.toml"] {
        let Some(bytes) = shared(&format!("cases/CYB-01/{file}")) else {
            return;
        };
        assert!(
            Grants::parse(Path::new(file), &bytes)
                .unwrap()
                .rules()
                .is_empty()
        );
    }
    let Some(bytes) = shared("cases/CYB-01/no-rule.toml") else {
        return;
    };
    assert_eq!(
        refusal(Grants::parse(Path::new("no-rule.toml"), &bytes)).1,
        "unknown-key"
    );
}

#[test]
fn cyb_02_an_option_without_effect_is_an_error() {
    // Leaving `clear` out would not forbid it, so that it cannot be put in.
    let text = "[[tenant]]\nname = \"a\"\n[[grant]]\ntenant = \"a\"\nimages = [\"x/*\"]\n\
                operations = [\"load\", \"clear\"]\n";
    let (error, code, line, _) = refusal(grants(text));
    assert_eq!((code, line), ("bad-value", 6));
    assert!(error.to_string().contains("needs no grant"), "{error}");
    for emptied in ["images = []", "operations = []", "region_types = []"] {
        let key = emptied.split_once(' ').unwrap().0;
        let images = if key == "images" {
            ""
        } else {
            "images = [\"x/*\"]\n"
        };
        let text =
            format!("[[tenant]]\nname = \"a\"\n[[grant]]\ntenant = \"a\"\n{images}{emptied}\n");
        assert_eq!(refusal(grants(&text)).1, "bad-value", "{emptied}");
    }
}

#[test]
fn cyb_04_spaces_types_and_doubles_are_refused_at_load() {
    let spaces = SHELL.replacen("\"69528db6", "\" 69528db6", 1);
    let (error, code, line, _) = refusal(shell(&spaces));
    let at = SHELL
        .lines()
        .position(|line| line.starts_with("interface_id"))
        .unwrap()
        + 1;
    assert_eq!((code, line as usize), ("bad-value", at), "{error}");
    assert_eq!(
        refusal(shell(&SHELL.replacen("port = 0", "port = \"0\"", 1))).1,
        "bad-value"
    );
    let twice = "[[tenant]]\nname = \"Blue\"\n[[tenant]]\nname = \"blue\"\n";
    let (error, code, line, _) = refusal(grants(twice));
    assert_eq!((code, line), ("conflict", 4), "{error}");
    for file in ["dup-id.toml", "spaces.toml", "wrong-type.toml"] {
        let Some(bytes) = shared(&format!("cases/CYB-04/{file}")) else {
            return;
        };
        assert_eq!(refusal(Grants::parse(Path::new(file), &bytes)).2, 1);
    }
}

#[test]
fn i9_nothing_is_given_twice() {
    let (error, code, ..) = refusal(shell(&SHELL.replace("port = 1", "port = 0")));
    assert_eq!(code, "conflict", "{error}");
    let (error, code, ..) = refusal(shell(&SHELL.replace("00.3\"", "00.1\"")));
    assert_eq!(code, "conflict", "{error}");
    assert_eq!(
        refusal(shell(&SHELL.replace("00.3\"", "00.2\""))).1,
        "conflict"
    );
    assert_eq!(
        refusal(shell(&SHELL.replace("\"right\"", "\"left\""))).1,
        "conflict"
    );
    let card = "[[card]]\naddress = \"pci:0000:3b:00.0\"\nengine = \"dfl\"\nshell = \"a\"\n";
    let (error, code, line, _) = refusal(host(&format!("{card}{card}")));
    assert_eq!((code, line), ("conflict", 6), "{error}");
    let vm = "8b6f1c0e-2a44-4e19-8f0d-112233445566";
    let tenant =
        |name: &str, vm: &str| format!("[[tenant]]\nname = \"{name}\"\nvms = [\"{vm}\"]\n");
    let twice = tenant("a", vm) + &tenant("b", &vm.replace('-', "").to_uppercase());
    assert_eq!(refusal(grants(&twice)).1, "conflict");
}

#[test]
fn a_grant_names_a_tenant_that_is_declared() {
    let text = "[[tenant]]\nname = \"blue\"\n[[grant]]\ntenant = \"bleu\"\nimages = [\"a/*\"]\n";
    assert_eq!(refusal(grants(text)).1, "bad-value");
    assert_eq!(
        refusal(grants("[[grant]]\nimages = [\"a/*\"]\n")).1,
        "missing-key"
    );
}

#[test]
fn sizes_and_encodings_are_checked_first() {
    let long = "#".repeat(FILE_MAX + 1);
    assert_eq!(refusal(host(&long)).1, "file-too-large");
    let error = Host::parse(Path::new("h"), b"# ok\n# \xff\n").unwrap_err();
    assert_eq!(
        (error.code(), error.line, error.column),
        ("file-encoding", 2, 3)
    );
    assert_eq!(refusal(host("[host\n")).1, "file-syntax");
    assert_eq!(refusal(shell("")).1, "missing-key");
}

#[test]
fn serials_have_one_form() {
    let with = |serial: &str| host(&HOST.replace("00-0a-35-ff-ff-00-12-34", serial));
    assert!(with("00-0a-35-ff-ff-00-12-34").is_ok());
    for bad in [
        "",
        "00-0A-35-ff-ff-00-12-34",
        "000a35ffff001234",
        "00-0a-35-ff-ff-00-12",
    ] {
        assert_eq!(refusal(with(bad)).1, "bad-value", "{bad}");
    }
}

/// The table that tells where a misplaced key belongs must say what the
/// structs say.
#[test]
fn the_sections_know_every_key() {
    let check = |sections: &[(&str, &[&str])], text: &dyn Fn(&str) -> Result<(), FileError>| {
        for (section, keys) in sections {
            let header = if section.starts_with('[') {
                *section
            } else {
                ""
            };
            for key in *keys {
                // A key with a value of no kind that any key has: known keys
                // are refused for the value, unknown ones as unknown.
                let error = text(&format!("{header}\n{key} = 1979-05-27\n")).unwrap_err();
                assert_eq!(error.code(), "bad-value", "{section} {key}: {error}");
            }
        }
    };
    check(&host::SECTIONS, &|text| host(text).map(drop));
    check(&shell::SECTIONS, &|text| shell(text).map(drop));
    check(&grants::SECTIONS, &|text| grants(text).map(drop));
}

#[test]
fn a_rule_allows_only_what_it_says() {
    let grants = grants(GRANTS).unwrap();
    let [blue, green] = grants.rules() else {
        panic!()
    };
    let tenant = |name: &str| TenantName::parse(name).unwrap();
    let image = |name: &str| ImageName::parse(name).unwrap();
    let digest = crate::ids::Digest::of(b"x");
    let dcp = crate::ids::RegionType::parse("intel.com/fpga-dcp").unwrap();
    let other = crate::ids::RegionType::parse("other").unwrap();
    let allows = |rule: &GrantRule, who: &str, what: &str, region| {
        rule.allows(&tenant(who), (&image(what), &digest), region)
            .is_some()
    };
    assert!(allows(blue, "blue", "acme/any:1", &other));
    assert!(allows(blue, "blue", "globex/aes:1.2", &dcp));
    assert!(!allows(blue, "blue", "globex/aes:1.3", &dcp));
    assert!(!allows(blue, "green", "acme/any:1", &dcp));
    assert!(
        !allows(blue, "Blue", "acme/any:1", &dcp),
        "names are compared exactly"
    );
    assert!(allows(green, "green", "acme/aes:9", &dcp));
    assert!(!allows(green, "green", "acme/aes:9", &other));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn p10_no_text_makes_a_parser_panic(text in "\\PC{0,200}") {
        fuzz::host_toml(text.as_bytes());
        fuzz::shell_toml(text.as_bytes());
        fuzz::grants_toml(text.as_bytes());
    }

    #[test]
    fn p10_no_mutation_makes_a_parser_panic(
        at in any::<proptest::sample::Index>(), byte in any::<u8>(), cut in any::<proptest::sample::Index>()
    ) {
        type Parser = fn(&[u8]);
        let parsers: [(&str, Parser); 3] =
            [(HOST, fuzz::host_toml), (SHELL, fuzz::shell_toml), (GRANTS, fuzz::grants_toml)];
        for (sample, parser) in parsers {
            let mut bytes = sample.as_bytes().to_vec();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            parser(&bytes);
            bytes.truncate(cut.index(bytes.len()));
            parser(&bytes);
        }
    }
}
