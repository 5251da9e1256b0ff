//! Lower-case hex of fixed lengths.

/// Writes two digits a byte.
pub(crate) fn encode(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads exactly `N` bytes: lower-case digits only, so that one value has one spelling.
pub(crate) fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
        return None;
    };
    if pairs.len() != N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = (digit(*high)? << 4) | digit(*low)?;
    }
    Some(bytes)
}

fn digit(character: u8) -> Option<u8> {
    match character {
        b'0'..=b'9' => character.checked_sub(b'0'),
        b'a'..=b'f' => character.checked_sub(b'a' - 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_has_one_spelling() {
        assert_eq!(encode(&[0x00, 0xfe]), "00fe");
        assert_eq!(decode::<2>("00fe"), Some([0x00, 0xfe]));
        for bad in ["00FE", "0fe", "00fe0", "00fe00", "0xfe", "00 e", "", "é0f"] {
            assert_eq!(decode::<2>(bad), None, "{bad}");
        }
    }
}
