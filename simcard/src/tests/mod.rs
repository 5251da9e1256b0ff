//! Tests of the card as a driver meets it: through registers only. The bench
//! below is a driver written from the register descriptions, not from the card.
#![expect(
    clippy::arithmetic_side_effects,
    reason = "a test may stop at an overflow"
)]

mod any;
mod engine;
mod faults;
mod gates;
mod hwicap;
mod map;

use std::time::Duration;

use uuid::Uuid;

use crate::{
    Card, Clock, Config, Fault, FifoDepth, Hand, Kind, PciFunction, Rate, RegionId, Space, Times,
    payload,
};

const INTERFACE: Uuid = Uuid::from_u128(0x6d1f_0a3c_94be_4c27_8a15_5e0f_77c2_b9d4);

const PR: u64 = 0x3000;
const CTRL: u64 = PR + 0x08;
const STS: u64 = PR + 0x10;
const DATA: u64 = PR + 0x18;
const ERR: u64 = PR + 0x20;
const PORT: [u64; 2] = [0x10000, 0x40000];
const PORT_CTRL: u64 = 0x38;
const AFU: u64 = 0x10000;
const PORT_OFST: [u64; 2] = [0x38, 0x40];
const GUEST: u64 = 1 << 55;
const START: u64 = 1 << 12;
const COMPLETE: u64 = 1 << 13;
const B16: u64 = 1 << 16;

struct Bench {
    card: Card,
    hand: Hand,
}

impl Bench {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut Config)) -> Self {
        let (clock, hand) = Clock::manual();
        let mut config = Config {
            clock,
            ..Config::new(1, INTERFACE)
        };
        change(&mut config);
        Self {
            card: Card::new(config),
            hand,
        }
    }

    fn rated(bytes_per_second: u64, fifo: u16) -> Self {
        Self::with(|config| {
            config.rate = Rate::BytesPerSecond(bytes_per_second);
            config.fifo = FifoDepth::new(fifo).unwrap();
        })
    }

    fn r(&mut self, at: u64) -> u64 {
        self.read(PciFunction::Management, at)
    }

    fn w(&mut self, at: u64, value: u64) {
        self.card.write(
            PciFunction::Management,
            Space::Bar0,
            at,
            &value.to_le_bytes(),
        );
    }

    fn w4(&mut self, at: u64, value: u32) {
        self.card.write(
            PciFunction::Management,
            Space::Bar0,
            at,
            &value.to_le_bytes(),
        );
    }

    /// The user function of a region.
    fn vf_r(&mut self, region: u8, at: u64) -> u64 {
        self.read(user(region), at)
    }

    fn vf_w(&mut self, region: u8, at: u64, value: u64) {
        self.card
            .write(user(region), Space::Bar0, at, &value.to_le_bytes());
    }

    fn read(&mut self, function: PciFunction, at: u64) -> u64 {
        let mut out = [0; 8];
        self.card.read(function, Space::Bar0, at, &mut out);
        u64::from_le_bytes(out)
    }

    fn fault(&mut self, kind: Kind, times: Times) {
        self.card
            .inject(Fault {
                kind,
                region: None,
                times,
            })
            .unwrap();
    }

    /// SFTRST = 1, and whether the port acknowledged.
    fn disable(&mut self, region: usize) -> bool {
        self.w(PORT[region] + PORT_CTRL, 5);
        self.r(PORT[region] + PORT_CTRL) & 0x10 != 0
    }

    /// SFTRST = 0, and whether the port acknowledged.
    fn enable(&mut self, region: usize) -> bool {
        self.w(PORT[region] + PORT_CTRL, 4);
        self.r(PORT[region] + PORT_CTRL) & 0x10 == 0
    }

    /// The RST handshake with ERR cleared under it.
    fn reset_engine(&mut self) {
        self.w(CTRL, 1);
        assert_eq!(self.r(CTRL) & 0x11, 0x11);
        let err = self.r(ERR);
        self.w(ERR, err);
        self.w(CTRL, 0);
        assert_eq!(self.r(CTRL) & 0x3011, 0);
    }

    fn start(&mut self, region: u64) {
        self.w(CTRL, START | region << 7);
    }

    fn push(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(4) {
            let mut word = [0; 4];
            word[..chunk.len()].copy_from_slice(chunk);
            self.w(DATA, u64::from(u32::from_le_bytes(word)));
        }
    }

    /// The whole sequence without credits; the verdict is ERR.
    fn program(&mut self, region: usize, bytes: &[u8]) -> u64 {
        assert!(self.disable(region));
        self.reset_engine();
        self.start(u64::try_from(region).unwrap());
        self.push(bytes);
        self.complete();
        self.r(ERR)
    }

    fn complete(&mut self) {
        let ctrl = self.r(CTRL);
        self.w(CTRL, ctrl | COMPLETE);
    }

    /// The AFU id as the management function reads it.
    fn identity(&mut self, region: usize) -> Uuid {
        let afu = PORT[region] + AFU;
        Uuid::from_u64_pair(self.r(afu + 0x10), self.r(afu + 8))
    }

    fn give(&mut self, region: usize) {
        self.w(PORT_OFST[region], GUEST);
    }

    fn take(&mut self, region: usize) {
        self.w(PORT_OFST[region], 0);
    }

    /// Programmed, out of reset, with the guest.
    fn hand_over(&mut self, region: usize, function: Uuid) {
        assert_eq!(self.program(region, &image(function)), 0);
        assert!(self.enable(region));
        self.give(region);
    }

    fn pass(&self, time: Duration) {
        self.hand.advance(time);
    }
}

fn user(region: u8) -> PciFunction {
    PciFunction::User(RegionId::new(region).unwrap())
}

fn image(function: Uuid) -> Vec<u8> {
    payload::build(INTERFACE, function, 1000, 1)
}
