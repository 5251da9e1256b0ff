//! What the command shows: tables, sheets, events, files, help.

use std::path::Path;

use protocol::{Reply, Request};
use serde_json::Value;

use crate::command::{KEY, ask, run};
use crate::model::{Ending, FUNCTION_TEXT, Model, PCI, honest};

#[test]
fn a_list_marks_what_is_loaded_and_lines_up() {
    let host = Model::start(honest(Ending::Loaded));
    let told = ask(&host, &["list"]);
    assert_eq!(
        told.out,
        format!(
            "SLOT  IMAGE         SIZE     FUNCTION                              LOADED\n\
             0     acme/aes:1.0  4.0 MiB  {FUNCTION_TEXT}  yes\n\
             0     acme/fir:2.0  4.0 MiB  {FUNCTION_TEXT}\n\
             1     acme/aes:1.0  4.0 MiB  {FUNCTION_TEXT}\n"
        )
    );
    let told = ask(&host, &["list", "--digests", "--slot", "1"]);
    assert!(
        told.out
            .ends_with(&format!("acme/aes:1.0  sha256:{}\n", "aa".repeat(32)))
    );

    let told = ask(&host, &["list", "--json"]);
    let images = told.json()["images"].clone();
    assert_eq!(images[0]["loaded"], true);
    assert_eq!(images[1]["loaded"], false);
    assert_eq!(images[2]["loaded"], false, "the same image in another slot");
    assert_eq!(images[0]["digest"], format!("sha256:{}", "aa".repeat(32)));
    assert_eq!(images[0]["size"], 4 << 20);
}

#[test]
fn describe_shows_a_sheet_a_slot() {
    let host = Model::start(honest(Ending::Loaded));
    let told = ask(&host, &["describe"]);
    assert!(
        told.out
            .starts_with("slot 0: active\n  image     acme/aes:1.0\n"),
        "{}",
        told.out
    );
    assert!(told.out.ends_with("slot 1: empty\n"), "{}", told.out);
    let told = ask(&host, &["describe", "--json", "--slot", "0"]);
    let slot = &told.json()["slots"][0];
    assert_eq!(slot["state"], "active");
    assert_eq!(slot["guest_pci"], PCI);
    assert_eq!(slot["since"], 1_700_000_000);
    assert_eq!(slot["job"], Value::Null);
}

#[test]
fn reset_clear_and_cancel_tell_their_end() {
    let host = Model::start(honest(Ending::Loaded));
    let told = ask(&host, &["reset", "--slot", "1"]);
    assert_eq!(
        (told.code, told.out.as_str()),
        (0, "slot 1: the function was reset\n")
    );
    let told = ask(&host, &["clear", "--slot", "1"]);
    assert_eq!((told.code, told.out.as_str()), (0, "slot 1: empty\n"));
    let told = ask(&host, &["cancel", KEY]);
    assert_eq!(told.code, 1);
    assert!(
        told.err.contains("can no longer be cancelled"),
        "{}",
        told.err
    );
}

#[test]
fn a_watch_prints_a_line_an_event_and_ends_after_its_count() {
    let host = Model::start(honest(Ending::Loaded));
    let told = ask(&host, &["watch", "--count", "6"]);
    assert_eq!(told.code, 0);
    assert_eq!(told.out.lines().count(), 6, "{}", told.out);
    assert!(
        told.out
            .contains(&format!("function {FUNCTION_TEXT} appeared at {PCI}"))
    );

    let told = ask(&host, &["watch", "--count", "6", "--json"]);
    let whats: Vec<String> = told
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["event"]["what"].to_string())
        .collect();
    assert_eq!(
        whats,
        [
            "\"progress\"",
            "\"loaded\"",
            "\"leaving\"",
            "\"cleared\"",
            "\"revoked\"",
            "\"lost\""
        ]
    );

    let told = ask(&host, &["watch", "--count", "7", "--timeout", "0.3", "-q"]);
    assert_eq!(told.code, 7, "the seventh never comes");
    let told = ask(&host, &["watch", "--timeout", "0.3"]);
    assert_eq!(
        (told.code, told.out.lines().count()),
        (0, 6),
        "watched for so long"
    );
}

