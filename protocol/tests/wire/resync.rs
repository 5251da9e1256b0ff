//! Sessions that begin behind whatever a dead process left.

use proptest::prelude::*;
use reconf_protocol::handshake::{JUNK_BUDGET, MINOR};
use reconf_protocol::header::MAGIC;
use reconf_protocol::kind::MAX_CONTROL_BODY;
use reconf_protocol::message::{Ping, Welcome};
use reconf_protocol::{
    FrameError, HostHandshake, HostStep, Kind, Request, Scanned, Scanner, encode,
};

use crate::make::{Counting, Seen, confirm, frames, hello, ping, scan, shared};
use crate::scanner::{SESSION, debris, frame_of};

/// A session in which the guest waits for each answer before it goes on, as
/// live guests do: nothing more arrives until the host has understood.
fn session_follows(scanner: &mut Scanner, handshake: &mut HostHandshake) -> bool {
    let mut fresh = Counting(100);
    let mut host_nonce = None;
    let mut bytes = hello([9; 16]);
    let mut input = bytes.as_slice();
    while let Some(found) = scanner.next(&mut input) {
        if let Scanned::Frame(frame) = found
            && let HostStep::Welcome(welcome) = handshake.on_frame(&frame, &mut fresh)
        {
            assert_eq!(welcome.guest_nonce, [9; 16]);
            host_nonce = Some(welcome.host_nonce);
        }
    }
    let Some(host_nonce) = host_nonce else {
        return false;
    };
    bytes = confirm(host_nonce);
    let mut input = bytes.as_slice();
    let mut opened = None;
    while let Some(found) = scanner.next(&mut input) {
        if let Scanned::Frame(frame) = found
            && let HostStep::Opened(session) = handshake.on_frame(&frame, &mut fresh)
        {
            opened = Some(session);
        }
    }
    let Some(session) = opened else { return false };
    bytes = ping(session.id.get(), 1);
    let mut input = bytes.as_slice();
    while let Some(found) = scanner.next(&mut input) {
        if let Scanned::Frame(frame) = found {
            return handshake.on_frame(&frame, &mut fresh) == HostStep::Request(session)
                && Request::from_frame(&frame) == Ok(Request::Ping(Ping { payload: 1 }));
        }
    }
    false
}

#[test]
fn g4_half_a_frame_of_every_length_before_a_new_session() {
    let dead = [
        hello([1; 16]),
        confirm([2; 16]),
        ping(SESSION, 3),
        frame_of(Kind::LOAD, &[0x55; MAX_CONTROL_BODY]),
        // A dead body full of the beginnings of magic.
        frame_of(Kind::LOAD, &b"RRCRCNRCNx".repeat(100)),
    ];
    for frame in dead {
        for length in 0..frame.len() {
            let mut scanner = Scanner::host();
            let mut handshake = HostHandshake::new(MINOR);
            scan(&mut scanner, &frame[..length], &[]);
            assert!(
                session_follows(&mut scanner, &mut handshake),
                "after {length} bytes"
            );
        }
    }
}

#[test]
fn g4_a_dead_tail_that_equals_the_magic_costs_one_hello() {
    // The one case that no receiver can tell: what the dead frame lacks is
    // what the hello begins with. Guests send their hello again.
    for lacking in 1..=4 {
        let dead = frame_of(
            Kind::LOAD,
            &[b"ends like a magic: ", &MAGIC[..lacking]].concat(),
        );
        let mut scanner = Scanner::host();
        let mut handshake = HostHandshake::new(MINOR);
        scan(&mut scanner, &dead[..dead.len() - lacking], &[]);
        assert!(!session_follows(&mut scanner, &mut handshake));
        assert!(session_follows(&mut scanner, &mut handshake));
    }
}

#[test]
fn g4_half_a_frame_within_a_live_session_before_a_new_one() {
    // No end-of-file tells the host that the guest rebooted.
    let frame = frame_of(Kind::LOAD, &[0x55; 300]);
    for length in 0..frame.len() {
        let mut scanner = Scanner::host();
        let mut handshake = HostHandshake::new(MINOR);
        assert!(session_follows(&mut scanner, &mut handshake));
        let first = handshake.session();
        scan(&mut scanner, &frame[..length], &[]);
        assert!(
            session_follows(&mut scanner, &mut handshake),
            "after {length} bytes"
        );
        assert_ne!(handshake.session(), first);
    }
}

#[test]
fn g4_a_welcome_ends_a_dead_reply_at_the_guest() {
    let welcome = Welcome {
        guest_nonce: [1; 16],
        host_nonce: [2; 16],
        minor: 0,
    };
    let welcome = encode(Kind::WELCOME, 0, 0, &welcome).unwrap();
    let dead = frame_of(Kind::LIST.reply(), &[0x55; 1000]);
    for length in 0..dead.len() {
        let seen = scan(
            &mut Scanner::guest(),
            &[&dead[..length], &welcome].concat(),
            &[],
        );
        assert_eq!(frames(&seen), [Kind::WELCOME], "after {length} bytes");
    }
}

#[test]
fn vser_01_a_flood_of_junk_is_drained_and_the_request_after_it_found() {
    let mut scanner = Scanner::host();
    let mut handshake = HostHandshake::new(MINOR);
    let zeros = vec![0_u8; 1 << 20];
    let mut overruns = 0;
    let mut broken = 0;
    for _ in 0..64 {
        let seen = scan(&mut scanner, &zeros, &[]);
        broken += seen.len();
        if handshake.on_discarded(scanner.take_discarded()) == HostStep::Overrun {
            overruns += 1;
        }
    }
    assert_eq!(broken, 1, "one loss of place is one error");
    assert_eq!(overruns, 64, "but it does not stay free of charge");
    assert!(session_follows(&mut scanner, &mut handshake));
    assert!(u64::try_from(zeros.len()).unwrap() > JUNK_BUDGET);
}

#[test]
fn vser_03_noise_and_stale_bytes_before_a_session() {
    for file in ["cases/VSER-03/binary-noise.bin", "cases/VSER-03/stale.bin"] {
        let Some(noise) = shared(file) else { return };
        let mut scanner = Scanner::host();
        let mut handshake = HostHandshake::new(MINOR);
        let seen = scan(&mut scanner, &noise, &[]);
        assert_eq!(seen, [Seen::Broken(FrameError::BadMagic)], "{file}");
        assert!(session_follows(&mut scanner, &mut handshake), "{file}");
    }
}

#[test]
fn vs_05_every_prefix_of_another_protocol_is_survived() {
    let Some(line) = shared("cases/VS-05/long.bin") else {
        return;
    };
    for length in 0..line.len().min(64) {
        let mut scanner = Scanner::host();
        let mut handshake = HostHandshake::new(MINOR);
        scan(&mut scanner, &line[..length], &[]);
        assert!(session_follows(&mut scanner, &mut handshake));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_session_opens_after_any_debris(parts in proptest::collection::vec(debris(), 0..12)) {
        let mut scanner = Scanner::host();
        let mut handshake = HostHandshake::new(MINOR);
        scan(&mut scanner, &parts.concat(), &[]);
        prop_assert!(session_follows(&mut scanner, &mut handshake));
    }
}
