//! A driver of the HWICAP core, and a maker of small partial bitstreams.

use super::*;

pub(super) const SERIES7: &str = include_str!("../../../../bitstream/geometry/series7.txt");
pub(super) const ULTRASCALE: &str = include_str!("../../../../bitstream/geometry/ultrascale.txt");

pub(super) const WF: u64 = 0x10100;
pub(super) const RF: u64 = 0x10104;
pub(super) const SZ: u64 = 0x10108;
pub(super) const CR: u64 = 0x1010c;
pub(super) const SR: u64 = 0x10110;
pub(super) const WFV: u64 = 0x10114;
pub(super) const RFO: u64 = 0x10118;

/// Done, end of startup, no abort, no error.
pub(super) const IDLE: u32 = 0x125;
pub(super) const DALIGN: u32 = 0x80;
pub(super) const CFGERR_N: u32 = 0x100;

pub(super) const DESYNC: [u32; 4] = [0x3000_8001, 0xd, 0x2000_0000, 0x2000_0000];

pub(super) struct Icap {
    pub(super) bench: Bench,
}

impl Icap {
    pub(super) fn new(table: &str, device: &str) -> Self {
        Self::with(table, device, |_| {})
    }

    pub(super) fn with(table: &str, device: &str, change: impl FnOnce(&mut Config)) -> Self {
        let geometry = Geometry::parse(table, device).unwrap();
        let bench = Bench::with(|config| {
            config.shape = Shape::Hwicap(Box::new(geometry));
            change(config);
        });
        Self { bench }
    }

    pub(super) fn r(&mut self, at: u64) -> u32 {
        let mut out = [0; 4];
        let management = PciFunction::Management;
        self.bench.card.read(management, Space::Bar0, at, &mut out);
        u32::from_le_bytes(out)
    }

    pub(super) fn w(&mut self, at: u64, value: u32) {
        self.bench.w4(at, value);
    }

    /// In chunks of what the FIFO has room for.
    pub(super) fn send(&mut self, words: &[u32]) {
        let mut rest = words;
        while !rest.is_empty() {
            let room = usize::try_from(self.r(WFV)).unwrap().min(rest.len());
            let (now, later) = rest.split_at(room);
            for word in now {
                self.w(WF, *word);
            }
            self.w(CR, 1);
            assert_eq!(self.r(CR), 0);
            rest = later;
        }
    }

    pub(super) fn decouple(&mut self, region: u64) {
        self.w(hwicap::DECOUPLERS + region * hwicap::STRIDE, 1);
        assert_eq!(self.r(hwicap::DECOUPLERS + region * hwicap::STRIDE), 1);
    }

    pub(super) fn couple(&mut self, region: u64) {
        self.w(hwicap::DECOUPLERS + region * hwicap::STRIDE, 0);
    }

    pub(super) fn identity(&mut self, region: u64) -> Uuid {
        let at = hwicap::IDENTITIES + region * hwicap::STRIDE;
        Uuid::from_u64_pair(self.bench.r(at + 8), self.bench.r(at))
    }

    pub(super) fn stats(&self) -> hwicap::HwicapStats {
        self.bench.card.stats().hwicap.unwrap()
    }
}

/// The words of a `.bit` file's data.
pub(super) fn data_words(data: &[u8]) -> Vec<u32> {
    data.chunks_exact(4)
        .map(|word| u32::from_be_bytes(word.try_into().unwrap()))
        .collect()
}

/// The CRC bit by bit, as the description says it: not the card's own.
fn crc(sum: u32, register: u32, word: u32) -> u32 {
    let bits = u64::from(register) << 32 | u64::from(word);
    (0..37).fold(sum, |sum, bit| {
        let feedback = (sum ^ u32::try_from(bits >> bit & 1).unwrap()) & 1;
        sum >> 1 ^ (feedback * 0x82f6_3b78)
    })
}

/// A partial for the 7Z020: two frames at `far`, the first one marked, and a pad.
pub(super) fn partial(function: Uuid, far: u32) -> Vec<u32> {
    let mut frames = mark::words(function).to_vec();
    frames.resize(101, 7);
    frames.resize(202, 9);
    frames.resize(303, 0);
    let mut words = vec![0xffff_ffff; 8];
    words.extend([0xbb, 0x1122_0044, 0xffff_ffff, 0xffff_ffff, 0xaa99_5566]);
    let mut sum = 0;
    let mut put = |words: &mut Vec<u32>, register: u32, values: &[u32]| {
        let count = u32::try_from(values.len()).unwrap();
        words.push(0x3000_0000 | register << 13 | count);
        for value in values {
            sum = crc(sum, register, *value);
        }
        words.extend(values);
        sum
    };
    // RCRC sets the sum to zero: what follows is summed from there.
    words.extend([0x2000_0000, 0x3000_8001, 7, 0x2000_0000]);
    put(&mut words, 12, &[0x0372_7093]);
    put(&mut words, 4, &[1]);
    put(&mut words, 1, &[far]);
    let sum = put(&mut words, 2, &frames);
    words.extend([0x3000_0001, sum, 0x3000_8001, 13]);
    words.extend([0x2000_0000; 16]);
    words
}
