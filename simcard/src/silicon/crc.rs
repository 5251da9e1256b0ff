//! The CRC of the configuration logic: CRC-32C, reflected, over 37 bits for
//! each register write: 32 bits of data, then 5 bits of address, each with the
//! least significant bit first. It begins at zero and is not inverted.

const POLYNOMIAL: u32 = 0x82f6_3b78;
const ADDRESS_BITS: u32 = 5;

const TABLE: [u32; 256] = table();

#[expect(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "evaluated by the compiler, which would say so"
)]
const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    let mut byte = 0;
    while index < table.len() {
        table[index] = steps(byte, 8);
        index += 1;
        byte += 1;
    }
    table
}

const fn steps(mut crc: u32, mut count: u32) -> u32 {
    while count > 0 {
        let out = crc & 1;
        crc >>= 1;
        if out == 1 {
            crc ^= POLYNOMIAL;
        }
        count = count.saturating_sub(1);
    }
    crc
}

/// The sum after a word was written to a register.
pub(super) fn update(crc: u32, register: u8, word: u32) -> u32 {
    let data = word.to_le_bytes().into_iter().fold(crc, |crc, byte| {
        let index = (crc ^ u32::from(byte)) & 0xff;
        let entry = usize::try_from(index).ok().and_then(|at| TABLE.get(at));
        crc >> 8 ^ entry.copied().unwrap_or(0)
    });
    steps(data ^ u32::from(register & 0x1f), ADDRESS_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of prjxray's tests, and one that every partial of a 7-series part has.
    #[test]
    fn the_vectors_hold() {
        assert_eq!(update(0, 16, 0), 0x82f6_3b78);
        assert_eq!(update(0, 31, 0xffff_ffff), 0xbf86_d4df);
        assert_eq!(update(0xffff_ffff, 0, 0), 0xc631_e365);
        assert_eq!(update(0, 4, 11), 0x5da9_8e32);
    }
}
