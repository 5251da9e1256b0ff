//! The engine against a card made of registers, with every trouble that the
//! facts know, and with every single access failing.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "a test may fail where a number does not fit"
)]

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::device::DeviceError;
use crate::dfl::walk;
use crate::engine::{PrFault, Written, load_budget};
use crate::testing::{Effect, Faulty, Kind, Lasting, Model, ModelDevice, Trouble, VirtualClock};

const FUNCTION: Uuid = Uuid::from_u128(0x0123_4567_89ab_cdef_1122_3344_5566_7788);
const REGION: RegionId = RegionId(0);
const BUDGET: Duration = Duration::from_secs(20);

/// A payload of so many bytes, in the order that these cards take.
fn words(bytes: u64) -> Payload {
    let order = WordOrder::LittleEndian;
    Payload { bytes, order }
}

/// A payload that the model takes for `FUNCTION`, of so many bytes.
fn payload(length: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..length - 16).map(|at| at as u8).collect();
    bytes.extend_from_slice(&FUNCTION.as_u128().to_le_bytes());
    bytes
}

fn engine_on(device: Box<dyn Device>, clock: &Arc<VirtualClock>, kind: Kind) -> DflEngine {
    // The facts are read from a sound card; only the engine meets trouble.
    let mut sound = ModelDevice::new(&Model::new(kind, clock));
    let topology = walk(&mut sound).unwrap();
    let clock: Arc<dyn Clock> = clock.clone();
    DflEngine::new(device, &topology, Waits::default(), clock).unwrap()
}

fn setup(kind: Kind) -> (DflEngine, Arc<Mutex<Model>>, Arc<VirtualClock>) {
    let clock = VirtualClock::new();
    let model = Model::new(kind, &clock);
    let engine = engine_on(Box::new(ModelDevice::new(&model)), &clock, kind);
    (engine, model, clock)
}

fn load(engine: &mut DflEngine, bytes: &[u8]) -> Result<Written, ProgramError> {
    let total = bytes.len() as u64;
    let mut programming = engine.begin(REGION, words(total), BUDGET)?;
    programming.write_all(bytes, &mut |_| {})?;
    programming.finish()
}

fn failed(result: Result<Written, ProgramError>) -> ProgramError {
    match result {
        Err(error) => error,
        Ok(written) => panic!("a load went well that must not: {written:?}"),
    }
}

/// Everything from a running guest to the next one.
#[derive(Debug)]
enum Failed {
    Engine(EngineError),
    Program(ProgramError),
}

fn whole(engine: &mut DflEngine, bytes: &[u8]) -> Result<Identity, Failed> {
    engine.shut(REGION).map_err(Failed::Engine)?;
    load(engine, bytes).map_err(Failed::Program)?;
    let identity = engine.identity(REGION).map_err(Failed::Engine)?;
    engine.open(REGION).map_err(Failed::Engine)?;
    Ok(identity)
}

#[test]
fn a_load_on_each_kind_of_card() {
    for (kind, identity) in [
        (Kind::Classic, Identity::Function(FUNCTION)),
        (Kind::Ofs, Identity::EngineStatus),
    ] {
        let (mut engine, model, _clock) = setup(kind);
        assert_eq!(engine.regions()[0].interface_id, Model::interface_id());
        assert_eq!(engine.access(REGION).unwrap(), Access::Guest);
        assert_eq!(engine.in_reset(REGION).unwrap(), ResetState::Released);

        engine.shut(REGION).unwrap();
        assert_eq!(engine.access(REGION).unwrap(), Access::Host);
        assert_eq!(engine.in_reset(REGION).unwrap(), ResetState::Held);

        let written = load(&mut engine, &payload(10_000)).unwrap();
        assert_eq!(written.bytes, 10_000);
        assert!(!model.lock().unwrap().guest_reaches(0));
        assert_eq!(engine.identity(REGION).unwrap(), identity);
        assert!(!model.lock().unwrap().guest_reaches(0));
        engine.open(REGION).unwrap();
        let model = model.lock().unwrap();
        assert!(model.guest_reaches(0));
        assert_eq!(model.ports[0].function, FUNCTION.as_u128());
        assert_eq!(model.words.len(), 2500);
    }
}

