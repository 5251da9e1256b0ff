//! G1: no length that a peer states makes a receiver hold more than it must.
//!
//! Alone in its program, and one test in it: the allocator counts for all.

use peak_alloc::PeakAlloc;
use reconf_protocol::handshake::MINOR;
use reconf_protocol::message::{Hello, Slot, Watch};
use reconf_protocol::{
    Fresh, Header, HostHandshake, Kind, Nonce, Reply, Request, Scanned, Scanner, encode,
};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Bytes that a control channel may cost beside what its caller holds.
const MOST: usize = 8 * 1024;

/// What `work` held at its peak.
fn peak_of(work: impl FnOnce()) -> usize {
    ALLOCATOR.reset_peak_usage();
    let before = ALLOCATOR.current_usage();
    work();
    ALLOCATOR.peak_usage().saturating_sub(before)
}

fn frame_of(kind: Kind, body: &[u8]) -> Vec<u8> {
    // A body here is at most a few thousand bytes.
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
    let body_crc = crc32c::crc32c(body);
    let header = Header {
        kind,
        session: 0,
        sequence: 1,
        length,
        body_crc,
    };
    [&header.to_bytes()[..], body].concat()
}

struct Zeros;

impl Fresh for Zeros {
    fn nonce(&mut self) -> Nonce {
        [0; 16]
    }

    fn session_id(&mut self) -> u64 {
        1
    }
}

/// A host reads all of it, as if every frame were of the session.
fn host_reads(mut stream: &[u8]) {
    let mut scanner = Scanner::host();
    let mut handshake = HostHandshake::new(MINOR);
    while let Some(found) = scanner.next(&mut stream) {
        if let Scanned::Frame(frame) = found {
            drop((
                handshake.on_frame(&frame, &mut Zeros),
                Request::from_frame(&frame),
            ));
        }
    }
}

#[test]
fn g1_huge_length_allocates_nothing() {
    // The frame's own length.
    for length in [0, 1, 4096, 4097, 1 << 31, u32::MAX] {
        let header = Header {
            kind: Kind::LOAD,
            session: 0,
            sequence: 1,
            length,
            body_crc: 0,
        };
        let stream = [&header.to_bytes()[..], &[0xFF; 5000]].concat();
        let peak = peak_of(|| host_reads(&stream));
        assert!(peak <= MOST, "a frame of {length} bytes costs {peak}");
    }

    // The length of a text inside a body that fits.
    for length in [
        0,
        1,
        900,
        1024,
        4000,
        4067,
        4096,
        1 << 31,
        u64::MAX / 2,
        u64::MAX,
    ] {
        let mut body = vec![0; 4096];
        body[21..29].copy_from_slice(&length.to_le_bytes());
        let stream = frame_of(Kind::LOAD, &body);
        let peak = peak_of(|| host_reads(&stream));
        assert!(peak <= MOST, "a text of {length} bytes costs {peak}");
    }

    // The length of a list that a guest reads: bounded, if not as tightly.
    for kind in [Kind::LIST, Kind::DESCRIBE, Kind::WATCH].map(Kind::reply) {
        for length in [0, 40, 400, 4000, 1 << 31, u64::MAX / 2, u64::MAX] {
            let mut body = vec![0; 4096];
            body[..8].copy_from_slice(&length.to_le_bytes());
            let stream = frame_of(kind, &body);
            let peak = peak_of(|| {
                let mut scanner = Scanner::guest();
                if let Some(Scanned::Frame(frame)) = scanner.next(&mut stream.as_slice()) {
                    drop(Reply::from_frame(&frame));
                }
            });
            assert!(peak <= 80 * 1024, "a list of {length} items costs {peak}");
        }
    }

    // A channel on which nobody spoke costs nothing; one that was used does
    // not grow.
    let peak = peak_of(|| drop((Scanner::host(), HostHandshake::new(MINOR))));
    assert_eq!(peak, 0);
    let hello = encode(
        Kind::HELLO,
        0,
        0,
        &Hello {
            nonce: [1; 16],
            minor: 0,
        },
    )
    .unwrap();
    let watch = Request::Watch(Watch {
        slot: Some(Slot(1)),
    })
    .to_frame(1, 1)
    .unwrap();
    let stream = [
        hello,
        watch,
        vec![b'R'; 9000],
        frame_of(Kind::LIST, &[0; 4096]),
    ]
    .concat();
    let stream = stream.repeat(20);
    let peak = peak_of(|| host_reads(&stream));
    assert!(peak <= MOST, "a long stream costs {peak}");
}
