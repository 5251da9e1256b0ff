//! The card as its users have it: the binary, its sockets, a raw client of our own.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test may stop anywhere"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use reconf_simcard::{functions, payload};
use uuid::Uuid;

const INTERFACE: Uuid = Uuid::from_u128(0x6d1f_0a3c_94be_4c27_8a15_5e0f_77c2_b9d4);
const PATIENCE: Duration = Duration::from_secs(10);

const CTRL: u64 = 0x3008;
const DATA: u64 = 0x3018;
const ERR: u64 = 0x3020;
const PORT_CTRL: u64 = 0x10038;
const PORT_OFST: u64 = 0x38;

fn command(dir: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reconf-simcard"));
    command
        .arg("--dir")
        .arg(dir)
        .args(["--serial", "12ab", "--interface-id"]);
    command
        .arg(INTERFACE.to_string())
        .args(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// A card in a process of its own, killed at the end.
struct Process {
    child: Child,
    dir: tempfile::TempDir,
}

impl Process {
    fn start(more: &[&str]) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), more)
    }

    fn start_in(dir: tempfile::TempDir, more: &[&str]) -> Self {
        let mut child = command(dir.path(), more).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert_eq!(line, "ready\n");
        Self { child, dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn kill(mut self) -> tempfile::TempDir {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let empty = tempfile::tempdir().unwrap();
        std::mem::replace(&mut self.dir, empty)
    }

    fn ask(&self, line: &str) -> serde_json::Value {
        let mut stream = connect(&self.path("card0.ctl"));
        writeln!(stream, "{line}").unwrap();
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.child.try_wait().unwrap().is_none() {
            self.child.kill().unwrap();
            self.child.wait().unwrap();
        }
    }
}

fn connect(path: &Path) -> UnixStream {
    let stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn message(command: u16, flags: u32, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(&1u16.to_le_bytes());
    out.extend_from_slice(&command.to_le_bytes());
    out.extend_from_slice(&u32::try_from(16 + body.len()).unwrap().to_le_bytes());
    out.extend_from_slice(&flags.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(body);
    out
}

fn store(at: u64, value: u64) -> Vec<u8> {
    let count = 8u32;
    let mut body = at.to_le_bytes().to_vec();
    body.extend_from_slice(&0u32.to_le_bytes());
    body.extend_from_slice(&count.to_le_bytes());
    body.extend_from_slice(&value.to_le_bytes());
    message(10, 1 << 4, &body)
}

/// A vfio-user client that knows just enough.
struct Client(UnixStream);

impl Client {
    fn new(path: &Path) -> Self {
        let mut client = Self(connect(path));
        client
            .0
            .write_all(&message(1, 0, b"\0\0\0\0{\"capabilities\":{}}\0"))
            .unwrap();
        client.reply();
        client
    }

    fn reply(&mut self) -> Vec<u8> {
        let mut header = [0; 16];
        self.0.read_exact(&mut header).unwrap();
        assert_eq!(header[8], 1, "an error reply");
        let size = u32::from_le_bytes(header[4..8].try_into().unwrap());
        let mut body = vec![0; usize::try_from(size).unwrap() - 16];
        self.0.read_exact(&mut body).unwrap();
        body
    }

    fn w(&mut self, at: u64, value: u64) {
        self.0.write_all(&store(at, value)).unwrap();
    }

    fn r(&mut self, at: u64) -> u64 {
        let (region, count) = (0u32, 8u32);
        let body = [
            &at.to_le_bytes()[..],
            &region.to_le_bytes(),
            &count.to_le_bytes(),
        ]
        .concat();
        self.0.write_all(&message(9, 0, &body)).unwrap();
        u64::from_le_bytes(self.reply()[16..24].try_into().unwrap())
    }

    fn program(&mut self, payload: &[u8]) -> u64 {
        self.w(PORT_CTRL, 5);
        self.w(CTRL, 1);
        self.w(ERR, 0x1f);
        self.w(CTRL, 0);
        self.w(CTRL, 1 << 12);
        let words = payload
            .chunks(4)
            .map(|word| u32::from_le_bytes(word.try_into().unwrap()));
        let batch: Vec<u8> = words
            .flat_map(|word| store(DATA, u64::from(word)))
            .collect();
        self.0.write_all(&batch).unwrap();
        self.w(CTRL, 1 << 13);
        assert_eq!(self.r(CTRL), 0);
        self.r(ERR)
    }
}

fn image(len: usize) -> Vec<u8> {
    payload::build(INTERFACE, functions::ADDER, len, 1)
}

#[test]
fn a_driver_programs_and_a_guest_uses() {
    let process = Process::start(&[]);
    let mut host = Client::new(&process.path("card0.sock"));
    let mut guest = Client::new(&process.path("card0-vf0.sock"));
    assert_eq!(guest.r(0), u64::MAX);
    assert_eq!(host.program(&image(100_000)), 0);
    host.w(PORT_CTRL, 4);
    host.w(PORT_OFST, 1 << 55);
    assert_eq!(host.r(PORT_OFST) >> 55 & 1, 1);

    guest.w(0x10040, 40);
    guest.w(0x10048, 2);
    assert_eq!(guest.r(0x10050), 42);
    let state = &process.ask(r#"{"get":"state"}"#)["state"];
    assert_eq!(state["serial"], "00000000000012ab");
    assert_eq!(state["regions"][0]["name"], "adder");
    assert_eq!(state["regions"][0]["access"], "guest");
    assert_eq!(state["regions"][0]["user"]["connected"], true);
    assert_eq!(state["regions"][1]["user"]["connected"], false);
}

#[test]
fn state_outlives_clients_and_clients_are_counted() {
    let process = Process::start(&[]);
    let path = process.path("card0.sock");
    assert_eq!(Client::new(&path).program(&image(10)), 0);
    for _ in 0..3 {
        assert_eq!(Client::new(&path).r(PORT_CTRL), 0x15);
    }
    let stats = &process.ask(r#"{"get":"stats"}"#)["stats"];
    assert_eq!(stats["management"]["connections"], 4);
    assert_eq!(stats["management"]["resets"], 0);
    assert_eq!(stats["regions"][0]["pr_successes"], 1);
}

#[test]
fn posted_writes_of_a_client_that_dies_still_arrive() {
    let process = Process::start(&[]);
    let path = process.path("card0.sock");
    Client::new(&path).w(PORT_CTRL, 5);
    assert_eq!(Client::new(&path).r(PORT_CTRL), 0x15);
}

#[test]
fn reset_on_close_resets() {
    let process = Process::start(&["--reset-on-close"]);
    let path = process.path("card0.sock");
    assert_eq!(Client::new(&path).program(&image(10)), 0);
    let mut next = Client::new(&path);
    assert_eq!(next.r(PORT_CTRL), 4);
    let stats = &process.ask(r#"{"get":"stats"}"#)["stats"];
    assert_eq!(stats["management"]["resets"], 1);
}

#[test]
fn strange_clients_do_not_take_the_card_away() {
    let process = Process::start(&[]);
    let path = process.path("card0.sock");
    let huge = {
        let mut header = message(10, 0, &[]);
        header[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        header
    };
    for nonsense in [
        &b"GET / HTTP/1.0\r\n\r\n"[..],
        &[0xff; 64],
        &[0; 64],
        &huge,
        &[1, 0, 1],
    ] {
        let mut stream = connect(&path);
        stream.write_all(nonsense).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut rest = Vec::new();
        // The card may hang up before it has taken everything.
        let _end = stream.read_to_end(&mut rest);
        assert!(rest.len() <= 16);
    }
    let mut client = Client::new(&path);
    assert_eq!(client.program(&image(10)), 0);
}

#[test]
fn faults_are_told_over_the_control_socket() {
    let process = Process::start(&[]);
    let answer = process.ask(r#"{"fault":"pr-error","bits":["protocol"],"region":0}"#);
    assert_eq!(answer["ok"], true);
    let mut host = Client::new(&process.path("card0.sock"));
    assert_eq!(host.program(&image(10)), 8);
    assert_eq!(host.program(&image(10)), 0);
    assert_eq!(process.ask("nonsense")["ok"], false);
}

#[test]
fn control_lines_have_an_end() {
    let process = Process::start(&[]);
    let mut stream = connect(&process.path("card0.ctl"));
    stream.write_all(&[b'x'; 5000]).unwrap();
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).unwrap();
    assert!(answer.contains("too long"));
    assert_eq!(process.ask(r#"{"do":"power-cycle"}"#)["ok"], true);
}

#[test]
fn a_table_makes_foreign_payloads_known() {
    let dir = tempfile::tempdir().unwrap();
    let table = dir.path().join("table");
    let digest: String = reconf_simcard::padded_digest(&[0x5a])
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    std::fs::write(&table, format!("{digest} {}\n", functions::BLANK)).unwrap();
    let process = Process::start(&["--table", table.to_str().unwrap()]);
    let mut host = Client::new(&process.path("card0.sock"));
    assert_eq!(host.program(&[0x5a, 0, 0, 0]), 0);
    assert_eq!(
        process.ask(r#"{"get":"state"}"#)["state"]["regions"][0]["name"],
        "blank"
    );
}

#[test]
fn two_cards_lie_side_by_side() {
    let dir = tempfile::tempdir().unwrap();
    let first = Process::start(&[]);
    let second = Process::start_in(dir, &["--name", "card1"]);
    let mut host = Client::new(&second.path("card1.sock"));
    assert_eq!(host.program(&image(10)), 0);
    assert_eq!(
        first.ask(r#"{"get":"stats"}"#)["stats"]["regions"][0]["pr_starts"],
        0
    );
}

fn refused(dir: &Path, more: &[&str]) -> Output {
    let output = command(dir, more).output().unwrap();
    assert!(!output.status.success());
    assert!(output.stdout.is_empty());
    output
}

#[test]
fn stale_sockets_are_replaced_and_nothing_else_is() {
    let dir = Process::start(&[]).kill();
    assert!(dir.path().join("card0.sock").exists());
    let process = Process::start_in(dir, &[]);
    assert_eq!(Client::new(&process.path("card0.sock")).r(CTRL), 0);

    let text = String::from_utf8(refused(process.dir.path(), &[]).stderr).unwrap();
    assert!(text.contains("another process listens"), "{text}");

    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("card0.ctl"), "precious").unwrap();
    let text = String::from_utf8(refused(dir.path(), &[]).stderr).unwrap();
    assert!(text.contains("not a socket"), "{text}");
    assert_eq!(
        std::fs::read(dir.path().join("card0.ctl")).unwrap(),
        b"precious"
    );
}

#[test]
fn a_card_in_process_stops_and_leaves_nothing() {
    use reconf_simcard::{Card, Config, Sockets, serve};

    let dir = tempfile::tempdir().unwrap();
    let sockets = Sockets::in_dir(dir.path(), "here");
    let card = Card::new(Config::new(1, INTERFACE));
    let handle = serve(card, sockets.clone()).unwrap();
    let mut host = Client::new(&sockets.management);
    assert_eq!(host.program(&image(10)), 0);
    assert_eq!(handle.card().stats().regions[0].pr_successes, 1);
    handle.stop();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    // Its place is free again.
    drop(UnixListener::bind(&sockets.management).unwrap());
}

fn amd(dir: &Path, more: &[&str]) -> Command {
    let table = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../bitstream/geometry/series7.txt"
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_reconf-simcard"));
    command.arg("--dir").arg(dir).args(["--serial", "12ab"]);
    command.args(["--shape", "hwicap", "--geometry", table]);
    command.args(more);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn an_amd_card_is_served_with_its_geometry() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = amd(dir.path(), &["--device", "xc7z020"]).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "ready\n");
    let process = Process { child, dir };
    let mut host = Client::new(&process.path("card0.sock"));
    // Status, and the vacancy of the write FIFO beside it.
    assert_eq!(host.r(0x10110), 0x100_0000_0125);
    host.w(0x20000, 1);
    assert_eq!(host.r(0x20000), 1);
    let mut guest = Client::new(&process.path("card0-vf0.sock"));
    assert_eq!(guest.r(0x10000), u64::MAX);
    let state = process.ask(r#"{"get":"state"}"#);
    assert_eq!(state["state"]["device"], "xc7z020");
    assert_eq!(process.ask(r#"{"get":"frames"}"#)["frames"]["frames"], 0);
}

#[test]
fn an_amd_card_needs_a_device_that_the_table_has() {
    let dir = tempfile::tempdir().unwrap();
    for (more, word) in [
        (&[][..], "--device"),
        (&["--device", "xc7none"], "xc7none"),
        (
            &["--device", "xc7z020", "--interface-id", "x"],
            "interface-id",
        ),
    ] {
        let output = amd(dir.path(), more).output().unwrap();
        assert!(!output.status.success());
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains(word), "{text}");
    }
}
