//! The reconfiguration engine of a classic card, trap by trap.

use std::time::Duration;

use uuid::Uuid;

use super::*;
use crate::functions::{ADDER, BLANK, COUNTER};
use crate::padded_digest;

#[test]
fn reset_values() {
    let mut bench = Bench::new();
    assert_eq!(bench.r(CTRL), 0);
    assert_eq!(bench.r(STS), 256);
    assert_eq!(bench.r(ERR), 0);
    let id = Uuid::from_u64_pair(bench.r(PR + 0xb0), bench.r(PR + 0xa8));
    assert_eq!(id, INTERFACE);
}

#[test]
fn a_good_run_brings_the_function() {
    let mut bench = Bench::new();
    assert_eq!(bench.program(1, &image(ADDER)), 0);
    assert_eq!(bench.r(STS) & B16, 0);
    assert_eq!(bench.r(CTRL) & (START | COMPLETE), 0);
    assert!(bench.enable(1));
    assert_eq!(bench.identity(1), ADDER);
    let afu = PORT[1] + AFU;
    bench.w(afu + 0x40, 20);
    bench.w(afu + 0x48, 22);
    assert_eq!(bench.r(afu + 0x50), 42);
    // The other region was not touched.
    assert_eq!(bench.identity(0), Uuid::nil());
}

#[test]
fn linuxs_own_sequence_works_twice() {
    let mut bench = Bench::new();
    for function in [ADDER, COUNTER] {
        let port = PORT[0] + PORT_CTRL;
        assert_eq!(bench.r(port), 4);
        bench.w(port, 5);
        assert_eq!(bench.r(port), 0x15);
        let ctrl = bench.r(CTRL);
        bench.w(CTRL, ctrl | 1);
        assert_eq!(bench.r(CTRL) & 0x10, 0x10);
        // The acknowledge bit is written back, and nobody waits for it to fall.
        let ctrl = bench.r(CTRL);
        bench.w(CTRL, ctrl & !1);
        assert_eq!(bench.r(STS) & B16, 0);
        let ctrl = bench.r(CTRL);
        bench.w(CTRL, ctrl & !0x380);
        let ctrl = bench.r(CTRL);
        bench.w(CTRL, ctrl | START);
        assert!(bench.r(STS) & 0x1ff > 1);
        bench.push(&image(function));
        bench.complete();
        assert_eq!(bench.r(CTRL) & START, 0);
        assert_eq!(bench.r(STS) & B16, 0);
        let ctrl = bench.r(port);
        bench.w(port, ctrl & !1);
        assert_eq!(bench.r(port) & 0x10, 0);
        assert_eq!(bench.identity(0), function);
    }
}

#[test]
fn complete_ends_every_run_with_or_without_error() {
    let mut bench = Bench::new();
    let foreign = payload::build(Uuid::from_u128(9), ADDER, 64, 1);
    assert_eq!(bench.program(0, &foreign), 1 << 2);
    assert_eq!(bench.r(CTRL) & (START | COMPLETE), 0);
    assert_eq!(bench.r(STS) & B16, B16);
    assert_eq!(bench.identity(0), Uuid::from_u128(u128::MAX)); // in reset
    assert!(bench.enable(0));
    assert_eq!(bench.identity(0), Uuid::nil()); // no function
}

#[test]
fn damaged_payloads_end_in_crc_and_unknown_ones_in_incompatible() {
    let mut bench = Bench::new();
    let good = image(ADDER);
    let mut flipped = good.clone();
    flipped[500] ^= 1;
    assert_eq!(bench.program(0, &flipped), 1 << 1);
    assert_eq!(bench.program(0, &good[..good.len() - 4]), 1 << 1);
    assert_eq!(bench.program(0, &[&good[..], &[0; 4]].concat()), 1 << 1);
    assert_eq!(bench.program(0, &[]), 1 << 1);
    assert_eq!(bench.program(0, b"no such thing as this"), 1 << 2);
    assert_eq!(bench.program(0, &good), 0);
}

