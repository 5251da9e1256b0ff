//! Whom a host believes, and since when.

use policy::trust::{Floor, Root};
use serde_json::json;

use super::site::{CARD, FUNCTION, INTERFACE, Site};
use super::*;
use crate::layout::card_name;

#[test]
fn from_a_new_key_to_a_believed_list() {
    let site = Site::new();
    assert_eq!(
        site.run(&["trust", "show"]).exit,
        Exit::No,
        "nothing is trusted by itself"
    );

    site.keys("keys");
    let published = site.publish("keys");
    let image = &published["published"]["images"][0];
    assert_eq!(published["published"]["version"], 1);
    assert_eq!(image["name"], "acme/aes:1.0");
    assert_eq!(image["role"], "publisher:acme");
    assert_eq!(image["function_id"], json!(FUNCTION));
    let variant = &image["variants"][0];
    let file = site.read("repo/targets/acme/aes.gbs");
    assert_eq!(variant["size"], json!(file.len()));
    assert_eq!(
        variant["sha256"],
        json!(policy::ids::Digest::of(&file).to_string())
    );
    assert_eq!(variant["interface_id"], json!(INTERFACE));

    let enrolled = site.done(&["trust", "enrol", "@keys/root.json"]);
    let floors = enrolled["enrolled"]["floors"].as_array().unwrap();
    assert_eq!(floors.len(), 2, "reconfd's and the card's");
    assert!(floors.iter().all(|floor| floor["kept"] == false));
    let card_floor = format!("state/cards/{}/floor.json", card_name(CARD));
    for floor in ["state/reconfd/floor.json", &card_floor] {
        let floor = Floor::parse(&site.read(floor)).unwrap();
        let root = Root::parse(&site.read("keys/root.json")).unwrap();
        assert_eq!(floor.root(), root.digest());
    }

    let shown = site.done(&["trust", "show"]);
    assert_eq!(shown["trust"]["floors"][1]["list"]["version"], 1);
    let page = site.run(&["trust", "show"]);
    assert!(
        page.out.contains("in order") && page.out.contains(CARD),
        "{}",
        page.out
    );
    site.done(&["check"]);
}

#[test]
fn another_root_is_enrolled_only_on_purpose() {
    let site = Site::new();
    site.keys("keys");
    site.keys("evil");
    site.publish("keys");
    site.done(&["trust", "enrol", "@keys/root.json"]);
    let ran = site.run(&["trust", "enrol", "@evil/root.json"]);
    assert_eq!(ran.exit, Exit::Files);
    assert!(ran.err.contains("--replace"), "{}", ran.err);
    assert_eq!(
        site.read("state/trust/root.json"),
        site.read("keys/root.json")
    );

    site.done(&["trust", "enrol", "@evil/root.json", "--replace"]);
    assert_eq!(
        site.read("state/trust/root.json"),
        site.read("evil/root.json")
    );
    let ran = site.run(&["--json", "trust", "show"]);
    assert_eq!(ran.exit, Exit::No);
    assert_eq!(
        ran.json()["trust"]["floors"][0]["list"]["code"],
        "bad-signature"
    );
}

#[test]
fn p17_a_lost_floor_is_told_and_made_anew_and_the_others_stay() {
    let site = Site::new();
    site.keys("keys");
    site.publish("keys");
    site.done(&["trust", "enrol", "@keys/root.json"]);
    // The card has seen version 1, reconfd lost its memory.
    let card = site
        .path("state/cards")
        .join(card_name(CARD))
        .join("floor.json");
    let raise = || {
        let root = Root::parse(&site.read("keys/root.json")).unwrap();
        let floor = Floor::parse(&std::fs::read(&card).unwrap()).unwrap();
        let (list, signature) = (
            site.read("repo/images.json"),
            site.read("repo/images.json.sig"),
        );
        let now = policy::time::UnixTime(time::now());
        let catalogue = policy::trust::verify(&root, &floor, &list, &signature, now).unwrap();
        std::fs::write(&card, catalogue.floor().to_bytes()).unwrap();
    };
    raise();
    for damage in [None, Some(&b""[..]), Some(b"{\"reconf_floor\": 1}")] {
        let lost = site.path("state/reconfd/floor.json");
        match damage {
            None => std::fs::remove_file(&lost).unwrap(),
            Some(bytes) => std::fs::write(&lost, bytes).unwrap(),
        }
        let ran = site.run(&["--json", "trust", "show"]);
        assert_eq!(ran.exit, Exit::No, "{damage:?}");
        assert_eq!(ran.json()["ok"], false);
        let enrolled = site.done(&["trust", "enrol", "@keys/root.json"]);
        let floors = &enrolled["enrolled"]["floors"];
        assert_eq!(
            (&floors[0]["kept"], &floors[0]["version"]),
            (&json!(false), &json!(0))
        );
        assert_eq!(
            (&floors[1]["kept"], &floors[1]["version"]),
            (&json!(true), &json!(1)),
            "INV4"
        );
        site.done(&["trust", "show"]);
    }
}

#[test]
fn p3_an_older_list_is_told_by_trust_show_and_check() {
    let site = Site::new();
    site.keys("keys");
    site.publish("keys");
    let old = ["repo/images.json", "repo/images.json.sig"].map(|file| (file, site.read(file)));
    site.publish("keys");
    site.done(&["trust", "enrol", "@keys/root.json"]);
    let root = Root::parse(&site.read("keys/root.json")).unwrap();
    let now = policy::time::UnixTime(time::now());
    let (list, signature) = (
        site.read("repo/images.json"),
        site.read("repo/images.json.sig"),
    );
    let seen =
        policy::trust::verify(&root, &Floor::enrol(&root, None), &list, &signature, now).unwrap();
    std::fs::write(
        site.path("state/reconfd/floor.json"),
        seen.floor().to_bytes(),
    )
    .unwrap();
    for (file, bytes) in &old {
        site.write(file, bytes);
    }
    let shown = site.run(&["--json", "trust", "show"]).json();
    assert_eq!(shown["trust"]["floors"][0]["list"]["code"], "rollback");
    let checked = site.run(&["--json", "check"]);
    assert_eq!(checked.exit, Exit::No);
    assert_eq!(checked.json()["problems"][0]["code"], "rollback");
}

#[test]
fn what_is_no_root_is_not_enrolled() {
    let site = Site::new();
    for bytes in [
        &b"{}"[..],
        b"",
        b"{\"reconf_root\":1,\"version\":1,\"keys\":[],\"threshold\":1}",
    ] {
        site.write("root.json", bytes);
        assert_eq!(
            site.run(&["trust", "enrol", "@root.json"]).exit,
            Exit::Files
        );
    }
    assert!(!site.path("state/trust").exists());
    assert_eq!(
        site.run(&["repo", "root", "--key", "12ab", "--out", "@r.json"])
            .exit,
        Exit::Files
    );
}
