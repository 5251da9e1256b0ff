//! What is too old, of the future, or remembered wrongly.

use proptest::prelude::*;

use super::list::{ImageList, RevokedEntry};
use super::tests::Publisher;
use super::*;
use crate::ids::Family;
use crate::testing::{NOW, image_list};
use crate::time::UnixTime;

#[test]
fn p1_an_older_list_is_a_rollback_also_after_a_restart() {
    let publisher = Publisher::new();
    let floor = publisher
        .verify(&publisher.floor(), &image_list(5))
        .unwrap()
        .floor()
        .clone();
    let floor = Floor::parse(&floor.to_bytes()).unwrap();
    let error = publisher.verify(&floor, &image_list(4)).unwrap_err();
    assert_eq!(error, TrustError::Rollback { have: 5, got: 4 });
    assert!(
        publisher.verify(&floor, &image_list(5)).is_ok(),
        "the same list again is no news"
    );
    assert!(publisher.verify(&floor, &image_list(6)).is_ok());
}

#[test]
fn p1_an_expired_list_still_serves_the_comparison() {
    let publisher = Publisher::new();
    let expired = ImageList {
        expires: UnixTime(1),
        ..image_list(5)
    };
    let floor = publisher
        .verify(&publisher.floor(), &expired)
        .unwrap()
        .floor()
        .clone();
    let error = publisher.verify(&floor, &image_list(4)).unwrap_err();
    assert_eq!(error.code(), "rollback");
}

#[test]
fn p2_expiry_is_asked_at_every_use() {
    let publisher = Publisher::new();
    let list = ImageList {
        expires: UnixTime(NOW.0 + 10),
        ..image_list(1)
    };
    let catalogue = publisher.verify(&publisher.floor(), &list).unwrap();
    let until = list.expires;
    assert_eq!(
        catalogue.freshness(UnixTime(until.0 - 1)),
        Freshness::Fresh { until }
    );
    assert_eq!(
        catalogue.freshness(until),
        Freshness::Expired { since: until }
    );
    assert_eq!(
        catalogue.freshness(UnixTime::MAX),
        Freshness::Expired { since: until }
    );
}

#[test]
fn p9_two_lists_of_one_version_are_an_equivocation() {
    let publisher = Publisher::new();
    let floor = publisher
        .verify(&publisher.floor(), &image_list(3))
        .unwrap()
        .floor()
        .clone();
    let other = ImageList {
        images: Vec::new(),
        ..image_list(3)
    };
    let error = publisher.verify(&floor, &other).unwrap_err();
    assert_eq!(error.code(), "equivocation");
}

#[test]
fn p11_a_clock_set_back_does_not_make_an_expired_list_valid() {
    let publisher = Publisher::new();
    let list = ImageList {
        issued: Some(NOW),
        expires: UnixTime(NOW.0 + 100),
        ..image_list(1)
    };
    let floor = publisher
        .verify(&publisher.floor(), &list)
        .unwrap()
        .floor()
        .clone();
    let floor = Floor::parse(&floor.to_bytes()).unwrap();
    let late = UnixTime(NOW.0 + 200);
    let next = ImageList {
        issued: Some(late),
        expires: UnixTime(late.0 - 1),
        ..image_list(2)
    };
    let (bytes, signature) = publisher.signed(&next);
    let year_ago = UnixTime(NOW.0 - 365 * 86_400);
    let catalogue = verify(&publisher.root, &floor, &bytes, &signature, year_ago).unwrap();
    assert!(matches!(
        catalogue.freshness(year_ago),
        Freshness::Expired { .. }
    ));
}

#[test]
fn p12_a_clock_that_ran_ahead_leaves_no_trace() {
    let publisher = Publisher::new();
    let (bytes, signature) = publisher.signed(&image_list(1));
    let ahead = UnixTime(NOW.0 + 10 * 365 * 86_400);
    let catalogue = verify(
        &publisher.root,
        &publisher.floor(),
        &bytes,
        &signature,
        ahead,
    )
    .unwrap();
    assert!(matches!(
        catalogue.freshness(ahead),
        Freshness::Expired { .. }
    ));
    assert!(
        matches!(catalogue.freshness(NOW), Freshness::Fresh { .. }),
        "the clock is right again"
    );
    let usual = verify(&publisher.root, &publisher.floor(), &bytes, &signature, NOW).unwrap();
    assert_eq!(catalogue.floor(), usual.floor());
}

