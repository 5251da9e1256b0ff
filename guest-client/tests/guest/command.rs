//! The `reconf` command as its users meet it: usage, channels, exit codes.

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use protocol::Reply;
use protocol::message::ErrorReply;
use protocol::status::{Detail, Status};
use serde_json::Value;

use crate::model::{Ending, Model, honest};

pub(crate) fn reconf() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reconf"));
    command
        .env_remove("RECONF_CHANNEL")
        .env_remove("NO_COLOR")
        .stdin(Stdio::null());
    command
}

pub(crate) struct Told {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Told {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Told {
    /// The last line, as JSON; every line before it is JSON too.
    pub(crate) fn json(&self) -> Value {
        let lines: Vec<Value> = self
            .out
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        lines.last().unwrap().clone()
    }
}

pub(crate) fn run(args: &[&str]) -> Told {
    reconf().args(args).output().unwrap().into()
}

pub(crate) fn ask(host: &Model, args: &[&str]) -> Told {
    reconf()
        .arg("--channel")
        .arg(&host.socket)
        .args(args)
        .output()
        .unwrap()
        .into()
}

/// Refuses everything in one way.
fn refusing(status: Status, detail: Detail) -> Model {
    Model::start(move |_| vec![Reply::Error(ErrorReply::new(status, detail))])
}

pub(crate) const KEY: &str = "0123456789abcdef0123456789abcdef";

#[test]
fn every_status_has_its_exit_code() {
    for (status, detail, code) in [
        (Status::Failed, Detail::None, 1),
        (Status::Stale, Detail::None, 1),
        (Status::TooLarge, Detail::None, 1),
        (Status::Protocol, Detail::NoSuchSlot, 2),
        (Status::Protocol, Detail::BadName, 2),
        (Status::Denied, Detail::None, 3),
        (Status::Denied, Detail::Revoked, 3),
        (Status::Busy, Detail::None, 4),
        (Status::Rate, Detail::None, 4),
        (Status::Unavailable, Detail::Stopped, 5),
        (Status::Protocol, Detail::None, 6),
        (Status::Unsupported, Detail::None, 6),
    ] {
        let host = refusing(status, detail);
        let told = ask(&host, &["describe", "--json"]);
        assert_eq!(told.code, code, "{status} {detail}: {}", told.err);
        let error = &told.json()["error"];
        assert_eq!(error["code"], status.name());
        assert_eq!(error["detail"], detail.name());
        assert_eq!(error["remedy"], protocol::status::remedy(status, detail));
    }
}

#[test]
fn several_slots_and_none_named_is_a_usage_error_that_lists_them() {
    let host = Model::start(honest(Ending::Loaded));
    let told = ask(&host, &["load", "acme/aes", "--json"]);
    assert_eq!(told.code, 2);
    assert!(told.err.contains("it has: 0 and 1"), "{}", told.err);
    assert_eq!(told.json()["error"]["slots"], serde_json::json!([0, 1]));
}

#[test]
fn wrong_usage_ends_with_2() {
    for args in [
        &["load"][..],
        &["load", "acme/aes", "--slot", "-1"],
        &["load", "acme/aes", "--slot", "65536"],
        &["load", "acme/aes", "--if-not-loaded", "--force"],
        &["load", "acme/aes", "--key", "12"],
        &["job", "xyz"],
        &["--timeout", "0", "ping"],
        &["watch", "--count", "0"],
        &["nonsense"],
        &[],
    ] {
        let told = run(args);
        assert_eq!(told.code, 2, "{args:?}");
        assert_eq!(told.out, "", "{args:?}");
    }
}

#[test]
fn aws_05_an_id_of_another_kind_is_refused_before_anybody_is_asked() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../shared/cases/AWS-05/ids.txt"
    );
    let Ok(ids) = std::fs::read_to_string(path) else {
        eprintln!("SKIPPED: {path} is not here");
        return;
    };
    for id in ids.lines() {
        let told = run(&["--channel", "/nowhere", "load", id]);
        let digest = id.starts_with("sha256:");
        assert_eq!(
            told.code,
            if digest { 5 } else { 2 },
            "{id:?}: {}",
            told.err
        );
    }
}

#[test]
fn no_channel_ends_with_5_and_says_what_was_tried() {
    let told = run(&["--channel", "/nowhere/at.all", "ping", "--json"]);
    assert_eq!(told.code, 5);
    assert!(
        told.err.contains("cannot open /nowhere/at.all"),
        "{}",
        told.err
    );
    assert_eq!(told.json()["error"]["code"], "cannot-open");
}

#[test]
fn the_environment_names_a_channel() {
    let host = Model::start(honest(Ending::Loaded));
    let told = Told::from(
        reconf()
            .env("RECONF_CHANNEL", &host.socket)
            .arg("ping")
            .output()
            .unwrap(),
    );
    assert_eq!(told.code, 0, "{}", told.err);
    assert!(
        told.out.starts_with("the host answered in "),
        "{}",
        told.out
    );
}

#[test]
fn a_silent_host_ends_with_5_in_time() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("s");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let began = Instant::now();
    let told = run(&[
        "--channel",
        socket.to_str().unwrap(),
        "--timeout",
        "0.3",
        "ping",
        "--json",
    ]);
    assert_eq!(told.code, 5, "{}", told.err);
    assert_eq!(told.json()["error"]["code"], "host-silent");
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn an_unanswered_request_ends_with_7() {
    let host = Model::start(|_| vec![]);
    let told = ask(&host, &["--timeout", "0.3", "describe", "--json"]);
    assert_eq!(told.code, 7, "{}", told.err);
    assert_eq!(told.json()["error"]["code"], "no-reply");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let host = Model::start(honest(Ending::Loaded));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = reconf();
    let output = command
        .arg("--channel")
        .arg(&host.socket)
        .arg("list")
        .stdout(writer)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
        .wait_with_output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