#[test]
fn payloads_of_the_table_are_known_by_digest() {
    let mut bench = Bench::with(|config| config.table.insert_payload(&[0x5a], BLANK));
    assert_eq!(padded_digest(&[0x5a]), padded_digest(&[0x5a, 0, 0, 0]));
    assert_eq!(bench.program(0, &[0x5a]), 0);
    assert!(bench.enable(0));
    assert_eq!(bench.identity(0), BLANK);
    assert_eq!(bench.program(0, &[0x5b]), 1 << 2);
}

#[test]
fn rst_clears_start_complete_and_b16_but_not_err() {
    let mut bench = Bench::new();
    bench.disable(0);
    bench.start(0);
    bench.push(b"half of something");
    bench.w(CTRL, 1);
    assert_eq!(bench.r(CTRL), 0x11);
    bench.w(CTRL, 0);
    assert_eq!(bench.r(CTRL), 0);
    assert_eq!(bench.card.stats().regions[0].pr_aborted, 1);

    bench.program(0, b"nonsense");
    bench.w(CTRL, 1);
    assert_eq!((bench.r(ERR), bench.r(STS) & B16), (1 << 2, 0));
    bench.w(CTRL, 0);
    assert_eq!((bench.r(ERR), bench.r(STS) & B16), (1 << 2, 0));
}

#[test]
fn rst_is_an_edge_and_nothing_starts_under_it() {
    let mut bench = Bench::new();
    bench.disable(0);
    bench.w(CTRL, 1 | START | COMPLETE);
    assert_eq!(bench.r(CTRL), 0x11);
    bench.w(CTRL, 1);
    assert_eq!(bench.card.stats().engine_resets, 1);
    // What Linux writes after a credit timeout.
    bench.w(CTRL, 0x1001);
    bench.w(CTRL, 0x10);
    assert_eq!(bench.r(CTRL), 0);
}

#[test]
fn err_is_cleared_by_ones_and_b16_goes_with_the_last_bit() {
    let mut bench = Bench::new();
    bench.fault(Kind::StickyError { bits: 0b110 }, Times::Once);
    assert_eq!((bench.r(ERR), bench.r(STS) & B16), (0b110, B16));
    bench.w(ERR, 0);
    bench.w(ERR, 1);
    assert_eq!(bench.r(ERR), 0b110);
    bench.w(ERR, 0b010);
    assert_eq!((bench.r(ERR), bench.r(STS) & B16), (0b100, B16));
    bench.w(ERR, 0b100);
    assert_eq!((bench.r(ERR), bench.r(STS) & B16), (0, 0));
}

#[test]
fn start_is_refused_with_b0_while_b16_is_set() {
    let mut bench = Bench::new();
    assert_eq!(bench.program(0, b"nonsense"), 0b100);
    bench.start(0);
    assert_eq!(bench.r(CTRL) & START, 0);
    assert_eq!(bench.r(ERR), 0b101);
    assert_eq!(bench.r(STS) & B16, B16);
    assert_eq!(bench.card.stats().regions[0].pr_refused, 1);
}

/// Linux's own driver leaves ERR alone where b16 is clear, and must be able to
/// load after a run that never ended.
#[test]
fn bits_of_err_that_a_reset_left_do_not_keep_a_run_from_starting() {
    let mut bench = Bench::new();
    assert_eq!(bench.program(0, b"nonsense"), 0b100);
    bench.w(CTRL, 1);
    bench.w(CTRL, 0);
    bench.start(0);
    assert_eq!(bench.r(CTRL) & START, START);
    assert_eq!((bench.r(ERR), bench.r(STS) & B16), (0b100, 0));
    bench.push(&image(ADDER));
    bench.complete();
    assert_eq!(bench.r(CTRL) & START, 0);
    // The run is good by b16; what ERR holds is an earlier one's.
    assert_eq!((bench.r(ERR), bench.r(STS) & B16), (0b100, 0));
}

#[test]
fn start_while_the_port_runs_is_a_wrong_operation() {
    let mut bench = Bench::new();
    bench.start(0);
    assert_eq!((bench.r(CTRL) & START, bench.r(ERR)), (0, 1));
    // The other region's reset does not count.
    bench.reset_engine();
    bench.disable(1);
    bench.start(0);
    assert_eq!((bench.r(CTRL) & START, bench.r(ERR)), (0, 1));
}

