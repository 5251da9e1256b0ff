//! What is signed, what only looks so, and what is too old.

use proptest::prelude::*;

use super::list::{ImageList, RevokedEntry};
use super::*;
use crate::fuzz;
use crate::ids::{Digest, Family, ImageName, ImagePattern, ImageRef, Role};
use crate::publish::{self, SigningKey, sign_anything};
use crate::testing::{NOW, entry, image_list, shared};

pub(super) struct Publisher {
    pub(super) key: SigningKey,
    pub(super) root: Root,
}

impl Publisher {
    pub(super) fn new() -> Publisher {
        let key = SigningKey::generate().unwrap();
        let root = Root::parse(&publish::root(1, &[key.public_key()], 1).unwrap()).unwrap();
        Publisher { key, root }
    }

    pub(super) fn floor(&self) -> Floor {
        Floor::enrol(&self.root, None)
    }

    pub(super) fn signed(&self, list: &ImageList) -> (Vec<u8>, Vec<u8>) {
        let bytes = publish::list(list).unwrap();
        let signature = publish::sign(&bytes, &[&self.key]).unwrap();
        (bytes, signature)
    }

    pub(super) fn verify(&self, floor: &Floor, list: &ImageList) -> Result<Catalogue, TrustError> {
        let (bytes, signature) = self.signed(list);
        verify(&self.root, floor, &bytes, &signature, NOW)
    }
}

#[test]
fn a_signed_list_is_believed_and_raises_the_floor() {
    let publisher = Publisher::new();
    let catalogue = publisher
        .verify(&publisher.floor(), &image_list(7))
        .unwrap();
    assert_eq!(catalogue.version(), 7);
    assert_eq!(catalogue.floor().version(), 7);
    let name = ImageRef::parse("acme/aes:1.10").unwrap();
    assert_eq!(catalogue.find(&name).len(), 1);
    let newest: Vec<String> = catalogue
        .find(&ImageRef::parse("acme/aes").unwrap())
        .iter()
        .map(|image| image.name.to_string())
        .collect();
    assert_eq!(
        newest,
        ["acme/aes:1.10", "acme/aes:1.9"],
        "newest first, by number"
    );
    let digest = catalogue.find(&name)[0].digest;
    assert_eq!(
        catalogue.find(&ImageRef::Digest(digest))[0]
            .name
            .to_string(),
        "acme/aes:1.10"
    );
    assert!(
        catalogue
            .find(&ImageRef::parse("acme/nothing").unwrap())
            .is_empty()
    );
    let json = String::from_utf8(catalogue.floor().to_bytes()).unwrap();
    assert_eq!(Floor::parse(json.as_bytes()).unwrap(), *catalogue.floor());
}

#[test]
fn p3_a_changed_bit_a_foreign_key_or_no_signature_is_refused() {
    let publisher = Publisher::new();
    let (list, signature) = publisher.signed(&image_list(1));
    let check = |list: &[u8], signature: &[u8]| {
        verify(&publisher.root, &publisher.floor(), list, signature, NOW)
    };
    assert!(check(&list, &signature).is_ok());
    for at in 0..512 {
        let mut changed = list.clone();
        changed[at * list.len() / 512] ^= 1 << (at % 8);
        assert_eq!(
            check(&changed, &signature).unwrap_err().code(),
            "bad-signature",
            "{at}"
        );
    }
    let digits = signature.windows(5).position(|w| w == b"\"sig\"").unwrap() + 8;
    for at in digits..digits + 128 {
        let mut changed = signature.clone();
        changed[at] = if changed[at] == b'0' { b'1' } else { b'0' };
        assert_eq!(
            check(&list, &changed).unwrap_err().code(),
            "bad-signature",
            "{at}"
        );
    }
    let foreign = SigningKey::generate().unwrap();
    let by_foreign = publish::sign(&list, &[&foreign]).unwrap();
    assert_eq!(
        check(&list, &by_foreign).unwrap_err(),
        TrustError::BadSignature { got: 0, need: 1 }
    );
    let by_nobody = publish::sign(&list, &[]).unwrap();
    assert_eq!(
        check(&list, &by_nobody).unwrap_err().code(),
        "bad-signature"
    );
    assert_eq!(check(&list, b"").unwrap_err().code(), "malformed");
}