#[test]
fn access_is_the_first_store_and_the_last() {
    let (mut engine, model, _clock) = setup(Kind::Classic);
    model.lock().unwrap().trace.clear();
    whole(&mut engine, &payload(64)).unwrap();
    let model = model.lock().unwrap();
    let stores: Vec<u64> = model
        .trace
        .iter()
        .filter_map(|(offset, value)| value.map(|_| *offset))
        .collect();
    assert_eq!((stores.first(), stores.last()), (Some(&0x38), Some(&0x38)));
}

#[test]
fn the_other_region_is_never_touched() {
    let (mut engine, model, _clock) = setup(Kind::Classic);
    whole(&mut engine, &payload(64)).unwrap();
    let model = model.lock().unwrap();
    let other = |offset: &u64| *offset == 0x40 || (0x20000..0x30000).contains(offset);
    assert!(
        !model
            .trace
            .iter()
            .any(|(offset, value)| value.is_some() && other(offset))
    );
    assert!(model.guest_reaches(1));
}

#[test]
fn the_second_region_has_its_number_in_the_start() {
    let (mut engine, model, _clock) = setup(Kind::Classic);
    let second = RegionId(1);
    engine.shut(second).unwrap();
    let mut programming = engine.begin(second, words(64), BUDGET).unwrap();
    programming.write(&payload(64)).unwrap();
    programming.finish().unwrap();
    assert_eq!(
        engine.identity(second).unwrap(),
        Identity::Function(FUNCTION)
    );
    let model = model.lock().unwrap();
    assert!(model.trace.contains(&(0x2008, Some(1 << 12 | 1 << 7))));
    assert_eq!(model.ports[0].function, 0x11);
}

/// Before, after, and what is to be said, from cases/KRN-01.
#[test]
fn krn_01_each_error_bit_by_its_name_and_no_stale_one_blamed() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../shared/cases/KRN-01/vectors.jsonl"
    );
    let Ok(vectors) = std::fs::read_to_string(path) else {
        eprintln!("SKIPPED: {path} is not here");
        return;
    };
    let names = HashMap::from([
        ("operation_error", PrFault::Operation),
        ("crc_error", PrFault::Crc),
        ("crc", PrFault::Crc),
        ("incompatible", PrFault::Incompatible),
        // The registers' own name; it says more than is known.
        ("protocol_error", PrFault::Engine),
        ("fifo_overflow", PrFault::FifoOverflow),
    ]);
    for line in vectors.lines() {
        let vector: serde_json::Value = serde_json::from_str(line).unwrap();
        let word = |name: &str| {
            let text = vector[name].as_str().unwrap();
            u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
        };
        let (mut engine, model, _clock) = setup(Kind::Classic);
        model.lock().unwrap().error = word("before");
        model.lock().unwrap().trouble.errors = word("after");
        engine.shut(REGION).unwrap();
        let result = load(&mut engine, &payload(64));
        let expect = vector["expect"].as_str().unwrap();
        if expect == "ok" {
            assert!(result.is_ok(), "{line}");
            continue;
        }
        let error = failed(result);
        let ProgramCause::Faults(faults) = error.cause else {
            panic!("{line}: {error}");
        };
        let want: Vec<PrFault> = expect.split('+').map(|name| names[name]).collect();
        assert_eq!(faults.iter().collect::<Vec<_>>(), want, "{line}");
        assert_eq!(faults.worst(), want[0]);
        assert_eq!(
            error.raw.errors,
            Some(word("after")),
            "raw words for the operator"
        );
        assert_eq!(
            (error.stage, error.left),
            (Stage::Completing, RegionLeft::Shut)
        );
        assert_eq!(model.lock().unwrap().error, 0, "cleared after the report");
    }
}

