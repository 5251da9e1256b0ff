//! Attacks on a repository: each is refused, and told by its name.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::testing::{
    Signer, delegation, head, id_of, keys, root, signed, snapshot, targets, timestamp, with,
};
use super::*;
use crate::time::UnixTime;

const NOW: UnixTime = UnixTime(1_767_225_600);

struct Keys {
    root: Signer,
    timestamp: Signer,
    snapshot: Signer,
    targets: Signer,
}

impl Keys {
    fn new() -> Keys {
        let [root, timestamp, snapshot, targets] = [1, 2, 3, 4].map(Signer::new);
        Keys {
            root,
            timestamp,
            snapshot,
            targets,
        }
    }

    fn others(&self) -> [&Signer; 3] {
        [&self.timestamp, &self.snapshot, &self.targets]
    }

    fn root(&self) -> Vec<u8> {
        signed(&root(1, &[&self.root], 1, self.others()), &[&self.root])
    }

    fn timestamp(&self, version: u64, snapshot: u64) -> Vec<u8> {
        signed(&timestamp(version, snapshot), &[&self.timestamp])
    }

    fn snapshot(&self, version: u64, roles: &[(&str, u64)]) -> Vec<u8> {
        signed(&snapshot(version, roles), &[&self.snapshot])
    }

    fn anchor_at(&self, now: UnixTime, stored: Stored<'_>) -> Result<Anchor, TufError> {
        let chain = Chain::begin(&self.root()).unwrap();
        Anchor::new(chain, now, UnixTime(0), stored)
    }

    fn anchor(&self, stored: Stored<'_>) -> Anchor {
        self.anchor_at(NOW, stored).unwrap()
    }
}

fn code<T>(result: Result<T, TufError>) -> &'static str {
    result.err().map_or("accepted", |error| error.code())
}

#[test]
fn p1_no_version_goes_down() {
    let keys = Keys::new();
    let old = keys.timestamp(5, 7);
    let old_snapshot = keys.snapshot(7, &[("targets", 3), ("acme", 2)]);
    let anchor = keys.anchor(Stored {
        timestamp: Some(&old),
        snapshot: Some(&old_snapshot),
    });
    assert_eq!(code(anchor.timestamp(&keys.timestamp(4, 7))), "rollback");
    assert_eq!(code(anchor.timestamp(&keys.timestamp(6, 6))), "rollback");
    let (current, news) = anchor.timestamp(&keys.timestamp(6, 8)).unwrap();
    assert_eq!(news, News::Newer);
    for (roles, verdict) in [
        (vec![("targets", 2), ("acme", 2)], "rollback"),
        (vec![("targets", 3), ("acme", 1)], "rollback"),
        (vec![("targets", 3)], "vanished"),
        (vec![("targets", 3), ("acme", 2)], "accepted"),
    ] {
        let new = keys.snapshot(8, &roles);
        assert_eq!(code(anchor.snapshot(&current, &new)), verdict, "{roles:?}");
    }
}

#[test]
fn p1_expired_stored_documents_still_count() {
    let keys = Keys::new();
    let body = with(timestamp(5, 7), "expires", json!("2020-01-01T00:00:00Z"));
    let old = signed(&body, &[&keys.timestamp]);
    let anchor = keys.anchor(Stored {
        timestamp: Some(&old),
        snapshot: None,
    });
    assert_eq!(code(anchor.timestamp(&keys.timestamp(4, 7))), "rollback");
    // The same version is the stored document, which has expired.
    assert_eq!(code(anchor.timestamp(&keys.timestamp(5, 7))), "expired");
}

#[test]
fn p2_expired_documents_are_refused_to_the_second() {
    let keys = Keys::new();
    let end = UnixTime::parse("2030-01-01T00:00:00Z").unwrap();
    let before = UnixTime(end.0 - 1);
    assert_eq!(code(keys.anchor_at(end, Stored::default())), "expired");
    let anchor = keys.anchor_at(before, Stored::default()).unwrap();
    assert_eq!(code(anchor.timestamp(&keys.timestamp(1, 1))), "accepted");
    let gone = json!("2029-12-31T23:59:59Z");
    let expired = with(timestamp(1, 1), "expires", gone.clone());
    let expired = signed(&expired, &[&keys.timestamp]);
    assert_eq!(code(anchor.timestamp(&expired)), "expired");
    let (current, _) = anchor.timestamp(&keys.timestamp(1, 1)).unwrap();
    let expired = with(snapshot(1, &[("targets", 1)]), "expires", gone.clone());
    let expired = signed(&expired, &[&keys.snapshot]);
    assert_eq!(code(anchor.snapshot(&current, &expired)), "expired");
    let listing = anchor.snapshot(&current, &keys.snapshot(1, &[("targets", 1)]));
    let expired = signed(&with(targets(1, &[]), "expires", gone), &[&keys.targets]);
    assert_eq!(code(anchor.targets(&listing.unwrap(), &expired)), "expired");
}

