//! Who reaches a region: access, reset, and what a guest can and cannot move.

use std::time::Duration;

use super::*;
use crate::functions::{ADDER, COUNTER};

const ONES: u64 = u64::MAX;

#[test]
fn after_power_up_the_guest_reaches_nothing() {
    let mut bench = Bench::new();
    for region in 0..2 {
        for at in [0, 0x38, AFU, AFU + 8, AFU + 0x40, 0x1fff8] {
            assert_eq!(bench.vf_r(region, at), ONES);
        }
    }
}

#[test]
fn the_guest_sees_its_port_and_its_function() {
    let mut bench = Bench::new();
    bench.hand_over(1, ADDER);
    assert_eq!(bench.vf_r(1, 0) >> 60, 4);
    assert_eq!(bench.vf_r(1, 0x18), AFU);
    assert_eq!(bench.vf_r(1, AFU + 8), ADDER.as_u64_pair().1);
    bench.vf_w(1, AFU + 0x40, 2);
    bench.vf_w(1, AFU + 0x48, 3);
    assert_eq!(bench.vf_r(1, AFU + 0x50), 5);
    assert_eq!(bench.vf_r(0, AFU + 8), ONES);
}

#[test]
fn while_access_is_the_guests_the_host_reads_ones_and_loses_stores() {
    let mut bench = Bench::new();
    bench.hand_over(0, ADDER);
    bench.vf_w(0, AFU + 0x40, 7);
    bench.w(PORT[0] + AFU + 0x40, 99);
    assert_eq!(bench.r(PORT[0] + AFU + 0x40), ONES);
    assert_eq!(bench.vf_r(0, AFU + 0x40), 7);
    // The port's header stays readable.
    assert_eq!(bench.r(PORT[0]) >> 60, 4);
    assert_eq!(bench.r(PORT[0] + PORT_CTRL), 4);
}

#[test]
fn a_shut_region_reads_ones_everywhere_and_loses_writes() {
    let by_access: fn(&mut Bench, usize) = Bench::take;
    let by_reset: fn(&mut Bench, usize) = |bench, region| assert!(bench.disable(region));
    for shut in [by_access, by_reset] {
        let mut bench = Bench::new();
        bench.hand_over(0, ADDER);
        bench.vf_w(0, AFU + 0x40, 7);
        shut(&mut bench, 0);
        let before = bench.r(PORT[0] + PORT_CTRL);
        for at in [0, 8, 0x30, 0x38, AFU, AFU + 0x40] {
            assert_eq!(bench.vf_r(0, at), ONES);
            bench.vf_w(0, at, 0);
            bench.vf_w(0, at, ONES);
        }
        assert_eq!(bench.r(PORT[0] + PORT_CTRL), before);
    }
}

#[test]
fn the_guest_may_reset_its_function_while_access_is_its() {
    let mut bench = Bench::new();
    bench.hand_over(0, ADDER);
    bench.vf_w(0, AFU + 0x40, 7);
    bench.vf_w(0, PORT_CTRL, 5);
    assert_eq!(bench.vf_r(0, PORT_CTRL), 0x15);
    assert_eq!(bench.vf_r(0, AFU + 0x40), ONES);
    bench.vf_w(0, PORT_CTRL, 4);
    assert_eq!(bench.vf_r(0, PORT_CTRL), 4);
    assert_eq!(bench.vf_r(0, AFU + 0x40), 0);
    assert_eq!(bench.card.stats().regions[0].resets_by_guest, 1);
}

#[test]
fn the_guest_cannot_release_what_the_host_holds() {
    let mut bench = Bench::new();
    bench.hand_over(0, ADDER);
    // The guest holds first, the host takes over.
    bench.vf_w(0, PORT_CTRL, 5);
    bench.disable(0);
    bench.vf_w(0, PORT_CTRL, 4);
    assert_eq!(bench.r(PORT[0] + PORT_CTRL), 0x15);
    // Also when access comes back while the host still holds.
    bench.take(0);
    bench.give(0);
    bench.vf_w(0, PORT_CTRL, 4);
    assert_eq!(bench.r(PORT[0] + PORT_CTRL), 0x15);
    assert_eq!(bench.vf_r(0, AFU + 8), ONES);
}

#[test]
fn a_reset_of_the_guests_own_is_released_by_the_host_as_well() {
    let mut bench = Bench::new();
    bench.hand_over(0, ADDER);
    bench.vf_w(0, PORT_CTRL, 5);
    bench.take(0);
    assert!(bench.enable(0));
    assert_eq!(bench.identity(0), ADDER);
}