/// A region that is not there, credits that never return, an odd size.
#[test]
fn krn_02_range_first_then_deadline_then_padding() {
    let (mut engine, model, _clock) = setup(Kind::Classic);
    model.lock().unwrap().trace.clear();
    let error = engine.begin(RegionId(5), words(64), BUDGET).unwrap_err();
    assert!(matches!(error.cause, ProgramCause::NoSuchRegion), "{error}");
    assert!(model.lock().unwrap().trace.is_empty());

    engine.shut(REGION).unwrap();
    model.lock().unwrap().trouble.no_credits = true;
    let error = failed(load(&mut engine, &payload(4096)));
    assert!(matches!(error.cause, ProgramCause::Stuck { .. }), "{error}");
    assert_eq!(
        (error.stage, error.left),
        (Stage::Writing, RegionLeft::Shut)
    );

    model.lock().unwrap().trouble.no_credits = false;
    load(&mut engine, &[0x5a; 65]).unwrap();
    let model = model.lock().unwrap();
    assert_eq!(model.words.len(), 17);
    assert_eq!(model.words[16], 0x5a);
}

#[test]
fn vfio_01_a_dead_write_fails_the_load() {
    let clock = VirtualClock::new();
    let model = Model::new(Kind::Classic, &clock);
    let device = ModelDevice::new(&model);
    let mut engine = engine_on(Box::new(device), &clock, Kind::Classic);
    engine.shut(REGION).unwrap();
    let mut programming = engine.begin(REGION, words(64), BUDGET).unwrap();
    model.lock().unwrap().trouble.gone = true;
    programming.write(&payload(64)).unwrap_err();
}

#[test]
fn d4_a_card_that_vanishes_is_gone_and_not_good() {
    for after in 0.. {
        let (mut engine, model, clock) = setup(Kind::Classic);
        model.lock().unwrap().trouble.vanishes_after = Some(after);
        let before = clock.now();
        let (gone, left) = match whole(&mut engine, &payload(3000)) {
            Ok(_) => break,
            Err(Failed::Engine(error)) => (
                matches!(error.cause, EngineCause::Device(DeviceError::Gone(_))),
                error.left,
            ),
            Err(Failed::Program(error)) => (
                matches!(error.cause, ProgramCause::Device(DeviceError::Gone(_))),
                error.left,
            ),
        };
        assert!(gone, "access {after}");
        assert_eq!(left, RegionLeft::Unproven, "access {after}");
        assert!(
            clock.now() - before < Duration::from_secs(1),
            "no waiting for a card that is gone"
        );
    }
}

#[test]
fn d5_a_hanging_card_ends_in_a_deadline() {
    for kind in [Kind::Classic, Kind::Ofs] {
        let (mut engine, model, clock) = setup(kind);
        model.lock().unwrap().trouble.hang = true;
        engine.shut(REGION).unwrap();
        let before = clock.now();
        let error = failed(load(&mut engine, &payload(64)));
        let took = clock.now() - before;
        assert!(matches!(error.cause, ProgramCause::Stuck { .. }), "{error}");
        assert!(
            took > Duration::from_secs(8) && took < Duration::from_secs(9),
            "{took:?}"
        );
        assert_eq!(error.left, RegionLeft::Shut);
        // The next one works, in its own first try.
        model.lock().unwrap().trouble.hang = false;
        whole(&mut engine, &payload(64)).unwrap();
    }
}

