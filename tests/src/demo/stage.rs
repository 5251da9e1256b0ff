//! Where the story is told: shows each command as a person would type it, and
//! what it printed; keeps both for `--json`.

use std::io::{IsTerminal, Stdout, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use serde::Serialize;
use serde_json::{Value, json};

use crate::process;
use crate::world::{Ran, World};

/// No command of the story takes longer.
const COMMAND_WITHIN: Duration = Duration::from_secs(30);

/// How the story is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// For people.
    Story,
    /// One object a step.
    Json,
}

/// The teller.
#[derive(Debug)]
pub(super) struct Stage {
    form: Form,
    terminal: Terminal,
    number: u32,
    shown: Vec<Value>,
    begin: Instant,
}

/// A step, for `--json`.
#[derive(Debug, Serialize)]
struct Line<'a> {
    step: u32,
    what: &'a str,
    ok: bool,
    ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    shown: &'a [Value],
}

/// What the standard output can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Terminal {
    Plain,
    Colours,
}

impl Stage {
    pub(super) fn new(form: Form) -> Self {
        let colours = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Self {
            form,
            terminal: if colours {
                Terminal::Colours
            } else {
                Terminal::Plain
            },
            number: 0,
            shown: Vec::new(),
            begin: Instant::now(),
        }
    }

    /// Tells and plays one step; `false` if it was not as told.
    pub(super) fn step(
        &mut self,
        what: &str,
        why: &str,
        play: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<bool> {
        self.number = self.number.saturating_add(1);
        self.shown.clear();
        if self.form == Form::Story {
            let title = self.paint("1", &format!("{}. {what}", self.number));
            writeln!(out(), "\n{title}\n{}\n", wrap(why))?;
        }
        let begin = Instant::now();
        let played = play(self);
        if self.form == Form::Json {
            let line = Line {
                step: self.number,
                what,
                ok: played.is_ok(),
                ms: u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX),
                error: played.as_ref().err().map(|error| format!("{error:#}")),
                shown: &self.shown,
            };
            let line = serde_json::to_string(&line)?;
            writeln!(out(), "{line}")?;
        } else if let Err(error) = &played {
            let mark = self.paint("31", "not as told:");
            writeln!(out(), "   {mark} {error:#}")?;
        } else {
            let mark = self.paint("32", "as told");
            writeln!(out(), "   {mark}")?;
        }
        Ok(played.is_ok())
    }

    pub(super) fn finish(&self, good: bool) -> Result<()> {
        if self.form == Form::Story {
            let seconds = self.begin.elapsed().as_secs_f64();
            let (colour, word) = if good {
                ("32", "all as told")
            } else {
                ("31", "NOT as told")
            };
            let word = self.paint(colour, word);
            writeln!(out(), "\n{} steps, {word}, {seconds:.1} s", self.number)?;
        }
        Ok(())
    }

    /// A remark of the teller.
    pub(super) fn say(&mut self, text: &str) -> Result<()> {
        if self.form == Form::Story {
            writeln!(out(), "   {}", self.paint("2", text))?;
        }
        self.shown.push(json!({ "says": text }));
        Ok(())
    }

    /// Types `reconf …` in a VM, and shows what comes.
    pub(super) fn guest(&mut self, world: &World, vm: usize, args: &[&str]) -> Result<Ran> {
        let name = world.vm(vm)?.setup.name;
        let line = format!("{name}$ reconf {}", args.join(" "));
        self.run(&line, world.guest_command(vm, args)?)
    }

    /// Types `reconfctl …` on the host, and shows what comes.
    pub(super) fn operator(&mut self, world: &World, args: &[&str]) -> Result<Ran> {
        let line = format!("host# reconfctl {}", args.join(" "));
        self.run(&line, world.operator_command(args)?)
    }

    fn run(&mut self, line: &str, mut command: Command) -> Result<Ran> {
        if self.form == Form::Story {
            writeln!(out(), "   {}", self.paint("36", line))?;
            out().flush()?;
        }
        // On a terminal the real progress bar is worth more than a copy of its lines.
        let live = self.form == Form::Story
            && std::io::stdout().is_terminal()
            && std::io::stderr().is_terminal();
        let errors = if live {
            Stdio::inherit()
        } else {
            Stdio::piped()
        };
        let output = process::run_with(&mut command, errors, COMMAND_WITHIN)?;
        let ran = Ran {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        };
        if self.form == Form::Story {
            for text in ran.stderr.lines().chain(ran.stdout.lines()) {
                writeln!(out(), "   {text}")?;
            }
        }
        self.shown.push(json!({
            "command": line,
            "exit": ran.code,
            "stdout": ran.stdout,
            "stderr": ran.stderr,
        }));
        Ok(ran)
    }

    fn paint(&self, code: &str, text: &str) -> String {
        match self.terminal {
            Terminal::Colours => format!("\x1b[{code}m{text}\x1b[0m"),
            Terminal::Plain => text.to_owned(),
        }
    }
}

/// Where the story goes.
pub(super) fn out() -> Stdout {
    std::io::stdout()
}

/// Insists on an exit code.
pub(super) fn expect_exit(ran: &Ran, code: i32) -> Result<()> {
    if ran.code != code {
        bail!(
            "exit code {}, not {code}: {}{}",
            ran.code,
            ran.stdout,
            ran.stderr
        );
    }
    Ok(())
}

/// Insists that an object holds these values at these places (JSON pointers).
pub(super) fn expect(object: &Value, wanted: &[(&str, Value)]) -> Result<()> {
    for (pointer, value) in wanted {
        let found = object.pointer(pointer).unwrap_or(&Value::Null);
        ensure!(
            found == value,
            "{pointer} is {found}, not {value}, in {object}"
        );
    }
    Ok(())
}

/// Breaks a sentence into lines of a readable length, indented.
fn wrap(text: &str) -> String {
    let mut lines = vec![String::from("  ")];
    for word in text.split_whitespace() {
        if let Some(last) = lines.last_mut()
            && last.len().saturating_add(word.len()) < 78
        {
            last.push(' ');
            last.push_str(word);
            continue;
        }
        lines.push(format!("   {word}"));
    }
    lines.join("\n")
}
