//! The AMD shape as a driver meets it: through registers only.

use super::*;
use crate::functions::{ADDER, BLANK};
use crate::{Geometry, Shape, Table, hwicap, mark};

mod any;
mod driver;
mod faults;
mod real;

use driver::*;

#[test]
fn the_map_is_that_of_the_shell() {
    let mut card = Icap::new(SERIES7, "xc7z020");
    assert_eq!(card.bench.card.bar_size(PciFunction::Management), 1 << 20);
    let mut ids = [0; 4];
    let management = PciFunction::Management;
    card.bench.card.read(management, Space::Config, 0, &mut ids);
    assert_eq!(ids, [0xee, 0x10, 0x38, 0x90]);
    assert_eq!(card.r(SR), IDLE);
    assert_eq!(card.r(WFV), 256);
    assert_eq!(card.bench.r(1 << 20), u64::MAX);
    assert_eq!(card.bench.r(0), 0);
}

#[test]
fn the_idcode_probe_answers_and_leaves_no_sync_behind() {
    let mut card = Icap::new(SERIES7, "xc7z020");
    card.send(&[
        0xffff_ffff,
        0xaa99_5566,
        0x2000_0000,
        0x2000_0000,
        0x2801_8001,
        0x2000_0000,
        0x2000_0000,
    ]);
    assert_eq!(card.r(SR), IDLE | DALIGN);
    card.w(SZ, 1);
    card.w(CR, 2);
    assert_eq!(card.r(RFO), 1);
    // The write FIFO is a register of its own: reading it takes nothing from RF.
    assert_eq!(card.r(WF), 0);
    assert_eq!(card.r(RF) & 0x0fff_ffff, 0x0372_7093);
    assert_eq!((card.r(RFO), card.r(RF)), (0, 0));
    card.send(&DESYNC);
    assert_eq!(card.r(SR), IDLE);
    assert_eq!(card.stats().dangers, crate::Dangers::default());
}

#[test]
fn a_decoupler_reads_back_and_shuts_the_guest_out() {
    let mut card = Icap::new(SERIES7, "xc7z020");
    let bench = &mut card.bench;
    assert_eq!(bench.r(hwicap::DECOUPLERS), 0);
    bench.w4(hwicap::DECOUPLERS + 0x1000, 1);
    assert_eq!(bench.r(hwicap::DECOUPLERS + 0x1000), 1);
    assert_eq!(bench.vf_r(1, AFU), u64::MAX);
    assert_eq!(bench.vf_r(0, AFU), 0);
    bench.w4(hwicap::DECOUPLERS + 0x1000, 0);
    assert_eq!(bench.vf_r(1, AFU), 0);
    let stats = bench.card.stats();
    assert_eq!(stats.regions[1].isolations, 1);
    assert_eq!(stats.regions[1].handovers, 1);
    assert_eq!(stats.regions[0].isolations, 0);
}

#[test]
fn a_marked_partial_makes_its_function_and_the_guest_uses_it() {
    let mut card = Icap::new(SERIES7, "xc7z020");
    card.decouple(0);
    card.send(&partial(ADDER, 0x0042_0100));
    assert_eq!(card.r(SR), IDLE);
    // Readable while decoupled, and the guest sees nothing of it yet.
    assert_eq!(card.identity(0), ADDER);
    assert_eq!(card.identity(1), Uuid::nil());
    assert_eq!(card.bench.vf_r(0, AFU + 8), u64::MAX);
    card.couple(0);
    card.bench.vf_w(0, AFU + 0x40, 40);
    card.bench.vf_w(0, AFU + 0x48, 2);
    assert_eq!(card.bench.vf_r(0, AFU + 0x50), 42);
    let stats = card.bench.card.stats();
    assert_eq!(stats.regions[0].pr_starts, 1);
    assert_eq!(stats.regions[0].pr_successes, 1);
    assert_eq!(stats.regions[1].data_words, 0);
    assert_eq!(card.stats().frames_while_coupled, 0);
}

#[test]
fn frames_since_the_mark_are_told_with_their_addresses() {
    let mut card = Icap::new(SERIES7, "xc7z020");
    card.decouple(0);
    card.send(&partial(ADDER, 0x0042_0100));
    let written = card.bench.card.written().unwrap();
    assert_eq!(written.frames, 2);
    assert_eq!(written.ranges[0].far, "00420100");
    assert_eq!(written.ranges[0].last_far, "00420101");
    card.bench.card.mark().unwrap();
    assert_eq!(card.bench.card.written().unwrap().frames, 0);
}

#[test]
fn frames_written_while_no_region_is_shut_are_counted_and_ruin_all() {
    let mut card = Icap::new(SERIES7, "xc7z020");
    card.decouple(1);
    card.send(&partial(ADDER, 0x0042_0100));
    card.couple(1);
    assert_eq!(card.identity(1), ADDER);
    card.send(&partial(BLANK, 0x0000_0100));
    assert_eq!(card.stats().frames_while_coupled, 2);
    assert_eq!(card.identity(1), Uuid::nil());
}

