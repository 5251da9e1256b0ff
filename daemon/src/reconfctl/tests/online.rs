//! Against a `reconfd` that says what the test wants.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::thread::JoinHandle;

use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::admin::{AdminReply, AdminRequest};

const VM: &str = "8b6f1c0e-2a44-4e19-8f0d-112233445566";

/// Serves one connection: keeps the line that was asked, answers with `answer` as it is.
struct Reconfd {
    dir: TempDir,
    asked: JoinHandle<String>,
}

impl Reconfd {
    fn answering(answer: impl Into<Vec<u8>>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("admin.sock")).unwrap();
        let answer = answer.into();
        let asked = std::thread::spawn(move || {
            let (mut stream, _peer) = listener.accept().unwrap();
            let mut line = String::new();
            BufReader::new(stream.try_clone().unwrap())
                .read_line(&mut line)
                .unwrap();
            // The command may have gone away, having read all that it takes.
            let _sent = stream.write_all(&answer);
            line
        });
        Self { dir, asked }
    }

    fn saying(answer: &serde_json::Value) -> Self {
        Self::answering(format!("{answer}\n"))
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("admin.sock")
    }

    /// Runs the command; gives what it was asked as well.
    fn run(self, args: &[&str]) -> (Ran, AdminRequest) {
        let socket = self.socket();
        let ran = reconfctl(&[&["--socket", text(&socket)], args].concat());
        let line = self.asked.join().unwrap();
        assert!(line.ends_with('\n'));
        (ran, serde_json::from_str(&line).unwrap())
    }
}

fn status(healthy: bool) -> serde_json::Value {
    json!({ "ok": true, "status": {
        "healthy": healthy, "version": "0.1.0", "since": 5, "stopped": null,
        "list": { "version": 3, "expires": 99, "images": 2, "problem": null },
        "cards": [], "vms": 0, "sessions": 0, "jobs": 0,
        "alarms": [{ "what": "card0 is away", "next": "systemctl start reconf-card@0" }],
    }})
}

#[test]
fn status_is_a_page_or_the_object_as_it_came() {
    let (ran, asked) = Reconfd::saying(&status(false)).run(&["status"]);
    assert_eq!((ran.exit, asked), (Exit::Done, AdminRequest::Status {}));
    assert!(ran.out.starts_with("NOT healthy"));
    assert!(ran.out.contains("next: systemctl start reconf-card@0"));

    let mut object = status(true);
    object["status"]["a-later-field"] = json!(1);
    let (ran, _asked) = Reconfd::saying(&object).run(&["--json", "status"]);
    assert_eq!(
        ran.json(),
        object,
        "fields that this version does not know are passed on"
    );
}

#[test]
fn monitoring_gets_an_exit_code() {
    let (ran, _asked) = Reconfd::saying(&status(false)).run(&["status", "--check"]);
    assert_eq!(ran.exit, Exit::No);
    let (ran, _asked) = Reconfd::saying(&status(true)).run(&["status", "--check"]);
    assert_eq!(ran.exit, Exit::Done);
}

#[test]
fn each_command_asks_its_question() {
    let done = json!({ "ok": true, "done": "it is done" });
    let cases: [(&[&str], serde_json::Value); 11] = [
        (&["regions"], json!({ "do": "regions" })),
        (&["vms"], json!({ "do": "vms" })),
        (&["jobs"], json!({ "do": "jobs" })),
        (
            &["vm", "detach", VM],
            json!({ "do": "vm-detach", "vm": VM }),
        ),
        (
            &["explain", VM, "acme/aes:1.0", "--slot", "1"],
            json!({ "do": "explain", "vm": VM, "image": "acme/aes:1.0", "slot": 1 }),
        ),
        (&["audit"], json!({ "do": "audit", "last": 20 })),
        (
            &["audit", "--last", "3"],
            json!({ "do": "audit", "last": 3 }),
        ),
        (
            &["region", "scrub", "card0/left"],
            json!({ "do": "region-scrub", "region": "card0/left" }),
        ),
        (
            &["stop", "--reason", "fire"],
            json!({ "do": "stop", "reason": "fire" }),
        ),
        (&["resume"], json!({ "do": "resume" })),
        (&["reload"], json!({ "do": "reload" })),
    ];
    for (args, question) in cases {
        let (ran, asked) = Reconfd::saying(&done).run(args);
        assert_eq!(serde_json::to_value(asked).unwrap(), question, "{args:?}");
        assert_eq!(
            (ran.exit, ran.out.as_str()),
            (Exit::Done, "it is done\n"),
            "{args:?}"
        );
    }
}

