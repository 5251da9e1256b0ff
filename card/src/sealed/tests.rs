#![expect(
    clippy::cast_possible_truncation,
    reason = "a test may fail where a number does not fit"
)]

use std::io::{Seek, SeekFrom, Write};

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
fn a_file_is_copied_from_where_it_stands() {
    let bytes: Vec<u8> = (0..300_000u32).map(|at| at as u8).collect();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&bytes).unwrap();
    for start in [0, 1, 4096, 299_999, 300_000] {
        file.seek(SeekFrom::Start(start)).unwrap();
        let rest = &bytes[usize::try_from(start).unwrap()..];
        let limit = rest.len() as u64;
        let sealed = SealedMemfd::from_file(&file, limit).unwrap();
        assert_eq!(sealed.length(), limit);
        assert_eq!(*sealed.map().unwrap(), *rest);
    }
}

#[test]
fn b3_a_file_with_one_byte_more_than_the_limit_is_too_large() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&[7; 8193]).unwrap();
    for limit in [0, 1, 8192] {
        file.rewind().unwrap();
        let error = SealedMemfd::from_file(&file, limit).unwrap_err();
        assert!(
            matches!(error, SealError::TooLarge { limit: told } if told == limit),
            "{error}"
        );
    }
    file.rewind().unwrap();
    assert_eq!(SealedMemfd::from_file(&file, 9000).unwrap().length(), 8193);
}

#[test]
fn b2_a_copied_file_is_sealed_and_stays_as_it_was() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"abc").unwrap();
    file.rewind().unwrap();
    let sealed = SealedMemfd::from_file(&file, 3).unwrap();
    file.rewind().unwrap();
    file.write_all(b"xyz").unwrap();
    assert_eq!(*sealed.map().unwrap(), b"abc"[..]);
    SealedMemfd::adopt(OwnedFd::from(sealed)).unwrap();
}

#[test]
fn what_has_no_pages_is_read_instead() {
    let zero = File::open("/dev/zero").unwrap();
    assert!(matches!(
        SealedMemfd::from_file(&zero, 100_000),
        Err(SealError::TooLarge { limit: 100_000 })
    ));
    let process = File::open("/proc/self/status").unwrap();
    assert!(SealedMemfd::from_file(&process, 1 << 20).unwrap().length() > 0);
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
    let null = File::open("/dev/null").unwrap();
    let directory = File::open("/").unwrap();
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