#[test]
fn p3_a_flipped_bit_is_never_believed() {
    let keys = Keys::new();
    let anchor = keys.anchor(Stored::default());
    let good = keys.timestamp(5, 7);
    for at in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[at / 8] ^= 1 << (at % 8);
        // A bit of a member that nobody reads may be spelled otherwise, but then
        // the signed content is the same.
        if let Ok((new, _)) = anchor.timestamp(&bad) {
            let (old, _) = anchor.timestamp(&good).unwrap();
            assert_eq!(new.signed_digest(), old.signed_digest());
        }
    }
    let other = signed(&timestamp(5, 7), &[&keys.snapshot, &keys.root]);
    assert_eq!(code(anchor.timestamp(&other)), "threshold");
}

#[test]
fn p4_one_key_counts_once_whatever_it_is_called() {
    let [own, second] = [10, 11].map(Signer::new);
    let keys_of = Keys::new();
    // The same key once more, under the id of another spelling of it.
    let alias = with(own.key(), "x-alias", json!(1));
    let alias_id = id_of(&alias);
    let mut body = root(1, &[&own, &second], 2, keys_of.others());
    body["keys"][&alias_id] = alias;
    let ids = body["roles"]["root"]["keyids"].as_array_mut().unwrap();
    ids.push(json!(alias_id));
    let first = own.sign(&body);
    let again = with(own.sign(&body), "keyid", json!(alias_id));
    let envelope = |signatures| {
        let envelope = json!({"signed": body, "signatures": signatures});
        envelope.to_string().into_bytes()
    };
    let twice = Chain::begin(&envelope(json!([first, again])));
    assert!(matches!(
        twice,
        Err(TufError::Threshold {
            got: 1,
            need: 2,
            ..
        })
    ));
    let same_id = Chain::begin(&envelope(json!([first, first, second.sign(&body)])));
    assert_eq!(code(same_id), "malformed");
    let both = Chain::begin(&envelope(json!([again, second.sign(&body)])));
    assert_eq!(code(both), "accepted");
}

#[test]
fn p4_keys_of_unknown_kinds_and_under_wrong_ids_never_count() {
    let own = Signer::new(10);
    let keys_of = Keys::new();
    for key in [
        with(own.key(), "scheme", json!("ed448")),
        with(own.key(), "keytype", json!("rsa")),
        with(own.key(), "keyval", json!({"private": "x"})),
    ] {
        let id = id_of(&key);
        let mut body = root(1, &[&own], 1, keys_of.others());
        body["keys"] = json!({&id: key});
        body["roles"]["root"]["keyids"] = json!([id]);
        let signature = with(own.sign(&body), "keyid", json!(id));
        let envelope = json!({"signed": body, "signatures": [signature]});
        let bytes = envelope.to_string().into_bytes();
        assert_eq!(code(Chain::begin(&bytes)), "threshold");
    }
    let mut body = root(1, &[&own], 1, keys_of.others());
    body["keys"] = json!({"ab": own.key()});
    body["roles"]["root"]["keyids"] = json!(["ab"]);
    let signature = with(own.sign(&body), "keyid", json!("ab"));
    let envelope = json!({"signed": body, "signatures": [signature]});
    let bytes = envelope.to_string().into_bytes();
    assert_eq!(code(Chain::begin(&bytes)), "threshold");
}

#[test]
fn p5_roots_follow_one_by_one_under_both_thresholds() {
    let (keys, new) = (Keys::new(), Signer::new(9));
    let next = |version, signers: &[&Signer]| {
        let body = root(version, &[&new], 1, keys.others());
        let mut chain = Chain::begin(&keys.root()).unwrap();
        let result = chain.extend(&signed(&body, signers));
        let kept = if result.is_ok() { version } else { 1 };
        assert_eq!(chain.root().version(), kept);
        code(result)
    };
    assert_eq!(next(2, &[&keys.root, &new]), "accepted");
    assert_eq!(next(2, &[&keys.root]), "threshold");
    assert_eq!(next(2, &[&new]), "threshold");
    assert_eq!(next(3, &[&keys.root, &new]), "root-sequence");
    assert_eq!(next(1, &[&keys.root, &new]), "root-sequence");
}

