//! Whatever comes in from outside ends in an answer or in a failure, never in a panic.

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::admin::AdminBody;

/// JSON of any shape, with the keys that matter among others.
fn json() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        prop::sample::select(
            &[
                "ask", "steps", "verdict", "allowed", "denied", "check", "why", "time", "event"
            ][..]
        )
        .prop_map(str::to_owned),
        ".{0,6}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(key.clone(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn page(body: &AdminBody) -> String {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut streams = Streams {
        out: &mut out,
        err: &mut err,
        colour: Colour::Never,
    };
    show::body(body, &mut streams).unwrap();
    String::from_utf8(out).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn explanations_and_audit_records_of_any_shape(value in json()) {
        let denied = value.get("verdict").and_then(|verdict| verdict.get("allowed")).is_none();
        prop_assert!(!(denied && show::allows(&value)), "what does not allow is a no");
        for body in [AdminBody::Explanation(value.clone()), AdminBody::Audit(vec![value])] {
            let page = page(&body);
            prop_assert!(page.chars().all(|c| c == '\n' || !c.is_control()), "{page:?}");
        }
    }

    #[test]
    fn answers_of_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Err(failure) = client::decode(bytes) {
            prop_assert!(matches!(failure.exit, Exit::Unreachable | Exit::No));
        }
    }

    #[test]
    fn spans_of_any_text(text in ".{0,12}", number in any::<u64>(), unit in "(ms|s|m|h|d|)") {
        if let Ok(span) = duration::parse(&text) {
            prop_assert!(!span.is_zero());
        }
        let _checked = duration::parse(&format!("{number}{unit}"));
    }

    #[test]
    fn lists_of_any_text(text in "(\\[\\[image\\]\\]\n)?.{0,60}(\n.{0,60})?") {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("list.toml");
        std::fs::write(&file, text).unwrap();
        if let Err(failure) = repo::read_draft(&file) {
            prop_assert_eq!(failure.exit, Exit::Files);
        }
    }
}