#[test]
fn g10_what_the_host_says_cannot_drive_the_terminal() {
    let host = Model::start(|request| match request {
        Request::Describe(_) => vec![Reply::Describe(protocol::message::DescribeReply {
            slots: vec![protocol::message::SlotInfo {
                slot: protocol::message::Slot(0),
                state: protocol::message::SlotState::Active,
                image: Some("\x1b]0;owned\x07evil\r\n".into()),
                digest: None,
                function_id: None,
                since: None,
                guest_pci: Some("\x1b[2J".into()),
                development: true,
                job: None,
            }],
        })],
        _ => vec![],
    });
    for json in [&["describe"][..], &["describe", "--json"]] {
        let told = ask(&host, json);
        assert!(!told.out.contains(['\x1b', '\x07', '\r']), "{:?}", told.out);
    }
}

#[test]
fn colour_is_where_it_was_asked_for() {
    let host = Model::start(honest(Ending::Loaded));
    assert!(!ask(&host, &["describe"]).out.contains('\x1b'));
    assert!(
        ask(&host, &["describe", "--color", "always"])
            .out
            .contains("\x1b[32mactive")
    );
    assert!(
        !ask(&host, &["describe", "--color", "never"])
            .out
            .contains('\x1b')
    );
}

#[test]
fn help_tells_the_exit_codes_and_the_environment() {
    let told = run(&["--help"]);
    assert_eq!(told.code, 0);
    for word in [
        "Exit codes:",
        "130  interrupted",
        "RECONF_CHANNEL",
        "NO_COLOR",
        "describe",
    ] {
        assert!(told.out.contains(word), "{word}");
    }
    assert!(!told.out.contains("  man "), "for packagers only");
    assert!(run(&["load", "--help"]).out.contains("--if-not-loaded"));
}

#[test]
fn packagers_get_completions_and_manual_pages() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(
            run(&["completions", shell]).out.contains("reconf"),
            "{shell}"
        );
    }
    assert!(run(&["man"]).out.contains(".TH reconf"));
    let directory = tempfile::tempdir().unwrap();
    let told = run(&["man", directory.path().to_str().unwrap()]);
    assert_eq!(told.code, 0, "{}", told.err);
    assert!(directory.path().join("reconf-load.1").exists());
    assert_eq!(run(&["man", "/nowhere/at/all"]).code, 1);
}

const SYNC: [u8; 4] = [0xaa, 0x99, 0x55, 0x66];