#[test]
fn d5_a_load_may_not_take_longer_than_its_size_warrants() {
    let (mut engine, model, clock) = setup(Kind::Classic);
    model.lock().unwrap().trouble.word_takes = Duration::from_millis(1);
    engine.shut(REGION).unwrap();
    let before = clock.now();
    let bytes = payload(64 << 10);
    let budget = load_budget(bytes.len() as u64, Duration::from_secs(2), 1_000_000);
    let mut programming = engine
        .begin(REGION, words(bytes.len() as u64), budget)
        .unwrap();
    let error = programming.write(&bytes).unwrap_err();
    assert!(
        matches!(error.cause, ProgramCause::Deadline { .. }),
        "{error}"
    );
    assert!(clock.now() - before < Duration::from_millis(2500));
}

#[test]
fn a_slow_card_is_waited_for() {
    let (mut engine, model, _clock) = setup(Kind::Classic);
    model.lock().unwrap().trouble.word_takes = Duration::from_micros(20);
    engine.shut(REGION).unwrap();
    load(&mut engine, &payload(40_000)).unwrap();
    assert_eq!(model.lock().unwrap().error, 0, "the FIFO never ran over");
}

#[test]
fn d6_a_switch_that_does_not_move_ends_before_any_write() {
    let (mut engine, model, _clock) = setup(Kind::Classic);
    model.lock().unwrap().trouble.switch_stuck = true;
    let error = engine.shut(REGION).unwrap_err();
    assert!(
        matches!(error.cause, EngineCause::DecoupleFailed { .. }),
        "{error}"
    );
    assert_eq!(error.left, RegionLeft::Unproven);
    let error = engine.begin(REGION, words(64), BUDGET).unwrap_err();
    assert!(matches!(error.cause, ProgramCause::NotShut), "{error}");
    let model = model.lock().unwrap();
    assert!(
        !model
            .trace
            .iter()
            .any(|(offset, value)| *offset >= 0x2000 && *offset < 0x3000 && value.is_some())
    );
}

#[test]
fn d6_a_region_that_is_open_is_not_written() {
    let (mut engine, _model, _clock) = setup(Kind::Classic);
    let error = engine.begin(REGION, words(64), BUDGET).unwrap_err();
    assert!(matches!(error.cause, ProgramCause::NotShut), "{error}");
    let error = engine.identity(REGION).unwrap_err();
    assert!(matches!(error.cause, EngineCause::NotShut), "{error}");
    assert_eq!(error.left, RegionLeft::Shut);
}

/// Every trouble, and what it must end in: an error, a shut region, and an
/// engine that works again once the trouble is over.
#[test]
fn each_trouble_is_told_and_leaves_the_region_shut() {
    let none = Trouble::default;
    let troubles = [
        (
            "reset not acknowledged",
            Trouble {
                no_reset_ack: true,
                ..none()
            },
        ),
        (
            "fault flag stuck",
            Trouble {
                fault_flag_stuck: true,
                ..none()
            },
        ),
        (
            "ends early",
            Trouble {
                ends_early: true,
                ..none()
            },
        ),
        (
            "no identifier",
            Trouble {
                no_function: true,
                ..none()
            },
        ),
        (
            "port does not leave reset",
            Trouble {
                port_ack_stuck: true,
                ..none()
            },
        ),
        (
            "crc",
            Trouble {
                errors: 2,
                ..none()
            },
        ),
        (
            "unknown bit",
            Trouble {
                errors: 1 << 40,
                ..none()
            },
        ),
    ];
    for kind in [Kind::Classic, Kind::Ofs] {
        for (name, trouble) in troubles {
            if kind == Kind::Ofs && trouble.no_function {
                continue;
            }
            let (mut engine, model, _clock) = setup(kind);
            engine.shut(REGION).unwrap();
            model.lock().unwrap().trouble = trouble;
            let left = match whole(&mut engine, &payload(8192)).expect_err(name) {
                Failed::Engine(error) => error.left,
                Failed::Program(error) => error.left,
            };
            assert_eq!(left, RegionLeft::Shut, "{kind:?}: {name}");
            assert!(!model.lock().unwrap().guest_reaches(0), "{kind:?}: {name}");
            model.lock().unwrap().trouble = none();
            whole(&mut engine, &payload(8192)).expect(name);
        }
    }
}