#[test]
fn krn_02_a_region_that_is_not_there_is_a_wrong_operation() {
    for region in 2..8 {
        let mut bench = Bench::new();
        bench.start(region);
        assert_eq!(
            (bench.r(CTRL) & START, bench.r(ERR)),
            (0, 1),
            "region {region}"
        );
    }
}

#[test]
fn start_twice_changes_nothing() {
    let mut bench = Bench::new();
    bench.disable(0);
    let image = image(ADDER);
    bench.start(0);
    bench.push(&image[..100]);
    bench.start(0);
    bench.push(&image[100..]);
    bench.complete();
    assert_eq!(bench.r(ERR), 0);
    assert_eq!(bench.card.stats().regions[0].pr_starts, 1);
}

#[test]
fn start_and_complete_are_not_cleared_by_zeros() {
    let mut bench = Bench::rated(1000, 256);
    bench.disable(0);
    bench.start(0);
    bench.push(b"word");
    bench.w(CTRL, COMPLETE);
    bench.w(CTRL, 0);
    assert_eq!(bench.r(CTRL) & (START | COMPLETE), START | COMPLETE);
}

#[test]
fn complete_without_start_sticks_and_ends_the_next_run_at_once() {
    let mut bench = Bench::new();
    bench.disable(0);
    bench.w(CTRL, COMPLETE);
    bench.w(CTRL, 0);
    assert_eq!(bench.r(CTRL), COMPLETE);
    bench.start(0);
    assert_eq!((bench.r(CTRL), bench.r(ERR)), (0, 1 << 1));
    bench.w(CTRL, COMPLETE);
    bench.w(CTRL, 1);
    assert_eq!(bench.r(CTRL) & COMPLETE, 0);
}

#[test]
fn data_without_start_is_dropped_silently() {
    let mut bench = Bench::new();
    bench.w(DATA, 0x1_0000_0002);
    assert_eq!(bench.r(DATA), 0x1_0000_0002);
    assert_eq!((bench.r(STS), bench.r(ERR)), (256, 0));
    assert_eq!(bench.card.stats().stray_data_stores, 1);
    assert_eq!(bench.program(0, &image(ADDER)), 0);
}

#[test]
fn two_stores_of_four_bytes_push_twice_and_ruin_the_stream() {
    let mut bench = Bench::new();
    bench.disable(0);
    bench.start(0);
    for word in image(ADDER).chunks(4) {
        bench.w4(DATA, u32::from_le_bytes(word.try_into().unwrap()));
        bench.w4(DATA + 4, 0);
    }
    bench.complete();
    assert_ne!(bench.r(ERR), 0);
    let words = u64::try_from(image(ADDER).len() / 4).unwrap();
    assert_eq!(bench.card.stats().regions[0].data_words, 2 * words);
}

#[test]
fn one_store_of_four_bytes_at_the_bottom_pushes_once() {
    let mut bench = Bench::new();
    bench.disable(0);
    bench.start(0);
    for word in image(ADDER).chunks(4) {
        bench.w4(DATA, u32::from_le_bytes(word.try_into().unwrap()));
    }
    bench.complete();
    assert_eq!(bench.r(ERR), 0);
}

#[test]
fn the_upper_half_of_a_data_store_is_ignored() {
    let mut bench = Bench::new();
    bench.disable(0);
    bench.start(0);
    for word in image(ADDER).chunks(4) {
        let word = u32::from_le_bytes(word.try_into().unwrap());
        bench.w(DATA, 0xdead_beef_0000_0000 | u64::from(word));
    }
    bench.complete();
    assert_eq!(bench.r(ERR), 0);
}

#[test]
fn halves_of_other_registers_keep_to_their_bytes() {
    let mut bench = Bench::new();
    bench.w4(CTRL + 4, u32::MAX);
    assert_eq!(bench.r(CTRL), 0);
    bench.fault(Kind::StickyError { bits: 1 }, Times::Once);
    bench.w4(ERR + 4, u32::MAX);
    assert_eq!(bench.r(ERR), 1);
    bench.w4(ERR, 1);
    assert_eq!(bench.r(ERR), 0);
    // The access bit is in the upper half.
    bench.w4(PORT_OFST[0] + 4, 1 << 23);
    assert_eq!(bench.r(PORT_OFST[0]) & GUEST, GUEST);
    bench.w4(PORT_OFST[0], 0);
    assert_eq!(bench.r(PORT_OFST[0]) & GUEST, GUEST);
}

