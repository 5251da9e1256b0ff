//! Round trips through a session, one at a time: what frames, checksums and
//! the daemon's loop cost.
//!
//! The yardstick is an echo of the same bytes over a socket pair, answered by
//! a thread that does nothing else.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use protocol::message::Ping;
use protocol::{Reply, Request};

use super::host::{self, Bench};
use super::report::{Report, part, ratio};

/// How many are measured.
const ROUNDS: u32 = 20_000;
/// No answer takes longer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Measures pings and echoes.
pub(super) fn measure(report: &mut Report) -> Result<()> {
    let world = host::start(&Bench {
        rate: "instant",
        images: vec!["bench/only:1"],
        bytes: 4096,
        vms: 1,
    })?;
    let mut guest = host::guest(&world, 0)?;
    let mut length = 0;
    let begin = Instant::now();
    for number in 0..ROUNDS {
        let payload = u64::from(number);
        let request = Request::Ping(Ping { payload });
        length = request.to_frame(1, 1)?.len();
        let reply = guest.ask(&request)?;
        ensure!(
            matches!(&reply, Reply::Ping(pong) if pong.payload == payload),
            "a ping was answered with {reply:?}"
        );
    }
    let pings = part(begin.elapsed(), ROUNDS);
    let echoes = echo(length)?;
    let each = |took: Duration| format!("{:.0} /s", 1.0 / took.as_secs_f64());
    report.figure(&format!("bare echoes of {length} bytes"), &each(echoes));
    report.figure("pings through a session", &each(pings));
    report.figure(
        "a ping, in times of an echo",
        &format!("{:.2} ×", ratio(pings, echoes)),
    );
    Ok(())
}

/// One echo of `length` bytes, on average.
fn echo(length: usize) -> Result<Duration> {
    let (mut near, mut far) = UnixStream::pair()?;
    for end in [&near, &far] {
        end.set_read_timeout(Some(PATIENCE))?;
        end.set_write_timeout(Some(PATIENCE))?;
    }
    let answering = std::thread::spawn(move || {
        let mut bytes = vec![0; length];
        // Ends with the other end.
        while far.read_exact(&mut bytes).is_ok() && far.write_all(&bytes).is_ok() {}
    });
    let mut bytes = vec![0x5a; length];
    let begin = Instant::now();
    for _round in 0..ROUNDS {
        near.write_all(&bytes)?;
        near.read_exact(&mut bytes)?;
    }
    let took = part(begin.elapsed(), ROUNDS);
    drop(near);
    ensure!(answering.join().is_ok(), "the echo failed");
    Ok(took)
}
