//! Servers that lie. A small one that answers rightly stands behind a function
//! that may change each answer before it is sent.

use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::os::unix::net::{UnixListener, UnixStream};

use proptest::prelude::*;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use super::*;

/// Answers up to the end of `open`: version, device, eight regions, five
/// interrupts, and the reads of configuration space.
const ANSWERS_TO_OPEN: usize = 17;

/// What becomes of an answer.
enum Act {
    Send(Vec<u8>),
    /// Byte by byte, slowly.
    Dribble(Vec<u8>),
    /// These bytes, and then the connection is closed.
    Close(Vec<u8>),
    /// Nothing more is ever sent.
    Hang,
}

fn short() -> Deadlines {
    Deadlines {
        connect: Duration::from_millis(60),
        answer: Duration::from_millis(60),
    }
}

/// Opens a device whose server passes its n-th answer through `change`.
fn open_with(
    mut change: impl FnMut(usize, Vec<u8>) -> Act + Send + 'static,
) -> Result<VfioUserDevice, DeviceError> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("hostile.sock");
    let listener = UnixListener::bind(&path).unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut number = 0;
        while let Some(answer) = right_answer(&mut stream) {
            if answer.is_empty() {
                continue;
            }
            match change(number, answer) {
                Act::Send(bytes) => drop(stream.write_all(&bytes)),
                Act::Dribble(bytes) => {
                    for byte in bytes {
                        drop(stream.write_all(&[byte]));
                        thread::sleep(Duration::from_millis(10));
                    }
                }
                Act::Close(bytes) => {
                    drop(stream.write_all(&bytes));
                    return;
                }
                Act::Hang => {
                    let mut sink = Vec::new();
                    drop(stream.read_to_end(&mut sink));
                    return;
                }
            }
            number += 1;
        }
    });
    let device = VfioUserDevice::open(&path, short());
    drop(directory);
    device
}