#[test]
fn a_guests_device_reset_reaches_only_what_the_guest_reaches() {
    let mut bench = Bench::new();
    bench.hand_over(0, ADDER);
    bench.vf_w(0, AFU + 0x40, 7);
    bench.card.write(user(0), Space::Config, 0x48, &[0, 0x80]);
    assert_eq!(bench.vf_r(0, AFU + 0x40), 0);
    assert_eq!(bench.vf_r(0, AFU + 8), ADDER.as_u64_pair().1);

    bench.take(0);
    bench.disable(0);
    bench.card.reset(user(0));
    assert_eq!(bench.r(PORT[0] + PORT_CTRL), 0x15);
    assert_eq!(bench.card.stats().user[0].resets, 2);
}

#[test]
fn d14_a_guests_device_reset_does_not_disturb_a_run() {
    let mut bench = Bench::new();
    bench.hand_over(0, ADDER);
    bench.take(0);
    bench.disable(0);
    bench.reset_engine();
    bench.start(0);
    bench.push(&image(COUNTER)[..200]);
    bench.card.reset(user(0));
    bench.push(&image(COUNTER)[200..]);
    bench.complete();
    assert_eq!(bench.r(ERR), 0);
}

#[test]
fn d14_a_gate_left_to_the_guest_spoils_the_run() {
    let mut bench = Bench::new();
    bench.hand_over(0, ADDER);
    bench.vf_w(0, PORT_CTRL, 5);
    bench.reset_engine();
    bench.start(0);
    bench.vf_w(0, PORT_CTRL, 4);
    assert_eq!(bench.r(ERR), 1);
}

#[test]
fn d14_a_guests_device_reset_that_opens_the_gate_spoils_the_run() {
    let mut bench = Bench::new();
    bench.hand_over(0, ADDER);
    bench.vf_w(0, PORT_CTRL, 5);
    bench.reset_engine();
    bench.start(0);
    bench.card.reset(user(0));
    assert_eq!(bench.r(ERR), 1);
}

#[test]
fn the_counter_counts_out_of_reset_only() {
    let mut bench = Bench::new();
    bench.hand_over(0, COUNTER);
    bench.pass(Duration::from_micros(50));
    assert_eq!(bench.vf_r(0, AFU + 0x40), 50);
    bench.vf_w(0, PORT_CTRL, 5);
    bench.pass(Duration::from_micros(50));
    bench.vf_w(0, PORT_CTRL, 4);
    bench.pass(Duration::from_micros(3));
    assert_eq!(bench.vf_r(0, AFU + 0x40), 3);
}

#[test]
fn a_reset_of_the_management_function_keeps_contents_and_resets_the_rest() {
    let mut bench = Bench::new();
    bench.hand_over(0, ADDER);
    bench.vf_w(0, AFU + 0x40, 7);
    bench.fault(Kind::StickyError { bits: 2 }, Times::Once);
    bench.card.reset(PciFunction::Management);
    assert_eq!((bench.r(ERR), bench.r(STS)), (0, 256));
    assert_eq!(bench.r(PORT_OFST[0]) & GUEST, 0);
    assert_eq!(bench.identity(0), ADDER);
    assert_eq!(bench.r(PORT[0] + AFU + 0x40), 0);
}

#[test]
fn a_power_cycle_loses_contents_and_releases_reset() {
    let mut bench = Bench::new();
    bench.hand_over(0, ADDER);
    bench.disable(0);
    bench.card.power_cycle();
    assert_eq!(bench.r(PORT[0] + PORT_CTRL), 4);
    assert_eq!(bench.r(PORT_OFST[0]) & GUEST, 0);
    assert_eq!(bench.card.state().regions[0].function, None);
    assert_eq!(bench.card.stats().regions[0].handovers, 1);
}

#[test]
fn what_the_gates_did_is_counted() {
    let mut bench = Bench::new();
    bench.hand_over(0, ADDER);
    bench.give(0);
    bench.take(0);
    bench.take(0);
    let stats = bench.card.stats().regions[0];
    assert_eq!(
        (stats.handovers, stats.isolations, stats.resets_by_host),
        (1, 1, 1)
    );
    assert_eq!(
        (stats.pr_starts, stats.pr_successes, stats.pr_failures),
        (1, 1, 0)
    );
}

#[test]
fn reset_on_close_resets_and_the_default_does_not() {
    for (on_close, kept) in [(crate::OnClose::KeepState, 7), (crate::OnClose::Reset, 0)] {
        let mut bench = Bench::with(|config| config.on_close = on_close);
        bench.hand_over(0, ADDER);
        bench.vf_w(0, AFU + 0x40, 7);
        bench.card.connected(user(0));
        assert!(bench.card.state().regions[0].user.connected);
        bench.card.disconnected(user(0));
        assert_eq!(bench.vf_r(0, AFU + 0x40), kept);
    }
}