#[test]
fn p6_rotation_recovers_from_fast_forward_and_hops_are_bounded() {
    let (keys, new) = (Keys::new(), Signer::new(9));
    let far = keys.timestamp(1 << 63, 1 << 63);
    let far_snapshot = keys.snapshot(1 << 63, &[("targets", 1 << 63)]);
    let stored = Stored {
        timestamp: Some(&far),
        snapshot: Some(&far_snapshot),
    };
    assert_eq!(keys.anchor(stored).memory(), Memory::Kept);
    assert_eq!(
        code(keys.anchor(stored).timestamp(&keys.timestamp(2, 2))),
        "rollback"
    );
    let mut chain = Chain::begin(&keys.root()).unwrap();
    let body = root(2, &[&keys.root], 1, [&new, &keys.snapshot, &keys.targets]);
    chain.extend(&signed(&body, &[&keys.root])).unwrap();
    let anchor = Anchor::new(chain, NOW, UnixTime(0), stored).unwrap();
    assert_eq!(anchor.memory(), Memory::Forgotten);
    let fresh = signed(&timestamp(1, 1), &[&new]);
    let (current, _) = anchor.timestamp(&fresh).unwrap();
    let listing = keys.snapshot(1, &[("targets", 1)]);
    assert_eq!(code(anchor.snapshot(&current, &listing)), "accepted");

    let mut chain = Chain::begin(&keys.root()).unwrap();
    while let Some(version) = chain.wants() {
        let body = root(version, &[&keys.root], 1, keys.others());
        chain.extend(&signed(&body, &[&keys.root])).unwrap();
    }
    assert_eq!(chain.root().version(), 33);
}

#[test]
fn p7_documents_of_different_states_do_not_mix() {
    let keys = Keys::new();
    let anchor = keys.anchor(Stored::default());
    let (current, _) = anchor.timestamp(&keys.timestamp(1, 7)).unwrap();
    for version in [6, 8] {
        let other = keys.snapshot(version, &[("targets", 1)]);
        assert_eq!(code(anchor.snapshot(&current, &other)), "mixed");
    }
    let listing = anchor.snapshot(&current, &keys.snapshot(7, &[("targets", 2)]));
    let listing = listing.unwrap();
    for (version, verdict) in [(1, "mixed"), (2, "accepted"), (3, "mixed")] {
        let bytes = signed(&targets(version, &[]), &[&keys.targets]);
        assert_eq!(code(anchor.targets(&listing, &bytes)), verdict);
    }
}

#[test]
fn p8_a_document_of_another_kind_is_refused() {
    let everybody = Signer::new(1);
    let all = [&everybody; 3];
    let chain = Chain::begin(&signed(&root(1, &[&everybody], 1, all), &[&everybody]));
    let anchor = Anchor::new(chain.unwrap(), NOW, UnixTime(0), Stored::default()).unwrap();
    let bodies = [
        root(1, &[&everybody], 1, all),
        timestamp(1, 1),
        snapshot(1, &[("targets", 1)]),
        targets(1, &[]),
    ];
    let right = signed(&timestamp(1, 1), &[&everybody]);
    let (current, _) = anchor.timestamp(&right).unwrap();
    let right = signed(&snapshot(1, &[("targets", 1)]), &[&everybody]);
    let listing = anchor.snapshot(&current, &right).unwrap();
    for (index, body) in bodies.iter().enumerate() {
        let bytes = signed(body, &[&everybody]);
        let codes = [
            code(Chain::begin(&bytes)),
            code(anchor.timestamp(&bytes)),
            code(anchor.snapshot(&current, &bytes)),
            code(anchor.targets(&listing, &bytes)),
        ];
        for (asked, code) in codes.iter().enumerate() {
            let verdict = if asked == index {
                "accepted"
            } else {
                "wrong-type"
            };
            assert_eq!(*code, verdict, "{index} as {asked}");
        }
    }
}

