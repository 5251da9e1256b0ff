//! Linux's own DFL driver as the judge of the simulated card.
//!
//! Knows what that driver says of a card that does what a case makes it do.
//! The expectations are Linux's (measured with 6.1 and 6.12, and read in its
//! source), not the card's: where they differ, the card is wrong.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use uuid::Uuid;

use super::{Initramfs, Tree, Vm, script};
use crate::process::{Process, program};

/// The card's interface id.
const INTERFACE: Uuid = Uuid::from_u128(0x6952_8db6_eb31_577a_8c36_68f9_faa0_81f6);
/// The function that good payloads hold.
const FUNCTION: Uuid = Uuid::from_u128(0xd842_4dc4_a4a3_c413_f89e_4336_83f9_040b);

/// Numbers of errors, as Linux gives them on all its machines.
mod errno {
    pub(super) const EIO: i32 = 5;
    pub(super) const ENOMEM: i32 = 12;
    pub(super) const EINVAL: i32 = 22;
    pub(super) const ETIMEDOUT: i32 = 110;
}

/// One thing that the card is made to do, and what Linux says of it.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// What the card is told first; empty for nothing.
    pub control: &'static str,
    /// The port that is programmed.
    pub port: u8,
    /// The payload.
    pub payload: Payload,
    /// The ioctl's errno, 0 for success.
    pub errno: i32,
    /// `state` of Linux's FPGA manager afterwards; none: whatever it was before.
    pub state: Option<&'static str>,
    /// Lines of `status` afterwards.
    pub status: &'static [&'static str],
    /// `afu_id` that Linux reads afterwards.
    pub function: Function,
    /// Whether the card must lose power before anything works again.
    pub recovery: Recovery,
    /// How patient Linux is: cases that make it wait 8 s run in long runs only.
    pub takes: Takes,
}

/// Payloads of the cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload {
    /// 64 KiB, sound.
    Good,
    /// Made for another interface id.
    Foreign,
    /// One bit of the filler is wrong.
    Damaged,
    /// No bytes.
    Empty,
}

/// What Linux reads as the function's identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// The one of the good payload.
    Loaded,
    /// Another one.
    Other,
    /// None: the port is in reset.
    Shut,
    /// Nothing was asked of the region: not looked at.
    Untouched,
}

/// What brings the card back after a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// The next load.
    Load,
    /// Power off and on: Linux leaves SFTRST or RST at 1 when they are not
    /// acknowledged, and a bit that is 1 already asks for nothing.
    PowerCycle,
}

/// How long Linux waits in a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// Less than a second.
    Moment,
    /// Its limit of 8 s for each wait.
    EightSeconds,
}

const GOOD: Case = Case {
    name: "good",
    control: "",
    port: 0,
    payload: Payload::Good,
    errno: 0,
    state: Some("operating"),
    status: &[],
    function: Function::Loaded,
    recovery: Recovery::Load,
    takes: Takes::Moment,
};

/// A load that Linux calls failed, with the port left in reset.
const FAILED: Case = Case {
    errno: errno::EIO,
    state: Some("write complete error"),
    function: Function::Shut,
    ..GOOD
};

/// A load that ends at one of Linux's limits.
const LATE: Case = Case {
    errno: errno::ETIMEDOUT,
    takes: Takes::EightSeconds,
    ..FAILED
};

const OPERATION: &str = "reconfig operation error";
const CRC: &str = "reconfig CRC error";
const INCOMPATIBLE: &str = "reconfig incompatible image";
const PROTOCOL: &str = "reconfig IP protocol error";
const OVERFLOW: &str = "reconfig fifo overflow error";

