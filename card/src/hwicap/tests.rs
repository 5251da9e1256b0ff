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
/// "Listen no more", and the two words that let it come through.
const DESYNC: [u32; 4] = [0x3000_8001, 13, 0x2000_0000, 0x2000_0000];

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
        assert_eq!(icap.strays, [0u64; 0], "stores that belong nowhere");
        assert!(
            icap.sent.ends_with(&DESYNC),
            "though the payload had its own"
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

/// What the program before us left behind when it died in the middle of a load.
fn interrupted() -> (Arc<Mutex<Icap>>, Arc<VirtualClock>) {
    let clock = VirtualClock::new();
    let icap = Icap::new(&clock);
    {
        let mut icap = icap.lock().unwrap();
        icap.listens = true;
        // A packet that is not over, an error flag, words that were not let through.
        icap.owed = 100_000;
        icap.error = true;
        icap.queue = vec![BAD_WORD; 10];
    }
    (icap, clock)
}

/// Each of abort, reset and FIFO clear is needed for this.
#[test]
fn an_interrupted_load_is_not_taken_for_the_next_one() {
    let (icap, clock) = interrupted();
    let mut engine = open_on(Box::new(IcapDevice::new(&icap)), &clock).unwrap();
    assert!(!icap.lock().unwrap().listens);
    {
        let mut icap = icap.lock().unwrap();
        assert!(!icap.sent.contains(&BAD_WORD));
        // Once more, behind the engine's back.
        icap.owed = 100_000;
        icap.error = true;
        icap.queue = vec![BAD_WORD; 10];
    }
    engine.shut(REGION).unwrap();
    load(&mut engine, REGION, &big(&words(3)), WordOrder::BigEndian).unwrap();
    assert_eq!(engine.identity(REGION).unwrap(), Identity::Function(ID));
}

/// Another driver's reset stores to the vacancy register, which does nothing:
/// the FIFO keeps its words, and they go out in front of the next ones.
#[test]
fn the_fifo_is_emptied_by_its_command_and_no_other_register_is_stored_to() {
    let (icap, clock) = interrupted();
    drop(open_on(Box::new(IcapDevice::new(&icap)), &clock).unwrap());
    let icap = icap.lock().unwrap();
    assert_eq!(icap.strays, [0u64; 0]);
    assert_eq!(
        icap.sent.first(),
        Some(&u32::MAX),
        "the first of our own words"
    );
}

#[test]
fn it_listens_no_more_after_an_idcode_that_did_not_come() {
    let clock = VirtualClock::new();
    let icap = Icap::new(&clock);
    icap.lock().unwrap().trouble.mute = true;
    let opened = open_on(Box::new(IcapDevice::new(&icap)), &clock);
    let error = opened.map(|_engine| ()).unwrap_err();
    assert!(matches!(error, NotUsable::NoCore(_)), "{error}");
    let icap = icap.lock().unwrap();
    assert!(icap.sent.ends_with(&DESYNC) && !icap.listens);
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
    let icap = icap.lock().unwrap();
    assert!(!icap.listens && icap.sent.ends_with(&DESYNC));
}

#[test]
fn a_payload_that_does_not_end_is_told_and_ended() {
    let mut open_ended = words(10);
    open_ended.truncate(15);
    let (error, icap) = failed(&open_ended, IcapTrouble::default());
    assert!(matches!(error.cause, ProgramCause::StillListens), "{error}");
    let icap = icap.lock().unwrap();
    assert!(!icap.listens && !icap.coupled[0]);
    assert!(icap.sent.ends_with(&DESYNC));
}

#[test]
fn d5_waits_end_and_tell_what_for() {
    for (trouble, what) in [
        (
            IcapTrouble {
                hang: true,
                ..IcapTrouble::default()
            },
            "the end of",
        ),
        // Start-up has ended in both of these, and proves nothing: the core's
        // own two flags must agree.
        (
            IcapTrouble {
                no_done: true,
                ..IcapTrouble::default()
            },
            "the end of",
        ),
        (
            IcapTrouble {
                no_fall: true,
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
}

#[test]
fn d5_a_load_may_not_take_longer_than_its_budget() {
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

/// Another driver waits 20 × 50 ns for a write to end, and then goes on.
#[test]
fn a_write_may_take_longer_than_a_microsecond() {
    let (mut engine, icap, _clock) = setup();
    engine.shut(REGION).unwrap();
    icap.lock().unwrap().trouble.word_takes = Duration::from_micros(100);
    load(&mut engine, REGION, &big(&words(300)), WordOrder::BigEndian).unwrap();
    assert_eq!(icap.lock().unwrap().overruns, 0);
}

#[test]
fn d4_a_card_that_is_gone_is_told_as_that_and_proves_nothing() {
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
fn d6_a_decoupler_that_does_not_move_is_no_isolation() {
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
    // Somebody else couples it meanwhile.
    icap.lock().unwrap().coupled[0] = true;
    drop(programming);
    let icap = icap.lock().unwrap();
    assert!(!icap.listens && !icap.coupled[0]);
    assert!(icap.sent.ends_with(&DESYNC));
}

#[test]
fn a_failed_load_is_shut_only_where_the_decoupler_says_so() {
    let (mut engine, icap, _clock) = setup();
    engine.shut(REGION).unwrap();
    let payload = Payload {
        bytes: 8,
        order: WordOrder::BigEndian,
    };
    let programming = engine.begin(REGION, payload, BUDGET).unwrap();
    {
        let mut icap = icap.lock().unwrap();
        icap.coupled[0] = true;
        icap.trouble.stuck = true;
    }
    let error = programming.finish().unwrap_err();
    assert!(matches!(error.cause, ProgramCause::TooShort { .. }));
    assert_eq!(error.left, RegionLeft::Unproven);
}

/// Everything from a running guest to the next one; whether it went well.
fn whole(engine: &mut HwicapEngine, bytes: &[u8]) -> Result<(), RegionLeft> {
    engine.shut(REGION).map_err(|error| error.left)?;
    load(engine, REGION, bytes, WordOrder::BigEndian).map_err(|error| error.left)?;
    engine.identity(REGION).map_err(|error| error.left)?;
    engine.open(REGION).map_err(|error| error.left)
}

/// What must hold after `whole`, whatever went wrong in it.
fn judge(went: Result<(), RegionLeft>, icap: &Icap, point: &str) {
    let coupled = icap.coupled[0];
    assert!(!(coupled && icap.half_written), "{point}");
    match went {
        Ok(()) => assert!(coupled && icap.functions[0] == ID.as_u128(), "{point}"),
        Err(RegionLeft::Shut) => assert!(!coupled, "{point}"),
        Err(RegionLeft::AsItWas) => assert_eq!(icap.functions[0], 0x11, "{point}"),
        // The operator is told; nothing is claimed.
        Err(RegionLeft::Unproven) => {}
    }
}

/// Accesses of a whole load in which none fails.
fn accesses(bytes: &[u8]) -> u64 {
    let (mut engine, icap, _clock) = setup();
    whole(&mut engine, bytes).unwrap();
    let icap = icap.lock().unwrap();
    icap.accesses
}

#[test]
fn d4_any_access_may_fail_and_no_guest_reaches_a_half_written_region() {
    let bytes = big(&words(200));
    for lasting in [Lasting::Once, Lasting::ForEver] {
        for effect in [Effect::Lost, Effect::Done] {
            // A burst is one access for the one who fails it.
            let mut reached = 0;
            for good in 0..accesses(&bytes) {
                let clock = VirtualClock::new();
                let icap = Icap::new(&clock);
                let device = Faulty::new(IcapDevice::new(&icap), good, lasting, effect);
                let Ok(mut engine) = open_on(Box::new(device), &clock) else {
                    reached += 1;
                    continue;
                };
                let went = whole(&mut engine, &bytes);
                let icap = icap.lock().unwrap();
                judge(
                    went,
                    &icap,
                    &format!("access {good}, {lasting:?}, {effect:?}"),
                );
                reached += u64::from(went.is_err());
                if lasting == Lasting::Once {
                    let proven = went != Err(RegionLeft::Unproven);
                    assert!(proven, "access {good}: a second try would have shown it");
                }
            }
            assert!(reached > 70, "{reached} points, {lasting:?}, {effect:?}");
        }
    }
}

/// No error from below: from some access on, everything reads as all ones.
#[test]
fn d4_a_card_may_vanish_at_any_access_and_is_never_good() {
    let bytes = big(&words(200));
    for at in 0..accesses(&bytes) {
        let clock = VirtualClock::new();
        let icap = Icap::new(&clock);
        icap.lock().unwrap().trouble.gone_at = Some(at);
        let Ok(mut engine) = open_on(Box::new(IcapDevice::new(&icap)), &clock) else {
            continue;
        };
        let went = whole(&mut engine, &bytes);
        assert_eq!(went, Err(RegionLeft::Unproven), "access {at}");
        judge(went, &icap.lock().unwrap(), &format!("access {at}"));
    }
}