/// Reads a request and makes its answer; empty for a posted one.
fn right_answer(stream: &mut UnixStream) -> Option<Vec<u8>> {
    let mut header = [0; 16];
    stream.read_exact(&mut header).ok()?;
    let size = u32::from_le_bytes(header[4..8].try_into().unwrap()) as usize;
    let mut body = vec![0; size - 16];
    stream.read_exact(&mut body).ok()?;
    if header[8] & 0x10 != 0 {
        return Some(Vec::new());
    }
    let answer = match header[2] {
        1 => b"\0\0\x01\0{\"capabilities\":{\"max_data_xfer_size\":65536}}\0".to_vec(),
        4 => words(&[16, 3, 9, 5]),
        5 => {
            let size = if body[8] == 0 || body[8] == 7 {
                4096
            } else {
                0
            };
            words(&[32, 3, u32::from(body[8]), 0, size, 0, 0, 0])
        }
        7 => words(&[16, 1, u32::from(body[8]), 2]),
        9 => {
            let count = u32::from_le_bytes(body[12..16].try_into().unwrap());
            // No extended capabilities.
            let fill = if body[8] == 7 && body[1] != 0 {
                0
            } else {
                0x11
            };
            body.extend(std::iter::repeat_n(fill, count as usize));
            body
        }
        10 => body[..16].to_vec(),
        _ => Vec::new(),
    };
    Some(message(&header, 1, 0, &answer))
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn message(request: &[u8], flags: u32, errno: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = request[..4].to_vec();
    bytes.extend(words(&[16 + body.len() as u32, flags, errno]));
    bytes.extend_from_slice(body);
    bytes
}

#[test]
fn the_honest_server_behind_the_lies_is_understood() {
    let mut device = open_with(|_, answer| Act::Send(answer)).unwrap();
    assert_eq!(device.load64(Bar::ZERO, 0).unwrap(), 0x1111_1111_1111_1111);
    device.store64(Bar::ZERO, 8, 1).unwrap();
}

type Lie = fn(Vec<u8>) -> Act;

fn changed(mut bytes: Vec<u8>, at: usize, to: &[u8]) -> Act {
    bytes[at..at + to.len()].copy_from_slice(to);
    Act::Send(bytes)
}

/// Lies that no answer may get away with.
const LIES: [(&str, Lie); 12] = [
    ("another id", |bytes| changed(bytes, 0, &[0xee])),
    ("another command", |bytes| changed(bytes, 2, &[99])),
    ("a request instead", |bytes| changed(bytes, 8, &[0])),
    ("flags that nobody knows", |bytes| {
        changed(bytes, 8, &[1, 1])
    }),
    ("posted", |bytes| changed(bytes, 8, &[0x11])),
    ("shorter than its header", |bytes| {
        changed(bytes, 4, &[15, 0, 0, 0])
    }),
    ("longer than memory", |bytes| changed(bytes, 4, &[0xff; 4])),
    ("an error with a body", |bytes| changed(bytes, 8, &[0x21])),
    ("cut short, then silence", |bytes| {
        // Only the header, with its size still right.
        Act::Send(bytes[..16].to_vec())
    }),
    ("cut short, then closed", |bytes| {
        Act::Close(bytes[..20].to_vec())
    }),
    ("closed", |_| Act::Close(Vec::new())),
    ("silence", |_| Act::Hang),
];

#[test]
fn each_lie_in_each_answer_is_an_error_in_time() {
    for (name, lie) in LIES {
        for victim in 0..ANSWERS_TO_OPEN + 1 {
            let before = Instant::now();
            let device = open_with(move |number, answer| match number == victim {
                true => lie(answer),
                false => Act::Send(answer),
            });
            let error = match device {
                Err(error) => error,
                Ok(mut device) => {
                    let error = device.load64(Bar::ZERO, 0).expect_err(name);
                    let again = device.load64(Bar::ZERO, 0);
                    assert!(
                        matches!(again, Err(DeviceError::Gone(_))),
                        "{name}: no second try"
                    );
                    error
                }
            };
            let told = matches!(
                error,
                DeviceError::Protocol(_) | DeviceError::Timeout(_) | DeviceError::Gone(_)
            );
            assert!(told, "{name} in answer {victim}: {error}");
            assert!(
                before.elapsed() < Duration::from_secs(2),
                "{name} in answer {victim}"
            );
        }
    }
}

#[test]
fn g1_huge_length_allocates_nothing() {
    // The answer to a read of eight bytes claims to be of 4 GiB.
    let mut device = open_with(|number, answer| match number {
        ANSWERS_TO_OPEN.. => changed(answer, 4, &[0xff; 4]),
        _ => Act::Send(answer),
    })
    .unwrap();
    let error = device.load64(Bar::ZERO, 0).unwrap_err();
    assert!(matches!(error, DeviceError::Protocol(_)), "{error}");
    assert!(device.connection.room() < 64 << 10);
}

#[test]
fn a_dribbling_server_does_not_stretch_the_deadline() {
    let mut device = open_with(|number, answer| match number {
        ANSWERS_TO_OPEN.. => Act::Dribble(answer),
        _ => Act::Send(answer),
    })
    .unwrap();
    let before = Instant::now();
    let error = device.load64(Bar::ZERO, 0).unwrap_err();
    assert!(matches!(error, DeviceError::Timeout(_)), "{error}");
    assert!(before.elapsed() < Duration::from_secs(1));
}

#[test]
fn a_server_that_does_not_read_does_not_hold_us() {
    let mut device = open_with(|number, answer| match number {
        // Never reads again, and so never answers.
        ANSWERS_TO_OPEN.. => {
            thread::sleep(Duration::from_secs(1));
            Act::Hang
        }
        _ => Act::Send(answer),
    })
    .unwrap();
    let before = Instant::now();
    drop(device.load64(Bar::ZERO, 0));
    let error = device
        .store64_burst(Bar::ZERO, 0, &[0; 100_000])
        .unwrap_err();
    assert!(
        matches!(error, DeviceError::Timeout(_) | DeviceError::Gone(_)),
        "{error}"
    );
    assert!(before.elapsed() < Duration::from_secs(1));
}

#[test]
fn a_refused_posted_store_is_told_by_the_next_load() {
    let mut device = open_with(|number, answer| match number {
        ANSWERS_TO_OPEN => {
            // Before the answer to the load: the second store was refused.
            let mut refused = answer[..4].to_vec();
            refused[0] = refused[0].wrapping_sub(2);
            refused[2] = 10;
            let mut bytes = message(&refused, 0x21, 13, &[]);
            bytes.extend(answer);
            Act::Send(bytes)
        }
        _ => Act::Send(answer),
    })
    .unwrap();
    device.store64_burst(Bar::ZERO, 0, &[1, 2, 3]).unwrap();
    let error = device.load64(Bar::ZERO, 0).unwrap_err();
    assert!(
        matches!(error, DeviceError::Refused { errno: 13 }),
        "{error}"
    );
    // The connection is still in step.
    device.load64(Bar::ZERO, 0).unwrap();
}

#[test]
fn answers_of_the_right_form_and_the_wrong_content_are_refused() {
    // In the order of the answers: what is changed, and where.
    let lies: [(usize, usize, &[u8]); 8] = [
        (0, 16, &[1, 0]),     // major version 1
        (0, 18, &[2, 0]),     // minor version 2
        (0, 20, b"[1]"),      // no object
        (1, 20, &[1]),        // not a PCI device
        (1, 24, &[7]),        // no configuration space
        (2, 24, &[5]),        // another region
        (10, 24, &[9]),       // another interrupt
        (10, 28, &[0, 0, 1]), // 65536 vectors
    ];
    for (victim, at, to) in lies {
        let error = open_with(move |number, answer| match number == victim {
            true => changed(answer, at, to),
            false => Act::Send(answer),
        })
        .unwrap_err();
        assert!(
            matches!(error, DeviceError::Protocol(_)),
            "answer {victim}: {error}"
        );
    }
    // A device that is not there.
    let error = open_with(|number, answer| match number {
        15 => changed(answer, 32, &[0xff; 4]),
        _ => Act::Send(answer),
    })
    .unwrap_err();
    assert!(matches!(error, DeviceError::Gone(_)), "{error}");
}

#[test]
fn only_files_that_cannot_shrink_are_mapped() {
    for sealed in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mapped.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let flags = rustix::fs::MemfdFlags::ALLOW_SEALING;
            let file = rustix::fs::memfd_create("bar", flags).unwrap();
            rustix::fs::ftruncate(&file, 4096).unwrap();
            if sealed {
                rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK).unwrap();
            }
            let mut number = 0;
            while let Some(mut answer) = right_answer(&mut stream) {
                if number == 2 {
                    // BAR 0: mappable, and its file comes along.
                    answer[20] |= 4;
                    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
                    let mut control = SendAncillaryBuffer::new(&mut space);
                    let files = [file.as_fd()];
                    assert!(control.push(SendAncillaryMessage::ScmRights(&files)));
                    let parts = [io::IoSlice::new(&answer)];
                    sendmsg(&stream, &parts, &mut control, SendFlags::empty()).unwrap();
                } else {
                    stream.write_all(&answer).unwrap();
                }
                number += 1;
            }
            file
        });
        let mut device = VfioUserDevice::open(&path, short()).unwrap();
        let map = device.map(Bar::ZERO, 0, 4096);
        if !sealed {
            assert!(matches!(map, Err(DeviceError::NotMappable)));
            continue;
        }
        let mut map = map.unwrap();
        map.store64(8, 0x0102_0304_0506_0708).unwrap();
        assert_eq!(map.load64(8).unwrap(), 0x0102_0304_0506_0708);
        assert!(matches!(
            map.load64(4096),
            Err(DeviceError::OutOfRange { .. })
        ));
        assert!(matches!(
            map.load64(u64::MAX - 7),
            Err(DeviceError::OutOfRange { .. })
        ));
        assert!(matches!(
            map.store64(4, 0),
            Err(DeviceError::Unaligned { .. })
        ));
        assert!(matches!(
            device.map(Bar::ZERO, 0, 0),
            Err(DeviceError::NotMappable)
        ));
        drop((device, map));
        let mut bytes = [0; 16];
        let file = server.join().unwrap();
        assert_eq!(rustix::io::pread(&file, &mut bytes, 0).unwrap(), 16);
        assert_eq!(bytes[8..], [8, 7, 6, 5, 4, 3, 2, 1]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Any byte of any answer changed, in any way: an error or not, but in
    /// time and without a panic.
    #[test]
    fn changed_answers_never_hang_or_panic(
        victim in 0..ANSWERS_TO_OPEN + 1,
        at in any::<prop::sample::Index>(),
        bytes in proptest::collection::vec(any::<u8>(), 1..9),
    ) {
        let before = Instant::now();
        let device = open_with(move |number, mut answer| {
            if number == victim {
                let at = at.index(answer.len());
                for (to, from) in answer.iter_mut().skip(at).zip(&bytes) {
                    *to = *from;
                }
            }
            Act::Send(answer)
        });
        if let Ok(mut device) = device {
            drop(device.load64(Bar::ZERO, 0));
        }
        prop_assert!(before.elapsed() < Duration::from_secs(2));
    }

    #[test]
    fn bytes_of_any_kind_are_read_as_answers(
        data in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        crate::fuzz::vfio_user_reply(&data);
    }
}
