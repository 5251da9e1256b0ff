//! Keys, roots and lists, up to the repository.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use uuid::Uuid;

use super::site::{FUNCTION, Site, gbs};
use super::*;

#[test]
fn secrets_are_their_owners_and_are_never_overwritten() {
    let site = Site::new();
    site.keys("keys");
    let mode = std::fs::metadata(site.path("keys/key.pk8"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o7777, 0o600);
    let before = site.read("keys/key.pk8");
    let again = site.run(&["repo", "keygen", "--out", "@keys"]);
    assert_eq!(again.exit, Exit::Files);
    assert_eq!(site.read("keys/key.pk8"), before);

    site.write("keys/key.pk8", &before); // 0644
    let ran = site.run(&[
        "repo",
        "publish",
        "--key",
        "@keys/key.pk8",
        "--list",
        "@list.toml",
        "--dir",
        "@repo",
    ]);
    assert_eq!(ran.exit, Exit::Files);
    assert!(ran.err.contains("may read this secret"), "{}", ran.err);
    assert!(!site.path("repo/images.json").exists());
}

#[test]
fn versions_rise_and_are_never_used_twice() {
    let site = Site::new();
    site.keys("keys");
    assert_eq!(site.publish("keys")["published"]["version"], 1);
    assert_eq!(site.publish("keys")["published"]["version"], 2);

    // From a list in JSON with a version of its own.
    let mut list: Value = serde_json::from_slice(&site.read("repo/images.json")).unwrap();
    list["version"] = json!(41);
    site.write("next.json", list.to_string().as_bytes());
    let published = site.done(&[
        "repo",
        "publish",
        "--key",
        "@keys/key.pk8",
        "--list",
        "@next.json",
        "--dir",
        "@repo",
    ]);
    assert_eq!(published["published"]["version"], 42);

    // Of a list that cannot be read the version is not known.
    site.write("repo/images.json", b"{}");
    let ran = site.run(&[
        "repo",
        "publish",
        "--key",
        "@keys/key.pk8",
        "--list",
        "@list.toml",
        "--dir",
        "@repo",
    ]);
    assert_eq!(ran.exit, Exit::Files);
    assert_eq!(site.read("repo/images.json"), b"{}");
}

#[test]
fn other_bits_under_the_same_name_are_told() {
    let site = Site::new();
    site.keys("keys");
    site.publish("keys");
    assert_eq!(
        site.publish("keys")["published"]["images"][0]["changed"],
        false
    );
    site.write("repo/targets/acme/aes.gbs", &gbs(FUNCTION, b"other"));
    assert_eq!(
        site.publish("keys")["published"]["images"][0]["changed"],
        true
    );
}

#[test]
fn what_is_no_bitstream_is_not_published() {
    let site = Site::new();
    site.keys("keys");
    site.write("outside", &gbs(FUNCTION, b"x"));
    std::os::unix::fs::symlink(
        site.path("outside"),
        site.path("repo/targets/acme/link.gbs"),
    )
    .unwrap();
    site.write(
        "repo/targets/acme/other.gbs",
        &gbs(Uuid::from_u128(9), b"x"),
    );
    let image =
        |variants: &str| format!("[[image]]\nname = \"acme/aes:1.0\"\nvariants = [{variants}]\n");
    let paths = [
        "acme/junk.gbs",
        "acme/none.gbs",
        "acme/link.gbs",
        "../list.toml",
    ];
    site.write("repo/targets/acme/junk.gbs", b"\x7fELF and so on");
    let lists = paths
        .map(|path| image(&format!("{{ path = \"{path}\" }}")))
        .into_iter()
        .chain([
            // Two functions are two images.
            image("{ path = \"acme/aes.gbs\" }, { path = \"acme/other.gbs\" }"),
            // Two variants that fit the same regions leave the choice to chance.
            image("{ path = \"acme/aes.gbs\" }, { path = \"acme/aes.gbs\" }"),
            image(""),
            // The role of somebody else.
            image("{ path = \"acme/aes.gbs\" }") + "role = \"publisher:globex\"\n",
        ]);
    for list in lists {
        site.write("list.toml", list.as_bytes());
        let ran = site.run(&[
            "repo",
            "publish",
            "--key",
            "@keys/key.pk8",
            "--list",
            "@list.toml",
            "--dir",
            "@repo",
        ]);
        assert_eq!(ran.exit, Exit::Files, "{list}: {}", ran.out);
        assert!(ran.err.contains(" next: "), "{list}: {}", ran.err);
        assert!(!site.path("repo/images.json").exists(), "{list}");
    }
}

#[test]
fn two_publishers_at_once_do_not_sign_one_version_twice() {
    let site = Site::new();
    site.keys("keys");
    let held = std::fs::File::open(site.path("repo")).unwrap();
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let ran = site.run(&[
        "repo",
        "publish",
        "--key",
        "@keys/key.pk8",
        "--list",
        "@list.toml",
        "--dir",
        "@repo",
    ]);
    assert_eq!(ran.exit, Exit::Files);
    assert!(!site.path("repo/images.json").exists());
}
