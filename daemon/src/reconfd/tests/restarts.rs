//! Restarts, detaches and losses: what runs is left alone.

use std::sync::Arc;
use std::time::Duration;

use protocol::message::{Describe, SlotState};
use protocol::reply::Reply;
use protocol::request::Request;

use super::super::duties::Memory;
use super::super::host::{Ended, Host};
use super::super::identity::Generation;
use super::super::registry::Registration;
use super::super::session::Guest as _;
use super::card::Card;
use super::site::Site;
use super::{Vm, attach, connect, host, until};
use crate::ipc::{RegionReport, ToCard};

/// Runs one life of the daemon: when it is over, all of it is gone, as after a kill.
fn life<T>(site: &Site, live: impl AsyncFnOnce(Arc<Host>) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async { live(site.host()).await })
}

/// A first life in which a VM loads its image; the VM, and what its region then holds.
fn loaded(site: &Site) -> (Registration, RegionReport) {
    life(site, async |host| {
        let card = Card::start(&host);
        connect(&host);
        let vm = attach(&host, &[0]);
        until("an accepted load", async || {
            match vm.load(1, "acme/aes").await {
                Reply::Load(_) => Some(()),
                _not_yet => None,
            }
        })
        .await;
        vm.ended(1).await;
        (vm.registration, card.region(0))
    })
}

/// A card whose first region holds `active`, connected.
fn card_with(host: &Arc<Host>, active: &RegionReport) -> Arc<Card> {
    let card = Card::start(host);
    card.set(0, |region| *region = active.clone());
    connect(host);
    card
}

async fn held(host: &Host) -> String {
    let key = host.plan.find("r0").unwrap();
    until("a held region", async || {
        host.state().regions.get(key).unwrap().held.clone()
    })
    .await
}

fn scrubs(card: &Card) -> usize {
    card.heard(|packet| matches!(packet, ToCard::Scrub { .. }))
}

/// D12, INV6: the VM and its function are there as before, with its image's name.
#[test]
fn d12_inv6_a_restart_leaves_an_active_region_alone() {
    let site = Site::new();
    let (registration, active) = loaded(&site);
    for _restart in 0..3 {
        life(&site, async |host| {
            let card = card_with(&host, &active);
            let vm = Vm::new(&host, registration.clone());
            let image = until("an active slot", async || {
                let describe = Request::Describe(Describe { slot: None });
                let Reply::Describe(told) = vm.desk.answer(describe).await else {
                    panic!("not described");
                };
                let slot = told.slots.into_iter().next().unwrap();
                (slot.state == SlotState::Active).then_some(slot.image)
            })
            .await;
            assert_eq!(image.as_deref(), Some("acme/aes:1.0"));
            assert_eq!(scrubs(&card), 0);
        });
    }
}

/// Loss: a second restart does not forget that registrations were lost, and scrubs nobody.
#[test]
fn db_02_lost_registrations_hold_regions_over_every_restart() {
    let site = Site::new();
    let (_registration, active) = loaded(&site);
    site.write("state/reconfd/registrations.json", b"[{");
    for _restart in 0..3 {
        life(&site, async |host| {
            assert_eq!(host.state().memory, Memory::Lost);
            let card = card_with(&host, &active);
            held(&host).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
            assert_eq!(scrubs(&card), 0);
        });
    }
}

/// A registration that fits the files no more does not cost its VM the region.
#[test]
fn inv6_a_registration_that_does_not_fit_holds_its_region() {
    let site = Site::new();
    let (_registration, active) = loaded(&site);
    let shell = std::fs::read_to_string(site.path("etc/a.toml")).unwrap();
    site.write("etc/a.toml", shell.replace("/vf0", "/renamed").as_bytes());
    for _restart in 0..2 {
        life(&site, async |host| {
            let card = card_with(&host, &active);
            held(&host).await;
            assert_eq!(scrubs(&card), 0);
        });
    }
}

/// Fresh state is no loss for long: once every region is known to be nobody's, all is known.
#[test]
fn a_new_host_remembers_once_its_cards_were_heard() {
    let site = Site::new();
    life(&site, async |host| {
        assert_eq!(host.state().memory, Memory::Blank);
        let _card = Card::start(&host);
        connect(&host);
        until("a file without a loss", async || {
            let text = std::fs::read_to_string(host.layout.registrations()).ok()?;
            (!text.contains("lost_in")).then_some(())
        })
        .await;
    });
    life(&site, async |host| {
        assert_eq!(host.state().memory, Memory::Whole);
    });
}

/// I4, I8: the end of an old start does not end the new one.
#[tokio::test]
async fn i4_only_the_generation_that_is_meant_ends() {
    let (_site, host, _card) = host().await;
    let vm = attach(&host, &[0]);
    let other = Generation::new(&host.boot);
    let id = vm.registration.vm;
    assert!(matches!(
        host.end_generation(id, Some(&other), "an old watch", None),
        Ended::NotThere
    ));
    assert!(host.state().registry.get(id).is_some());
    assert!(matches!(
        host.end_generation(id, Some(&vm.registration.generation), "its own", None),
        Ended::Durably
    ));
}

/// A VM that was detached while it was being attached does not come to life.
#[tokio::test]
async fn i4_a_detach_in_the_middle_of_an_attach_wins() {
    let site = Site::new();
    let host = site.host();
    let registration = super::site::registration(&host, &[0]);
    host.state()
        .registry
        .attach(&host.plan, registration.clone())
        .unwrap();
    host.end_generation(registration.vm, None, "detached", None);
    assert!(super::super::enliven::enliven(&host, &registration).is_err());
    assert!(host.state().live.is_empty());
    assert!(!host.layout.vm_channel(registration.vm).exists());
}

/// P16: a detach that could not be written says so.
#[tokio::test]
async fn p16_a_detach_that_would_not_last_is_told() {
    let (_site, host, _card) = host().await;
    let vm = attach(&host, &[0]);
    // In place of the file there is something that cannot be replaced.
    let file = host.layout.registrations();
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    assert!(matches!(
        host.end_generation(vm.registration.vm, None, "test", None),
        Ended::NotDurably(_)
    ));
    assert!(!host.troubles.all().is_empty());
}