/// Every case.
pub const CASES: &[Case] = &[
    GOOD,
    Case {
        name: "the other port",
        port: 1,
        ..GOOD
    },
    Case {
        name: "a foreign interface id",
        payload: Payload::Foreign,
        status: &[INCOMPATIBLE],
        ..FAILED
    },
    Case {
        name: "a flipped bit",
        payload: Payload::Damaged,
        status: &[CRC],
        ..FAILED
    },
    Case {
        name: "operation error",
        control: r#"{"fault":"pr-error","bits":["operation"]}"#,
        status: &[OPERATION],
        ..FAILED
    },
    Case {
        name: "protocol error",
        control: r#"{"fault":"pr-error","bits":["protocol"]}"#,
        status: &[PROTOCOL],
        ..FAILED
    },
    Case {
        name: "FIFO overflow",
        control: r#"{"fault":"pr-error","bits":["fifo-overflow"]}"#,
        status: &[OVERFLOW],
        ..FAILED
    },
    Case {
        name: "all five errors",
        control: r#"{"fault":"pr-error","bits":["operation","crc","incompatible","protocol","fifo-overflow"]}"#,
        status: &[OPERATION, CRC, INCOMPATIBLE, PROTOCOL, OVERFLOW],
        ..FAILED
    },
    Case {
        name: "good again after the errors",
        ..GOOD
    },
    Case {
        name: "another function appears",
        control: r#"{"fault":"wrong-identity"}"#,
        function: Function::Other,
        ..GOOD
    },
    Case {
        name: "the port does not acknowledge its reset",
        control: r#"{"fault":"port-no-ack"}"#,
        errno: errno::ETIMEDOUT,
        state: None,
        function: Function::Untouched,
        recovery: Recovery::PowerCycle,
        ..GOOD
    },
    Case {
        name: "the port's acknowledge stays",
        control: r#"{"fault":"port-ack-stuck"}"#,
        errno: errno::ETIMEDOUT,
        function: Function::Untouched,
        recovery: Recovery::PowerCycle,
        ..GOOD
    },
    Case {
        name: "no such port",
        port: 5,
        errno: errno::EINVAL,
        state: None,
        function: Function::Untouched,
        ..GOOD
    },
    Case {
        name: "no bytes",
        payload: Payload::Empty,
        errno: errno::ENOMEM,
        state: None,
        function: Function::Untouched,
        ..GOOD
    },
    Case {
        name: "a small FIFO's credits, slowly",
        control: r#"{"fault":"slow-rate","bytes_per_second":1000000}"#,
        ..GOOD
    },
    Case {
        name: "RST is never acknowledged",
        control: r#"{"fault":"rst-no-ack"}"#,
        state: Some("write init error"),
        recovery: Recovery::PowerCycle,
        ..LATE
    },
    Case {
        name: "PR stays busy",
        control: r#"{"fault":"busy-stuck","times":"until-cleared"}"#,
        state: Some("write init error"),
        ..LATE
    },
    Case {
        name: "START never clears",
        control: r#"{"fault":"hang"}"#,
        ..LATE
    },
    Case {
        name: "good after all of that",
        ..GOOD
    },
];

/// What Linux said.
#[derive(Debug, Default)]
pub struct Verdict {
    /// Facts of the card, in the driver's words: name and value.
    pub facts: Vec<(String, String)>,
    /// What differs from the expectations: one sentence each.
    pub differences: Vec<String>,
    /// Cases that ran.
    pub ran: usize,
    /// Cases that wait for Linux's limits, left out of a short run.
    pub left_out: usize,
}