#[test]
fn p9_the_first_of_two_with_one_version_stays() {
    let keys = Keys::new();
    let old = keys.timestamp(5, 7);
    let anchor = keys.anchor(Stored {
        timestamp: Some(&old),
        snapshot: None,
    });
    let (kept, news) = anchor.timestamp(&keys.timestamp(5, 8)).unwrap();
    assert_eq!((kept.bytes(), news), (&old[..], News::Equivocation));
    let (_, news) = anchor.timestamp(&keys.timestamp(5, 7)).unwrap();
    assert_eq!(news, News::Same);
}

#[test]
fn p10_too_long_is_refused_before_it_is_read() {
    let keys = Keys::new();
    let long = vec![b' '; ROOT_MAX + 1];
    assert_eq!(code(Chain::begin(&long)), "too-large");
    let anchor = keys.anchor(Stored::default());
    assert_eq!(code(anchor.timestamp(&long)), "too-large");
}

#[test]
fn p11_p24_time_is_never_below_what_was_signed_nor_far_beyond_the_clock() {
    let keys = Keys::new();
    let issued = |version, time: UnixTime| {
        let body = with(timestamp(version, 1), "x-reconf-issued", json!(time));
        signed(&body, &[&keys.timestamp])
    };
    let old = issued(1, UnixTime(NOW.0 + 1000));
    let anchor = keys.anchor(Stored {
        timestamp: Some(&old),
        snapshot: None,
    });
    assert_eq!(anchor.now(), UnixTime(NOW.0 + 1000));
    let day = 24 * 3600;
    assert_eq!(
        code(anchor.timestamp(&issued(2, UnixTime(NOW.0 + day)))),
        "accepted"
    );
    let late = issued(2, UnixTime(NOW.0 + day + 1));
    assert_eq!(code(anchor.timestamp(&late)), "issued-in-future");
}

/// Delegated documents, by the name of the role.
#[derive(Default)]
struct Shelf {
    documents: BTreeMap<String, Vec<u8>>,
    fetched: Vec<String>,
}

impl RoleSource for Shelf {
    type Error = TufError;

    fn stored(&mut self, role: &Role) -> Option<Vec<u8>> {
        let seen = self.fetched.iter().any(|name| name == role.as_str());
        seen.then(|| self.documents[role.as_str()].clone())
    }

    fn fetch(&mut self, role: &Role, _: &Listed) -> Result<Vec<u8>, TufError> {
        self.fetched.push(role.as_str().to_owned());
        Ok(self.documents[role.as_str()].clone())
    }

    fn keep(&mut self, _: &Current<Targets>) -> Result<(), TufError> {
        Ok(())
    }
}

fn delegating(body: serde_json::Value, to: &[(&Signer, serde_json::Value)]) -> serde_json::Value {
    let signers: Vec<&Signer> = to.iter().map(|(signer, _)| *signer).collect();
    let roles: Vec<&serde_json::Value> = to.iter().map(|(_, role)| role).collect();
    with(
        body,
        "delegations",
        json!({"keys": keys(&signers), "roles": roles}),
    )
}

fn lookup(keys: &Keys, top: &serde_json::Value, roles: &[&str]) -> Lookup {
    let anchor = keys.anchor(Stored::default());
    let (current, _) = anchor.timestamp(&keys.timestamp(1, 1)).unwrap();
    let mut listed = vec![("targets", 1)];
    listed.extend(roles.iter().map(|role| (*role, 1)));
    let listing = anchor
        .snapshot(&current, &keys.snapshot(1, &listed))
        .unwrap();
    let top = anchor
        .targets(&listing, &signed(top, &[&keys.targets]))
        .unwrap();
    Lookup::new(anchor, listing, top)
}

