//! The stand-in for QEMU's character device behaves as the real one was measured to.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use reconf_tests::process::{Process, READY_WITHIN};

struct Port {
    _process: Process,
    host: PathBuf,
    guest: PathBuf,
    _dir: tempfile::TempDir,
}

fn listening() -> Result<Port> {
    let dir = tempfile::tempdir()?;
    let (host, guest) = (dir.path().join("host"), dir.path().join("guest"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_reconf-chardev"));
    command
        .arg("--listen")
        .arg(&host)
        .arg("--guest")
        .arg(&guest);
    let process = Process::start("chardev", &mut command, &dir.path().join("log"))?;
    Ok(Port {
        _process: process,
        host,
        guest,
        _dir: dir,
    })
}

fn open(path: &PathBuf) -> Result<UnixStream> {
    let stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(READY_WITHIN))?;
    stream.set_write_timeout(Some(READY_WITHIN))?;
    Ok(stream)
}

fn read_exactly(stream: &mut UnixStream, len: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// A guest that is let in: what it writes arrives. Whoever had the port open
/// before has closed it, so nobody is turned away.
fn open_guest(port: &Port, host: &mut UnixStream) -> Result<UnixStream> {
    let mut guest = open(&port.guest)?;
    guest.write_all(b"?")?;
    ensure!(read_exactly(host, 1)? == b"?");
    Ok(guest)
}

#[test]
fn a_guest_comes_and_goes_without_the_host_seeing_it() -> Result<()> {
    let port = listening()?;
    let mut host = open(&port.host)?;
    for round in 0_u8..3 {
        let mut guest = open_guest(&port, &mut host)?;
        guest.write_all(&[round])?;
        ensure!(read_exactly(&mut host, 1)? == [round]);
    }
    host.set_read_timeout(Some(Duration::from_millis(50)))?;
    let nothing = host.read(&mut [0; 1]);
    ensure!(
        matches!(&nothing, Err(e) if e.kind() == ErrorKind::WouldBlock),
        "{nothing:?}"
    );
    Ok(())
}

#[test]
fn bytes_for_a_closed_port_go_to_the_next_opener() -> Result<()> {
    let port = listening()?;
    let mut host = open(&port.host)?;
    drop(open_guest(&port, &mut host)?);
    host.write_all(b"stale")?;
    let mut guest = open_guest(&port, &mut host)?;
    ensure!(read_exactly(&mut guest, 5)? == b"stale");
    Ok(())
}

#[test]
fn a_second_opener_is_turned_away() -> Result<()> {
    let port = listening()?;
    let mut host = open(&port.host)?;
    let mut first = open_guest(&port, &mut host)?;
    let mut second = open(&port.guest)?;
    ensure!(
        second.read(&mut [0; 1])? == 0,
        "the second opener was let in"
    );
    first.write_all(b"a")?;
    ensure!(read_exactly(&mut host, 1)? == b"a");
    Ok(())
}

#[test]
fn what_a_guest_wrote_arrives_after_it_closed() -> Result<()> {
    let port = listening()?;
    let mut host = open(&port.host)?;
    let mut guest = open_guest(&port, &mut host)?;
    let sent = vec![7; 300_000];
    guest.write_all(&sent)?;
    drop(guest);
    ensure!(read_exactly(&mut host, sent.len())? == sent);
    Ok(())
}

#[test]
fn as_a_client_it_connects_again() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (host, guest) = (dir.path().join("host"), dir.path().join("guest"));
    let listener = UnixListener::bind(&host)?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_reconf-chardev"));
    command
        .arg("--connect")
        .arg(&host)
        .arg("--guest")
        .arg(&guest);
    let _process = Process::start("chardev", &mut command, &dir.path().join("log"))?;
    let mut port = open(&guest)?;
    for round in 0_u8..3 {
        let (mut host, _) = listener.accept()?;
        host.write_all(&[round])?;
        ensure!(
            read_exactly(&mut port, 1)? == [round],
            "the guest notices nothing"
        );
    }
    Ok(())
}
