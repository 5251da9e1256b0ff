//! Processes of the product, started, watched and ended by a test.
//!
//! Knows how to start, wait and kill. Must not know what the processes do.
//! Each has a log file; every wait has a deadline; nothing outlives its owner.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::signal::unix::{SignalKind, signal};

/// How long anything may take to become ready, on a busy machine.
pub const READY_WITHIN: Duration = Duration::from_secs(20);

/// How often a condition is looked at that nothing announces.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A process that ends when it is dropped.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `command` and waits for the line `ready` on its standard output.
    /// Its standard error goes to `log`, appended.
    ///
    /// # Errors
    /// It cannot be started, ends, or is not ready in time; its log is told.
    pub fn start(name: &str, command: &mut Command, log: &Path) -> Result<Self> {
        let mut process = Self::spawn(name, command, log)?;
        let stdout = process.child.stdout.take().context("no standard output")?;
        let (sender, lines) = mpsc::channel();
        // Reads on for ever, so that the process never blocks on its own output.
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if line.trim() == "ready" && sender.send(()).is_err() {
                    // Nobody waits any more; go on reading.
                }
            }
        });
        if lines.recv_timeout(READY_WITHIN).is_ok() {
            return Ok(process);
        }
        let state = process.child.try_wait().ok().flatten();
        let end = state.map_or("still runs".to_owned(), |status| status.to_string());
        bail!(
            "{name} did not become ready ({end}); its log:\n{}",
            process.log_text()
        )
    }

    fn spawn(name: &str, command: &mut Command, log: &Path) -> Result<Self> {
        let file = File::options()
            .create(true)
            .append(true)
            .open(log)
            .context("its log")?;
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(file)
            .spawn()
            .with_context(|| format!("starting {name}: {command:?}"))?;
        Ok(Self {
            name: name.to_owned(),
            child,
            log: log.to_owned(),
        })
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it wrote to its standard error so far.
    #[must_use]
    pub fn log_text(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_else(|error| format!("(no log: {error})"))
    }

    /// Kills it at once (SIGKILL) and waits for its end.
    ///
    /// # Errors
    /// The system refuses.
    pub fn kill(&mut self) -> Result<ExitStatus> {
        self.child
            .kill()
            .with_context(|| format!("killing {}", self.name))?;
        self.child
            .wait()
            .with_context(|| format!("waiting for {}", self.name))
    }

    /// Asks it to end (SIGTERM) and waits.
    ///
    /// # Errors
    /// It does not end in time.
    pub fn stop(&mut self) -> Result<ExitStatus> {
        self.signal(rustix::process::Signal::TERM)?;
        let deadline = Deadline::within(READY_WITHIN);
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            deadline.check(|| format!("{} to end after SIGTERM", self.name))?;
        }
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// The system refuses.
    pub fn signal(&self, signal: rustix::process::Signal) -> Result<()> {
        let pid = i32::try_from(self.child.id())
            .ok()
            .and_then(rustix::process::Pid::from_raw);
        let pid = pid.context("its process id")?;
        rustix::process::kill_process(pid, signal)
            .with_context(|| format!("signalling {}", self.name))
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Already ended is fine, too.
        if self.child.kill().is_ok() && self.child.wait().is_err() {
            eprintln!("{} was not waited for", self.name);
        }
    }
}

/// A moment after which waiting ends with an error that tells for what.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    begin: Instant,
    within: Duration,
}

impl Deadline {
    /// From now on.
    #[must_use]
    pub fn within(within: Duration) -> Self {
        Self {
            begin: Instant::now(),
            within,
        }
    }

    /// Waits a moment, unless time is up.
    ///
    /// # Errors
    /// Time is up.
    pub fn check(&self, what: impl FnOnce() -> String) -> Result<()> {
        if TOLD_TO_END.load(Ordering::Relaxed) {
            bail!("interrupted while waiting for {}", what());
        }
        if self.begin.elapsed() > self.within {
            bail!("waited {:?} for {}", self.within, what());
        }
        std::thread::sleep(LOOK_EVERY);
        Ok(())
    }
}

