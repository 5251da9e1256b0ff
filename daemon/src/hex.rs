//! Hex digits, as people write digests and keys.

/// Lower-case hex of `bytes`.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(
        String::with_capacity(bytes.len().saturating_mul(2)),
        |mut text, byte| {
            // Writing to a String cannot fail.
            let _infallible = write!(text, "{byte:02x}");
            text
        },
    )
}

/// Exactly `N` bytes from `2 N` hex digits of either case, and nothing else.
#[must_use]
pub fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != N.checked_mul(2)? {
        return None;
    }
    let mut out = [0u8; N];
    for (byte, pair) in out.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let high = char::from(*pair.first()?).to_digit(16)?;
        let low = char::from(*pair.get(1)?).to_digit(16)?;
        *byte = u8::try_from((high << 4) | low).ok()?;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let bytes = [0x00, 0x7f, 0xff, 0x10];
        assert_eq!(encode(&bytes), "007fff10");
        assert_eq!(decode::<4>("007FfF10"), Some(bytes));
    }

    #[test]
    fn nothing_but_digits_of_the_right_number() {
        assert_eq!(decode::<2>("007"), None);
        assert_eq!(decode::<2>("00 1"), None);
        assert_eq!(decode::<2>("+0+1"), None);
        assert_eq!(decode::<2>("００"), None);
    }
}
