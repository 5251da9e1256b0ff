//! Names from the field, good and odd.

use proptest::prelude::*;

use super::*;
use crate::testing::shared;

#[test]
fn cyb_07_ids_are_equal_or_refused() {
    let Some(text) = shared("cases/CYB-07/ids.txt") else {
        return;
    };
    let text = String::from_utf8(text).unwrap();
    let read: Vec<Option<VmId>> = text
        .split('\n')
        .map(|line| VmId::parse(line).ok())
        .collect();
    let good = read[0];
    assert!(good.is_some());
    assert_eq!(read[1], good, "upper case");
    assert_eq!(read[2], good, "no dashes");
    assert!(read[3..].iter().all(Option::is_none), "{read:?}");
}

#[test]
fn cyb_11_addresses_have_one_spelling() {
    for good in [
        "pci:0000:d8:00.0",
        "pci:0000:3b:1f.7",
        "pci:10000:d8:00.0",
        "vfio-user:/run/card0",
    ] {
        assert_eq!(CardAddress::parse(good).unwrap().to_string(), good);
    }
    for bad in [
        "0000:d8:00.0",
        "pci:0000:d8:00:0",
        "pci:d8:00.0",
        "pci:0000:D8:00.0",
        "pci:00000:d8:00.0",
        "pci:0000:d8:20.0",
        "pci:0000:d8:00.8",
        "pci:0000:d8:00.0 ",
        " pci:0000:d8:00.0",
        "PCI:0000:d8:00.0",
        "pci:0000:d8:00.",
        "pci:+000:d8:00.0",
        "vfio-user:run/card0",
        "vfio-user:/",
        "vfio-user:/run//card0",
        "vfio-user:/run/../card0",
        "vfio-user:/run/card0/",
        "vfio-user:/run/card 0",
        "vfio-user:/run/card\n0",
        "vfio-user:",
        "",
    ] {
        assert!(CardAddress::parse(bad).is_err(), "{bad}");
    }
    let Some(text) = shared("cases/CYB-11/bdf.txt") else {
        return;
    };
    let text = String::from_utf8(text).unwrap();
    let good: Vec<bool> = text
        .lines()
        .map(|line| CardAddress::parse(&format!("pci:{line}")).is_ok())
        .collect();
    assert_eq!(good, [true, false, false, false, true, false, false, false]);
}

#[test]
fn aws_05_a_wrong_kind_of_id_is_refused_at_the_edge() {
    let Some(text) = shared("cases/AWS-05/ids.txt") else {
        return;
    };
    let text = String::from_utf8(text).unwrap();
    for line in text.lines() {
        let digest = line.starts_with("sha256:") && line.len() == 71;
        assert_eq!(ImageRef::parse(line).is_ok(), digest, "{line}");
    }
}

#[test]
fn image_names_follow_the_grammar() {
    for good in ["acme/aes:1.0", "acme/aes", "a/b:Z_-.9", "0.x/y-z_:1"] {
        assert_eq!(ImageRef::parse(good).unwrap().to_string(), good);
    }
    let long = "a".repeat(65);
    for bad in [
        "aes",
        "acme/",
        "/aes",
        "Acme/aes",
        "acme/AES",
        "acme/aes:",
        "acme/aes:1:2",
        "acme//aes",
        "acme/aes/x",
        "acme/*",
        "*/aes",
        ".acme/aes",
        "acme/-aes",
        "acme/aes ",
        "acme/aes:1 ",
        "acme/aes:é",
        "acme/aes:1\n",
        "sha256:00",
        "SHA256:00",
        &format!("{long}/a"),
        &format!("a/{long}"),
        &format!("a/b:{long}"),
    ] {
        assert!(ImageRef::parse(bad).is_err(), "{bad:?}");
    }
    assert!(ImagePattern::parse("acme/*").is_ok());
    for bad in ["*", "*/*", "acme/**", "acme/a*", "acme/*:1", "/*", ""] {
        assert!(ImagePattern::parse(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn roles_and_paths() {
    let tested = Role::parse("tested:acme").unwrap();
    assert!(RolePattern::parse("tested:*").unwrap().accepts(&tested));
    assert!(RolePattern::parse("tested:acme").unwrap().accepts(&tested));
    assert!(!RolePattern::parse("tested:other").unwrap().accepts(&tested));
    assert!(!RolePattern::parse("publisher:*").unwrap().accepts(&tested));
    for bad in [
        "acme",
        "tested:",
        "tested:*",
        "owner:acme",
        "Tested:acme",
        "tested:acme:x",
    ] {
        assert!(Role::parse(bad).is_err(), "{bad}");
    }
    assert!(TargetPath::parse("acme/aes/1.0/left.gbs").is_ok());
    assert!(TargetPath::parse(&"a".repeat(255)).is_ok());
    for bad in [
        "",
        "/etc/passwd",
        "../x",
        "a/../b",
        "a//b",
        "a/",
        "./a",
        "a/.b",
        "a\\b",
        "a b",
        "a\0b",
        &"a".repeat(256),
    ] {
        assert!(TargetPath::parse(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn g10_refused_text_is_escaped_and_cut() {
    let text = format!("\x1b[31m\r\nMESSAGE=forged\0{}", "x".repeat(10_000));
    let error = ImageRef::parse(&text).unwrap_err().to_string();
    assert!(!error.chars().any(char::is_control), "{error}");
    assert!(error.len() < 400, "{}", error.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn what_is_accepted_is_written_back_as_it_was(text in "[a-z0-9:/*. A-Z_@-]{0,40}|\\PC{0,20}") {
        if let Ok(id) = ImageRef::parse(&text) { prop_assert_eq!(id.to_string(), text.as_str()); }
        if let Ok(id) = ImagePattern::parse(&text) { prop_assert_eq!(id.to_string(), text.as_str()); }
        if let Ok(id) = CardAddress::parse(&text) { prop_assert_eq!(id.to_string(), text.as_str()); }
        if let Ok(id) = RolePattern::parse(&text) { prop_assert_eq!(id.to_string(), text.as_str()); }
        if let Ok(id) = TargetPath::parse(&text) { prop_assert_eq!(id.to_string(), text.as_str()); }
    }

    #[test]
    fn the_order_of_versions_is_total(a in "[a0-2.-]{1,6}", b in "[a0-2.-]{1,6}", c in "[a0-2.-]{1,6}") {
        let [a, b, c] = [a, b, c].map(|text| Version::parse(&text).unwrap());
        prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
        prop_assert_eq!(a == b, a.cmp(&b).is_eq());
        if a <= b && b <= c { prop_assert!(a <= c); }
    }
}
