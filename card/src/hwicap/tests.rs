//! The engine against a shell made of registers, with every trouble, and with
//! every single access failing.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "a test may stop at an overflow"
)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use uuid::Uuid;

use super::*;
use crate::clock::Clock;
use crate::device::{Bar, Device, DeviceError};
use crate::dfl::Waits;
use crate::engine::*;
use crate::testing::icap::{
    BAD_WORD, CORE, DECOUPLERS, FUNCTION, IDCODE, IDENTITIES, Icap, IcapDevice, IcapTrouble,
};
use crate::testing::{Effect, Faulty, Lasting, VirtualClock};

const ID: Uuid = Uuid::from_u128(0x0123_4567_89ab_cdef_1122_3344_5566_7788);
const REGION: RegionId = RegionId(0);
const BUDGET: Duration = Duration::from_secs(20);

fn layout() -> Layout {
    let region = |number: u16, identity| RegionLayout {
        id: RegionId(number),
        interface_id: Uuid::from_u128(7),
        decoupler: DECOUPLERS + u64::from(number) * 0x100,
        identity,
    };
    Layout {
        bar: Bar::ZERO,
        core: CORE,
        idcode: IDCODE & 0x0fff_ffff,
        regions: vec![region(1, None), region(0, Some(IDENTITIES))],
    }
}

fn open_on(device: Box<dyn Device>, clock: &Arc<VirtualClock>) -> Result<HwicapEngine, NotUsable> {
    let clock: Arc<dyn Clock> = clock.clone();
    HwicapEngine::new(device, &layout(), Waits::default(), clock)
}

fn setup() -> (HwicapEngine, Arc<Mutex<Icap>>, Arc<VirtualClock>) {
    let clock = VirtualClock::new();
    let icap = Icap::new(&clock);
    let engine = open_on(Box::new(IcapDevice::new(&icap)), &clock).unwrap();
    (engine, icap, clock)
}

/// A payload that the model takes for `ID`.
fn words(filler: usize) -> Vec<u32> {
    let mut words = vec![u32::MAX, 0xaa99_5566, FUNCTION];
    words.extend(
        ID.as_bytes()
            .chunks(4)
            .map(|four| u32::from_be_bytes(four.try_into().unwrap())),
    );
    words.extend((0..filler).map(|at| u32::try_from(at).unwrap()));
    words.extend([0x3000_8001, 13, 0x2000_0000]);
    words
}

