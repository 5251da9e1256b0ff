use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn reads_up_to_the_bound_and_no_byte_more() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    std::fs::write(&path, b"12345").unwrap();
    assert_eq!(read_bounded(&path, 5).unwrap(), b"12345");
    assert!(matches!(
        read_bounded(&path, 4),
        Err(FileError::TooLarge { max: 4, .. })
    ));
    assert!(
        read_bounded(&dir.path().join("b"), 4)
            .unwrap_err()
            .is_missing()
    );
    // The kernel says that this one has size 0.
    assert!(matches!(
        read_bounded(Path::new("/proc/self/maps"), 10),
        Err(FileError::TooLarge { max: 10, .. })
    ));
}

#[test]
fn p18_links_fifos_directories_and_devices_are_never_read() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("real"), b"x").unwrap();
    symlink(at("real"), at("link")).unwrap();
    std::fs::create_dir(at("directory")).unwrap();
    sys::mknodat(
        CWD,
        at("fifo"),
        FileType::Fifo,
        Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let _listener = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    std::fs::write(at("first"), b"x").unwrap();
    std::fs::hard_link(at("first"), at("second")).unwrap();

    for name in ["link", "directory", "fifo", "socket", "second"] {
        let error = read_bounded(&at(name), 10).unwrap_err();
        assert!(matches!(error, FileError::Unsafe { .. }), "{name}: {error}");
        let error = open_beneath(dir.path(), Path::new(name)).unwrap_err();
        assert!(matches!(error, FileError::Unsafe { .. }), "{name}: {error}");
    }
    let device = read_bounded(Path::new("/dev/zero"), 10).unwrap_err();
    assert!(
        matches!(
            device,
            FileError::Unsafe {
                what: "a device",
                ..
            }
        ),
        "{device}"
    );
}

#[test]
fn h2_files_that_others_may_write_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("host.toml");
    std::fs::write(&path, b"x").unwrap();
    for (bits, fine) in [
        (0o600, true),
        (0o640, true),
        (0o644, true),
        (0o444, true),
        (0o620, false),
        (0o602, false),
        (0o664, false),
        (0o666, false),
        (0o777, false),
    ] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(bits)).unwrap();
        match read_trusted(&path, 10) {
            Ok(_) => assert!(fine, "{bits:o}"),
            Err(FileError::UnsafePermissions { mode, .. }) => {
                assert!(!fine, "{bits:o}");
                assert_eq!(mode, bits);
            }
            Err(error) => panic!("{bits:o}: {error}"),
        }
        // What proves itself may lie about like this.
        read_bounded(&path, 10).unwrap();
    }
}

#[test]
fn h2_a_strangers_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("grants.toml");
    std::fs::write(&path, b"x").unwrap();
    if std::os::unix::fs::chown(&path, Some(65_534), None).is_err() {
        eprintln!("SKIPPED: only root can give a file away");
        return;
    }
    let error = read_trusted(&path, 10).unwrap_err();
    assert!(
        matches!(error, FileError::UnsafeOwner { owner: 65_534, .. }),
        "{error}"
    );
}

#[test]
fn p18_a_target_stays_below_its_directory() {
    let dir = tempfile::tempdir().unwrap();
    let targets = dir.path().join("targets");
    std::fs::create_dir_all(targets.join("acme")).unwrap();
    std::fs::write(targets.join("acme/aes.gbs"), b"abc").unwrap();
    std::fs::write(dir.path().join("outside"), b"x").unwrap();
    symlink(dir.path(), targets.join("up")).unwrap();

    let (mut file, size) = open_beneath(&targets, Path::new("acme/aes.gbs")).unwrap();
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    assert_eq!((text.as_str(), size), ("abc", 3));

    for bad in [
        "../outside",
        "acme/../../outside",
        "/etc/passwd",
        "",
        ".",
        "up/outside",
    ] {
        let error = open_beneath(&targets, Path::new(bad)).unwrap_err();
        assert!(matches!(error, FileError::Unsafe { .. }), "{bad}: {error}");
    }
    assert!(
        open_beneath(&targets, Path::new("acme/none"))
            .unwrap_err()
            .is_missing()
    );
}