fn attached() -> serde_json::Value {
    json!({ "ok": true, "attached": {
        "vm": VM, "name": "web-1", "tenant": "blue", "generation": "g1", "pid": 7,
        "slots": [{ "slot": 0, "region": "card0/left", "functions": ["pci:0000:3b:00.1"],
                    "guest_pci": "0000:00:05.0" }],
        "channel": { "mode": "listen", "path": "/run/reconf/vm/x" }, "channel_state": "waiting",
    }})
}

#[test]
fn attaching_says_all_that_was_given() {
    let (ran, asked) = Reconfd::saying(&attached()).run(&[
        "vm",
        "attach",
        VM,
        "--tenant",
        "blue",
        "--name",
        "web-1",
        "--pid",
        "7",
        "--function",
        "pci:0000:3b:00.1=0000:00:05.0",
        "--function",
        "vfio-user:/run/x.sock",
        "--connect",
        "/run/qemu/chan",
    ]);
    assert_eq!(ran.exit, Exit::Done, "{}", ran.err);
    for part in [
        "web-1",
        "blue",
        "slot 0",
        "card0/left",
        "0000:00:05.0",
        "pid 7",
    ] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    assert_eq!(
        serde_json::to_value(asked).unwrap(),
        json!({
            "do": "vm-attach", "vm": VM, "name": "web-1", "tenant": "blue", "pid": 7,
            "functions": [
                { "address": "pci:0000:3b:00.1", "guest_pci": "0000:00:05.0" },
                { "address": "vfio-user:/run/x.sock" },
            ],
            "channel": { "mode": "connect", "path": "/run/qemu/chan" },
        })
    );
}

#[test]
fn a_channel_is_listened_on_unless_said_otherwise() {
    let base = [
        "vm",
        "attach",
        VM,
        "--tenant",
        "blue",
        "--function",
        "pci:0000:3b:00.1",
    ];
    let here = std::env::current_dir().unwrap().join("chan");
    for (extra, channel) in [
        (&[][..], json!({ "mode": "listen" })),
        (&["--listen"], json!({ "mode": "listen" })),
        (
            &["--listen=/run/chan"],
            json!({ "mode": "listen", "path": "/run/chan" }),
        ),
        // reconfd has a working directory of its own.
        (
            &["--listen=chan"],
            json!({ "mode": "listen", "path": here }),
        ),
        (
            &["--connect", "chan"],
            json!({ "mode": "connect", "path": here }),
        ),
    ] {
        let (_ran, asked) = Reconfd::saying(&attached()).run(&[&base[..], extra].concat());
        assert_eq!(
            serde_json::to_value(asked).unwrap()["channel"],
            channel,
            "{extra:?}"
        );
    }
    let both = reconfctl(&[&base[..], &["--listen", "--connect", "/x"]].concat());
    assert_eq!(both.exit, Exit::Usage);
}

#[test]
fn what_cannot_be_an_address_is_not_even_asked() {
    for function in [
        "0000:3b:00.1",
        "pci:3b:00.1",
        "pci:0000:3b:00.1=00:05.0",
        "pci:0000:3B:00.1",
    ] {
        let ran = reconfctl(&[
            "--socket",
            "/nowhere",
            "vm",
            "attach",
            VM,
            "--tenant",
            "blue",
            "--function",
            function,
        ]);
        assert_eq!(ran.exit, Exit::Usage, "{function}");
        assert!(ran.err.contains(" next:"), "{function}: {}", ran.err);
    }
}

#[test]
fn a_refusal_is_told_with_what_comes_next() {
    let no = json!({ "ok": false, "error": "no region card0/x", "remedy": "reconfctl regions lists them" });
    let (ran, _asked) = Reconfd::saying(&no).run(&["region", "scrub", "card0/x"]);
    assert_eq!((ran.exit, ran.out.as_str()), (Exit::No, ""));
    assert_eq!(
        ran.err,
        "error: no region card0/x\n next: reconfctl regions lists them\n"
    );

    let (ran, _asked) = Reconfd::saying(&no).run(&["--json", "region", "scrub", "card0/x"]);
    assert_eq!((ran.exit, ran.json()), (Exit::No, no));
}

#[test]
fn no_reconfd_is_told_from_a_dead_one() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("admin.sock");
    let ran = reconfctl(&["--socket", text(&socket), "status"]);
    assert_eq!(ran.exit, Exit::Unreachable);
    assert!(ran.err.contains("there is no socket at") && ran.err.contains(text(&socket)));

    drop(UnixListener::bind(&socket).unwrap());
    let ran = reconfctl(&["--socket", text(&socket), "--json", "status"]);
    assert_eq!(ran.exit, Exit::Unreachable);
    assert_eq!(ran.json()["ok"], false);
    assert!(
        ran.json()["error"]
            .as_str()
            .unwrap()
            .contains("nobody listens")
    );

    let long = format!("/{}", "x".repeat(200));
    let ran = reconfctl(&["--socket", &long, "status"]);
    assert_eq!(ran.exit, Exit::Unreachable, "{}", ran.err);
}

