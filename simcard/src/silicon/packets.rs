//! The packet layer: synchronisation, headers, payload words. What the words
//! mean to a register is not its matter.

/// The word that begins configuration.
pub(super) const SYNC: u32 = 0xaa99_5566;

/// Where the layer stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Everything but the sync word is ignored.
    Deaf,
    Header,
    Payload {
        register: u8,
        left: u32,
    },
}

/// What a word turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    Ignored,
    Sync,
    Header,
    /// A word for a register; the packet's last one or not.
    Data {
        register: u8,
        last: bool,
    },
    /// So many words are to be read from a register.
    Read {
        register: u8,
        count: u32,
    },
    /// A header that no document describes.
    Odd,
}

/// The layer.
#[derive(Debug, Clone)]
pub(super) struct Packets {
    state: State,
    /// The register of the last type 1 header, which a type 2 header goes on with.
    register: u8,
}

impl Packets {
    pub(super) fn new() -> Self {
        Self {
            state: State::Deaf,
            register: 0,
        }
    }

    pub(super) fn synced(&self) -> bool {
        self.state != State::Deaf
    }

    /// DESYNC, or an abort: deaf until the next sync word.
    pub(super) fn desync(&mut self) {
        *self = Self::new();
    }

    pub(super) fn take(&mut self, word: u32) -> Word {
        match self.state {
            State::Deaf if word == SYNC => {
                self.state = State::Header;
                Word::Sync
            }
            State::Deaf => Word::Ignored,
            State::Header => self.header(word),
            State::Payload { register, left } => {
                let left = left.saturating_sub(1);
                self.state = payload(register, left);
                Word::Data {
                    register,
                    last: left == 0,
                }
            }
        }
    }

    fn header(&mut self, word: u32) -> Word {
        let count = match word >> 29 {
            1 => {
                self.register = u8::try_from(word >> 13 & 0x1f).unwrap_or(0);
                word & 0x7ff
            }
            2 => word & 0x07ff_ffff,
            _ => return Word::Odd,
        };
        let register = self.register;
        match word >> 27 & 3 {
            0 => Word::Header,
            1 => Word::Read { register, count },
            2 => {
                self.state = payload(register, count);
                Word::Header
            }
            _ => Word::Odd,
        }
    }
}

fn payload(register: u8, left: u32) -> State {
    if left == 0 {
        State::Header
    } else {
        State::Payload { register, left }
    }
}