#[test]
fn check_says_what_a_file_is() {
    let shared = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/bitstreams");
    let real = format!("{shared}/intel_k8s_nlb.gbs");
    if Path::new(&real).exists() {
        let told = run(&["check", &real]);
        assert_eq!(told.code, 0, "{}", told.err);
        assert!(told.out.contains("GBS, well formed"), "{}", told.out);
        let told = run(&["check", &real, "--json"]);
        assert_eq!(told.json()["format"], "GBS");
        let partial = format!("{shared}/byu_z7020_ascii_s0_partial.bit");
        let told = run(&["check", &partial]);
        assert_eq!(told.code, 0, "{}", told.err);
        assert!(
            told.out.contains("logic bottom row 1 columns 2-9"),
            "{}",
            told.out
        );
        let told = run(&["check", &partial, "--json"]);
        assert_eq!(told.json()["format"], "BIT");
        assert_eq!(told.json()["device"], "xc7z020 (IDCODE 03727093)");
        assert!(told.json().get("interface_id").is_none());
        let hostile = format!("{shared}/confuzz_xem8320_write_fdri_bbram_test_key.bit");
        let told = run(&["check", &hostile, "--json"]);
        assert_eq!(told.code, 1);
        assert!(
            told.err.contains("encrypted") && told.err.contains("byte "),
            "{}",
            told.err
        );
        let error = &told.json()["error"];
        assert_eq!(error["code"], "encrypted");
        assert!(error["offset"].as_u64().unwrap() > 0);
        assert!(error.get("frame").is_none());
        for (file, code) in [
            ("pynq_default.xclbin", "no-payload"),
            ("expected.json", "not-a-bitstream"),
        ] {
            let told = run(&["check", &format!("{shared}/{file}"), "--json"]);
            assert_eq!(told.code, 1, "{file}");
            assert_eq!(told.json()["error"]["code"], code, "{file}");
        }
        // The bare words of the same file, and with a command that none gives.
        let words = {
            let file = std::fs::read(&partial).unwrap();
            let sync = file.windows(4).position(|word| word == SYNC).unwrap();
            file[sync - 48..].to_vec()
        };
        let directory = tempfile::tempdir().unwrap();
        let bare = directory.path().join("bare.bin");
        std::fs::write(&bare, &words).unwrap();
        let told = run(&["check", bare.to_str().unwrap(), "--json"]);
        assert_eq!(told.code, 0, "{}", told.err);
        assert_eq!(told.json()["format"], "BIN");
        let mut hostile = words;
        let shutdown = hostile
            .windows(8)
            .position(|words| words == [0x30, 0, 0x80, 1, 0, 0, 0, 11])
            .unwrap();
        hostile[shutdown + 7] = 15;
        std::fs::write(&bare, &hostile).unwrap();
        let told = run(&["check", bare.to_str().unwrap(), "--json"]);
        assert_eq!(told.code, 1);
        assert_eq!(told.json()["error"]["code"], "forbidden-command");
        assert_eq!(told.json()["error"]["offset"], shutdown + 4);
    } else {
        eprintln!("SKIPPED: {real} is not here");
    }
    let directory = tempfile::tempdir().unwrap();
    let empty = directory.path().join("empty");
    std::fs::write(&empty, "").unwrap();
    let told = run(&["check", empty.to_str().unwrap()]);
    assert_eq!(told.code, 1);
    assert!(told.err.contains("the file is empty"), "{}", told.err);
    assert_eq!(run(&["check", "/nowhere"]).code, 1);
}

#[test]
fn the_tenants_guide_tells_every_command_option_and_exit_code() {
    let guide = include_str!("../../../docs/guest.md");
    let help = run(&["--help"]).out;
    let commands = help
        .split("Commands:")
        .nth(1)
        .unwrap()
        .split("Options:")
        .next()
        .unwrap();
    for line in commands.lines().filter(|line| !line.is_empty()) {
        let command = line.split_whitespace().next().unwrap();
        let told = guide.contains(&format!("| `reconf {command}"));
        assert!(told || command == "help", "{command}");
    }
    let codes = help
        .split("Exit codes:")
        .nth(1)
        .unwrap()
        .split("Environment:")
        .next()
        .unwrap();
    for line in codes.lines().filter(|line| !line.is_empty()) {
        let (code, meaning) = line.trim().split_once("  ").unwrap();
        let word = meaning.split([':', ';', ' ']).next().unwrap();
        assert!(guide.contains(&format!("| {code} | {word}")), "{line}");
    }
    for (of, option) in [
        ("load", "--key"),
        ("load", "--no-wait"),
        ("load", "--if-not-loaded"),
        ("load", "--force"),
        ("list", "--digests"),
        ("watch", "--count"),
        ("job", "--wait"),
        ("ping", "--channel"),
        ("ping", "--timeout"),
        ("ping", "--color"),
        ("ping", "--quiet"),
    ] {
        assert!(run(&[of, "--help"]).out.contains(option), "{of} {option}");
        assert!(guide.contains(option), "{option}");
    }
}
