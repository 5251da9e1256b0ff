//! Files that are wrong, and how that is told.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use super::site::{FUNCTION, INTERFACE, Site, gbs};
use super::*;

/// The codes of `check`'s problems, and the whole text.
fn problems(site: &Site) -> (Vec<String>, String) {
    let ran = site.run(&["--json", "check"]);
    let value = ran.json();
    let problems = value["problems"].as_array().unwrap();
    assert_eq!(
        ran.exit,
        if problems.is_empty() {
            Exit::Done
        } else {
            Exit::No
        }
    );
    assert_eq!(value["ok"], json!(problems.is_empty()));
    let codes = problems
        .iter()
        .map(|found| found["code"].as_str().unwrap().to_owned())
        .collect();
    (codes, site.run(&["check"]).out)
}

#[test]
fn cfg_01_every_file_tells_its_problem_in_one_run() {
    let site = Site::new();
    site.keys("keys");
    site.publish("keys");
    site.done(&["trust", "enrol", "@keys/root.json"]);
    assert!(problems(&site).0.is_empty());

    site.write(
        "etc/grants.toml",
        b"[[tenant]]\nname = \"blue\"\nvmz = []\n",
    );
    site.shell("sha256:00");
    std::fs::remove_file(site.path("repo/images.json.sig")).unwrap();
    let (codes, page) = problems(&site);
    assert_eq!(codes, ["bad-value", "unknown-key", "no-list"]);
    let grants = format!(
        "{}:3:1: unknown key `vmz`",
        text(&site.path("etc/grants.toml"))
    );
    assert!(page.contains(&grants), "{page}");
    assert!(page.ends_with("3 problems\n"), "{page}");
}

#[test]
fn a_blank_image_must_be_the_pinned_one_and_for_its_region() {
    let site = Site::new();
    site.keys("keys");
    site.publish("keys");
    site.done(&["trust", "enrol", "@keys/root.json"]);
    let pin = |bytes: &[u8]| {
        site.write("etc/blank.gbs", bytes);
        site.shell(&policy::ids::Digest::of(bytes).to_string());
    };
    let told = |what: &str| {
        let (codes, page) = problems(&site);
        assert_eq!(codes, ["blank-image"], "{page}");
        assert!(page.contains("a.toml:") && page.contains(what), "{page}");
    };
    site.write("etc/blank.gbs", &gbs(FUNCTION, b"swapped"));
    told("is pinned");
    pin(b"junk");
    told("blank.gbs");
    let mut other = gbs(FUNCTION, b"x");
    let position = other
        .windows(36)
        .position(|w| w == INTERFACE.to_string().as_bytes())
        .unwrap();
    other[position] = b'7';
    pin(&other);
    told("is for the interface id");
    std::fs::remove_file(site.path("etc/blank.gbs")).unwrap();
    told("cannot be read");
}

/// The shell file of the site with something in it.
fn with_shell(site: &Site, top: &str, region: &str) {
    let shell = String::from_utf8(site.read("etc/shells/a.toml")).unwrap();
    let shell = format!("{top}{}", shell.replacen("port = 0\n", region, 1));
    site.write("etc/shells/a.toml", shell.as_bytes());
}

#[test]
fn inv5_frames_are_read_and_a_fence_that_nothing_can_pass_is_told() {
    let site = Site::new();
    site.keys("keys");
    site.publish("keys");
    site.done(&["trust", "enrol", "@keys/root.json"]);
    let plain = site.read("etc/shells/a.toml");
    let told = |top: &str, region: &str, codes: &[&str], what: &str| {
        site.write("etc/shells/a.toml", &plain);
        with_shell(&site, top, region);
        let (found, page) = problems(&site);
        assert_eq!(found, codes, "{page}");
        assert!(page.contains(what), "{what}: {page}");
    };
    let device = "device = \"xc7z020\"\n";
    let frames = "port = 0\nframes = [\"logic top row 0 column 2\"]\n";
    // Frames that nothing is held to are no problem.
    told(device, frames, &[], "in order");
    told(
        "device = \"xc7z\"\n",
        frames,
        &["bad-value"],
        "a.toml:1:10: no device",
    );
    let row = frames.replace("row 0", "row 9");
    told(device, &row, &["bad-value"], "there is no");
    // A GBS has no frames that anybody could read: neither images nor the blank one pass.
    let fenced = format!("{frames}fence = \"required\"\n");
    told(
        device,
        &fenced,
        &["fence", "blank-image"],
        "frames-not-readable",
    );
    // The engine has other needs.
    let host = String::from_utf8(site.read("etc/host.toml")).unwrap();
    site.write(
        "etc/host.toml",
        host.replace("\"dfl\"", "\"hwicap\"").as_bytes(),
    );
    told(
        device,
        frames,
        &["blank-image", "missing-key"],
        "`[hwicap]` is missing",
    );
}

#[test]
fn h2_a_host_file_that_others_may_write_is_refused_by_every_command() {
    let site = Site::new();
    let path = site.path("etc/host.toml");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    for command in [&["check"][..], &["status"], &["trust", "show"]] {
        let ran = site.run(command);
        assert_ne!(ran.exit, Exit::Done);
        assert!(
            format!("{}{}", ran.out, ran.err).contains("chmod go-w"),
            "{}{}",
            ran.out,
            ran.err
        );
    }
}

#[test]
fn the_socket_is_found_through_the_host_file() {
    let site = Site::new();
    let ran = site.run(&["status"]);
    assert_eq!(ran.exit, Exit::Unreachable);
    assert!(ran.err.contains("run/admin.sock"), "{}", ran.err);
    let ran = reconfctl(&["--host-file", "/nowhere/host.toml", "status"]);
    assert_eq!(ran.exit, Exit::Files, "{}", ran.err);
}

#[test]
fn a_card_that_is_not_there_is_not_reachable() {
    let site = Site::new();
    let nobody = format!("vfio-user:{}", text(&site.path("run/none.sock")));
    let ran = site.run(&["card", "probe", &nobody]);
    assert_eq!(ran.exit, Exit::Unreachable, "{}", ran.err);
    assert_eq!(site.run(&["card", "probe", "3b:00.0"]).exit, Exit::Usage);
}