#[test]
fn p19_a_role_speaks_only_within_its_paths_and_each_delegator_s_keys_count() {
    let keys = Keys::new();
    let [a, b, release, other] = [20, 21, 22, 23].map(Signer::new);
    let top = delegating(
        targets(1, &[("top", b"t")]),
        &[
            (&a, delegation("a", &a, &["a/*"], false)),
            (&b, delegation("b", &b, &["b/*"], false)),
        ],
    );
    let files: &[(&str, &[u8])] = &[("a/x", b"A"), ("b/x", b"B"), ("c/x", b"C")];
    let mut shelf = Shelf::default();
    for (name, signer, key) in [("a", &a, &release), ("b", &b, &other)] {
        let role = delegation("release", key, &["*/*"], false);
        let body = delegating(targets(1, &[]), &[(key, role)]);
        shelf
            .documents
            .insert(name.to_owned(), signed(&body, &[signer]));
    }
    let body = signed(&targets(1, files), &[&release]);
    shelf.documents.insert("release".to_owned(), body);
    let mut lookup = lookup(&keys, &top, &["a", "b", "release"]);
    let mut find = |path: &str| lookup.find(&TargetPath::parse(path).unwrap(), &mut shelf);

    let target = find("a/x").unwrap();
    let names: Vec<&str> = target.roles().iter().map(Role::as_str).collect();
    assert_eq!(names, ["targets", "a", "release"]);
    // The same bytes, verified a moment ago, but not for this delegator.
    assert_eq!(code(find("b/x")), "threshold");
    assert_eq!(code(find("c/x")), "no-such-target");
    assert_eq!(code(find("top")), "accepted");

    let mut checker = target.checker();
    checker.update(b"A").unwrap();
    assert_eq!(code(checker.finish()), "accepted");
    let mut checker = target.checker();
    checker.update(b"X").unwrap();
    assert_eq!(code(checker.finish()), "wrong-target");
    assert_eq!(code(target.checker().finish()), "wrong-target");
    assert_eq!(code(target.checker().update(b"AA")), "wrong-target");
}

#[test]
fn p10_cycles_end_and_terminating_roles_end_the_search() {
    let keys = Keys::new();
    let [a, b] = [20, 21].map(Signer::new);
    let both = |terminating| {
        [
            (&a, delegation("a", &a, &["*"], terminating)),
            (&b, delegation("b", &b, &["*"], false)),
        ]
    };
    let shelf = || {
        let mut shelf = Shelf::default();
        let body = delegating(targets(1, &[]), &[(&a, delegation("a", &a, &["*"], false))]);
        shelf.documents.insert("a".to_owned(), signed(&body, &[&a]));
        let body = targets(1, &[("x", b"x")]);
        shelf.documents.insert("b".to_owned(), signed(&body, &[&b]));
        shelf
    };
    let path = TargetPath::parse("x").unwrap();
    for (terminating, verdict) in [(false, "accepted"), (true, "no-such-target")] {
        let top = delegating(targets(1, &[]), &both(terminating));
        let mut lookup = lookup(&keys, &top, &["a", "b"]);
        assert_eq!(code(lookup.find(&path, &mut shelf())), verdict);
    }
    let top = delegating(targets(1, &[]), &both(false));
    let mut lookup = lookup(&keys, &top, &["b"]);
    assert_eq!(code(lookup.find(&path, &mut shelf())), "not-in-snapshot");
}

#[test]
fn p18_paths_that_climb_and_patterns_that_clients_read_differently_refuse_the_document() {
    let keys = Keys::new();
    let anchor = keys.anchor(Stored::default());
    let (current, _) = anchor.timestamp(&keys.timestamp(1, 1)).unwrap();
    let listing = keys.snapshot(1, &[("targets", 1)]);
    let listing = anchor.snapshot(&current, &listing).unwrap();
    let verdict = |body| code(anchor.targets(&listing, &signed(&body, &[&keys.targets])));
    for path in ["../x", "/x", "a//b", "a\\b"] {
        assert_eq!(verdict(targets(1, &[(path, b"x")])), "malformed");
    }
    let role = |name, paths: &[&str]| {
        let signer = Signer::new(20);
        let role = delegation(name, &signer, paths, true);
        delegating(targets(1, &[]), &[(&signer, role)])
    };
    assert_eq!(verdict(role("a", &["[ab]*"])), "malformed");
    assert_eq!(verdict(role("snapshot", &["*"])), "malformed");
    assert_eq!(verdict(role("a", &["*"])), "accepted");
    assert_eq!(
        verdict(with(targets(1, &[]), "version", json!(0))),
        "malformed"
    );
    assert_eq!(
        verdict(with(targets(1, &[]), "spec_version", json!("2.0"))),
        "malformed"
    );
    assert_eq!(verdict(head("targets", 1)), "malformed");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_bytes_are_believed_and_none_break_it(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let keys = Keys::new();
        prop_assert!(Chain::begin(&bytes).is_err());
        prop_assert!(keys.anchor(Stored::default()).timestamp(&bytes).is_err());
    }

    #[test]
    fn a_root_with_a_stray_byte_breaks_nothing(at in 0usize..2000, byte: u8) {
        let mut bytes = Keys::new().root();
        if let Some(place) = bytes.get_mut(at) {
            *place = byte;
        }
        let _told = Chain::begin(&bytes).map_err(|error| error.to_string());
    }
}