#[test]
fn of_two_regions_shut_at_once_the_one_told_last_is_meant() {
    let mut card = Icap::new(SERIES7, "xc7z020");
    card.decouple(0);
    card.decouple(1);
    card.send(&partial(ADDER, 0x0042_0100));
    assert_eq!(card.identity(0), Uuid::nil());
    assert_eq!(card.identity(1), ADDER);
    // Told again, though it is decoupled already.
    card.decouple(0);
    card.send(&partial(BLANK, 0x0000_0100));
    assert_eq!(card.identity(0), BLANK);
    assert_eq!(card.identity(1), ADDER);
}

#[test]
fn a_wrong_crc_and_a_foreign_idcode_raise_cfgerr_until_reset() {
    for at in [0x3000_0001, 0x3001_8001] {
        let mut card = Icap::new(SERIES7, "xc7z020");
        card.decouple(0);
        let mut words = partial(ADDER, 0x0042_0100);
        let index = words.iter().position(|word| *word == at).unwrap();
        words[index + 1] ^= 1 << 20;
        card.send(&words);
        // The file's own DESYNC does not hide it.
        assert_eq!(card.r(SR), IDLE & !CFGERR_N, "{at:#x}");
        assert_eq!(card.identity(0), Uuid::nil());
        assert_eq!(card.bench.card.stats().regions[0].pr_failures, 1);
        card.w(CR, 8);
        assert_eq!(card.r(SR), IDLE);
        card.send(&partial(ADDER, 0x0042_0100));
        assert_eq!(card.identity(0), ADDER);
    }
}

#[test]
fn iprog_takes_everything_away_and_couples() {
    let mut card = Icap::new(SERIES7, "xc7z020");
    card.decouple(0);
    card.send(&partial(ADDER, 0x0042_0100));
    card.decouple(1);
    card.send(&[0xaa99_5566, 0x3000_8001, 15]);
    assert_eq!(card.stats().dangers.reboots, 1);
    assert_eq!(card.identity(0), Uuid::nil());
    assert_eq!(card.bench.r(hwicap::DECOUPLERS), 0);
    assert_eq!(card.r(SR), IDLE);
}

#[test]
fn what_could_hurt_others_is_counted() {
    let mut card = Icap::new(SERIES7, "xc7z020");
    card.send(&[0xaa99_5566, 0x3002_0001, 0, 0x3000_8001, 9, 0x2800_6001]);
    // CTL0 bit 6 through the mask; a type 0 word; operation 11.
    card.send(&[0x3000_c001, 0x40, 0x3000_a001, 0x40, 0, 0x3800_0000]);
    let dangers = card.stats().dangers;
    assert_eq!(
        (dangers.registers, dangers.commands, dangers.reads),
        (1, 1, 1)
    );
    assert_eq!((dangers.control_bits, dangers.packets), (1, 2));
}

#[test]
fn words_wait_for_the_control_register_and_a_full_fifo_loses_them() {
    let mut card = Icap::with(SERIES7, "xc7z020", |config| {
        config.fifo = FifoDepth::new(4).unwrap();
    });
    for _ in 0..6 {
        card.w(WF, 0x2000_0000);
    }
    assert_eq!(card.r(WFV), 0);
    assert_eq!(card.stats().words, 0);
    assert_eq!(card.stats().lost_words, 2);
    card.w(CR, 4);
    assert_eq!(card.r(WFV), 4);
    card.w(WF, 0x2000_0000);
    card.w(CR, 1);
    assert_eq!((card.stats().words, card.r(CR)), (1, 0));
}

#[test]
fn a_rate_keeps_the_control_bit_set_while_words_drain() {
    let mut card = Icap::with(SERIES7, "xc7z020", |config| {
        config.rate = Rate::BytesPerSecond(4000);
    });
    for _ in 0..10 {
        card.w(WF, 0x2000_0000);
    }
    card.w(CR, 1);
    card.bench.pass(Duration::from_millis(4));
    assert_eq!((card.r(CR), card.r(SR) & 1, card.r(WFV)), (1, 0, 250));
    card.bench.pass(Duration::from_millis(6));
    assert_eq!((card.r(CR), card.r(SR) & 1, card.r(WFV)), (0, 1, 256));
    assert_eq!(card.stats().words, 10);
}

#[test]
fn a_reset_of_the_management_function_couples_and_keeps_contents() {
    let mut card = Icap::new(SERIES7, "xc7z020");
    card.decouple(0);
    card.send(&partial(ADDER, 0x0042_0100));
    card.send(&[0xaa99_5566]);
    card.bench.card.reset(PciFunction::Management);
    assert_eq!(card.bench.r(hwicap::DECOUPLERS), 0);
    assert_eq!(card.identity(0), ADDER);
    // The configuration logic does not notice: still synchronised.
    assert_eq!(card.r(SR), IDLE | DALIGN);
    card.bench.card.power_cycle();
    assert_eq!(card.r(SR), IDLE);
    assert_eq!(card.identity(0), Uuid::nil());
}
