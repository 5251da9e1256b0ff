//! A small signer: repositories for the tests, right ones and wrong ones.

use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};

use super::{canonical, json as parser};
use crate::hex;
use crate::ids::Digest;

pub(super) struct Signer(Ed25519KeyPair);

impl Signer {
    pub(super) fn new(seed: u8) -> Signer {
        Signer(Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap())
    }

    pub(super) fn key(&self) -> Value {
        let public = hex::encode(self.0.public_key().as_ref());
        json!({"keytype": "ed25519", "scheme": "ed25519", "keyval": {"public": public}})
    }

    pub(super) fn id(&self) -> String {
        id_of(&self.key())
    }

    pub(super) fn sign(&self, signed: &Value) -> Value {
        let sig = hex::encode(self.0.sign(&canonical_of(signed)).as_ref());
        json!({"keyid": self.id(), "sig": sig})
    }
}

fn canonical_of(value: &Value) -> Vec<u8> {
    canonical::bytes(&parser::parse(value.to_string().as_bytes()).unwrap())
}

pub(super) fn id_of(key: &Value) -> String {
    hex::encode(&Digest::of(&canonical_of(key)).0)
}

/// An envelope, signed by these.
pub(super) fn signed(body: &Value, signers: &[&Signer]) -> Vec<u8> {
    let signatures: Vec<Value> = signers.iter().map(|signer| signer.sign(body)).collect();
    json!({"signed": body, "signatures": signatures})
        .to_string()
        .into_bytes()
}

/// What all documents have; valid for long.
pub(super) fn head(kind: &str, version: u64) -> Value {
    json!({"_type": kind, "spec_version": "1.0.34", "version": version,
        "expires": "2030-01-01T00:00:00Z"})
}

pub(super) fn with(mut body: Value, name: &str, value: Value) -> Value {
    body[name] = value;
    body
}

fn quorum(signers: &[&Signer], threshold: u64) -> Value {
    let ids: Vec<String> = signers.iter().map(|signer| signer.id()).collect();
    json!({"keyids": ids, "threshold": threshold})
}

pub(super) fn keys(signers: &[&Signer]) -> Value {
    signers.iter().map(|s| (s.id(), s.key())).collect()
}

/// Root keys and threshold, and the keys of timestamp, snapshot and targets.
pub(super) fn root(version: u64, own: &[&Signer], threshold: u64, others: [&Signer; 3]) -> Value {
    let all: Vec<&Signer> = own.iter().copied().chain(others).collect();
    let [timestamp, snapshot, targets] = others;
    let mut body = head("root", version);
    body["consistent_snapshot"] = json!(true);
    body["keys"] = keys(&all);
    body["roles"] = json!({
        "root": quorum(own, threshold),
        "timestamp": quorum(&[timestamp], 1),
        "snapshot": quorum(&[snapshot], 1),
        "targets": quorum(&[targets], 1),
    });
    body
}

pub(super) fn timestamp(version: u64, snapshot: u64) -> Value {
    let meta = json!({"snapshot.json": {"version": snapshot}});
    with(head("timestamp", version), "meta", meta)
}

/// Each role with its version.
pub(super) fn snapshot(version: u64, roles: &[(&str, u64)]) -> Value {
    let meta: Value = roles
        .iter()
        .map(|(role, version)| (format!("{role}.json"), json!({"version": version})))
        .collect();
    with(head("snapshot", version), "meta", meta)
}

/// Each target with its content.
pub(super) fn targets(version: u64, files: &[(&str, &[u8])]) -> Value {
    let list: Value = files
        .iter()
        .map(|(path, bytes)| {
            let sha256 = hex::encode(&Digest::of(bytes).0);
            let facts = json!({"length": bytes.len(), "hashes": {"sha256": sha256}});
            ((*path).to_owned(), facts)
        })
        .collect();
    with(head("targets", version), "targets", list)
}

/// A delegation to `name` for `paths`, by one key.
pub(super) fn delegation(name: &str, signer: &Signer, paths: &[&str], terminating: bool) -> Value {
    let mut role = quorum(&[signer], 1);
    role["name"] = json!(name);
    role["paths"] = json!(paths);
    role["terminating"] = json!(terminating);
    role
}
