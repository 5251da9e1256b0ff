//! Reservations and duties, against reports of every kind.

use super::*;
use crate::ipc::RegionIndex;
use crate::reconfd::plan::tests::two_cards;
use proptest::prelude::*;

const MINE: OwnerTag = OwnerTag([1; 32]);
const OTHER: OwnerTag = OwnerTag([2; 32]);

fn report(content: Content, tag: Option<OwnerTag>) -> RegionReport {
    RegionReport {
        region: RegionIndex(0),
        of: 2,
        content,
        digest: [7; 32],
        tag,
        function: None,
        guest_access: content == Content::Active,
        scrub_failures: 0,
        since: 0,
    }
}

fn reserved() -> Reserved {
    Reserved {
        by: Some((Uuid::nil(), JobKey([1; 16]))),
        what: "load".into(),
    }
}

#[test]
fn inv2_a_foreign_content_is_scrubbed_before_anyone_gets_it() {
    assert!(matches!(
        duty(
            &report(Content::Active, Some(OTHER)),
            &[MINE],
            Memory::Whole,
            3
        ),
        Duty::Scrub(_)
    ));
    assert!(matches!(
        duty(
            &report(Content::Active, Some(OTHER)),
            &[MINE],
            Memory::Lost,
            3
        ),
        Duty::Scrub(_)
    ));
    assert!(matches!(
        duty(&report(Content::Blank, Some(OTHER)), &[], Memory::Whole, 3),
        Duty::Scrub(_)
    ));
    assert_eq!(
        duty(&report(Content::Blank, None), &[MINE], Memory::Whole, 3),
        Duty::Nothing
    );
    assert_eq!(
        duty(
            &report(Content::Active, Some(MINE)),
            &[MINE],
            Memory::Whole,
            3
        ),
        Duty::Nothing
    );
}

#[test]
fn loss_of_registrations_holds_and_loss_of_the_journal_scrubs_or_holds() {
    assert!(matches!(
        duty(&report(Content::Active, Some(OTHER)), &[], Memory::Lost, 3),
        Duty::Hold(_)
    ));
    let reached = RegionReport {
        guest_access: true,
        ..report(Content::Unknown, None)
    };
    for (holders, memory, held) in [
        (&[][..], Memory::Whole, false),
        (&[], Memory::Blank, false),
        (&[], Memory::Lost, true),
        (&[MINE], Memory::Whole, true),
    ] {
        let hold = matches!(duty(&reached, holders, memory, 3), Duty::Hold(_));
        assert_eq!(hold, held, "{holders:?} {memory:?}");
        // What no guest reaches nobody runs: a new card's VM may be attached before its first scrub.
        let shut = report(Content::Unknown, None);
        assert!(matches!(duty(&shut, holders, memory, 3), Duty::Scrub(_)));
    }
}

#[test]
fn d9_three_failed_scrubs_are_the_operators() {
    let mut failed = report(Content::Quarantined, None);
    failed.scrub_failures = 2;
    assert!(matches!(
        duty(&failed, &[], Memory::Whole, 3),
        Duty::Scrub(_)
    ));
    failed.scrub_failures = 3;
    assert!(matches!(
        duty(&failed, &[MINE], Memory::Whole, 3),
        Duty::Hold(_)
    ));
}

#[test]
fn committed_and_shut_is_consented_again_for_its_owner_only() {
    let mut shut = report(Content::Active, Some(MINE));
    shut.guest_access = false;
    assert_eq!(
        duty(&shut, &[MINE], Memory::Whole, 3),
        Duty::Reopen(MINE, [7; 32])
    );
    assert!(matches!(
        duty(&shut, &[OTHER], Memory::Whole, 3),
        Duty::Scrub(_)
    ));
}

#[test]
fn xrt_11_g16_one_job_has_a_region() {
    let plan = two_cards();
    let key = plan.region_of("vf:0.0").unwrap();
    let mut regions = Regions::new(&plan);
    assert!(matches!(
        regions.reserve(key, MINE, reserved()),
        Err(NotNow::Unavailable(_))
    ));
    regions.report(key, report(Content::Blank, None));
    regions.reserve(key, MINE, reserved()).unwrap();
    assert_eq!(
        regions.reserve(key, MINE, reserved()),
        Err(NotNow::Busy(reserved()))
    );
    regions.release(key);
    regions.reserve(key, MINE, reserved()).unwrap();
}