#[test]
fn writing_replaces_the_whole_file_with_the_mode_that_was_asked() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("floor.json");
    write_atomic(&path, b"one, and longer", Readers::Owner).unwrap();
    assert_eq!(mode(&path), 0o600);
    write_atomic(&path, b"two", Readers::All).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"two");
    assert_eq!(mode(&path), 0o644);
    assert_eq!(
        std::fs::read_dir(dir.path()).unwrap().count(),
        1,
        "nothing is left over"
    );
}

#[test]
fn writing_replaces_a_link_and_not_what_it_points_to() {
    let dir = tempfile::tempdir().unwrap();
    let (victim, path) = (dir.path().join("victim"), dir.path().join("file"));
    std::fs::write(&victim, b"untouched").unwrap();
    symlink(&victim, &path).unwrap();
    write_atomic(&path, b"new", Readers::Owner).unwrap();
    assert_eq!(std::fs::read(&victim).unwrap(), b"untouched");
    assert_eq!(read_bounded(&path, 10).unwrap(), b"new");
}

#[test]
fn creating_refuses_what_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key");
    create_atomic(&path, b"first", Readers::Owner).unwrap();
    let error = create_atomic(&path, b"second", Readers::Owner).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(std::fs::read(&path).unwrap(), b"first");
    assert_eq!(
        std::fs::read_dir(dir.path()).unwrap().count(),
        1,
        "nothing is left over"
    );
}

#[test]
fn a_failed_write_leaves_the_old_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("directory");
    std::fs::create_dir_all(path.join("full")).unwrap();
    write_atomic(&path, b"x", Readers::Owner).unwrap_err();
    assert!(path.join("full").is_dir());
    assert_eq!(
        std::fs::read_dir(dir.path()).unwrap().count(),
        1,
        "nothing is left over"
    );
    assert_eq!(
        write_atomic(&dir.path().join("none/x"), b"x", Readers::Owner)
            .unwrap_err()
            .kind(),
        io::ErrorKind::NotFound
    );
}

#[test]
fn many_writers_at_once_leave_one_whole_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    std::thread::scope(|scope| {
        for fill in b'a'..b'e' {
            let path = &path;
            scope.spawn(move || {
                for _ in 0..20 {
                    write_atomic(path, &[fill; 5000], Readers::Owner).unwrap();
                }
            });
        }
    });
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(bytes.len(), 5000);
    assert!(bytes.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn a_secret_is_read_only_where_nobody_else_can() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key");
    std::fs::write(&path, b"x").unwrap();
    for (bits, fine) in [
        (0o600, true),
        (0o400, true),
        (0o640, false),
        (0o604, false),
        (0o644, false),
    ] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(bits)).unwrap();
        match read_secret(&path, 10) {
            Ok(_) => assert!(fine, "{bits:o}"),
            Err(FileError::Exposed { mode, .. }) => assert!(!fine && mode == bits, "{bits:o}"),
            Err(error) => panic!("{bits:o}: {error}"),
        }
    }
}

#[test]
fn directories_are_made_down_to_the_last_and_may_be_there() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a/b/c");
    create_directories(&path).unwrap();
    create_directories(&path).unwrap();
    assert_eq!(mode(&path), 0o750);
    std::fs::write(dir.path().join("file"), b"").unwrap();
    create_directories(&dir.path().join("file/x")).unwrap_err();
    create_directories(&dir.path().join("file")).unwrap_err();
    symlink("/nowhere", dir.path().join("dangling")).unwrap();
    create_directories(&dir.path().join("dangling")).unwrap_err();
}

#[test]
fn what_root_makes_in_a_services_directory_is_the_services() {
    use std::os::unix::fs::MetadataExt;
    let dir = tempfile::tempdir().unwrap();
    let theirs = dir.path().join("reconfd");
    std::fs::create_dir(&theirs).unwrap();
    if std::os::unix::fs::chown(&theirs, Some(65_534), Some(65_534)).is_err() {
        eprintln!("SKIPPED: only root can give a directory away");
        return;
    }
    create_directories(&theirs.join("new/deep")).unwrap();
    write_atomic(&theirs.join("new/deep/floor.json"), b"x", Readers::Owner).unwrap();
    for path in ["new", "new/deep", "new/deep/floor.json"] {
        let owner = std::fs::metadata(theirs.join(path)).unwrap();
        assert_eq!((owner.uid(), owner.gid()), (65_534, 65_534), "{path}");
    }
}
