//! Which targets a delegation covers.
//!
//! Knows paths. `*` and `?` match within one part of a path, never a slash.
//! Brackets are refused and not taken as they stand: other clients read them as
//! sets, and a delegation that two clients read differently protects nobody.

use ring::digest::{SHA256, digest};

use super::error::Bad;
use super::limits::PATH_MAX;
use super::name::TargetPath;
use crate::hex;

/// A pattern such as `acme/*.gbs`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PathPattern(String);

impl PathPattern {
    pub(super) fn parse(text: String) -> Result<PathPattern, Bad> {
        if text.len() > PATH_MAX {
            return Err(Bad::new(format!("longer than {PATH_MAX} bytes")));
        }
        if text.contains(['[', ']']) {
            return Err(Bad::new(
                "brackets in a pattern: only `*` and `?` are known",
            ));
        }
        Ok(PathPattern(text))
    }

    pub(super) fn covers(&self, path: &TargetPath) -> bool {
        let (mut patterns, mut parts) = (self.0.split('/'), path.as_str().split('/'));
        loop {
            match (patterns.next(), parts.next()) {
                (None, None) => return true,
                (Some(pattern), Some(part)) if matches(pattern, part) => {}
                _ => return false,
            }
        }
    }
}

/// One part. Back to the last star where it does not fit: no worse than the
/// product of both lengths.
fn matches(pattern: &str, text: &str) -> bool {
    let (mut pattern, mut text) = (pattern.chars(), text.chars());
    let mut retry: Option<(std::str::Chars<'_>, std::str::Chars<'_>)> = None;
    loop {
        match (pattern.next(), text.clone().next()) {
            (Some('*'), _) => retry = Some((pattern.clone(), text.clone())),
            (Some(wanted), Some(here)) if wanted == '?' || wanted == here => {
                text.next();
            }
            (None, None) => return true,
            _ => {
                let Some((after_star, from)) = &mut retry else {
                    return false;
                };
                if from.next().is_none() {
                    return false;
                }
                pattern = after_star.clone();
                text = from.clone();
            }
        }
    }
}

/// The first hexadecimal digits of the SHA-256 of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HashPrefix(String);

impl HashPrefix {
    pub(super) fn parse(text: String) -> Result<HashPrefix, Bad> {
        let digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if (1..=64).contains(&text.len()) && text.bytes().all(digit) {
            Ok(HashPrefix(text))
        } else {
            Err(Bad::new("not 1 to 64 lower-case hexadecimal digits"))
        }
    }

    pub(super) fn covers(&self, path: &TargetPath) -> bool {
        hex::encode(&path_hash(path)).starts_with(&self.0)
    }
}

/// SHA-256 of a path's text.
pub(super) fn path_hash(path: &TargetPath) -> [u8; 32] {
    let digest = digest(&SHA256, path.as_str().as_bytes());
    digest.as_ref().try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_stay_within_a_part() {
        let long = "a".repeat(200);
        let stars = "*a".repeat(100) + "b";
        for (pattern, path, covered) in [
            ("*", "a", true),
            ("*", "a/b", false),
            ("*.tgz", "foo.tgz", true),
            ("*.tgz", "x/foo.tgz", false),
            ("foo-?.tgz", "foo-1.tgz", true),
            ("foo-?.tgz", "foo-alpha.tgz", false),
            ("releases/*/*", "releases/x/y", true),
            ("releases/*/*", "releases/x", false),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b", "xxaxxbxx", false),
            ("a**b", "ab", true),
            ("README.md", "README.MD", false),
            ("\u{e9}?", "\u{e9}\u{e8}", true),
            ("", "a", false),
            ("/a", "a", false),
            (&stars, &long, false),
        ] {
            let pattern = PathPattern::parse(pattern.to_owned()).unwrap();
            let path = TargetPath::parse(path).unwrap();
            assert_eq!(pattern.covers(&path), covered, "{pattern:?} {path}");
        }
        assert!(PathPattern::parse("[ab]".to_owned()).is_err());
    }

    #[test]
    fn prefixes_of_hashes() {
        // sha256("a") = ca978112…
        let path = TargetPath::parse("a").unwrap();
        let covers = |text: &str| HashPrefix::parse(text.to_owned()).unwrap().covers(&path);
        assert!(covers("ca97") && covers("c") && !covers("cb"));
        for bad in ["", "CA", "xy", &"0".repeat(65)] {
            assert!(HashPrefix::parse(bad.to_owned()).is_err());
        }
    }
}
