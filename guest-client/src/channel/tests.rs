//! Finding and opening, against real sockets, pseudo terminals and files.

use std::path::PathBuf;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

fn search(candidates: &[PathBuf], ports: &Path) -> Places {
    Places::among(candidates.to_vec(), ports.to_path_buf())
}

async fn refusal(places: &Places) -> Error {
    match places.open().await {
        Ok(_) => panic!("opened"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn the_first_place_that_opens_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("guest.sock");
    let listener = tokio::net::UnixListener::bind(&socket).unwrap();
    let mut stream = search(&[dir.path().join("absent"), socket], dir.path())
        .open()
        .await
        .unwrap();
    let (mut host, _) = listener.accept().await.unwrap();
    stream.write_all(b"hello").await.unwrap();
    let mut five = [0; 5];
    host.read_exact(&mut five).await.unwrap();
    assert_eq!(&five, b"hello");
}

#[tokio::test]
async fn vser_07_a_search_that_finds_nothing_tells_which_ports_there_are() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("org.qemu.guest_agent.0"), "").unwrap();
    let error = refusal(&search(&[dir.path().join("org.reconf.0")], dir.path())).await;
    let told = error.to_string();
    assert!(matches!(error, Error::NoChannel(_)), "{told}");
    assert!(told.contains("org.reconf.0: not there"), "{told}");
    assert!(told.contains("org.qemu.guest_agent.0"), "{told}");
}

#[tokio::test]
async fn a_dead_agent_is_told_when_there_is_no_port_either() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("guest.sock");
    drop(tokio::net::UnixListener::bind(&socket).unwrap());
    let error = refusal(&search(
        &[socket.clone(), dir.path().join("absent")],
        dir.path(),
    ))
    .await;
    assert!(
        matches!(&error, Error::Open { path, source }
            if *path == socket && source.kind() == io::ErrorKind::ConnectionRefused),
        "{error}"
    );
}

#[tokio::test]
async fn only_sockets_and_character_devices_are_channels() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    for path in [file.as_path(), dir.path()] {
        let error = refusal(&Places::named(path)).await;
        assert!(matches!(error, Error::NotAChannel { .. }), "{error}");
    }
    // A character device that cannot be polled is refused when it is opened.
    let error = refusal(&Places::named("/dev/zero")).await;
    assert!(matches!(error, Error::Open { .. }), "{error}");
}

/// A pseudo terminal is the nearest thing to a virtio port that any machine has.
fn terminal() -> Option<(std::os::fd::OwnedFd, PathBuf)> {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).ok()?;
    grantpt(&master).ok()?;
    unlockpt(&master).ok()?;
    let name = ptsname(&master, Vec::new()).ok()?;
    let mut raw = rustix::termios::tcgetattr(&master).ok()?;
    raw.make_raw();
    rustix::termios::tcsetattr(&master, rustix::termios::OptionalActions::Now, &raw).ok()?;
    Some((master, PathBuf::from(name.into_string().ok()?)))
}

#[tokio::test]
async fn vser_02_a_character_device_is_driven_without_blocking() {
    let Some((master, path)) = terminal() else {
        eprintln!("SKIPPED: no pseudo terminals here");
        return;
    };
    let mut port = Places::named(path).open().await.unwrap();

    port.write_all(b"to the host").await.unwrap();
    let mut seen = [0; 64];
    let n = rustix::io::read(&master, &mut seen).unwrap();
    assert_eq!(&seen[..n], b"to the host");

    // Nothing to read: the deadline is kept, the thread is not.
    let read = tokio::time::timeout(Duration::from_millis(30), port.read(&mut seen)).await;
    assert!(read.is_err(), "nothing was sent and something was read");

    rustix::io::write(&master, b"to the guest").unwrap();
    let n = port.read(&mut seen).await.unwrap();
    assert_eq!(&seen[..n], b"to the guest");
}

/// Nobody reads at the other end: the terminal's buffer fills, writes get
/// `EAGAIN`, and the writer's deadline still ends the wait.
#[tokio::test]
async fn vser_01_a_host_that_does_not_read_costs_a_deadline_and_no_thread() {
    let Some((_master, path)) = terminal() else {
        eprintln!("SKIPPED: no pseudo terminals here");
        return;
    };
    let mut port = Places::named(path).open().await.unwrap();
    let flood = vec![0_u8; 1 << 20];
    let write = tokio::time::timeout(Duration::from_millis(150), port.write_all(&flood)).await;
    assert!(write.is_err(), "a megabyte fitted into a terminal");
}
