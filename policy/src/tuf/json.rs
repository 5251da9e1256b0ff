//! Bounded JSON: what canonical JSON can say, and nothing more.
//!
//! Knows text and limits. Must not know what a document means. Refused before
//! anything is used: doubled keys, fractions, numbers beyond 64 bits, depth,
//! too many values, bytes after the end, text that is not UTF-8.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};

use super::error::Bad;
use super::limits::{DEPTH_MAX, NODES_MAX};

/// One value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Json {
    Null,
    Bool(bool),
    /// Within `i64` or `u64`.
    Int(i128),
    Text(String),
    List(Vec<Json>),
    Map(BTreeMap<String, Json>),
}

/// Reads a whole document.
pub(super) fn parse(bytes: &[u8]) -> Result<Json, Bad> {
    let nodes = Cell::new(NODES_MAX);
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let seed = Seed {
        depth: DEPTH_MAX,
        nodes: &nodes,
    };
    let json = seed
        .deserialize(&mut deserializer)
        .map_err(|error| Bad::new(error.to_string()))?;
    deserializer
        .end()
        .map_err(|error| Bad::new(error.to_string()))?;
    Ok(json)
}

/// How much more may come.
#[derive(Clone, Copy)]
struct Seed<'a> {
    depth: u32,
    nodes: &'a Cell<u32>,
}

impl<'a> Seed<'a> {
    fn count<E: serde::de::Error>(self) -> Result<(), E> {
        let left = self.nodes.get().checked_sub(1);
        self.nodes
            .set(left.ok_or_else(|| E::custom("too many values"))?);
        Ok(())
    }

    fn inner<E: serde::de::Error>(self) -> Result<Seed<'a>, E> {
        let depth = self.depth.checked_sub(1);
        let depth = depth.ok_or_else(|| E::custom("too deep"))?;
        Ok(Seed { depth, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Json;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        self.count()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of canonical JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Int(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Int(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<Json, E> {
        Err(E::custom(
            "canonical JSON has whole numbers of 64 bits only",
        ))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Json, E> {
        Ok(Json::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Json, A::Error> {
        let inner = self.inner()?;
        let mut list = Vec::new();
        while let Some(value) = access.next_element_seed(inner)? {
            list.push(value);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Json, A::Error> {
        let inner = self.inner()?;
        let mut map = BTreeMap::new();
        while let Some(key) = access.next_key::<String>()? {
            self.count()?;
            if map.contains_key(&key) {
                return Err(A::Error::custom(format!("`{key}` comes twice")));
            }
            let value = access.next_value_seed(inner)?;
            map.insert(key, value);
        }
        Ok(Json::Map(map))
    }
}

impl From<Json> for serde_json::Value {
    fn from(json: Json) -> serde_json::Value {
        match json {
            Json::Null => serde_json::Value::Null,
            Json::Bool(value) => value.into(),
            Json::Int(value) => u64::try_from(value)
                .map(serde_json::Value::from)
                .or_else(|_| i64::try_from(value).map(serde_json::Value::from))
                .unwrap_or(serde_json::Value::Null),
            Json::Text(text) => text.into(),
            Json::List(list) => list.into_iter().map(serde_json::Value::from).collect(),
            Json::Map(map) => map
                .into_iter()
                .map(|(key, value)| (key, serde_json::Value::from(value)))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(text: &[u8]) -> String {
        let Bad(why) = parse(text).unwrap_err();
        why
    }

    #[test]
    fn p10_what_canonical_json_cannot_say_is_refused() {
        assert!(why(br#"{"a": 1, "a": 2}"#).contains("`a` comes twice"));
        // Two spellings of one key are one key.
        assert!(why(br#"{"a": 1, "\u0061": 2}"#).contains("comes twice"));
        for number in [
            "1.5",
            "1e3",
            "-0",
            "18446744073709551616",
            "-9223372036854775809",
        ] {
            assert!(why(number.as_bytes()).contains("64 bits"), "{number}");
        }
        for broken in [&b"NaN"[..], b"{} {}", b"", b"[", b"\"\xff\"", b"{1: 2}"] {
            assert!(parse(broken).is_err(), "{broken:?}");
        }
        assert_eq!(
            parse(b"18446744073709551615"),
            Ok(Json::Int(u64::MAX.into()))
        );
        assert_eq!(
            parse(b"-9223372036854775808"),
            Ok(Json::Int(i64::MIN.into()))
        );
    }

    #[test]
    fn p10_depth_and_number_of_values_are_bounded() {
        let deep = |n: usize| [vec![b'['; n], vec![b']'; n]].concat();
        assert!(parse(&deep(24)).is_ok());
        assert!(why(&deep(25)).contains("too deep"));
        assert!(parse(&deep(10_000)).is_err());
        let wide = |n: usize| format!("[{}0]", "0,".repeat(n));
        assert!(parse(wide(1000).as_bytes()).is_ok());
        assert!(why(wide(1 << 20).as_bytes()).contains("too many values"));
    }
}
