//! The one way in which this crate reads a UUID.
//!
//! Knows two spellings: 32 hex digits, with or without the four dashes, in
//! either case. Everything else that other parsers let pass (braces, `urn:`,
//! spaces, digits of other scripts) is refused, so that two spellings are
//! either equal or an error.

use thiserror::Error;
use uuid::Uuid;

/// Text that is not a UUID in one of the two spellings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("not a UUID: write 32 hexadecimal digits, with the four dashes or without any")]
pub struct UuidError;

/// Reads a UUID: 32 hex digits in either case, as `8-4-4-4-12` or undivided.
///
/// # Errors
///
/// [`UuidError`] for every other spelling.
pub fn parse_uuid(text: &str) -> Result<Uuid, UuidError> {
    // `try_parse` tells the spellings apart by length; these two lengths leave
    // only the dashed and the undivided one.
    match text.len() {
        32 | 36 => Uuid::try_parse(text).ok().ok_or(UuidError),
        _ => Err(UuidError),
    }
}

/// The same 16 bytes, last first: how some tools store the same id.
pub(crate) fn reversed(id: Uuid) -> Uuid {
    let mut bytes = id.into_bytes();
    bytes.reverse();
    Uuid::from_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "5a7e2c10-3d4b-4f68-92a1-c0d9e8b7a6f5";

    #[test]
    fn cyb_07_case_and_dashes_are_equal() {
        let id = parse_uuid(ID).unwrap();
        assert_eq!(parse_uuid(&ID.to_uppercase()), Ok(id));
        assert_eq!(parse_uuid(&ID.replace('-', "")), Ok(id));
    }

    #[test]
    fn cyb_07_every_other_spelling_is_refused() {
        for bad in [
            format!("{{{ID}}}"),
            format!("{{{}}}", ID.replace('-', "")),
            format!("urn:uuid:{ID}"),
            ID.get(..35).unwrap().to_owned(),
            format!("{ID}0"),
            format!(" {ID}"),
            format!("{ID}\r"),
            ID.replacen('5', "\u{ff15}", 1),
            // The right length, dashes at the wrong places.
            "5a7e2c103-d4b-4f68-92a1-c0d9e8b7a6f5".to_owned(),
            "5a7e2c10-3d4b4f6892a1c0d9e8b7a6f".to_owned(),
            // 34 bytes of text, 32 characters.
            format!("\u{e9}\u{e9}{}", "0".repeat(28)),
            String::new(),
        ] {
            assert_eq!(parse_uuid(&bad), Err(UuidError), "{bad:?}");
        }
    }
}
