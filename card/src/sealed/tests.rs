#![expect(
    clippy::cast_possible_truncation,
    reason = "a test may fail where a number does not fit"
)]

use std::io::Write;

use rustix::fs::ftruncate;
use rustix::pipe::pipe;

use super::*;

fn memfd(seals: SealFlags) -> OwnedFd {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = memfd_create("test", flags).unwrap();
    write(&file, b"abc").unwrap();
    fcntl_add_seals(&file, seals).unwrap();
    file
}

#[test]
fn what_went_in_is_what_is_mapped() {
    let bytes: Vec<u8> = (0..300_000u32).map(|at| at as u8).collect();
    let sealed = SealedMemfd::from_reader(bytes.as_slice(), 300_000).unwrap();
    assert_eq!(sealed.length(), 300_000);
    assert_eq!(*sealed.map().unwrap(), bytes[..]);
    let again = SealedMemfd::adopt(OwnedFd::from(sealed.try_clone().unwrap())).unwrap();
    drop(sealed);
    assert_eq!(*again.map().unwrap(), bytes[..]);
}

#[test]
fn an_empty_file_maps_to_nothing() {
    let sealed = SealedMemfd::from_reader(io::empty(), 0).unwrap();
    assert!(sealed.map().unwrap().is_empty());
}

#[test]
fn b3_one_byte_more_than_the_limit_is_too_large() {
    let endless = io::repeat(1);
    let error = SealedMemfd::from_reader(endless, 1 << 20).unwrap_err();
    assert!(
        matches!(error, SealError::TooLarge { limit: 1_048_576 }),
        "{error}"
    );
    let mut writer = MemfdWriter::new(4).unwrap();
    writer.write(b"abcd").unwrap();
    writer.write(b"e").unwrap_err();
    assert_eq!(writer.seal().unwrap().length(), 4);
}

#[test]
fn b2_nobody_changes_sealed_bytes_not_even_their_maker() {
    let sealed = SealedMemfd::from_reader(&b"abc"[..], 3).unwrap();
    let file = OwnedFd::from(sealed.try_clone().unwrap());
    assert_eq!(write(&file, b"x"), Err(Errno::PERM));
    assert_eq!(ftruncate(&file, 1), Err(Errno::PERM));
    assert_eq!(ftruncate(&file, 9), Err(Errno::PERM));
    assert!(fcntl_add_seals(&file, SealFlags::FUTURE_WRITE).is_err());
    assert_eq!(*sealed.map().unwrap(), b"abc"[..]);
}

#[test]
fn b2_each_of_the_four_seals_is_needed() {
    SealedMemfd::adopt(memfd(ALL_SEALS)).unwrap();
    for missing in [
        SealFlags::WRITE,
        SealFlags::GROW,
        SealFlags::SHRINK,
        SealFlags::SEAL,
    ] {
        let error = SealedMemfd::adopt(memfd(ALL_SEALS.difference(missing))).unwrap_err();
        assert!(
            matches!(error, SealError::NotSealed),
            "{missing:?}: {error}"
        );
    }
}

#[test]
fn h6_other_descriptors_are_refused() {
    let (reader, writer) = pipe().unwrap();
    let mut regular = tempfile::tempfile().unwrap();
    regular.write_all(b"abc").unwrap();
    let (one, two) = std::os::unix::net::UnixStream::pair().unwrap();
    let null = std::fs::File::open("/dev/null").unwrap();
    let directory = std::fs::File::open("/").unwrap();
    for descriptor in [
        reader,
        writer,
        one.into(),
        two.into(),
        null.into(),
        directory.into(),
    ] {
        let error = SealedMemfd::adopt(descriptor).unwrap_err();
        assert!(matches!(error, SealError::NotMemory), "{error}");
    }
    // On a tmpfs a regular file does know seals, and has only the one that
    // forbids others.
    let error = SealedMemfd::adopt(regular.into()).unwrap_err();
    assert!(
        matches!(error, SealError::NotMemory | SealError::NotSealed),
        "{error}"
    );
}