impl Verdict {
    /// The value of a fact.
    #[must_use]
    pub fn fact(&self, name: &str) -> Option<&str> {
        let found = self.facts.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// Boots a VM with a card and Linux's driver, and runs the cases.
///
/// # Errors
/// The VM or the card could not be run. What Linux finds wrong is no error
/// here, but in the [`Verdict`].
pub fn judge(tree: &Tree, folder: &Path, long: bool) -> Result<Verdict> {
    let cases: Vec<&Case> = CASES
        .iter()
        .filter(|case| long || case.takes == Takes::Moment)
        .collect();
    let initramfs = folder.join("initramfs");
    archive(tree, &cases)?.write(&initramfs)?;
    let mut card = Command::new(program("reconf-simcard")?);
    card.args(["--serial", "0012", "--name", "judged"])
        .args(["--interface-id", &INTERFACE.to_string(), "--dir"])
        .arg(folder);
    let card = Process::start("reconf-simcard", &mut card, &folder.join("card.log"))?;
    let lines = Vm {
        tree,
        initramfs: &initramfs,
        devices: &[&folder.join("judged.sock")],
        control: &folder.join("judged.ctl"),
        console: &folder.join("console"),
        host: false,
    }
    .run(Duration::from_secs(if long { 240 } else { 120 }))?;
    drop(card);
    let mut verdict = Verdict {
        left_out: CASES.len().saturating_sub(cases.len()),
        ..Verdict::default()
    };
    let mut answers = Vec::new();
    for line in &lines {
        if let Some((name, value)) = line.strip_prefix("fact ").and_then(|l| l.split_once(' ')) {
            verdict.facts.push((name.to_owned(), value.to_owned()));
        } else if let Some(answer) = line.strip_prefix("case ") {
            answers.push(answer);
        }
    }
    verdict.ran = answers.len();
    anyhow::ensure!(
        answers.len() == cases.len(),
        "{} answers to {} cases",
        answers.len(),
        cases.len()
    );
    for (case, answer) in cases.iter().zip(answers) {
        if let Some(difference) = case.compare(answer)? {
            verdict.differences.push(difference);
        }
    }
    Ok(verdict)
}

impl Case {
    /// What differs between Linux's answer and what it should be, if anything does.
    fn compare(&self, answer: &str) -> Result<Option<String>> {
        let fields: Vec<&str> = answer.split('|').collect();
        let &[name, errno, state, status, function] = fields.as_slice() else {
            anyhow::bail!("an answer of another shape: {answer}");
        };
        let mut said = String::new();
        if name != self.name {
            write!(said, " it answered the case {name:?};")?;
        }
        if errno.parse::<i32>().with_context(|| answer.to_owned())? != self.errno {
            write!(said, " errno {errno} instead of {};", self.errno)?;
        }
        if self.state.is_some_and(|expected| expected != state) {
            write!(said, " state {state:?} instead of {:?};", self.state)?;
        }
        let expected = self.status.join(",");
        if status != expected {
            write!(said, " status {status:?} instead of {expected:?};")?;
        }
        let loaded = FUNCTION.simple().to_string();
        let right = match self.function {
            Function::Loaded => function == loaded,
            Function::Other => function.len() == loaded.len() && function != loaded,
            Function::Shut => function.is_empty(),
            Function::Untouched => true,
        };
        if !right {
            write!(said, " afu_id {function:?}, {:?} was due;", self.function)?;
        }
        Ok((!said.is_empty()).then(|| format!("{}:{said}", self.name)))
    }
}

fn archive(tree: &Tree, cases: &[&Case]) -> Result<Initramfs> {
    let mut archive = Initramfs::default();
    for folder in ["bin", "dev", "modules", "payloads", "proc", "sys", "tmp"] {
        archive.folder(folder)?;
    }
    archive.copy("bin/busybox", &tree.guest("busybox"))?;
    archive.copy("bin/dfl-pr", &tree.guest("dfl-pr"))?;
    // The interpreter of /init must be there before busybox installs itself.
    archive.copy("bin/sh", &tree.guest("busybox"))?;
    archive.file("init", 0o755, &fs::read(script("init"))?)?;
    archive.copy("scenario", &script("linux-dfl"))?;
    for module in fs::read_dir(tree.guest("modules"))? {
        let module = module?;
        let name = module.file_name();
        let name = name.to_str().context("a module's name")?;
        archive.copy(&format!("modules/{name}"), &module.path())?;
    }
    let good = simcard::payload::build(INTERFACE, FUNCTION, 64 << 10, 1);
    let foreign = simcard::payload::build(Uuid::from_u128(1), FUNCTION, 4096, 2);
    let mut damaged = good.clone();
    if let Some(last) = damaged.last_mut() {
        *last ^= 1;
    }
    for (payload, bytes) in [
        (Payload::Good, good.as_slice()),
        (Payload::Foreign, &foreign),
        (Payload::Damaged, &damaged),
        (Payload::Empty, &[]),
    ] {
        archive.file(&format!("payloads/{payload:?}"), 0o644, bytes)?;
    }
    let mut list = String::new();
    for case in cases {
        let Case {
            name,
            control,
            port,
            payload,
            recovery,
            ..
        } = case;
        let afterwards = match recovery {
            Recovery::Load => "",
            Recovery::PowerCycle => r#"{"do":"power-cycle"}"#,
        };
        writeln!(list, "{name}|{control}|{port}|{payload:?}|{afterwards}")?;
    }
    archive.file("cases", 0o644, list.as_bytes())?;
    Ok(archive)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_differs_is_told_with_both_sides() {
        let right = format!("good|0|operating||{}", FUNCTION.simple());
        assert_eq!(GOOD.compare(&right).unwrap(), None);
        for (wrong, says) in [
            (right.replace("|0|", "|5|"), "errno 5 instead of 0"),
            (right.replace("operating", "write error"), "write error"),
            (right.replace("||", "|reconfig CRC error|"), CRC),
            (right.replace("d842", "0000"), "afu_id"),
            (right.replace("good", "other"), "other"),
        ] {
            let told = GOOD.compare(&wrong).unwrap().unwrap();
            assert!(told.contains(says), "{told}");
        }
        assert!(GOOD.compare("good|0").is_err());
    }

    #[test]
    fn names_are_unique_and_fit_a_line() {
        let mut names: Vec<&str> = CASES.iter().map(|case| case.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CASES.len());
        for case in CASES {
            assert!(!case.name.contains('|') && !case.control.contains('|'));
        }
    }

    #[test]
    fn errno_are_the_numbers_of_this_system() {
        let system = |number| std::io::Error::from_raw_os_error(number).to_string();
        assert!(system(errno::ETIMEDOUT).contains("timed out"));
        assert!(system(errno::EINVAL).contains("Invalid argument"));
        assert!(system(errno::ENOMEM).contains("Cannot allocate memory"));
        assert!(system(errno::EIO).contains("Input/output error"));
    }
}
