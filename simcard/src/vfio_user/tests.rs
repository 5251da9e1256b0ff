//! The session, fed by hand: good clients, strange ones, and noise.
#![expect(
    clippy::arithmetic_side_effects,
    reason = "a test may stop at an overflow"
)]

use std::cell::RefCell;

use proptest::prelude::*;

use super::session::{Device, Next, Region, Session};

/// Sixteen bytes of memory as BAR0, and a log.
#[derive(Default)]
struct Memory {
    bytes: RefCell<[u8; 16]>,
    resets: RefCell<u32>,
}

impl Device for Memory {
    fn size(&self, region: Region) -> u64 {
        match region {
            Region::Bar0 => 16,
            Region::Config => 4096,
        }
    }

    fn read(&self, region: Region, offset: u64, out: &mut [u8]) {
        if region == Region::Bar0 {
            let at = usize::try_from(offset).unwrap();
            out.copy_from_slice(&self.bytes.borrow()[at..at + out.len()]);
        }
    }

    fn write(&self, region: Region, offset: u64, bytes: &[u8]) {
        if region == Region::Bar0 {
            let at = usize::try_from(offset).unwrap();
            self.bytes.borrow_mut()[at..at + bytes.len()].copy_from_slice(bytes);
        }
    }

    fn reset(&self) {
        *self.resets.borrow_mut() += 1;
    }
}

const POSTED: u32 = 1 << 4;

fn message(command: u16, flags: u32, body: &[u8]) -> Vec<u8> {
    let size = u32::try_from(16 + body.len()).unwrap();
    [
        &7u16.to_le_bytes()[..],
        &command.to_le_bytes(),
        &size.to_le_bytes(),
    ]
    .concat()
    .into_iter()
    .chain(flags.to_le_bytes())
    .chain([0; 4])
    .chain(body.iter().copied())
    .collect()
}

fn access(offset: u64, region: u32, count: u32, data: &[u8]) -> Vec<u8> {
    [
        &offset.to_le_bytes()[..],
        &region.to_le_bytes(),
        &count.to_le_bytes(),
        data,
    ]
    .concat()
}

fn version() -> Vec<u8> {
    message(1, 0, b"\0\0\x01\0{\"capabilities\":{}}\0")
}

/// A session that has agreed on the version.
fn agreed(device: &Memory) -> Session {
    let mut session = Session::new();
    let mut out = Vec::new();
    session.feed(&version(), &mut out, device);
    assert_eq!(out[8..16], [1, 0, 0, 0, 0, 0, 0, 0]);
    session
}

/// The replies to a message that does not end the session, as error numbers.
fn ask(session: &mut Session, device: &Memory, message: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let next = session.feed(message, &mut out, device);
    assert_eq!(
        next,
        Next::More {
            used: message.len(),
            wanted: 16
        }
    );
    out
}

fn error_of(reply: &[u8]) -> u32 {
    assert_eq!(reply[8] & 0xf, 1);
    u32::from_le_bytes(reply[12..16].try_into().unwrap())
}

#[test]
fn version_is_agreed_on_with_and_without_capabilities() {
    for text in [
        &b""[..],
        b"{}\0",
        b"{\"capabilities\":{\"max_msg_fds\":8,\"x\":1}}\0",
    ] {
        let mut out = Vec::new();
        let body = [&[0, 0, 0, 0][..], text].concat();
        let next = Session::new().feed(&message(1, 0, &body), &mut out, &Memory::default());
        assert!(matches!(next, Next::More { .. }));
        assert_eq!(error_of(&out), 0);
        assert_eq!(out[16..20], [0, 0, 0, 0]);
        let text = out[20..].strip_suffix(&[0]).unwrap();
        let value: serde_json::Value = serde_json::from_slice(text).unwrap();
        assert_eq!(value["capabilities"]["max_data_xfer_size"], 1_048_576);
    }
}

