//! Every fault on demand, as a driver meets it.

use std::time::Duration;

use super::*;
use crate::functions::{ADDER, WRONG};
use crate::{FaultRefused, PrError, Stage};

const ONCE: Times = Times::Once;
const LASTING: Times = Times::UntilCleared;

fn error(bits: u64, at: Stage) -> Kind {
    Kind::PrError { bits, at }
}

/// The case's vectors: ERR before START and the bits that the run ends in.
#[test]
fn krn_01_error_bits_are_reported_each_and_a_stale_one_is_not_the_new_runs() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../shared/cases/KRN-01/vectors.jsonl"
    );
    let Ok(text) = std::fs::read_to_string(path) else {
        eprintln!("SKIPPED: {path} is not here");
        return;
    };
    for line in text.lines() {
        let vector: serde_json::Value = serde_json::from_str(line).unwrap();
        let bits = |name: &str| {
            let text = vector[name].as_str().unwrap().trim_start_matches("0x");
            u64::from_str_radix(text, 16).unwrap()
        };
        let mut bench = Bench::new();
        bench.fault(
            Kind::StickyError {
                bits: bits("before"),
            },
            ONCE,
        );
        if bits("after") != 0 {
            bench.fault(error(bits("after"), Stage::Complete), ONCE);
        }
        assert_eq!(bench.program(0, &image(ADDER)), bits("after"), "{line}");
        assert_eq!(bench.r(CTRL) & START, 0);
        assert_eq!(bench.r(STS) & B16 != 0, bits("after") != 0);
        // Struck once: the next run is good.
        assert_eq!(bench.program(0, &image(ADDER)), 0, "{line}");
    }
}

/// Linux believes b16 or believes ERR; the card never shows one without the
/// other at the end of a run.
#[test]
fn b16_and_err_never_disagree_at_the_end_of_a_run() {
    for bits in 0..32 {
        let mut bench = Bench::new();
        if bits != 0 {
            bench.fault(error(bits, Stage::Complete), ONCE);
        }
        let err = bench.program(0, &image(ADDER));
        assert_eq!(err, bits);
        assert_eq!(bench.r(STS) & B16 != 0, err != 0);
    }
}

#[test]
fn errors_can_show_at_the_start_and_with_the_data() {
    let mut bench = Bench::new();
    bench.disable(0);
    bench.fault(error(PrError::Protocol.bit(), Stage::Start), ONCE);
    bench.start(0);
    assert_eq!((bench.r(CTRL) & START, bench.r(ERR)), (0, 8));

    bench.reset_engine();
    bench.fault(error(PrError::Crc.bit(), Stage::Data), ONCE);
    bench.start(0);
    assert_eq!((bench.r(STS) & B16, bench.r(ERR)), (0, 0));
    bench.push(&image(ADDER));
    assert_eq!(
        (bench.r(STS) & B16, bench.r(ERR), bench.r(CTRL) & START),
        (B16, 2, START)
    );
    bench.complete();
    assert_eq!((bench.r(ERR), bench.r(CTRL) & START), (2, 0));
}

#[test]
fn a_lasting_sticky_error_comes_back_until_it_is_cleared() {
    let mut bench = Bench::new();
    bench.fault(Kind::StickyError { bits: 4 }, LASTING);
    bench.w(ERR, 4);
    assert_eq!((bench.r(ERR), bench.r(STS) & B16), (4, B16));
    bench.card.clear_faults();
    bench.w(ERR, 4);
    assert_eq!((bench.r(ERR), bench.r(STS) & B16), (0, 0));
}

#[test]
fn krn_02_credit_stuck_at_one_and_the_next_run_works() {
    let mut bench = Bench::new();
    bench.fault(Kind::CreditsStuck { credit: Some(1) }, ONCE);
    bench.disable(0);
    bench.start(0);
    bench.pass(Duration::from_secs(60));
    assert_eq!(bench.r(STS) & 0x1ff, 1);
    bench.push(&[0; 4]);
    assert_eq!((bench.r(STS) & 0x1ff, bench.r(ERR)), (0, 0));
    bench.push(&[0; 4]);
    assert_eq!(bench.r(ERR), 1 << 4);
    // Not even COMPLETE ends it: the words never leave.
    bench.complete();
    bench.pass(Duration::from_secs(60));
    assert_eq!(bench.r(CTRL) & START, START);
    bench.reset_engine();
    assert_eq!(bench.r(STS) & 0x1ff, 256);
    assert_eq!(bench.program(0, &image(ADDER)), 0);
}

#[test]
fn krn_02_an_odd_size_is_padded_by_whoever_writes_words() {
    let odd = [b'Z'; 65];
    let mut bench = Bench::with(|config| config.table.insert_payload(&odd, ADDER));
    assert_eq!(bench.program(0, &odd), 0);
    assert_eq!(bench.card.stats().regions[0].data_words, 17);
}

#[test]
fn d5_a_hanging_engine_never_clears_start_until_rst() {
    let mut bench = Bench::new();
    bench.fault(Kind::Hang, ONCE);
    bench.program(0, &image(ADDER));
    bench.pass(Duration::from_secs(3600));
    assert_eq!(bench.r(CTRL) & (START | COMPLETE), START | COMPLETE);
    assert_eq!((bench.r(ERR), bench.r(STS) & B16), (0, 0));
    bench.reset_engine();
    assert_eq!(bench.program(0, &image(ADDER)), 0);
}