#[test]
fn xrt_01_cyb_08_an_image_is_remembered_only_while_the_card_says_the_same() {
    let plan = two_cards();
    let key = plan.region_of("vf:0.0").unwrap();
    let mut regions = Regions::new(&plan);
    regions.report(key, report(Content::Active, Some(MINE)));
    regions.get_mut(key).unwrap().image = Some(LoadedImage {
        name: "acme/a:1".into(),
        image_digest: [1; 32],
        bitstream: [7; 32],
    });
    regions.report(key, report(Content::Active, Some(MINE)));
    assert!(regions.get(key).unwrap().image.is_some());
    regions.report(key, report(Content::Quarantined, Some(MINE)));
    assert!(regions.get(key).unwrap().image.is_none());
}

const SECOND: Duration = Duration::from_secs(1);

/// Looks at a region whose owner is over, at `now` seconds.
fn look(regions: &mut Regions, key: RegionKey, now: u32) -> Owed {
    regions.take_duty(key, &[], Memory::Whole, 3, SECOND.saturating_mul(now))
}

#[test]
fn a_duty_reserves_its_region_at_once() {
    let plan = two_cards();
    let key = plan.region_of("vf:0.0").unwrap();
    let mut regions = Regions::new(&plan);
    regions.report(key, report(Content::Active, Some(OTHER)));
    assert!(matches!(look(&mut regions, key, 0), Owed::Scrub(_)));
    assert_eq!(
        look(&mut regions, key, 0),
        Owed::Nothing,
        "one scrub at a time"
    );
    assert_eq!(
        regions.reserve(key, OTHER, reserved()),
        Err(NotNow::Recovering)
    );
}

#[test]
fn d4_a_scrub_that_is_refused_is_not_repeated_in_a_loop() {
    let plan = two_cards();
    let key = plan.region_of("vf:0.0").unwrap();
    let mut regions = Regions::new(&plan);
    regions.report(key, report(Content::Active, Some(OTHER)));
    let mut scrubs = 0;
    let mut told = 0;
    for now in 0..3600 {
        // Whoever looks a hundred times a second makes no difference.
        for _look in 0..100 {
            match look(&mut regions, key, now) {
                Owed::Scrub(_) => {
                    scrubs += 1;
                    told += u32::from(regions.duty_ended(key, Some("refused"), SECOND * now));
                    regions.release(key);
                }
                Owed::Later(_) => regions.disarm(key),
                Owed::Nothing => {}
                other => panic!("{other:?}"),
            }
        }
    }
    assert!((60..80).contains(&scrubs), "{scrubs}");
    assert_eq!(told, 1, "the same story is told once");
    // One that goes well forgets the setbacks.
    assert!(regions.duty_ended(key, None, SECOND * 3600));
    assert!(matches!(look(&mut regions, key, 3600), Owed::Scrub(_)));
}

#[test]
fn one_timer_a_region() {
    let plan = two_cards();
    let key = plan.region_of("vf:0.0").unwrap();
    let mut regions = Regions::new(&plan);
    regions.report(key, report(Content::Active, Some(OTHER)));
    regions.duty_ended(key, Some("refused"), Duration::ZERO);
    assert_eq!(look(&mut regions, key, 0), Owed::Later(SECOND));
    assert_eq!(look(&mut regions, key, 0), Owed::Nothing);
    regions.disarm(key);
    assert!(matches!(look(&mut regions, key, 1), Owed::Scrub(_)));
}

fn contents() -> impl Strategy<Value = Content> {
    prop::sample::select(vec![
        Content::Unknown,
        Content::Blank,
        Content::Writing,
        Content::Active,
        Content::Quarantined,
    ])
}

proptest! {
    /// A region is never reserved for a VM unless it is blank without an owner, or that VM's own.
    #[test]
    fn inv2_no_reservation_of_what_was_not_scrubbed(content in contents(), tag in prop::option::of(prop::sample::select(vec![MINE, OTHER]))) {
        let plan = two_cards();
        let key = plan.region_of("vf:0.0").unwrap();
        let mut regions = Regions::new(&plan);
        regions.report(key, report(content, tag));
        if regions.reserve(key, MINE, reserved()).is_ok() {
            prop_assert!(tag != Some(OTHER));
            prop_assert!(matches!(content, Content::Blank | Content::Active));
        }
    }
}