/// Looks until `done` gives something.
///
/// # Errors
/// Nothing came within the time, or looking failed.
pub fn wait_for<T>(
    what: &str,
    within: Duration,
    mut done: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let deadline = Deadline::within(within);
    loop {
        if let Some(found) = done()? {
            return Ok(found);
        }
        deadline.check(|| what.to_owned())?;
    }
}

/// Runs a command to its end, with a deadline, and gives what it printed.
///
/// # Errors
/// It cannot be run, or does not end in time.
pub fn run(command: &mut Command, within: Duration) -> Result<Output> {
    run_with(command, Stdio::piped(), within)
}

/// As [`run`], with a place for its standard error.
///
/// # Errors
/// See [`run`].
pub fn run_with(command: &mut Command, stderr: Stdio, within: Duration) -> Result<Output> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(stderr)
        .spawn()
        .with_context(|| format!("running {command:?}"))?;
    let stdout = reader(child.stdout.take());
    let stderr = reader(child.stderr.take());
    let deadline = Deadline::within(within);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if let Err(late) = deadline.check(|| format!("{command:?}")) {
            child.kill()?;
            child.wait()?;
            return Err(late);
        }
    };
    Ok(Output {
        status,
        stdout: collect(stdout),
        stderr: collect(stderr),
    })
}

/// Set by SIGINT and SIGTERM once [`end_on_signals`] was called.
static TOLD_TO_END: AtomicBool = AtomicBool::new(false);

/// From now on SIGINT and SIGTERM end every wait with an error, so that what
/// was started is ended and removed on the way out.
pub fn end_on_signals() {
    std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let told: std::io::Result<()> = runtime.and_then(|runtime| {
            runtime.block_on(async {
                let mut terminate = signal(SignalKind::terminate())?;
                let mut interrupt = signal(SignalKind::interrupt())?;
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
                Ok(())
            })
        });
        match told {
            Ok(()) => TOLD_TO_END.store(true, Ordering::Relaxed),
            Err(error) => eprintln!("waiting for signals: {error}"),
        }
    });
}

/// Waits for SIGINT or SIGTERM; see [`end_on_signals`].
pub fn wait_for_signal() {
    while !TOLD_TO_END.swap(false, Ordering::Relaxed) {
        std::thread::sleep(LOOK_EVERY);
    }
}

type Reader = std::thread::JoinHandle<Vec<u8>>;

fn reader(pipe: Option<impl Read + Send + 'static>) -> Option<Reader> {
    pipe.map(|mut pipe| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Err(error) = pipe.read_to_end(&mut bytes) {
                eprintln!("reading a pipe: {error}");
            }
            bytes
        })
    })
}

fn collect(reader: Option<Reader>) -> Vec<u8> {
    reader
        .and_then(|thread| thread.join().ok())
        .unwrap_or_default()
}

/// The path of one of our programs: beside the running test or program, built
/// first where it is missing.
///
/// # Errors
/// It is not there and cannot be built.
pub fn program(name: &str) -> Result<PathBuf> {
    let mut dir = std::env::current_exe().context("where this program lies")?;
    dir.pop();
    if dir.file_name() == Some(OsStr::new("deps")) {
        dir.pop();
    }
    let path = dir.join(name);
    if !path.exists() {
        build_all(&dir)?;
    }
    anyhow::ensure!(
        path.exists(),
        "{} is not there; run `cargo build`",
        path.display()
    );
    Ok(path)
}

/// Builds every program of the workspace once, into the directory that this one came from.
fn build_all(dir: &Path) -> Result<()> {
    static ONCE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _one_at_a_time = ONCE.lock();
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--workspace", "--bins"]);
    if dir.file_name() == Some(OsStr::new("release")) {
        cargo.arg("--release");
    }
    if let Some(target) = dir.parent() {
        cargo.env("CARGO_TARGET_DIR", target);
    }
    let status = cargo
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
        .status()
        .context("cargo build")?;
    anyhow::ensure!(status.success(), "cargo build failed");
    Ok(())
}