#[test]
fn p4_one_key_counts_once() {
    let (a, b) = (
        SigningKey::generate().unwrap(),
        SigningKey::generate().unwrap(),
    );
    let keys = [a.public_key(), b.public_key()];
    let root = Root::parse(&publish::root(1, &keys, 2).unwrap()).unwrap();
    let floor = Floor::enrol(&root, None);
    let list = publish::list(&image_list(1)).unwrap();
    let check = |keys: &[&SigningKey]| {
        verify(
            &root,
            &floor,
            &list,
            &publish::sign(&list, keys).unwrap(),
            NOW,
        )
        .map(drop)
    };
    assert_eq!(check(&[&a, &b]), Ok(()));
    assert_eq!(
        check(&[&a]),
        Err(TrustError::BadSignature { got: 1, need: 2 })
    );
    assert_eq!(
        check(&[&a, &a]),
        Err(TrustError::BadSignature { got: 1, need: 2 })
    );

    // The same signature under the other key's name counts for neither.
    let mut file: SignatureFile =
        serde_json::from_slice(&publish::sign(&list, &[&a, &a]).unwrap()).unwrap();
    file.signatures[1].keyid = b.public_key().id();
    let file = serde_json::to_vec(&file).unwrap();
    let error = verify(&root, &floor, &list, &file, NOW).unwrap_err();
    assert_eq!(error, TrustError::BadSignature { got: 1, need: 2 });

    // A root that names one key twice is none.
    assert!(publish::root(1, &[a.public_key(), a.public_key()], 2).is_err());
    assert!(publish::root(1, &keys, 0).is_err());
    assert!(publish::root(1, &keys, 3).is_err());
    assert!(publish::root(1, &[], 1).is_err());
}

#[test]
fn p10_what_is_signed_and_malformed_is_refused_before_any_use() {
    let publisher = Publisher::new();
    let good = String::from_utf8(publish::list(&image_list(1)).unwrap()).unwrap();
    let code = |text: &str| {
        let bytes = text.as_bytes();
        let signature = sign_anything(bytes, &[&publisher.key]);
        let result = verify(&publisher.root, &publisher.floor(), bytes, &signature, NOW);
        result.map_or_else(|error| error.code(), |_| "believed")
    };
    assert_eq!(code(&good), "believed");
    for bad in [
        good.replacen("\"version\": 1", "\"version\": 1, \"version\": 2", 1),
        good.replacen("\"version\": 1", "\"version\": 1, \"critical\": true", 1),
        good.replacen("\"epoch\": 1", "\"epoch\": 1, \"epoch\": 9", 1),
        good.replacen("\"version\": 1", "\"version\": 0", 1),
        good.replacen("\"version\": 1", "\"version\": 18446744073709551616", 1),
        good.replacen("\"version\": 1", "\"version\": -1", 1),
        good.replacen("\"version\": 1", "\"version\": NaN", 1),
        good.replacen("\"reconf_images\": 1", "\"reconf_images\": 2", 1),
        good.replacen("\"size\": ", "\"size\": 0", 1),
        good.replacen("acme/left.gbs", "../left.gbs", 1),
        good.replacen("acme/left.gbs", "/etc/passwd", 1),
        good.replacen("\"gbs\"", "\"rbf\"", 1),
        good.replacen("publisher:acme", "publisher", 1),
        format!("{good} trailing"),
        "[".repeat(10_000),
        "null".to_owned(),
        String::new(),
    ] {
        assert_eq!(code(&bad), "malformed", "{bad}");
    }
    assert_eq!(code(&" ".repeat(LIST_MAX + 1)), "too-large");
}

