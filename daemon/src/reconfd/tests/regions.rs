//! Regions: every reservation ends, every duty is done, none spins.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use protocol::message::{EventKind, Reset, Watch};
use protocol::reply::Reply;
use protocol::request::Request;
use protocol::status::Status;

use super::super::admin_server::Act as _;
use super::super::operator::Operator;
use super::super::session::Guest as _;
use super::super::views;
use super::{attach, host, until};
use crate::admin::{AdminReply, AdminRequest};
use crate::ipc::{Content, Outcome, ToCard};

/// D7, INV2: the VM ends while its own reset waits for the card, and its connection with it.
#[tokio::test]
async fn d7_inv2_a_reset_that_is_cut_off_leaves_no_reservation() {
    let (_site, host, card) = host().await;
    let vm = attach(&host, &[0]);
    vm.load(1, "acme/aes").await;
    vm.ended(1).await;
    card.deaf.store(true, Ordering::SeqCst);
    let desk = Arc::clone(&vm.desk);
    let asked =
        tokio::spawn(async move { desk.answer(Request::Reset(Reset { slot: None })).await });
    until("the reset at the card", async || {
        (card.heard(|packet| matches!(packet, ToCard::Reset { .. })) > 0).then_some(())
    })
    .await;
    asked.abort();
    let _cut = asked.await;
    host.end_generation(vm.registration.vm, None, "test", None);
    card.deaf.store(false, Ordering::SeqCst);
    until("a scrubbed region", async || {
        let region = card.region(0);
        (region.content == Content::Blank && region.tag.is_none()).then_some(())
    })
    .await;
    // And the next tenant gets it.
    let next = attach(&host, &[0]);
    until("an accepted load", async || {
        match next.load(1, "acme/aes").await {
            Reply::Load(_) => Some(()),
            _not_yet => None,
        }
    })
    .await;
    assert_eq!(next.ended(1).await.result.unwrap().status, Status::Ok);
}

/// D4: a card that refuses every scrub at once is not asked in a loop, and the operator sees it.
#[tokio::test]
async fn d4_a_card_that_refuses_scrubs_is_left_in_peace() {
    let (_site, host, card) = host().await;
    let vm = attach(&host, &[0]);
    vm.load(1, "acme/aes").await;
    vm.ended(1).await;
    card.refuse(Some(Outcome::Journal));
    host.end_generation(vm.registration.vm, None, "test", None);
    tokio::time::sleep(Duration::from_millis(700)).await;
    let asked = card.heard(|packet| matches!(packet, ToCard::Scrub { .. }));
    assert_eq!(asked, 1, "once, and again after a pause");
    let status = views::status(&host);
    let alarm = &status.alarms.first().expect("an alarm").what;
    assert!(alarm.contains("cannot be made safe"), "{alarm}");
    // Room again: the next try goes well by itself.
    card.refuse(None);
    until("a scrubbed region", async || {
        card.region(0).tag.is_none().then_some(())
    })
    .await;
    until("no alarm", async || {
        views::status(&host).alarms.is_empty().then_some(())
    })
    .await;
    let audit = host.audit.last(1000).unwrap();
    let scrubs = audit.iter().filter(|line| line["event"] == "scrub");
    assert_eq!(scrubs.count(), 2, "a failure and a success");
}

/// INV1, INV2: the owner ends while the consent after a restart is under way.
#[tokio::test]
async fn inv1_inv2_the_owner_ends_while_its_region_is_reopened() {
    let (_site, host, card) = host().await;
    let vm = attach(&host, &[0]);
    vm.load(1, "acme/aes").await;
    vm.ended(1).await;
    // As after a restart of the card's process: committed and shut.
    card.deaf.store(true, Ordering::SeqCst);
    card.set(0, |region| region.guest_access = false);
    let report = card.region(0);
    super::super::cards::CardEvents::region(host.as_ref(), 0, report);
    until("the consent at the card", async || {
        (card.heard(|packet| matches!(packet, ToCard::Reopen { .. })) > 0).then_some(())
    })
    .await;
    host.end_generation(vm.registration.vm, None, "test", None);
    card.deaf.store(false, Ordering::SeqCst);
    until("a scrubbed region", async || {
        let region = card.region(0);
        (region.content == Content::Blank && region.tag.is_none()).then_some(())
    })
    .await;
}

/// INV1: nothing is reopened for an owner that ended while others had the card.
#[tokio::test]
async fn inv1_a_consent_that_waited_is_asked_again() {
    let (_site, host, card) = host().await;
    let vm = attach(&host, &[0]);
    vm.load(1, "acme/aes").await;
    vm.ended(1).await;
    let turn = host.cards[0]
        .turn(crate::ipc::RegionIndex(1))
        .await
        .unwrap();
    card.set(0, |region| region.guest_access = false);
    super::super::cards::CardEvents::region(host.as_ref(), 0, card.region(0));
    until("the consent in the queue", async || {
        (host.cards[0].queued() > 0).then_some(())
    })
    .await;
    host.end_generation(vm.registration.vm, None, "test", None);
    drop(turn);
    until("a scrubbed region", async || {
        card.region(0).tag.is_none().then_some(())
    })
    .await;
    assert_eq!(
        card.heard(|packet| matches!(packet, ToCard::Reopen { .. })),
        0
    );
}

/// A guest is told when an operator takes its function away: before, with notice, and after.
#[tokio::test]
async fn an_operators_scrub_is_told_to_the_guest() {
    let (_site, host, card) = host().await;
    let vm = attach(&host, &[0]);
    vm.load(1, "acme/aes").await;
    vm.ended(1).await;
    let (_reply, mut events) = vm.desk.watch(&Watch { slot: None }).unwrap();
    let operator = Operator::new(Arc::clone(&host));
    let scrub = AdminRequest::RegionScrub {
        region: "r0".into(),
    };
    let asked = tokio::spawn(async move { operator.act(scrub, 0).await });
    let mut next = async || {
        let told = tokio::time::timeout(super::SOON, events.recv()).await;
        told.unwrap().unwrap().what
    };
    assert!(matches!(
        next().await,
        EventKind::Leaving { notice_ms: 2000 }
    ));
    assert_eq!(
        card.region(0).content,
        Content::Active,
        "not before the notice is over"
    );
    assert!(matches!(next().await, EventKind::Lost));
    assert!(matches!(asked.await.unwrap(), AdminReply::Ok { .. }));
    assert_eq!(
        card.region(0).tag,
        Some(vm.registration.tag()),
        "its owner keeps it"
    );
}
