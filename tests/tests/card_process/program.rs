//! The program itself: its line "ready", its signals and exit codes.

use std::process::Command;
use std::time::Duration;

use daemon::ipc::Content;
use reconf_tests::process::{self, Process};
use rustix::process::Signal;

use crate::client::tag;
use crate::stage::{Stage, guest_reaches};

fn command(stage: &Stage) -> Command {
    let mut command = Command::new(process::program("reconf-card").unwrap());
    let options = stage.options();
    command
        .arg("--host-file")
        .arg(options.host_file)
        .args(["--card", &options.card, "--print-ready"])
        .arg("--socket")
        .arg(options.socket.unwrap());
    command
}

fn exit_code(command: &mut Command) -> Option<i32> {
    let output = process::run(command, Duration::from_secs(60)).unwrap();
    output.status.code()
}

#[test]
fn ready_hangup_and_a_stop_that_leaves_active_regions_alone() {
    let stage = Stage::new();
    let log = stage.path("log");
    let mut program = Process::start("reconf-card", &mut command(&stage), &log).unwrap();
    let mut client = stage.connect();
    client.scrub(0, None).done();
    client.load(0, &stage.images[0], tag(1)).done();
    program.signal(Signal::HUP).unwrap();
    client.load(0, &stage.images[1], tag(1)).done();
    // The second one finds the lock held, and leaves the socket alone.
    assert_eq!(exit_code(&mut command(&stage)), Some(5));
    client.reset(0, tag(1)).done();
    assert_eq!(program.stop().unwrap().code(), Some(0));
    assert!(guest_reaches(&stage.region(0)));
    assert!(!stage.path("link.sock").exists());
}

#[test]
fn a_stop_in_the_middle_of_a_load_leaves_the_region_shut() {
    let stage = Stage::new();
    let log = stage.path("log");
    let mut program = Process::start("reconf-card", &mut command(&stage), &log).unwrap();
    let mut client = stage.connect();
    client.scrub(0, None).done();
    let job = client.begin(0, &stage.images[0], tag(1));
    client.written(job).unwrap();
    assert_eq!(program.stop().unwrap().code(), Some(0));
    client.end_of(job).is(daemon::ipc::Outcome::NotCommitted);
    assert!(!guest_reaches(&stage.region(0)));
    let mut program = Process::start("reconf-card", &mut command(&stage), &log).unwrap();
    let mut client = stage.connect();
    client.until(0, Content::Blank);
    assert_eq!(program.stop().unwrap().code(), Some(0));
}

#[test]
fn exit_codes_tell_what_to_look_at() {
    let mut stage = Stage::new();
    let mut wrong = command(&stage);
    wrong.arg("--no-such-option");
    assert_eq!(exit_code(&mut wrong), Some(2));
    stage.card = None;
    assert_eq!(exit_code(&mut command(&stage)), Some(4), "no card there");
    std::fs::write(stage.path("host.toml"), "[hots]\n").unwrap();
    assert_eq!(exit_code(&mut command(&stage)), Some(3));
}