/// Each of these made a known server panic or lose its step.
#[test]
fn a_bad_version_ends_the_session_with_one_error() {
    for body in [
        &b""[..],
        b"\0\0",
        b"\0\0\0\0{}",
        b"\0\0\0\0\0",
        b"\0\0\0\0{\0",
        b"\x09\0\0\0",
    ] {
        let mut out = Vec::new();
        let next = Session::new().feed(&message(1, 0, body), &mut out, &Memory::default());
        assert_eq!(
            (next, out.len(), error_of(&out)),
            (Next::HangUp, 16, 22),
            "{body:?}"
        );
    }
}

#[test]
fn version_comes_first_and_once() {
    let device = Memory::default();
    let mut out = Vec::new();
    assert_eq!(
        Session::new().feed(&message(13, 0, &[]), &mut out, &device),
        Next::HangUp
    );
    let mut session = agreed(&device);
    assert_eq!(session.feed(&version(), &mut out, &device), Next::HangUp);
    assert_eq!(*device.resets.borrow(), 0);
}

#[test]
fn sizes_that_cannot_be_end_the_session_before_anything_is_held() {
    for (command, size) in [
        (9u16, 15u32),
        (9, 0),
        (10, u32::MAX),
        (10, (1 << 20) + 33),
        (1, 4097),
    ] {
        let device = Memory::default();
        let mut session = agreed(&device);
        let mut header = message(command, 0, &[]);
        header[4..8].copy_from_slice(&size.to_le_bytes());
        let mut out = Vec::new();
        assert_eq!(
            session.feed(&header, &mut out, &device),
            Next::HangUp,
            "{size}"
        );
        assert_eq!(error_of(&out), 22);
    }
}

#[test]
fn registers_are_written_and_read() {
    let device = Memory::default();
    let mut session = agreed(&device);
    let written = ask(
        &mut session,
        &device,
        &message(10, 0, &access(8, 0, 4, b"abcd")),
    );
    assert_eq!(written.len(), 32);
    let read = ask(&mut session, &device, &message(9, 0, &access(8, 0, 8, &[])));
    assert_eq!(read[32..], *b"abcd\0\0\0\0");
    assert_eq!(read[..2], [7, 0]);
}

#[test]
fn posted_writes_are_never_answered_not_even_bad_ones() {
    let device = Memory::default();
    let mut session = agreed(&device);
    for body in [
        access(0, 0, 2, b"xy"),
        access(99, 0, 2, b"xy"),
        access(0, 0, 3, b"xy"),
        vec![1],
    ] {
        assert!(ask(&mut session, &device, &message(10, POSTED, &body)).is_empty());
    }
    assert!(ask(&mut session, &device, &message(99, POSTED, &[])).is_empty());
    assert_eq!(device.bytes.borrow()[..3], *b"xy\0");
}

#[test]
fn bad_accesses_get_one_error_and_the_session_goes_on() {
    let device = Memory::default();
    let mut session = agreed(&device);
    for (bad, errno) in [
        (message(9, 0, &access(9, 0, 8, &[])), 22),
        (message(9, 0, &access(u64::MAX, 0, 8, &[])), 22),
        (message(9, 0, &access(0, 1, 8, &[])), 22),
        (message(9, 0, &access(0, 0, 0xffff_fff0, &[])), 7),
        (message(9, 0, &[0; 15]), 22),
        (message(10, 0, &access(0, 0, 9, b"short")), 22),
        (message(10, 0, &access(12, 0, 5, b"12345")), 22),
        (message(8, 0, &[0; 19]), 22),
        (message(7, 0, &[255; 16]), 22),
        (message(5, 0, &access(0, 9, 0, &[])[..12]), 22),
        (message(2, 0, &[0; 8]), 22),
        (message(6, 0, &[]), 95),
        (message(0xffff, 0, b"what"), 95),
    ] {
        let reply = ask(&mut session, &device, &bad);
        assert_eq!((reply.len(), error_of(&reply)), (16, errno), "{bad:?}");
    }
    let reply = ask(&mut session, &device, &message(9, 0, &access(0, 0, 1, &[])));
    assert_eq!(reply.len(), 33);
}

