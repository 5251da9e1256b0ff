//! Whatever is stored where: the card never panics, and keeps its word.

use proptest::prelude::*;

use super::*;
use crate::functions::ADDER;

#[derive(Debug, Clone)]
enum Step {
    Read(u8, u64, usize),
    Write(u8, u64, Vec<u8>),
    Config(u8, u64, Vec<u8>),
    Reset(u8),
    Pass(u32),
    Fault(Kind),
    Power,
}

fn function(index: u8) -> PciFunction {
    match index {
        0 => PciFunction::Management,
        1 => user(0),
        _ => user(1),
    }
}

/// Offsets where something is, mostly.
fn offset() -> impl Strategy<Value = u64> {
    prop_oneof![
        3 => (0u64..0x30).prop_map(|n| PR + n),
        2 => 0u64..0x80,
        2 => (0u64..2, 0u64..0x60).prop_map(|(n, at)| PORT[usize::try_from(n).unwrap()] + at),
        2 => (0u64..0x60).prop_map(|at| AFU + at),
        1 => 0u64..0x80010,
        1 => any::<u64>(),
    ]
}

fn fault() -> impl Strategy<Value = Kind> {
    prop_oneof![
        Just(Kind::Hang),
        Just(Kind::RstNoAck),
        Just(Kind::BusyStuck),
        Just(Kind::PortNoAck),
        Just(Kind::AccessIgnored),
        Just(Kind::WrongIdentity),
        any::<u64>().prop_map(|bits| Kind::StickyError { bits }),
        any::<Option<u16>>().prop_map(|credit| Kind::CreditsStuck { credit }),
        (1u64..).prop_map(|bytes_per_second| Kind::SlowRate { bytes_per_second }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0u8..3, offset(), 0usize..20).prop_map(|(f, at, n)| Step::Read(f, at, n)),
        8 => (0u8..3, offset(), prop::collection::vec(any::<u8>(), 0..20))
            .prop_map(|(f, at, bytes)| Step::Write(f, at, bytes)),
        1 => (0u8..3, 0u64..5000, prop::collection::vec(any::<u8>(), 0..9))
            .prop_map(|(f, at, bytes)| Step::Config(f, at, bytes)),
        1 => (0u8..3).prop_map(Step::Reset),
        1 => any::<u32>().prop_map(Step::Pass),
        1 => fault().prop_map(Step::Fault),
        1 => Just(Step::Power),
    ]
}

fn run(bench: &mut Bench, step: Step) {
    match step {
        Step::Read(f, at, n) => bench
            .card
            .read(function(f), Space::Bar0, at, &mut vec![0; n]),
        Step::Write(f, at, bytes) => bench.card.write(function(f), Space::Bar0, at, &bytes),
        Step::Config(f, at, bytes) => bench.card.write(function(f), Space::Config, at, &bytes),
        Step::Reset(f) => bench.card.reset(function(f)),
        Step::Pass(nanoseconds) => bench.pass(Duration::from_nanos(u64::from(nanoseconds))),
        Step::Fault(kind) => {
            // A full list is no failure of the card.
            let _full = bench.card.inject(Fault {
                kind,
                region: None,
                times: Times::Once,
            });
        }
        Step::Power => bench.card.power_cycle(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_accesses_leave_a_card_that_can_be_programmed(
        rate in prop_oneof![Just(Rate::Instant), (1u64..10_000_000).prop_map(Rate::BytesPerSecond)],
        steps in prop::collection::vec(step(), 0..80),
    ) {
        let mut bench = Bench::with(|config| config.rate = rate);
        for step in steps {
            run(&mut bench, step);
            // A guest never reaches a function that access or reset keeps from it.
            for region in bench.card.state().regions {
                let shut = region.in_reset || region.access == crate::AccessState::Host;
                if shut {
                    prop_assert_eq!(bench.vf_r(region.region, AFU), u64::MAX);
                }
                prop_assert!(!region.frozen || region.function.is_none());
            }
        }
        bench.card.clear_faults();
        bench.take(0);
        bench.w(PORT[0] + PORT_CTRL, 4);
        bench.w(CTRL, 0);
        prop_assert!(bench.disable(0));
        bench.reset_engine();
        bench.start(0);
        for word in image(ADDER).chunks(4) {
            bench.pass(Duration::from_secs(4));
            bench.push(word);
        }
        bench.complete();
        bench.pass(Duration::from_secs(4));
        prop_assert_eq!((bench.r(CTRL) & START, bench.r(ERR)), (0, 0));
    }
}
