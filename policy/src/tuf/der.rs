//! Public keys as PEM writes them: base64 around a `SubjectPublicKeyInfo`.
//!
//! Knows two kinds of key, P-256 and RSA, in the one strict encoding (DER) each.
//! What is not exactly that is no key, so that one key has one form.

/// The DER bytes within `-----BEGIN PUBLIC KEY-----` and its end.
pub(super) fn from_pem(text: &str) -> Option<Vec<u8>> {
    let body = text.trim().strip_prefix("-----BEGIN PUBLIC KEY-----")?;
    let body = body.strip_suffix("-----END PUBLIC KEY-----")?;
    let digits: Vec<u8> = body
        .bytes()
        .filter(|byte| !matches!(byte, b'\n' | b'\r'))
        .collect();
    base64(&digits)
}

/// Base64 of the standard alphabet, padded, with no stray bits.
fn base64(digits: &[u8]) -> Option<Vec<u8>> {
    let (groups, []) = digits.as_chunks::<4>() else {
        return None;
    };
    let mut out = Vec::with_capacity(digits.len());
    let mut ended = false;
    for group in groups {
        if ended {
            return None;
        }
        let padding = group.iter().rev().take_while(|byte| **byte == b'=').count();
        ended = padding > 0;
        let mut value = 0u32;
        for byte in group.iter().take(4usize.checked_sub(padding)?) {
            value = (value << 6) | digit(*byte)?;
        }
        let shift = u32::try_from(padding).ok()?.checked_mul(6)?;
        let [zero, bytes @ ..] = value.checked_shl(shift)?.to_be_bytes();
        let keep = 3usize.checked_sub(padding).filter(|keep| *keep > 0)?;
        let (kept, rest) = bytes.split_at_checked(keep)?;
        if zero != 0 || rest.iter().any(|byte| *byte != 0) {
            return None;
        }
        out.extend_from_slice(kept);
    }
    Some(out)
}

fn digit(byte: u8) -> Option<u32> {
    let value = match byte {
        b'A'..=b'Z' => byte.checked_sub(b'A')?,
        b'a'..=b'z' => byte.checked_sub(b'a' - 26)?,
        b'0'..=b'9' => byte.checked_add(52 - b'0')?,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(u32::from(value))
}

/// `SEQUENCE { SEQUENCE { id-ecPublicKey, prime256v1 }, BIT STRING of 65 bytes }`,
/// up to the point (RFC 5480).
const P256_HEAD: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// The uncompressed point of a P-256 key: `04`, x, y.
pub(super) fn p256_point(der: &[u8]) -> Option<&[u8]> {
    let point = der.strip_prefix(&P256_HEAD)?;
    (point.len() == 65 && point.first() == Some(&4)).then_some(point)
}

/// `SEQUENCE { rsaEncryption, NULL }` (RFC 3279).
const RSA_ALGORITHM: [u8; 15] = [
    0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00,
];

/// The `RSAPublicKey` (PKCS #1) of an RSA key; ring checks what is in it.
pub(super) fn rsa_public_key(der: &[u8]) -> Option<&[u8]> {
    let (info, []) = element(0x30, der)? else {
        return None;
    };
    let (bits, []) = element(0x03, info.strip_prefix(&RSA_ALGORITHM)?)? else {
        return None;
    };
    let key = bits.strip_prefix(&[0])?;
    let (_, []) = element(0x30, key)? else {
        return None;
    };
    Some(key)
}

/// The content of an element with this tag, and what follows it.
fn element(tag: u8, der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (head, rest) = der.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (len, rest) = match *first {
        short @ 0..=0x7f => (usize::from(short), rest),
        0x81 => {
            let (len, rest) = rest.split_first()?;
            (Some(usize::from(*len)).filter(|len| *len > 0x7f)?, rest)
        }
        0x82 => {
            let (len, rest) = rest.split_first_chunk::<2>()?;
            let len = usize::from(u16::from_be_bytes(*len));
            (Some(len).filter(|len| *len > 0xff)?, rest)
        }
        _ => return None,
    };
    (*head == tag).then_some(())?;
    rest.split_at_checked(len)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn base64_has_one_spelling() {
        assert_eq!(base64(b"AAEC/+8="), Some(vec![0, 1, 2, 0xff, 0xef]));
        assert_eq!(base64(b""), Some(vec![]));
        assert_eq!(base64(b"/w=="), Some(vec![0xff]));
        for bad in [
            "A", "AA", "AA=", "/x==", "A===", "====", "AA==AAAA", "A A=", "AA-_", "AAE==",
        ] {
            assert_eq!(base64(bad.as_bytes()), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_break_the_reader(bytes in proptest::collection::vec(any::<u8>(), 0..80), head in 0usize..3) {
            let mut der = [&[][..], &P256_HEAD[..], &[0x30, 0x20, 0x30, 0x0d][..]][head].to_vec();
            der.extend_from_slice(&bytes);
            let _point = p256_point(&der);
            let _key = rsa_public_key(&der);
            let _decoded = base64(&bytes);
        }
    }
}
