//! How accesses of a bus meet 64-bit registers: any access is cut into pieces
//! that each lie in one register, and a piece carries the byte lanes it drives.

/// One store, inside one aligned 8-byte register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Store {
    /// Offset of the register, a multiple of eight.
    pub(crate) register: u64,
    /// The bytes, in their lanes.
    pub(crate) value: u64,
    /// Ones in the lanes that are driven.
    pub(crate) mask: u64,
}

impl Store {
    /// A whole register at once.
    #[cfg(test)]
    pub(crate) fn whole(register: u64, value: u64) -> Self {
        Self {
            register,
            value,
            mask: u64::MAX,
        }
    }

    /// The register's next value, were it plain storage.
    pub(crate) fn over(self, old: u64) -> u64 {
        (old & !self.mask) | (self.value & self.mask)
    }

    /// The same store as seen from a block that begins at `base`.
    pub(crate) fn relative_to(self, base: u64) -> Self {
        Self {
            register: self.register.wrapping_sub(base),
            ..self
        }
    }

    /// The state a bit is driven to; `None` where the store leaves it alone.
    pub(crate) fn bit(self, bit: u64) -> Option<Level> {
        if self.mask & bit == 0 {
            None
        } else if self.value & bit == 0 {
            Some(Level::Low)
        } else {
            Some(Level::High)
        }
    }
}

impl Store {
    /// The 32-bit stores that a bus of that width makes of it, low half first:
    /// offset, value, mask.
    pub(crate) fn words(self) -> impl Iterator<Item = (u64, u32, u32)> {
        let half = |value: u64| u32::try_from(value & u64::from(u32::MAX)).unwrap_or(0);
        [(0, 0), (4, 32)]
            .into_iter()
            .map(move |(lane, shift)| {
                let register = self.register.wrapping_add(lane);
                (
                    register,
                    half(self.value >> shift),
                    half(self.mask >> shift),
                )
            })
            .filter(|(_, _, mask)| *mask != 0)
    }
}

/// What a bit is driven to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Low,
    High,
}

/// Cuts a write into stores, in rising order, as a root complex does.
pub(crate) fn stores(offset: u64, bytes: &[u8]) -> impl Iterator<Item = Store> {
    let mut at = offset;
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let lane = at & 7;
        // The common store, made short: a card takes one for each word of a bitstream.
        if let (0, Some((whole, after))) = (lane, rest.split_first_chunk::<8>()) {
            let register = at;
            at = at.wrapping_add(8);
            rest = after;
            return Some(Store {
                register,
                value: u64::from_le_bytes(*whole),
                mask: u64::MAX,
            });
        }
        let room = usize::try_from(8u64.wrapping_sub(lane)).unwrap_or(8);
        let (piece, after) = rest.split_at(room.min(rest.len()));
        let mut value = 0;
        let mut mask = 0;
        for (lane, byte) in (lane..8).zip(piece) {
            value |= u64::from(*byte) << (lane << 3);
            mask |= 0xff << (lane << 3);
        }
        let register = at & !7;
        at = register.wrapping_add(8);
        rest = after;
        Some(Store {
            register,
            value,
            mask,
        })
    })
}

/// Fills `out` from registers that `read` knows by their aligned offset.
pub(crate) fn load(offset: u64, out: &mut [u8], mut read: impl FnMut(u64) -> u64) {
    let mut held = None;
    for (at, byte) in (offset..).zip(out) {
        let register = at & !7;
        let value = match held {
            Some((known, value)) if known == register => value,
            _ => read(register),
        };
        held = Some((register, value));
        *byte = value
            .to_le_bytes()
            .into_iter()
            .nth(usize::try_from(at & 7).unwrap_or(0))
            .unwrap_or(0xff);
    }
}

/// The same over registers of 32 bits: each is read once, and only where a byte of it is wanted.
pub(crate) fn load_words(offset: u64, out: &mut [u8], mut read: impl FnMut(u64) -> u32) {
    let mut held = None;
    for (at, byte) in (offset..).zip(out) {
        let register = at & !3;
        let value = match held {
            Some((known, value)) if known == register => value,
            _ => read(register),
        };
        held = Some((register, value));
        let lane = usize::try_from(at & 3).unwrap_or(0);
        *byte = value.to_le_bytes().into_iter().nth(lane).unwrap_or(0xff);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_whole_register_is_one_store() {
        let all: Vec<_> = stores(0x18, &0x1122_3344_5566_7788u64.to_le_bytes()).collect();
        assert_eq!(all, [Store::whole(0x18, 0x1122_3344_5566_7788)]);
    }

    #[test]
    fn halves_drive_their_lanes_only() {
        let all: Vec<_> = stores(0x1c, &[1, 2, 3, 4, 5]).collect();
        assert_eq!(
            all[0],
            Store {
                register: 0x18,
                value: 0x0403_0201_0000_0000,
                mask: 0xffff_ffff_0000_0000
            }
        );
        assert_eq!(
            all[1],
            Store {
                register: 0x20,
                value: 5,
                mask: 0xff
            }
        );
        assert_eq!(all[0].over(0x99), 0x0403_0201_0000_0099);
    }

    proptest! {
        #[test]
        fn what_is_stored_is_loaded(offset in 0u64..64, bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut memory = [0u64; 16];
            for store in stores(offset, &bytes) {
                let cell = &mut memory[usize::try_from(store.register / 8).unwrap()];
                *cell = store.over(*cell);
            }
            let mut back = vec![0; bytes.len()];
            load(offset, &mut back, |register| memory[usize::try_from(register / 8).unwrap()]);
            prop_assert_eq!(back, bytes);
        }
    }
}