#[test]
fn p10_a_list_that_contradicts_itself_is_neither_signed_nor_believed() {
    let twice = |list: &mut ImageList| list.images.push(list.images[0].clone());
    let no_variants = |list: &mut ImageList| list.images[0].variants.clear();
    let one_path_two_files = |list: &mut ImageList| {
        let path = list.images[0].variants[0].path.clone();
        list.images[1].variants[0].path = path;
    };
    let two_that_fit = |list: &mut ImageList| {
        let variant = list.images[0].variants[0].clone();
        list.images[0].variants.push(variant);
    };
    let revokes_nothing = |list: &mut ImageList| list.revoked.push(RevokedEntry::default());
    let half_an_epoch = |list: &mut ImageList| {
        let family = Some(Family::parse("aes").unwrap());
        list.revoked.push(RevokedEntry {
            family,
            ..RevokedEntry::default()
        });
    };
    let changes: [&dyn Fn(&mut ImageList); 6] = [
        &twice,
        &no_variants,
        &one_path_two_files,
        &two_that_fit,
        &revokes_nothing,
        &half_an_epoch,
    ];
    for (number, change) in changes.iter().enumerate() {
        let mut list = image_list(1);
        change(&mut list);
        assert!(publish::list(&list).is_err(), "change {number}");
    }
}

#[test]
fn p19_a_role_vouches_only_for_its_own_publisher() {
    for role in ["publisher:evil", "tested:evil"] {
        let mut list = image_list(1);
        list.images[0].role = Role::parse(role).unwrap();
        let text = serde_json::to_vec(&list).unwrap();
        let publisher = Publisher::new();
        let signature = sign_anything(&text, &[&publisher.key]);
        let error =
            verify(&publisher.root, &publisher.floor(), &text, &signature, NOW).unwrap_err();
        assert_eq!(error.code(), "role-scope", "{role}");
    }
}

#[test]
fn cyb_02_every_way_not_to_sign_is_refused() {
    let publisher = Publisher::new();
    let (list, signature) = publisher.signed(&image_list(1));
    let good: serde_json::Value = serde_json::from_slice(&signature).unwrap();
    let check = |change: &dyn Fn(&mut serde_json::Map<String, serde_json::Value>)| {
        let mut file = good.clone();
        change(file["signatures"][0].as_object_mut().unwrap());
        let file = serde_json::to_vec(&file).unwrap();
        verify(&publisher.root, &publisher.floor(), &list, &file, NOW)
            .unwrap_err()
            .code()
    };
    assert_eq!(check(&|entry| drop(entry.remove("sig"))), "malformed");
    assert_eq!(
        check(&|entry| drop(entry.insert("alg".into(), "none".into()))),
        "malformed"
    );
    for sig in ["", "%%%not-base64%%%", "AAAA"] {
        assert_eq!(
            check(&|entry| drop(entry.insert("sig".into(), sig.into()))),
            "malformed"
        );
    }
    let zeros = "0".repeat(128);
    assert_eq!(
        check(&|entry| drop(entry.insert("sig".into(), zeros.clone().into()))),
        "bad-signature"
    );
    let Some(entries) = shared("cases/CYB-02/entries.json") else {
        return;
    };
    let entries: Vec<serde_json::Value> = serde_json::from_slice(&entries).unwrap();
    for case in entries {
        let found = check(&|entry| match case.get("sig") {
            Some(sig) => drop(entry.insert("sig".into(), sig.clone())),
            None => drop(entry.remove("sig")),
        });
        assert_eq!(found, "malformed", "{case}");
    }
}

#[test]
fn db_04_the_signed_bytes_are_verified_at_every_start() {
    let publisher = Publisher::new();
    let (list, signature) = publisher.signed(&image_list(42));
    let start = |floor: &Floor, list: &[u8]| verify(&publisher.root, floor, list, &signature, NOW);
    let floor = start(&publisher.floor(), &list).unwrap().floor().clone();
    // Restarted offline: the same answer.
    assert_eq!(start(&floor, &list).unwrap().digest(), Digest::of(&list));
    // The same list written another way is another list.
    let value: serde_json::Value = serde_json::from_slice(&list).unwrap();
    let rewritten = serde_json::to_vec(&value).unwrap();
    assert_eq!(
        start(&floor, &rewritten).unwrap_err().code(),
        "bad-signature"
    );
}

