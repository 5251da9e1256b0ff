//! The whole command in its own process: arguments in, output and exit code out.

mod check;
mod doctor;
mod inspect;
mod junk;
mod online;
mod publisher;
mod site;
mod trust;

use std::path::Path;

use super::*;

/// What one run of the command left behind.
pub(super) struct Ran {
    pub(super) exit: Exit,
    pub(super) out: String,
    pub(super) err: String,
}

impl Ran {
    pub(super) fn json(&self) -> serde_json::Value {
        assert_eq!(
            self.out.lines().count(),
            1,
            "one object a run: {}",
            self.out
        );
        serde_json::from_str(&self.out).unwrap()
    }
}

pub(super) fn reconfctl<S: AsRef<std::ffi::OsStr>>(args: &[S]) -> Ran {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut streams = Streams {
        out: &mut out,
        err: &mut err,
        colour: Colour::Never,
    };
    let program = [OsString::from("reconfctl")];
    let exit = run(
        program.into_iter().chain(args.iter().map(OsString::from)),
        &mut streams,
    );
    Ran {
        exit,
        out: String::from_utf8(out).unwrap(),
        err: String::from_utf8(err).unwrap(),
    }
}

/// `text` for a command line.
pub(super) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn the_command_line_is_sound() {
    use clap::CommandFactory;
    Cli::command().debug_assert();
}

#[test]
fn help_is_an_answer_and_a_wrong_line_is_not() {
    let help = reconfctl(&["--help"]);
    assert_eq!(help.exit, Exit::Done);
    assert!(help.out.contains("Exit codes:") && help.err.is_empty());
    for wrong in [
        &["stauts"][..],
        &[],
        &["vm", "attach"],
        &["explain", "not-a-uuid", "acme/aes"],
        &["status", "--timeout", "never"],
        &["audit", "--last", "-1"],
    ] {
        let ran = reconfctl(wrong);
        assert_eq!(ran.exit, Exit::Usage, "{wrong:?}");
        assert!(ran.out.is_empty() && !ran.err.is_empty(), "{wrong:?}");
    }
}

#[test]
fn completions_and_manual_pages_come_from_the_command_line_itself() {
    let ran = reconfctl(&["completions", "bash"]);
    assert_eq!(ran.exit, Exit::Done);
    assert!(ran.out.contains("reconfctl"));

    let dir = tempfile::tempdir().unwrap();
    let ran = reconfctl(&["man", text(dir.path())]);
    assert_eq!(ran.exit, Exit::Done, "{}", ran.err);
    assert!(dir.path().join("reconfctl.1").is_file());
    assert!(dir.path().join("reconfctl-vm-attach.1").is_file());
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut err = Vec::new();
    let mut streams = Streams {
        out: &mut Closed,
        err: &mut err,
        colour: Colour::Never,
    };
    assert_eq!(run(["reconfctl", "--help"], &mut streams), Exit::Done);
    assert!(err.is_empty());
}