#[test]
fn a_port_that_does_not_acknowledge_is_told_in_time() {
    let (mut engine, model, clock) = setup(Kind::Classic);
    model.lock().unwrap().trouble.no_port_ack = true;
    let before = clock.now();
    let error = engine.shut(REGION).unwrap_err();
    assert!(matches!(error.cause, EngineCause::Stuck { .. }), "{error}");
    // Access was taken all the same.
    assert_eq!(error.left, RegionLeft::Shut);
    assert!(clock.now() - before < Duration::from_secs(3));
    // And once the port is well, so is the region.
    model.lock().unwrap().trouble.no_port_ack = false;
    whole(&mut engine, &payload(64)).unwrap();
}

#[test]
fn a_flag_that_also_means_busy_is_no_error() {
    let (mut engine, model, _clock) = setup(Kind::Classic);
    model.lock().unwrap().trouble.fault_flag_busy = true;
    whole(&mut engine, &payload(8192)).unwrap();
}

#[test]
fn an_error_in_mid_stream_is_seen_long_before_the_end() {
    let (mut engine, model, _clock) = setup(Kind::Ofs);
    model.lock().unwrap().trouble.errors = 8;
    engine.shut(REGION).unwrap();
    let error = failed(load(&mut engine, &payload(1 << 20)));
    assert!(matches!(error.cause, ProgramCause::Faults(faults) if faults.raw() == 8));
    assert_eq!(error.stage, Stage::Writing);
    assert!(model.lock().unwrap().words.len() < 1000);
}

#[test]
fn b13_another_function_than_expected_is_shown_as_it_is() {
    let (mut engine, model, _clock) = setup(Kind::Classic);
    model.lock().unwrap().trouble.wrong_function = true;
    let Identity::Function(found) = whole(&mut engine, &payload(64)).unwrap() else {
        panic!("the function can be read on a classic card");
    };
    assert_ne!(found, FUNCTION);
}

#[test]
fn a_load_dropped_half_way_leaves_the_region_shut_and_the_engine_well() {
    for kind in [Kind::Classic, Kind::Ofs] {
        let (mut engine, model, _clock) = setup(kind);
        engine.shut(REGION).unwrap();
        let mut programming = engine.begin(REGION, words(8192), BUDGET).unwrap();
        programming.write(&[1; 1000]).unwrap();
        assert!(model.lock().unwrap().loading());
        drop(programming);
        assert!(!model.lock().unwrap().loading());
        assert!(!model.lock().unwrap().guest_reaches(0));
        assert_eq!(engine.in_reset(REGION).unwrap(), ResetState::Held);
        whole(&mut engine, &payload(64)).unwrap();
    }
}

#[test]
fn announced_and_given_bytes_must_agree() {
    let (mut engine, _model, _clock) = setup(Kind::Classic);
    engine.shut(REGION).unwrap();
    assert!(matches!(
        engine.begin(REGION, words(0), BUDGET).unwrap_err().cause,
        ProgramCause::Empty
    ));
    let mut programming = engine.begin(REGION, words(8), BUDGET).unwrap();
    let error = programming.write(&[0; 9]).unwrap_err();
    assert!(
        matches!(error.cause, ProgramCause::TooLong { announced: 8 }),
        "{error}"
    );
    let error = programming.write(&[0; 1]).unwrap_err();
    assert!(
        matches!(error.cause, ProgramCause::AlreadyFailed),
        "{error}"
    );
    let error = programming.finish().unwrap_err();
    assert!(
        matches!(error.cause, ProgramCause::AlreadyFailed),
        "{error}"
    );

    let mut programming = engine.begin(REGION, words(8), BUDGET).unwrap();
    programming.write(&[0; 7]).unwrap();
    let error = programming.finish().unwrap_err();
    assert!(
        matches!(
            error.cause,
            ProgramCause::TooShort {
                announced: 8,
                given: 7
            }
        ),
        "{error}"
    );
}