fn big(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn load(
    engine: &mut HwicapEngine,
    region: RegionId,
    bytes: &[u8],
    order: WordOrder,
) -> Result<Written, ProgramError> {
    let payload = Payload {
        bytes: u64::try_from(bytes.len()).unwrap(),
        order,
    };
    let mut programming = engine.begin(region, payload, BUDGET)?;
    programming.write_all(bytes, &mut |_| {})?;
    programming.finish()
}

fn failed(words: &[u32], trouble: IcapTrouble) -> (ProgramError, Arc<Mutex<Icap>>) {
    let (mut engine, icap, _clock) = setup();
    engine.shut(REGION).unwrap();
    icap.lock().unwrap().trouble = trouble;
    let error = load(&mut engine, REGION, &big(words), WordOrder::BigEndian).unwrap_err();
    (error, icap)
}

#[test]
fn a_load_in_either_order_of_words() {
    for order in [WordOrder::BigEndian, WordOrder::LittleEndian] {
        let (mut engine, icap, _clock) = setup();
        assert_eq!(engine.access(REGION).unwrap(), Access::Guest);
        engine.shut(REGION).unwrap();
        assert_eq!(engine.access(REGION).unwrap(), Access::Host);
        assert_eq!(engine.in_reset(REGION).unwrap(), ResetState::Held);
        let words = words(5000);
        let bytes = match order {
            WordOrder::BigEndian => big(&words),
            WordOrder::LittleEndian => words.iter().flat_map(|w| w.to_le_bytes()).collect(),
        };
        load(&mut engine, REGION, &bytes, order).unwrap();
        assert_eq!(engine.identity(REGION).unwrap(), Identity::Function(ID));
        assert!(!icap.lock().unwrap().coupled[0]);
        engine.open(REGION).unwrap();
        let icap = icap.lock().unwrap();
        assert_eq!(
            (icap.coupled, icap.overruns, icap.unguarded),
            ([true; 2], 0, 0)
        );
        assert!(!icap.listens, "the configuration logic listens no more");
    }
}

#[test]
fn the_second_region_has_no_identity_and_its_own_decoupler() {
    let (mut engine, icap, _clock) = setup();
    let second = RegionId(1);
    engine.shut(second).unwrap();
    assert_eq!(icap.lock().unwrap().coupled, [true, false]);
    load(&mut engine, second, &big(&words(3)), WordOrder::BigEndian).unwrap();
    assert_eq!(engine.identity(second).unwrap(), Identity::EngineStatus);
    assert_eq!(icap.lock().unwrap().functions[0], 0x11);
}

#[test]
fn another_device_or_none_is_not_opened() {
    let clock = VirtualClock::new();
    let icap = Icap::new(&clock);
    let opened = |layout: &Layout| {
        let clock: Arc<dyn Clock> = clock.clone();
        let device = Box::new(IcapDevice::new(&icap));
        HwicapEngine::new(device, layout, Waits::default(), clock).map(|_engine| ())
    };
    let mut other = layout();
    other.idcode ^= 1 << 13;
    assert!(matches!(
        opened(&other),
        Err(NotUsable::OtherDevice { found: IDCODE, .. })
    ));
    let mut revision = layout();
    revision.idcode |= 0xf000_0000;
    assert!(opened(&revision).is_ok(), "a revision is no other device");
    icap.lock().unwrap().trouble.gone = true;
    let gone = opened(&layout());
    assert!(matches!(gone, Err(NotUsable::Device(DeviceError::Gone(_)))));
}

#[test]
fn an_interrupted_load_is_not_taken_for_the_next_one() {
    let clock = VirtualClock::new();
    let icap = Icap::new(&clock);
    icap.lock().unwrap().listens = true;
    drop(open_on(Box::new(IcapDevice::new(&icap)), &clock).unwrap());
    assert!(!icap.lock().unwrap().listens);
}

#[test]
fn what_is_no_whole_number_of_words_or_not_shut_is_not_begun() {
    let (mut engine, _icap, _clock) = setup();
    let mut begin = |bytes, region| {
        let order = WordOrder::BigEndian;
        let payload = Payload { bytes, order };
        engine
            .begin(region, payload, BUDGET)
            .map(|_load| ())
            .unwrap_err()
    };
    assert!(matches!(begin(8, REGION).cause, ProgramCause::NotShut));
    assert!(matches!(
        begin(6, REGION).cause,
        ProgramCause::NotWords { bytes: 6 }
    ));
    assert!(matches!(begin(0, REGION).cause, ProgramCause::Empty));
    assert!(matches!(
        begin(8, RegionId(9)).cause,
        ProgramCause::NoSuchRegion
    ));
}

#[test]
fn an_error_of_the_configuration_logic_ends_the_load() {
    let mut bad = words(300);
    bad[200] = BAD_WORD;
    let (error, icap) = failed(&bad, IcapTrouble::default());
    assert!(
        matches!(error.cause, ProgramCause::Configuration),
        "{error}"
    );
    assert_eq!(error.left, RegionLeft::Shut);
    assert!(!icap.lock().unwrap().listens);
}

#[test]
fn a_payload_that_does_not_end_is_told_and_ended() {
    let mut open_ended = words(10);
    open_ended.truncate(15);
    let (error, icap) = failed(&open_ended, IcapTrouble::default());
    assert!(matches!(error.cause, ProgramCause::StillListens), "{error}");
    let icap = icap.lock().unwrap();
    assert!(!icap.listens && !icap.coupled[0]);
}

#[test]
fn waits_end_and_tell_what_for() {
    for (trouble, what) in [
        (
            IcapTrouble {
                hang: true,
                ..IcapTrouble::default()
            },
            "the end of",
        ),
        (
            IcapTrouble {
                no_room: true,
                ..IcapTrouble::default()
            },
            "room",
        ),
        (
            IcapTrouble {
                no_start: true,
                ..IcapTrouble::default()
            },
            "start-up",
        ),
    ] {
        let (error, _icap) = failed(&words(10), trouble);
        assert!(matches!(error.cause, ProgramCause::Stuck { .. }), "{error}");
        assert!(error.to_string().contains(what), "{error}");
        assert_eq!(error.left, RegionLeft::Shut);
    }
    let slow = IcapTrouble {
        word_takes: Duration::from_millis(100),
        ..IcapTrouble::default()
    };
    let (error, _icap) = failed(&words(300), slow);
    assert!(
        matches!(error.cause, ProgramCause::Deadline { .. }),
        "{error}"
    );
}

#[test]
fn a_card_that_is_gone_is_told_as_that_and_proves_nothing() {
    let trouble = IcapTrouble {
        gone: true,
        ..IcapTrouble::default()
    };
    let (error, _icap) = failed(&words(10), trouble);
    let gone = matches!(error.cause, ProgramCause::Device(DeviceError::Gone(_)));
    assert!(gone, "{error}");
    assert_eq!(error.left, RegionLeft::Unproven);
}

#[test]
fn a_decoupler_that_does_not_move_is_no_isolation() {
    let (mut engine, icap, _clock) = setup();
    icap.lock().unwrap().trouble.stuck = true;
    let error = engine.shut(REGION).unwrap_err();
    assert!(matches!(
        error.cause,
        EngineCause::DecoupleFailed { register: 0 }
    ));
    assert_eq!(error.left, RegionLeft::Unproven);
}

#[test]
fn a_region_without_identifier_is_not_believed() {
    let (mut engine, icap, _clock) = setup();
    engine.shut(REGION).unwrap();
    icap.lock().unwrap().functions[0] = 0;
    let error = engine.identity(REGION).unwrap_err();
    assert!(matches!(error.cause, EngineCause::NoIdentifier));
}

#[test]
fn a_reset_that_the_shell_lacks_leaves_the_region_as_it_was() {
    let (mut engine, icap, _clock) = setup();
    let error = engine.pulse_reset(REGION).unwrap_err();
    assert!(matches!(error.cause, EngineCause::NoReset), "{error}");
    assert!(icap.lock().unwrap().coupled[0]);
    engine.shut(REGION).unwrap();
    let error = engine.pulse_reset(REGION).unwrap_err();
    assert!(matches!(error.cause, EngineCause::NotOpen));
}

#[test]
fn a_load_that_is_dropped_leaves_everything_at_rest() {
    let (mut engine, icap, _clock) = setup();
    engine.shut(REGION).unwrap();
    let payload = Payload {
        bytes: 4096,
        order: WordOrder::BigEndian,
    };
    let mut programming = engine.begin(REGION, payload, BUDGET).unwrap();
    programming.write(&big(&words(100))[..256]).unwrap();
    drop(programming);
    let icap = icap.lock().unwrap();
    assert!(!icap.listens && !icap.coupled[0]);
}

/// Everything from a running guest to the next one; whether it went well.
fn whole(engine: &mut HwicapEngine, bytes: &[u8]) -> Result<(), RegionLeft> {
    engine.shut(REGION).map_err(|error| error.left)?;
    load(engine, REGION, bytes, WordOrder::BigEndian).map_err(|error| error.left)?;
    engine.identity(REGION).map_err(|error| error.left)?;
    engine.open(REGION).map_err(|error| error.left)
}

#[test]
fn any_access_may_fail_and_no_guest_reaches_a_half_written_region() {
    let bytes = big(&words(200));
    let mut tried = 0;
    for lasting in [Lasting::Once, Lasting::ForEver] {
        for effect in [Effect::Lost, Effect::Done] {
            for good in 0.. {
                let clock = VirtualClock::new();
                let icap = Icap::new(&clock);
                let device = Faulty::new(IcapDevice::new(&icap), good, lasting, effect);
                let Ok(mut engine) = open_on(Box::new(device), &clock) else {
                    tried += 1;
                    continue;
                };
                let went = whole(&mut engine, &bytes);
                let icap = icap.lock().unwrap();
                match went {
                    // Every access went well: all points were tried.
                    Ok(()) if icap.coupled[0] && lasting == Lasting::ForEver => break,
                    Ok(()) => {
                        assert_eq!(icap.functions[0], ID.as_u128(), "access {good}");
                        if good > 400 {
                            break;
                        }
                    }
                    Err(RegionLeft::Shut) => assert!(!icap.coupled[0], "access {good}"),
                    Err(RegionLeft::AsItWas) => {
                        assert_eq!(icap.functions[0], 0x11, "access {good}");
                    }
                    // The operator is told; nothing is claimed.
                    Err(RegionLeft::Unproven) => assert_eq!(lasting, Lasting::ForEver),
                }
                tried += 1;
            }
        }
    }
    assert!(tried > 200, "{tried} points");
}
