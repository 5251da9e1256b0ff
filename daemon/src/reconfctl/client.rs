//! One question to `reconfd`, one answer: a JSON object a line, over the admin socket.
//!
//! Every wait ends at one deadline, and the answer has a bound. Knows the socket; must
//! not know what the question means.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::exit::{Exit, Failure};
use crate::admin::{AdminBody, AdminReply, AdminRequest, MAX_LINE};

/// The longest answer that is read, in bytes: the whole audit trail is asked for in parts.
const MAX_ANSWER: usize = 16 * 1024 * 1024;

/// Between two tries to connect to a `reconfd` whose queue of connections is full.
const RETRY: Duration = Duration::from_millis(20);

/// A good answer: the line as it came, and what it says.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) line: String,
    pub(super) body: AdminBody,
}

/// Asks `request` at `socket` and waits for the answer, `timeout` in all.
pub(super) fn ask(
    socket: &Path,
    request: &AdminRequest,
    timeout: Duration,
) -> Result<Answer, Failure> {
    let question = encode(request)?;
    let deadline = Deadline::after(timeout);
    let stream = connect(socket, deadline).map_err(|error| unreachable(socket, &error))?;
    let line = exchange(&stream, &question, deadline).map_err(|error| silent(socket, &error))?;
    decode(line)
}

fn encode(request: &AdminRequest) -> Result<Vec<u8>, Failure> {
    let mut line = serde_json::to_vec(request)
        .map_err(|error| Failure::new(Exit::Usage, format!("not sayable: {error}"), ""))?;
    line.push(b'\n');
    if line.len() > MAX_LINE {
        let error = format!(
            "the request is {} bytes long; reconfd reads {MAX_LINE}",
            line.len()
        );
        return Err(Failure::new(Exit::Usage, error, "say it shorter"));
    }
    Ok(line)
}

/// Reads an answer line: refused, or a body.
pub(super) fn decode(line: Vec<u8>) -> Result<Answer, Failure> {
    let strange = |detail: String| {
        Failure::new(
            Exit::Unreachable,
            format!("the answer cannot be understood: {detail}"),
            "use the reconfctl of the same version as reconfd; `reconfctl --version`",
        )
    };
    let line = String::from_utf8(line).map_err(|error| strange(error.to_string()))?;
    // The two shapes are told apart by "ok" alone, so that a body that this version does
    // not know is reported as that.
    let value: serde_json::Value =
        serde_json::from_str(&line).map_err(|error| strange(error.to_string()))?;
    match value.get("ok").and_then(serde_json::Value::as_bool) {
        Some(true) | None => {}
        Some(false) => {
            let text = |key: &str| {
                let text = value.get(key).and_then(serde_json::Value::as_str);
                text.unwrap_or_default().to_owned()
            };
            return Err(Failure::new(Exit::No, text("error"), text("remedy")));
        }
    }
    match serde_json::from_value(value).map_err(|error| strange(error.to_string()))? {
        AdminReply::Ok { ok: true, body } => Ok(Answer { line, body }),
        AdminReply::Ok { .. } | AdminReply::Error { .. } => Err(strange("no \"ok\"".to_owned())),
    }
}

/// When all waiting ends.
#[derive(Debug, Clone, Copy)]
struct Deadline(Instant);

impl Deadline {
    fn after(timeout: Duration) -> Self {
        let now = Instant::now();
        // A timeout beyond what the clock can count is as good as a year.
        let year = Duration::from_secs(365 * 86_400);
        Self(now.checked_add(timeout.min(year)).unwrap_or(now))
    }

    /// What is left; an error when nothing is.
    fn left(self) -> io::Result<Duration> {
        let left = self.0.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(left)
    }
}

/// Connects without ever hanging in the system call: a full queue is tried again.
fn connect(path: &Path, deadline: Deadline) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    loop {
        match rustix::net::connect(&socket, &address) {
            Ok(()) => break,
            Err(Errno::AGAIN | Errno::INTR) => std::thread::sleep(RETRY.min(deadline.left()?)),
            Err(errno) => return Err(errno.into()),
        }
    }
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

fn exchange(stream: &UnixStream, question: &[u8], deadline: Deadline) -> io::Result<Vec<u8>> {
    stream.set_write_timeout(Some(deadline.left()?))?;
    match (&*stream).write_all(question) {
        // A peer that is refused is told so before it has spoken: the answer may be there.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        other => other?,
    }

    let mut line = Vec::new();
    let mut chunk = [0u8; 8192];
    loop {
        stream.set_read_timeout(Some(deadline.left()?))?;
        let count = match (&*stream).read(&mut chunk) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let read = chunk.get(..count).unwrap_or_default();
        if read.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let end = read.iter().position(|byte| *byte == b'\n');
        line.extend_from_slice(read.get(..end.unwrap_or(count)).unwrap_or_default());
        if line.len() > MAX_ANSWER {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        if end.is_some() {
            return Ok(line);
        }
    }
}

/// Why no connection came about.
fn unreachable(socket: &Path, error: &io::Error) -> Failure {
    let at = socket.display();
    match error.kind() {
        io::ErrorKind::NotFound => Failure::new(
            Exit::Unreachable,
            format!("reconfd is not running: there is no socket at {at}"),
            "start it: systemctl start reconfd; or name its socket with --socket",
        ),
        io::ErrorKind::ConnectionRefused => Failure::new(
            Exit::Unreachable,
            format!("reconfd is not running: nobody listens at {at}"),
            "see why: systemctl status reconfd",
        ),
        io::ErrorKind::PermissionDenied => Failure::new(
            Exit::NotPermitted,
            format!("you may not open {at}"),
            "be root, or a member of group reconf-admin (log in again after you joined)",
        ),
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Failure::new(
            Exit::Unreachable,
            format!("reconfd at {at} takes no connection in time"),
            "see what keeps it: systemctl status reconfd; or wait longer with --timeout",
        ),
        _ => Failure::new(
            Exit::Unreachable,
            format!("cannot connect to {at}: {error}"),
            "name reconfd's admin socket with --socket",
        ),
    }
}

/// Why no answer came over a connection that stood.
fn silent(socket: &Path, error: &io::Error) -> Failure {
    let at = socket.display();
    match error.kind() {
        // A peer that reconfd does not accept is closed unread.
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::ConnectionReset => Failure::new(
            Exit::NotPermitted,
            format!("reconfd at {at} closed the connection without an answer"),
            "be root, or a member of group reconf-admin; if you are, see its log: journalctl -u reconfd",
        ),
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Failure::new(
            Exit::Unreachable,
            format!("reconfd at {at} gave no answer in time; what was asked may still happen"),
            "look with `reconfctl status`; or wait longer with --timeout",
        ),
        io::ErrorKind::FileTooLarge => Failure::new(
            Exit::Unreachable,
            format!("the answer is longer than {MAX_ANSWER} bytes"),
            "ask for less",
        ),
        _ => Failure::new(Exit::Unreachable, format!("{at}: {error}"), "try again"),
    }
}