#[test]
fn rst_can_stay_unacknowledged() {
    let mut bench = Bench::new();
    bench.fault(Kind::RstNoAck, ONCE);
    bench.w(CTRL, 1);
    assert_eq!(bench.r(CTRL), 1);
    bench.w(CTRL, 0);
    bench.w(CTRL, 1);
    assert_eq!(bench.r(CTRL), 0x11);
}

#[test]
fn b16_can_be_stuck_from_one_rst_to_the_next() {
    let mut bench = Bench::new();
    bench.fault(Kind::BusyStuck, ONCE);
    assert_eq!(bench.r(STS) & B16, 0);
    bench.reset_engine();
    assert_eq!((bench.r(STS) & B16, bench.r(ERR)), (B16, 0));
    bench.reset_engine();
    assert_eq!(bench.r(STS) & B16, 0);
}

#[test]
fn a_port_may_not_acknowledge() {
    let mut bench = Bench::new();
    bench.fault(Kind::PortNoAck, ONCE);
    assert!(!bench.disable(0));
    assert_eq!(bench.r(PORT[0] + PORT_CTRL), 5);
    // It is not in reset: a run is refused.
    bench.start(0);
    assert_eq!(bench.r(ERR), 1);
    assert!(bench.enable(0));
    assert!(bench.disable(0));

    bench.fault(Kind::PortAckStuck, ONCE);
    assert!(!bench.enable(0));
    assert_eq!(bench.r(PORT[0] + PORT_CTRL), 0x14);
    assert!(bench.disable(0));
    assert!(bench.enable(0));
}

#[test]
fn d6_a_broken_gate_reads_back_as_it_was() {
    let mut bench = Bench::new();
    bench.hand_over(0, ADDER);
    bench.fault(Kind::AccessIgnored, ONCE);
    bench.take(0);
    assert_eq!(bench.r(PORT_OFST[0]) & GUEST, GUEST);
    assert_eq!(bench.vf_r(0, AFU + 8), ADDER.as_u64_pair().1);
    bench.take(0);
    assert_eq!(bench.r(PORT_OFST[0]) & GUEST, 0);
}

#[test]
fn b13_a_good_end_with_another_function() {
    let mut bench = Bench::new();
    bench.fault(Kind::WrongIdentity, ONCE);
    assert_eq!(bench.program(0, &image(ADDER)), 0);
    assert!(bench.enable(0));
    assert_eq!(bench.identity(0), WRONG);
    assert_eq!(bench.program(0, &image(ADDER)), 0);
    assert!(bench.enable(0));
    assert_eq!(bench.identity(0), ADDER);
}

#[test]
fn d4_a_card_that_is_gone_reads_ones_everywhere() {
    let mut bench = Bench::new();
    bench.hand_over(0, ADDER);
    bench.disable(1);
    bench.reset_engine();
    bench.start(1);
    bench.fault(Kind::CardGone { after_words: 3 }, LASTING);
    bench.push(&[0; 12]);
    for at in [0, CTRL, STS, ERR, PORT[0]] {
        assert_eq!(bench.r(at), u64::MAX);
    }
    assert_eq!(bench.vf_r(0, AFU + 8), u64::MAX);
    let mut ids = [0; 4];
    bench
        .card
        .read(PciFunction::Management, Space::Config, 0, &mut ids);
    assert_eq!(ids, [0xff; 4]);
    bench.w(CTRL, 1);
    assert!(bench.card.state().gone);

    bench.card.clear_faults();
    assert_eq!(bench.r(CTRL) & 1, 0);
    assert_eq!(bench.vf_r(0, AFU + 8), ADDER.as_u64_pair().1);
    assert_eq!(bench.card.stats().regions[1].data_words, 3);
}

#[test]
fn one_run_can_be_slow() {
    let mut bench = Bench::new();
    bench.fault(
        Kind::SlowRate {
            bytes_per_second: 4000,
        },
        ONCE,
    );
    bench.disable(0);
    bench.start(0);
    bench.push(&[0; 8]);
    assert_eq!(bench.r(STS) & 0x1ff, 254);
    bench.pass(Duration::from_millis(1));
    assert_eq!(bench.r(STS) & 0x1ff, 255);
    bench.reset_engine();
    bench.start(0);
    bench.push(&[0; 8]);
    assert_eq!(bench.r(STS) & 0x1ff, 256);
}

#[test]
fn a_fault_of_one_region_spares_the_other() {
    let mut bench = Bench::new();
    let fault = Fault {
        kind: error(8, Stage::Complete),
        region: Some(1),
        times: LASTING,
    };
    bench.card.inject(fault).unwrap();
    assert_eq!(bench.program(0, &image(ADDER)), 0);
    assert_eq!(bench.program(1, &image(ADDER)), 8);
    assert_eq!(bench.program(1, &image(ADDER)), 8);
}

#[test]
fn faults_that_make_no_sense_are_refused() {
    let mut bench = Bench::new();
    let mut inject = |kind, region, times| {
        bench.card.inject(Fault {
            kind,
            region,
            times,
        })
    };
    assert_eq!(
        inject(Kind::RstNoAck, Some(0), ONCE),
        Err(FaultRefused::NotOfARegion)
    );
    let gone = Kind::CardGone { after_words: 0 };
    assert_eq!(inject(gone, None, ONCE), Err(FaultRefused::Lasting));
    let still = Kind::SlowRate {
        bytes_per_second: 0,
    };
    assert_eq!(inject(still, None, ONCE), Err(FaultRefused::NoSpeed));
}
