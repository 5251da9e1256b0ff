//! The checks that a report tells one by one, and which of them a refusal is
//! about.
//!
//! Knows the fence's codes. The fence stops at the first thing that is wrong, so
//! of the other checks no more is known than that.

use bitstream::fence::{Reason, Refusal};
use serde::Serialize;

/// The checks, in the order in which they are told, each with the codes of the
/// refusals that belong to it.
const CHECKS: [(&str, &[&str]); 7] = [
    (
        "packets",
        &[
            "no-sync-word",
            "word-outside-sync",
            "unfinished",
            "not-a-packet",
            "read-packet",
            "reserved-operation",
            "word-count",
            "too-many",
        ],
    ),
    (
        "device",
        &[
            "wrong-device",
            "unknown-device",
            "unmeasured-family",
            "multi-die",
        ],
    ),
    ("checksums", &["crc-mismatch", "crc-missing"]),
    (
        "frames",
        &[
            "no-frame-address",
            "bad-frame-address",
            "frame-length",
            "no-such-frame",
            "pad-not-empty",
            "left-in-buffer",
        ],
    ),
    (
        "column masks",
        &[
            "mask-content",
            "mask-incomplete",
            "masks-differ",
            "mask-outside",
            "mask-unknown",
            "restores-outside",
        ],
    ),
    (
        "region",
        &["outside-region", "outside-blocks", "incomparable"],
    ),
    // What no other one names.
    ("registers, commands and order", &[]),
];

/// How a check went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Went {
    /// Nothing is wrong.
    Passed,
    /// This is what is wrong.
    Failed,
    /// Reading stopped before it was done.
    NotReached,
    /// Nobody asked: no region was named.
    NotAsked,
}

#[derive(Debug, Serialize)]
pub(super) struct CheckView {
    pub(super) check: &'static str,
    pub(super) went: Went,
}

/// How each check went, from the one refusal that there is. `alone`: without a
/// region there is none.
pub(super) fn checks(refusal: Option<&Refusal>, alone: bool, region: bool) -> Vec<CheckView> {
    let failed = refusal.map(|refusal| group(refusal.reason()));
    let went = |check: &'static str| match failed {
        Some(failed) if failed == check => Went::Failed,
        _ if check == "region" && !region => Went::NotAsked,
        // What needs no region was looked at by itself.
        Some(_) if alone && check != "region" => Went::Passed,
        Some(_) => Went::NotReached,
        None => Went::Passed,
    };
    CHECKS
        .iter()
        .map(|(check, _codes)| CheckView {
            check,
            went: went(check),
        })
        .collect()
}

/// The check that a reason belongs to.
fn group(reason: &Reason) -> &'static str {
    let has = |codes: &&[&str]| codes.contains(&reason.code());
    let named = CHECKS.iter().find(|(_, codes)| has(codes));
    named.map_or("registers, commands and order", |(check, _)| check)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_that_a_check_names_is_one_of_the_fence() {
        let known: Vec<&str> = Reason::CODES.iter().map(|(code, _)| *code).collect();
        for (check, codes) in CHECKS {
            for code in codes {
                assert!(known.contains(code), "{check}: {code}");
            }
        }
    }
}
