//! The model of the device: a child that is given streams and tells what they
//! did.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use bitstream::device::{Device, FrameAddress, FrameSet};
use serde::Deserialize;

pub(crate) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("oracle")
}

/// Python that leaves no files behind.
pub(crate) fn python() -> Command {
    let mut command = Command::new("python3");
    command.arg("-B").current_dir(folder());
    command
}

/// What a stream did to a device.
#[derive(Debug, Deserialize)]
pub(crate) struct Deeds {
    /// Addresses of the frames written.
    pub(crate) written: HashSet<u32>,
    /// Addresses of the columns whose flip-flops were reset.
    pub(crate) reset: Vec<u32>,
    /// At which word, what.
    pub(crate) dangers: Vec<(usize, String)>,
    pub(crate) crc_checks: u32,
    pub(crate) crc_errors: Vec<usize>,
}

impl Deeds {
    /// What of it must not happen to a region; empty: nothing.
    pub(crate) fn against(&self, device: Device, region: &FrameSet) -> Vec<String> {
        let geometry = device.geometry().expect("the tests choose such devices");
        let index = |far| {
            let address = FrameAddress::parse(device.family(), far).ok()?;
            geometry.index(address)
        };
        let mut guilt: Vec<String> = self
            .dangers
            .iter()
            .map(|(at, what)| format!("word {at}: {what}"))
            .collect();
        for far in &self.written {
            if !index(*far).is_some_and(|frame| region.contains(frame)) {
                guilt.push(format!("writes {far:08x}"));
            }
        }
        for far in &self.reset {
            let column = index(*far).and_then(|frame| geometry.column_of(frame));
            let own = match geometry.clb_mask() {
                // A mask stands for the whole column.
                Some(_) => column.is_some_and(|column| region.contains_range(&column.range())),
                // The frames that lift it are told as written, too.
                None => column.is_some(),
            };
            if !own {
                guilt.push(format!("resets the column {far:08x}"));
            }
        }
        for at in &self.crc_errors {
            guilt.push(format!("word {at}: wrong CRC"));
        }
        guilt
    }
}

pub(crate) struct Oracle {
    child: Child,
    ask: Option<ChildStdin>,
    answer: BufReader<ChildStdout>,
}

impl Oracle {
    pub(crate) fn start() -> Oracle {
        let mut child = python()
            .arg("device_model.py")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 must be here: the oracle is written in it");
        let ask = child.stdin.take();
        let answer = BufReader::new(child.stdout.take().expect("it was piped"));
        Oracle { child, ask, answer }
    }

    /// What a fresh device does with these words.
    pub(crate) fn run(&mut self, device: Device, words: &[u32]) -> Deeds {
        let ask = self.ask.as_mut().expect("open until the end");
        let mut question = Vec::with_capacity(words.len() * 4 + 8);
        question.extend(device.idcode().to_be_bytes());
        let length = u32::try_from(words.len() * 4).expect("no test is so long");
        question.extend(length.to_be_bytes());
        for word in words {
            question.extend(word.to_be_bytes());
        }
        ask.write_all(&question).expect("the oracle listens");
        let mut line = String::new();
        self.answer
            .read_line(&mut line)
            .expect("the oracle answers");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("the oracle: {error}: {line}"))
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        drop(self.ask.take());
        drop(self.child.wait());
    }
}
