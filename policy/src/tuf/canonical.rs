//! Canonical JSON (OLPC): the one spelling of a value, over which it is signed.
//!
//! Knows [`Json`] only. Keys in the order of their bytes, no blanks, and in text
//! only `"` and `\` are escaped: a control character stands as it is, as in every
//! other implementation of TUF.

use super::json::Json;

/// The canonical bytes of a value.
pub(super) fn bytes(json: &Json) -> Vec<u8> {
    let mut out = Vec::new();
    write(json, &mut out);
    out
}

fn write(json: &Json, out: &mut Vec<u8>) {
    match json {
        Json::Null => out.extend_from_slice(b"null"),
        Json::Bool(true) => out.extend_from_slice(b"true"),
        Json::Bool(false) => out.extend_from_slice(b"false"),
        Json::Int(value) => out.extend_from_slice(value.to_string().as_bytes()),
        Json::Text(value) => text(value, out),
        Json::List(list) => {
            out.push(b'[');
            for (index, value) in list.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write(value, out);
            }
            out.push(b']');
        }
        Json::Map(map) => {
            out.push(b'{');
            for (index, (key, value)) in map.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                text(key, out);
                out.push(b':');
                write(value, out);
            }
            out.push(b'}');
        }
    }
}

fn text(value: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in value.bytes() {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::json::parse;
    use super::*;

    fn canonical(text: &str) -> String {
        String::from_utf8(bytes(&parse(text.as_bytes()).unwrap())).unwrap()
    }

    #[test]
    fn known_spellings() {
        for (text, spelled) in [
            (r#" { "b" : 1 , "a" : [ ] } "#, r#"{"a":[],"b":1}"#),
            (
                r#"{"a":{},"B":[null,true,false,-7]}"#,
                r#"{"B":[null,true,false,-7],"a":{}}"#,
            ),
            // As `securesystemslib.formats.encode_canonical` writes it.
            (
                r#""\"\\\/\n\u00e9\ud83d\ude00""#,
                "\"\\\"\\\\/\n\u{e9}\u{1f600}\"",
            ),
            ("9223372036854775808", "9223372036854775808"),
        ] {
            assert_eq!(canonical(text), spelled);
        }
    }

    #[test]
    fn keys_follow_the_order_of_code_points() {
        // U+FFFD comes before U+1F600, though its UTF-16 would come after.
        assert_eq!(
            canonical("{\"\u{1f600}\":1,\"\u{fffd}\":2}"),
            "{\"\u{fffd}\":2,\"\u{1f600}\":1}"
        );
    }

    proptest! {
        #[test]
        fn one_value_has_one_spelling(keys in proptest::collection::btree_map("[ -~]{0,5}", any::<i64>(), 0..6)) {
            let mut forward = String::from("{");
            let mut backward = String::from("{");
            let items: Vec<String> = keys
                .iter()
                .map(|(key, value)| format!("{}:{value}", serde_json::Value::from(key.as_str())))
                .collect();
            forward.push_str(&items.join(" , "));
            backward.push_str(&items.iter().rev().cloned().collect::<Vec<_>>().join(","));
            forward.push('}');
            backward.push('}');
            let spelled = canonical(&forward);
            prop_assert_eq!(&spelled, &canonical(&backward));
            prop_assert_eq!(canonical(&spelled), spelled);
        }
    }
}
