//! Whatever is stored where: the AMD shape never panics, and what is decoupled stays shut.

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Read(u64, usize),
    Store(u64, Vec<u8>),
    Words(Vec<u32>),
    Reset,
    Pass(u32),
    Fault(Kind),
    Power,
}

fn word() -> impl Strategy<Value = u32> {
    prop_oneof![
        any::<u32>(),
        // Headers of writes, also long ones, and reads.
        (0u32..32, 0u32..16).prop_map(|(register, count)| 0x3000_0000 | register << 13 | count),
        (0u32..400).prop_map(|count| 0x5000_0000 | count),
        (0u32..32).prop_map(|register| 0x2800_0001 | register << 13),
        0u32..32,
        Just(0xaa99_5566),
        Just(0x0372_7093),
        prop::sample::select(vec![0x0100_0000, 0x00c2_00ff, 0x03be_0000, 0x0002_1234]),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let offset = || {
        prop_oneof![
            (0u64..0x24).prop_map(|at| 0x10100 + at),
            (0u64..0x30).prop_map(|at| 0x10000 + at),
            (0u64..16).prop_map(|at| hwicap::IDENTITIES + at),
            0u64..(1 << 20) + 16,
            any::<u64>(),
        ]
    };
    let fault = prop_oneof![
        Just(Kind::Hang),
        Just(Kind::WrongIdentity),
        any::<u64>().prop_map(|after_words| Kind::ConfigError { after_words }),
        (1u64..).prop_map(|bytes_per_second| Kind::SlowRate { bytes_per_second }),
    ];
    prop_oneof![
        3 => (offset(), 0usize..20).prop_map(|(at, len)| Step::Read(at, len)),
        3 => (offset(), prop::collection::vec(any::<u8>(), 0..20))
            .prop_map(|(at, bytes)| Step::Store(at, bytes)),
        6 => prop::collection::vec(word(), 0..250).prop_map(Step::Words),
        1 => Just(Step::Reset),
        1 => any::<u32>().prop_map(Step::Pass),
        1 => fault.prop_map(Step::Fault),
        1 => Just(Step::Power),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_panics_and_what_is_shut_stays_shut(steps in prop::collection::vec(step(), 1..40)) {
        let mut card = Icap::with(SERIES7, "xc7z020", |config| {
            config.rate = Rate::BytesPerSecond(1_000_000);
            config.table.insert_payload(b"else", ADDER);
        });
        for step in steps {
            match step {
                Step::Read(at, len) => {
                    let mut out = vec![0; len];
                    let management = PciFunction::Management;
                    card.bench.card.read(management, Space::Bar0, at, &mut out);
                }
                Step::Store(at, bytes) => {
                    let management = PciFunction::Management;
                    card.bench.card.write(management, Space::Bar0, at, &bytes);
                }
                Step::Words(words) => {
                    for word in words {
                        card.w(WF, word);
                    }
                    card.w(CR, 1);
                }
                Step::Reset => card.bench.card.reset(PciFunction::Management),
                Step::Pass(nanoseconds) => {
                    card.bench.pass(Duration::from_nanos(nanoseconds.into()));
                }
                // Full of faults is no mistake here.
                Step::Fault(kind) => drop(card.bench.card.inject(Fault {
                    kind,
                    region: None,
                    times: Times::Once,
                })),
                Step::Power => card.bench.card.power_cycle(),
            }
            let vacancy = card.r(WFV);
            prop_assert!(vacancy <= 256);
            for region in 0..2u8 {
                let decoupler = hwicap::DECOUPLERS + u64::from(region) * hwicap::STRIDE;
                if card.r(decoupler) == 1 {
                    prop_assert_eq!(card.bench.vf_r(region, AFU), u64::MAX);
                    prop_assert_eq!(card.bench.vf_r(region, AFU + 0x40), u64::MAX);
                }
            }
        }
    }
}
