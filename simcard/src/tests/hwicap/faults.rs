//! Faults of the AMD shape.

use super::*;

#[test]
fn hang_keeps_the_control_bit_until_a_reset() {
    let mut card = Icap::new(SERIES7, "xc7z020");
    card.bench.fault(Kind::Hang, Times::Once);
    // A probe while nothing is decoupled is no load.
    card.send(&DESYNC);
    card.decouple(0);
    card.w(WF, 0x2000_0000);
    card.w(CR, 1);
    card.bench.pass(Duration::from_secs(60));
    assert_eq!((card.r(CR), card.r(SR) & 1), (1, 0));
    card.w(CR, 8);
    assert_eq!((card.r(CR), card.r(SR)), (0, IDLE));
    card.send(&partial(ADDER, 0x0042_0100));
    assert_eq!(card.identity(0), ADDER);
}

#[test]
fn configuration_stops_at_the_word_that_was_asked_for() {
    let mut card = Icap::new(SERIES7, "xc7z020");
    card.bench
        .fault(Kind::ConfigError { after_words: 300 }, Times::Once);
    card.decouple(0);
    let words = partial(ADDER, 0x0042_0100);
    card.send(&words[..300]);
    assert_eq!(card.r(SR) & CFGERR_N, CFGERR_N);
    card.send(&words[300..]);
    assert_eq!(card.r(SR) & CFGERR_N, 0);
    assert_eq!(card.stats().last_error, Some(crate::Trouble::Injected));
    assert_eq!(card.identity(0), Uuid::nil());
}

#[test]
fn a_decoupler_may_not_move_and_an_identity_may_lie() {
    let mut card = Icap::new(SERIES7, "xc7z020");
    card.bench.fault(Kind::AccessIgnored, Times::Once);
    card.w(hwicap::DECOUPLERS, 1);
    assert_eq!(card.r(hwicap::DECOUPLERS), 0);
    card.bench.fault(Kind::WrongIdentity, Times::Once);
    card.decouple(0);
    card.send(&partial(ADDER, 0x0042_0100));
    assert_eq!(card.identity(0), crate::functions::WRONG);
}

#[test]
fn a_slow_load_is_slow_to_its_end_and_the_next_one_is_not() {
    let mut card = Icap::new(SERIES7, "xc7z020");
    card.bench.fault(
        Kind::SlowRate {
            bytes_per_second: 4000,
        },
        Times::Once,
    );
    card.decouple(0);
    for _ in 0..2 {
        card.w(WF, 0x2000_0000);
        card.w(CR, 1);
        assert_eq!(card.r(CR), 1);
        card.bench.pass(Duration::from_millis(1));
        assert_eq!(card.r(CR), 0);
    }
    card.couple(0);
    card.decouple(0);
    card.send(&DESYNC);
}

#[test]
fn a_card_that_is_gone_reads_ones() {
    let mut card = Icap::new(SERIES7, "xc7z020");
    let gone = Kind::CardGone { after_words: 3 };
    card.bench.fault(gone, Times::UntilCleared);
    for _ in 0..3 {
        assert_ne!(card.r(SR), u32::MAX);
        card.w(WF, 0x2000_0000);
    }
    assert_eq!(card.r(SR), u32::MAX);
    card.bench.card.clear_faults();
    assert_eq!(card.r(WFV), 253);
}

#[test]
fn faults_of_the_other_shape_are_refused() {
    let fault = |kind| Fault {
        kind,
        region: None,
        times: Times::Once,
    };
    let mut amd = Icap::new(SERIES7, "xc7z020").bench.card;
    let refused = Err(crate::FaultRefused::NotOfThisShape);
    assert_eq!(amd.inject(fault(Kind::PortNoAck)), refused);
    assert_eq!(amd.inject(fault(Kind::RstNoAck)), refused);
    let mut dfl = Bench::new().card;
    let stop = Kind::ConfigError { after_words: 0 };
    assert_eq!(dfl.inject(fault(stop)), refused);
    assert!(dfl.written().is_none());
}