#[test]
fn d14_a_guests_reset_gives_access_back_to_whose_it_was() {
    for kind in [Kind::Classic, Kind::Ofs] {
        let (mut engine, model, _clock) = setup(kind);
        engine.pulse_reset(REGION).unwrap();
        assert!(model.lock().unwrap().guest_reaches(0));
        assert_eq!(engine.in_reset(REGION).unwrap(), ResetState::Released);

        engine.shut(REGION).unwrap();
        let error = engine.pulse_reset(REGION).unwrap_err();
        assert!(matches!(error.cause, EngineCause::NotOpen), "{error}");
        assert!(!model.lock().unwrap().guest_reaches(0));
    }
}

#[test]
fn a_failed_opening_shuts_the_region_again() {
    let (mut engine, model, _clock) = setup(Kind::Classic);
    engine.shut(REGION).unwrap();
    model.lock().unwrap().trouble.switch_stuck = true;
    let error = engine.open(REGION).unwrap_err();
    assert!(
        matches!(error.cause, EngineCause::AccessStuck { .. }),
        "{error}"
    );
    assert_eq!(error.left, RegionLeft::Shut);
    assert_eq!(engine.in_reset(REGION).unwrap(), ResetState::Held);
}

/// D4: every single access fails once, or from there on for ever; its effect
/// lost, or done and only the answer lost.
#[test]
fn d4_whichever_access_fails_the_region_is_left_shut_or_said_not_to_be() {
    for kind in [Kind::Classic, Kind::Ofs] {
        for lasting in [Lasting::Once, Lasting::ForEver] {
            for effect in [Effect::Lost, Effect::Done] {
                let cases = (0u64..).take_while(|k| fails_safely(kind, *k, lasting, effect));
                assert!(cases.count() > 30, "{kind:?} {lasting:?} {effect:?}");
            }
        }
    }
}

/// Fails access `k`; returns whether there was one.
fn fails_safely(kind: Kind, k: u64, lasting: Lasting, effect: Effect) -> bool {
    let clock = VirtualClock::new();
    let model = Model::new(kind, &clock);
    let device = Faulty::new(ModelDevice::new(&model), k, lasting, effect);
    let mut engine = engine_on(Box::new(device), &clock, kind);
    let left = match whole(&mut engine, &payload(3000)) {
        Ok(_) => {
            assert!(model.lock().unwrap().guest_reaches(0));
            return false;
        }
        Err(Failed::Engine(error)) => error.left,
        Err(Failed::Program(error)) => error.left,
    };
    let shut = !model.lock().unwrap().guest_reaches(0);
    let told = match (left, lasting) {
        (RegionLeft::Shut, _) => shut,
        // Where nothing reaches the device any more, that is said.
        (RegionLeft::Unproven, Lasting::ForEver) => true,
        (RegionLeft::Unproven, Lasting::Once) | (RegionLeft::AsItWas, _) => false,
    };
    assert!(
        told,
        "{kind:?}, access {k} {lasting:?} {effect:?}: {left:?}, shut {shut}"
    );
    true
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Registers that hold anything: no panic, no hang, and never a region
    /// that a guest reaches although something failed and was said to be shut.
    #[test]
    fn hostile_registers_never_hang_the_engine(
        fixed in proptest::collection::vec(
            (prop::sample::select(vec![
                0x38u64, 0x2008, 0x2010, 0x2020, 0x10038, 0x11008, 0x11010,
            ]), any::<u64>()),
            1..4,
        ),
    ) {
        let (mut engine, model, clock) = setup(Kind::Classic);
        model.lock().unwrap().fixed = fixed.into_iter().collect();
        let before = clock.now();
        let result = whole(&mut engine, &payload(2000));
        prop_assert!(clock.now() - before < Duration::from_secs(120));
        if result.is_ok() {
            drop(engine.pulse_reset(REGION));
        }
    }
}
