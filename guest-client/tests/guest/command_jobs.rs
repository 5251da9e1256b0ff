//! The command's jobs: progress, results, and how a job is found again.

use std::process::Stdio;
use std::time::{Duration, Instant};

use protocol::status::{Detail, Status};
use serde_json::Value;

use crate::command::{KEY, Told, ask, reconf};
use crate::model::{Ending, FUNCTION_TEXT, Model, PCI, honest};

#[test]
fn a_load_tells_what_appeared_and_where() {
    let host = Model::start(honest(Ending::Loaded));
    let told = ask(&host, &["load", "acme/aes:1.0", "--slot", "0"]);
    assert_eq!(told.code, 0, "{}", told.err);
    let expected =
        format!("slot 0: acme/aes:1.0 is loaded\n  function  {FUNCTION_TEXT}\n  PCI       {PCI}\n");
    assert_eq!(told.out, expected);
    assert!(
        told.err.contains("writing (2.0 MiB of 4.0 MiB)"),
        "{}",
        told.err
    );
    assert!(told.err.contains("bind its driver again"), "{}", told.err);
    assert!(told.err.contains(PCI), "{}", told.err);

    let told = ask(&host, &["-q", "load", "acme/aes:1.0", "--slot", "0"]);
    assert_eq!(
        (told.code, told.out, told.err),
        (0, expected, String::new())
    );
}

#[test]
fn a_load_in_json_is_progress_and_one_result() {
    let host = Model::start(honest(Ending::Loaded));
    let args = ["load", "acme/aes", "--slot", "1", "--json", "--key", KEY];
    let told = ask(&host, &args);
    assert_eq!(told.code, 0);
    let first: Value = serde_json::from_str(told.out.lines().next().unwrap()).unwrap();
    assert_eq!(first["progress"]["stage"], "verifying");
    assert_eq!(first["progress"]["key"], KEY);
    let last = told.json();
    assert_eq!(last["ok"], true);
    assert_eq!(last["job"]["result"]["status"], "ok");
    assert_eq!(last["job"]["result"]["function_id"], FUNCTION_TEXT);
    assert_eq!(last["job"]["done"], 4 << 20);
    assert_eq!(told.err, "");

    let told = ask(&host, &["load", "acme/aes", "--slot", "1", "--json", "-q"]);
    assert_eq!(told.out.lines().count(), 1, "{}", told.out);
}

#[test]
fn a_load_of_what_is_loaded_says_so() {
    let host = Model::start(honest(Ending::Unchanged));
    let told = ask(
        &host,
        &["load", "acme/aes:1.0", "--slot", "0", "--if-not-loaded"],
    );
    assert_eq!(told.code, 0);
    assert!(
        told.out.contains("was loaded already; nothing was written"),
        "{}",
        told.out
    );
    assert!(!told.err.contains("driver"), "{}", told.err);
}

#[test]
fn a_load_that_is_not_waited_for_prints_its_key_which_finds_it_again() {
    let host = Model::start(honest(Ending::Loaded));
    let told = ask(&host, &["load", "acme/aes", "--slot", "0", "--no-wait"]);
    assert_eq!(told.code, 0);
    let key = told
        .out
        .strip_prefix("job ")
        .unwrap()
        .split(':')
        .next()
        .unwrap()
        .to_owned();
    let told = ask(&host, &["job", &key]);
    assert_eq!(
        (told.code, told.out),
        (0, format!("job {key}: verifying\n"))
    );
    let told = ask(&host, &["job", &key, "--wait"]);
    assert!(
        told.out.starts_with("slot 0: acme/aes:1.0 is loaded\n"),
        "{}",
        told.out
    );
}

#[test]
fn a_job_that_failed_ends_with_1_and_a_remedy() {
    let host = Model::start(honest(Ending::With(Status::Failed, Detail::ProgramError)));
    let told = ask(&host, &["load", "acme/aes", "--slot", "0"]);
    assert_eq!(told.code, 1);
    assert!(
        told.err
            .contains("for slot 0 did not succeed: the card refused"),
        "{}",
        told.err
    );
    assert!(
        told.err.contains(Detail::ProgramError.remedy().unwrap()),
        "{}",
        told.err
    );

    let told = ask(&host, &["load", "acme/aes", "--slot", "0", "--json"]);
    let last = told.json();
    assert_eq!(last["ok"], false);
    assert_eq!(last["error"]["code"], "failed");
    assert_eq!(last["error"]["detail"], "program-error");
    assert_eq!(last["error"]["exit"], 1);
    assert_eq!(last["job"]["stage"], "done");
}

#[test]
fn aws_01_a_job_that_goes_on_ends_with_7_and_its_key() {
    let host = Model::start(honest(Ending::Never));
    let args = [
        "load",
        "acme/aes",
        "--slot",
        "0",
        "--key",
        KEY,
        "--timeout",
        "0.4",
        "--json",
    ];
    let told = ask(&host, &args);
    assert_eq!(told.code, 7, "{}", told.err);
    assert_eq!(told.json()["error"]["job_key"], KEY);
    assert!(
        told.err.contains(&format!("reconf job {KEY} --wait")),
        "{}",
        told.err
    );
}

#[test]
fn an_interrupted_wait_ends_with_130_and_its_key() {
    let host = Model::start(honest(Ending::Never));
    let mut child = reconf()
        .arg("--channel")
        .arg(&host.socket)
        .args(["load", "acme/aes", "--slot", "0", "--key", KEY])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(400));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(
            began.elapsed() < Duration::from_secs(10),
            "Ctrl-C was not heard"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    let told = Told::from(child.wait_with_output().unwrap());
    assert_eq!(told.code, 130);
    assert!(
        told.err
            .contains(&format!("interrupted; job {KEY} goes on")),
        "{}",
        told.err
    );
    assert!(
        told.err.contains(&format!("reconf job {KEY} --wait")),
        "{}",
        told.err
    );
}