#[test]
fn the_device_tells_its_shape() {
    let device = Memory::default();
    let mut session = agreed(&device);
    let words = |reply: &[u8]| -> Vec<u32> {
        reply[16..]
            .chunks(4)
            .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
            .collect()
    };
    let info = ask(&mut session, &device, &message(4, 0, &[0; 16]));
    assert_eq!(words(&info), [16, 3, 9, 5]);
    for (index, flags, size) in [(0u32, 3, 16), (7, 3, 4096), (1, 0, 0), (8, 0, 0)] {
        let body = [
            [32, 0, index, 0].map(u32::to_le_bytes).concat(),
            vec![0; 16],
        ]
        .concat();
        let info = ask(&mut session, &device, &message(5, 0, &body));
        assert_eq!(words(&info), [32, flags, index, 0, size, 0, 0, 0]);
    }
    for index in 0..5u32 {
        let body = [16, 0, index, 0].map(u32::to_le_bytes).concat();
        assert_eq!(
            words(&ask(&mut session, &device, &message(7, 0, &body))),
            [16, 0, index, 0]
        );
        let off = [20, 0x21, index, 0, 0].map(u32::to_le_bytes).concat();
        assert_eq!(
            error_of(&ask(&mut session, &device, &message(8, 0, &off))),
            0
        );
    }
}

#[test]
fn dma_and_reset_are_answered() {
    let device = Memory::default();
    let mut session = agreed(&device);
    assert_eq!(
        ask(&mut session, &device, &message(2, 0, &[0; 32])).len(),
        16
    );
    let unmapped = ask(&mut session, &device, &message(3, 0, &[9; 24]));
    assert_eq!(unmapped[16..], [9; 24]);
    assert_eq!(ask(&mut session, &device, &message(13, 0, &[])).len(), 16);
    assert_eq!(*device.resets.borrow(), 1);
}

/// A client that asks much and reads nothing makes us hold one portion only.
#[test]
fn replies_are_held_in_portions() {
    let device = Memory::default();
    let mut session = agreed(&device);
    let one = message(9, 0, &access(0, 7, 4096, &[]));
    let many = one.repeat(1000);
    let mut out = Vec::new();
    let Next::Full { used } = session.feed(&many, &mut out, &device) else {
        panic!("all at once");
    };
    assert!(out.len() < (256 << 10) + 4096 + 32);
    assert_eq!(used / one.len(), out.len() / (4096 + 32));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// However a stream is cut, the same comes of it.
    #[test]
    fn cuts_do_not_matter(cut in 0usize..400) {
        let stream = [
            version(),
            message(10, POSTED, &access(0, 0, 8, b"12345678")),
            message(9, 0, &access(4, 0, 4, &[])),
            message(99, 0, b"?"),
            message(13, 0, &[]),
        ].concat();
        let cut = cut % stream.len();
        let device = Memory::default();
        let mut whole = Vec::new();
        Session::new().feed(&stream, &mut whole, &device);

        let mut session = Session::new();
        let mut out = Vec::new();
        let Next::More { used, wanted } = session.feed(&stream[..cut], &mut out, &device) else {
            panic!("hung up");
        };
        prop_assert!(wanted > cut - used);
        session.feed(&stream[used..], &mut out, &device);
        prop_assert_eq!(out, whole);
    }

    #[test]
    fn noise_never_panics(mut noise in prop::collection::vec(any::<u8>(), 0..200), honest: bool) {
        let device = Memory::default();
        let mut session = if honest { agreed(&device) } else { Session::new() };
        if honest && noise.len() > 12 {
            // A header that can be, so that the body is looked at.
            let size = u32::try_from(noise.len()).unwrap();
            noise[2] %= 15;
            noise[3] = 0;
            noise[4..8].copy_from_slice(&size.to_le_bytes());
            noise[8] &= 0x10;
        }
        let mut out = Vec::new();
        session.feed(&noise, &mut out, &device);
        prop_assert!(out.len() < 64 << 10);
    }
}