#[test]
fn p17_a_floor_that_is_damaged_counts_as_lost() {
    let publisher = Publisher::new();
    let floor = publisher
        .verify(&publisher.floor(), &image_list(9))
        .unwrap()
        .floor()
        .clone();
    let bytes = floor.to_bytes();
    for at in 0..bytes.len() {
        let mut hurt = bytes.clone();
        hurt[at] ^= 1;
        // White space may change; what it says may not.
        if let Ok(read) = Floor::parse(&hurt) {
            assert_eq!(read, floor, "byte {at}");
        }
        assert!(Floor::parse(&bytes[..at]).is_err(), "cut at {at}");
    }
    assert!(Floor::parse(&vec![b' '; SMALL_MAX + 1]).is_err());
}

#[test]
fn p17_enrolling_again_lowers_nothing_and_another_root_starts_anew() {
    let (one, two) = (Publisher::new(), Publisher::new());
    let floor = one
        .verify(&one.floor(), &image_list(9))
        .unwrap()
        .floor()
        .clone();
    assert_eq!(Floor::enrol(&one.root, Some(&floor)), floor);
    assert_eq!(Floor::enrol(&two.root, Some(&floor)).version(), 0);
    // Until it is enrolled, the other root's lists are not believed.
    let (bytes, signature) = two.signed(&image_list(10));
    let error = verify(&two.root, &floor, &bytes, &signature, NOW).unwrap_err();
    assert_eq!(error.code(), "not-this-root");
}

#[test]
fn p22_the_lowest_epoch_never_falls() {
    let publisher = Publisher::new();
    let family = Family::parse("aes").unwrap();
    let below = |below: u64, version: u64| {
        let entry = RevokedEntry {
            family: Some(family.clone()),
            below_epoch: Some(below),
            ..RevokedEntry::default()
        };
        ImageList {
            revoked: vec![entry],
            ..image_list(version)
        }
    };
    let first = publisher.verify(&publisher.floor(), &below(5, 1)).unwrap();
    assert_eq!(first.minimum_epoch(&family), 5);
    let second = publisher.verify(first.floor(), &below(2, 2)).unwrap();
    assert_eq!(second.minimum_epoch(&family), 5);
    let third = publisher.verify(second.floor(), &image_list(3)).unwrap();
    assert_eq!(third.minimum_epoch(&family), 5);
}

#[test]
fn p24_a_list_of_the_far_future_is_refused() {
    let publisher = Publisher::new();
    let day = 86_400;
    let issued = |after: u64| ImageList {
        issued: Some(UnixTime(NOW.0 + after)),
        ..image_list(1)
    };
    assert!(publisher.verify(&publisher.floor(), &issued(day)).is_ok());
    let error = publisher
        .verify(&publisher.floor(), &issued(day + 1))
        .unwrap_err();
    assert_eq!(error.code(), "issued-in-future");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// INV4: whatever lists come, in whatever order, nothing in the floor falls.
    #[test]
    fn the_floor_never_falls(
        lists in proptest::collection::vec((1u64..6, 0u64..5, 0u64..1000, any::<bool>()), 1..12)
    ) {
        let publisher = Publisher::new();
        let family = Family::parse("aes").unwrap();
        let mut floor = publisher.floor();
        for (version, below, issued, empty) in lists {
            let revoked = RevokedEntry {
                family: Some(family.clone()), below_epoch: Some(below), ..RevokedEntry::default()
            };
            let mut list = ImageList {
                revoked: vec![revoked], issued: Some(UnixTime(issued)), ..image_list(version)
            };
            if empty { list.images.clear(); }
            if let Ok(catalogue) = publisher.verify(&floor, &list) {
                let raised = Floor::parse(&catalogue.floor().to_bytes()).unwrap();
                prop_assert!(raised.version() >= floor.version());
                prop_assert!(raised.minimum_epoch(&family) >= floor.minimum_epoch(&family));
                prop_assert!(raised.now(UnixTime(0)) >= floor.now(UnixTime(0)));
                floor = raised;
            } else {
                prop_assert!(floor.version() > 0, "the first list is never too old");
            }
        }
    }
}
