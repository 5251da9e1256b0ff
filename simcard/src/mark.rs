//! How a partial bitstream made by a test says which function it holds: a
//! frame that begins with six words,
//!
//! | word | what |
//! |---|---|
//! | 0 | `RCSM`, 0x5243534d |
//! | 1 to 4 | the function's id, most significant word first |
//! | 5 | the exclusive or of words 0 to 4 |
//!
//! Frames of real partials mean nothing to a simulated fabric; those are known
//! by their digest.

use uuid::Uuid;

/// `RCSM` as a frame word.
const MAGIC: u32 = 0x5243_534d;

/// The words that name a function.
#[must_use]
pub fn words(function: Uuid) -> [u32; 6] {
    let id = function.as_u128();
    let part = |shift: u32| u32::try_from(id >> shift & u128::from(u32::MAX)).unwrap_or(0);
    let [a, b, c, d] = [part(96), part(64), part(32), part(0)];
    [MAGIC, a, b, c, d, MAGIC ^ a ^ b ^ c ^ d]
}

/// The function that a frame names.
pub(crate) fn read(frame: &[u32]) -> Option<Uuid> {
    let [MAGIC, a, b, c, d, check, ..] = frame else {
        return None;
    };
    let id = [a, b, c, d]
        .into_iter()
        .fold(0u128, |id, word| id << 32 | u128::from(*word));
    (MAGIC ^ a ^ b ^ c ^ d == *check).then(|| Uuid::from_u128(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_is_read_and_nothing_else() {
        let id = Uuid::from_u128(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff);
        let mut frame = words(id).to_vec();
        assert_eq!(frame[..2], [0x5243_534d, 0x0011_2233]);
        frame.extend([1; 95]);
        assert_eq!(read(&frame), Some(id));
        for at in 0..6 {
            frame[at] ^= 4;
            assert_eq!(read(&frame), None, "word {at}");
            frame[at] ^= 4;
        }
        assert_eq!(read(&frame[..5]), None);
    }
}