#[test]
fn a_full_fifo_loses_the_word_and_says_so() {
    let mut bench = Bench::rated(4000, 8);
    bench.disable(0);
    bench.start(0);
    bench.push(&[0; 32]);
    assert_eq!((bench.r(STS) & 0x1ff, bench.r(ERR)), (0, 0));
    bench.push(&[0; 4]);
    assert_eq!((bench.r(STS) & B16, bench.r(ERR)), (B16, 1 << 4));
    // Writing the error away does not save the run.
    bench.w(ERR, 1 << 4);
    assert_eq!(bench.r(STS) & B16, 0);
    bench.complete();
    bench.pass(Duration::from_secs(1));
    assert_eq!((bench.r(CTRL) & START, bench.r(ERR)), (0, 1 << 4));
}

#[test]
fn a_rated_run_takes_its_time() {
    let mut bench = Bench::rated(1_000_000, 64);
    bench.disable(0);
    bench.start(0);
    let image = payload::build(INTERFACE, ADDER, 4000 - payload::HEADER_LEN, 1);
    let mut waited = 0;
    for word in image.chunks(4) {
        while bench.r(STS) & 0x1ff <= 4 {
            bench.pass(Duration::from_micros(10));
            waited += 10;
        }
        bench.push(word);
    }
    bench.complete();
    assert_eq!(bench.r(CTRL) & (START | COMPLETE), START | COMPLETE);
    while bench.r(CTRL) & START != 0 {
        bench.pass(Duration::from_micros(10));
        waited += 10;
    }
    assert_eq!((bench.r(ERR), bench.r(STS)), (0, 64));
    assert!(
        (4000..4100).contains(&waited),
        "{waited} us for 4000 bytes at 1 MB/s"
    );
}

#[test]
fn an_instant_card_never_runs_out_of_credits() {
    let mut bench = Bench::with(|config| config.fifo = FifoDepth::new(2).unwrap());
    assert_eq!(bench.program(0, &image(ADDER)), 0);
    assert_eq!(bench.r(STS) & 0x1ff, 2);
}

#[test]
fn the_region_is_cut_off_while_it_is_written() {
    let mut bench = Bench::new();
    bench.hand_over(0, ADDER);
    bench.take(0);
    bench.disable(0);
    bench.start(0);
    assert!(bench.card.state().regions[0].frozen);
    assert_eq!(bench.r(PORT[0] + 0x40), 1);
    assert_eq!(bench.card.state().regions[0].function, None);
    bench.w(CTRL, 1);
    assert!(!bench.card.state().regions[0].frozen);
    assert_eq!(bench.card.state().regions[0].function, None);
}

#[test]
fn d14_a_port_released_in_mid_run_is_a_wrong_operation() {
    let mut bench = Bench::new();
    bench.disable(0);
    bench.start(0);
    bench.push(&image(ADDER)[..40]);
    bench.enable(0);
    assert_eq!((bench.r(STS) & B16, bench.r(ERR)), (B16, 1));
    bench.disable(0);
    bench.push(&image(ADDER)[40..]);
    bench.complete();
    assert_eq!((bench.r(CTRL) & START, bench.r(ERR)), (0, 1));
}

#[test]
fn every_failure_is_recovered_in_the_next_attempt() {
    let mut bench = Bench::rated(1_000_000, 16);
    bench.program(0, b"nonsense");
    bench.pass(Duration::from_secs(1));
    assert_eq!(bench.r(ERR), 1 << 2);
    bench.reset_engine();
    bench.start(0);
    for word in image(ADDER).chunks(4) {
        bench.pass(Duration::from_micros(4));
        bench.push(word);
    }
    bench.complete();
    bench.pass(Duration::from_secs(1));
    assert_eq!((bench.r(CTRL), bench.r(ERR)), (0, 0));
}