#[test]
fn h3_a_stranger_is_told_which_group_it_takes() {
    // reconfd closes the connection of a peer that it does not accept.
    let (ran, _asked) = Reconfd::answering("").run(&["status"]);
    assert_eq!(ran.exit, Exit::NotPermitted);
    assert!(ran.err.contains("reconf-admin"), "{}", ran.err);
}

#[test]
fn h3_who_is_refused_unheard_still_learns_why() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("admin.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _peer) = listener.accept().unwrap();
        // Closed with the question unread.
        stream
            .write_all(b"{\"ok\":false,\"error\":\"you may not\",\"remedy\":\"join\"}\n")
            .unwrap();
    });
    let ran = reconfctl(&["--socket", text(&socket), "status"]);
    server.join().unwrap();
    assert_eq!(
        (ran.exit, ran.err.as_str()),
        (Exit::No, "error: you may not\n next: join\n")
    );
}

#[test]
fn waiting_has_an_end() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("admin.sock");
    // Takes connections into its queue and never looks at them.
    let _silent = UnixListener::bind(&socket).unwrap();
    let ran = reconfctl(&["--socket", text(&socket), "--timeout", "50ms", "status"]);
    assert_eq!(ran.exit, Exit::Unreachable);
    assert!(ran.err.contains("no answer in time"), "{}", ran.err);
}

#[test]
fn a_full_queue_of_connections_is_waited_for_and_given_up() {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen, socket};
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("admin.sock");
    let server = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
    bind(&server, &SocketAddrUnix::new(&path).unwrap()).unwrap();
    listen(&server, 0).unwrap();
    let _first = std::os::unix::net::UnixStream::connect(&path).unwrap();
    let ran = reconfctl(&["--socket", text(&path), "--timeout", "50ms", "status"]);
    assert_eq!(ran.exit, Exit::Unreachable);
    assert!(
        ran.err.contains("takes no connection in time"),
        "{}",
        ran.err
    );
}

#[test]
fn an_answer_that_makes_no_sense_is_told_as_that() {
    for (answer, exit) in [
        (&b"hello\n"[..], Exit::Unreachable),
        (b"{\"ok\":true}\n", Exit::Unreachable),
        (b"{\"ok\":true,\"a-later-body\":1}\n", Exit::Unreachable),
        (b"{\"done\":\"x\"}\n", Exit::Unreachable),
        (b"[]\n", Exit::Unreachable),
        (b"\xff\xfe\n", Exit::Unreachable),
        (b"\n", Exit::Unreachable),
        // It ends in the middle of a line.
        (b"{\"ok\":true,", Exit::NotPermitted),
    ] {
        let (ran, _asked) = Reconfd::answering(answer).run(&["status"]);
        assert_eq!(ran.exit, exit, "{answer:?}: {}", ran.err);
        assert!(ran.out.is_empty());
    }
}

#[test]
fn an_endless_answer_is_cut() {
    let (ran, _asked) = Reconfd::answering(vec![b'x'; 17 << 20]).run(&["audit"]);
    assert_eq!(ran.exit, Exit::Unreachable);
    assert!(ran.err.contains("longer than"), "{}", ran.err);
}

#[test]
fn a_request_beyond_what_reconfd_reads_is_not_sent() {
    let reason = "x".repeat(70_000);
    let ran = reconfctl(&["--socket", "/nowhere", "stop", "--reason", &reason]);
    assert_eq!(ran.exit, Exit::Usage);
}

#[test]
fn nothing_that_reconfd_passes_on_speaks_to_the_terminal() {
    let evil = json!({ "ok": false, "error": "a\u{1b}[2Jb", "remedy": "c\r\nd" });
    let (ran, _asked) = Reconfd::saying(&evil).run(&["status"]);
    assert_eq!(ran.err, "error: a [2Jb\n next: c  d\n");
}

#[test]
fn both_sides_write_the_same_shape() {
    // What reconfd's own types write is what this command reads.
    let reply = AdminReply::Ok {
        ok: true,
        body: crate::admin::AdminBody::Regions(Vec::new()),
    };
    let (ran, _asked) = Reconfd::saying(&serde_json::to_value(reply).unwrap()).run(&["regions"]);
    assert_eq!(ran.exit, Exit::Done, "{}", ran.err);
    assert!(ran.out.starts_with("no regions"));
}