#[test]
fn revocations_strike_by_digest_name_and_role() {
    let publisher = Publisher::new();
    let name = ImageName::parse("acme/aes:1.9").unwrap();
    let bitstream = entry("acme/aes:1.9").variants[0].sha256;
    let image = image_digest(&entry("acme/aes:1.9"));
    let pattern = |text: &str| Some(ImagePattern::parse(text).unwrap());
    let none = RevokedEntry::default();
    for (revoked, struck) in [
        (
            RevokedEntry {
                digest: Some(bitstream),
                ..none.clone()
            },
            true,
        ),
        (
            RevokedEntry {
                digest: Some(image),
                ..none.clone()
            },
            true,
        ),
        (
            RevokedEntry {
                digest: Some(Digest::of(b"else")),
                ..none.clone()
            },
            false,
        ),
        (
            RevokedEntry {
                image: pattern("acme/aes:1.9"),
                ..none.clone()
            },
            true,
        ),
        (
            RevokedEntry {
                image: pattern("acme/aes"),
                ..none.clone()
            },
            true,
        ),
        (
            RevokedEntry {
                image: pattern("acme/*"),
                ..none.clone()
            },
            true,
        ),
        (
            RevokedEntry {
                image: pattern("acme/aes:1.10"),
                ..none.clone()
            },
            false,
        ),
        (
            RevokedEntry {
                role: Some(Role::parse("publisher:acme").unwrap()),
                ..none.clone()
            },
            true,
        ),
        (
            RevokedEntry {
                role: Some(Role::parse("tested:acme").unwrap()),
                ..none
            },
            false,
        ),
    ] {
        let list = ImageList {
            revoked: vec![revoked.clone()],
            ..image_list(1)
        };
        let catalogue = publisher.verify(&publisher.floor(), &list).unwrap();
        let found = catalogue.find(&ImageRef::Name(name.clone()));
        assert_eq!(
            catalogue.revocation(&found[0]).is_some(),
            struck,
            "{revoked:?}"
        );
    }
}

#[test]
fn an_image_digest_covers_what_would_be_loaded_and_not_its_name() {
    let one = entry("acme/aes:1.9");
    let renamed = list::ImageEntry {
        name: ImageName::parse("acme/x:1").unwrap(),
        ..one.clone()
    };
    assert_eq!(image_digest(&one), image_digest(&renamed));
    let mut turned = one.clone();
    turned.variants.reverse();
    assert_eq!(
        image_digest(&one),
        image_digest(&turned),
        "a set has no order"
    );
    let mut longer = one.clone();
    longer.variants[0].size += 1;
    assert_ne!(image_digest(&one), image_digest(&longer));
    let mut other = one.clone();
    other.function_id = crate::ids::FunctionId(uuid::Uuid::from_u128(1));
    assert_ne!(image_digest(&one), image_digest(&other));
}

#[test]
fn the_samples_in_the_documentation_are_read() {
    let page = include_str!("../../../docs/images.md");
    let samples: Vec<String> = page
        .split("```json\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .map(|text| text.replace("<64 hex digits>", &"0".repeat(64)))
        .map(|text| text.replace("<128 hex digits>", &"0".repeat(128)))
        .collect();
    let [list_text, signature, root] = samples.as_slice() else {
        panic!("{samples:?}")
    };
    assert_eq!(list::parse(list_text.as_bytes()).unwrap().version, 7);
    assert!(serde_json::from_str::<SignatureFile>(signature).is_ok());
    assert_eq!(Root::parse(root.as_bytes()).unwrap().threshold(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn p10_no_bytes_make_a_parser_panic(text in "\\PC{0,200}", bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        fuzz::signed_list(text.as_bytes());
        fuzz::signed_list(&bytes);
    }

    #[test]
    fn p10_no_mutation_makes_a_parser_panic(at in any::<proptest::sample::Index>(), byte in any::<u8>()) {
        let mut list = publish::list(&image_list(1)).unwrap();
        let at = at.index(list.len());
        list[at] = byte;
        fuzz::signed_list(&list);
    }
}
