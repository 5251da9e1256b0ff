//! Jobs: whatever becomes of who asked, of the store and of the daemon.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use protocol::message::{Cancel, Clear, JobKey};
use protocol::reply::Reply;
use protocol::request::Request;
use protocol::status::{Detail, Status};

use super::super::audit::SyncCost;
use super::super::jobs::JobRecord;
use super::super::jobstore::{JobStore, StoreError};
use super::super::session::Guest as _;
use super::super::views;
use super::card::Card;
use super::site::Site;
use super::{attach, connect, host, load, until};
use crate::ipc::{RegionIndex, ToCard};

/// A store on a disk that is full while the test says so.
struct Full(Arc<std::sync::atomic::AtomicBool>);

impl JobStore for Full {
    fn load(&self) -> Vec<JobRecord> {
        Vec::new()
    }

    fn put(
        &self,
        _r: &JobRecord,
        _gone: &[JobRecord],
        _c: &mut SyncCost,
    ) -> Result<(), StoreError> {
        if self.0.load(Ordering::SeqCst) {
            Err(StoreError("no space left".into()))
        } else {
            Ok(())
        }
    }

    fn remove(&self, _gone: &[JobRecord]) -> Result<(), StoreError> {
        Ok(())
    }
}

/// G13: the connection that asked goes away before the answer; the job is carried out all the
/// same, and the next connection finds it by its key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g13_a_job_outlives_the_connection_that_asked() {
    let (_site, host, _card) = host().await;
    let vm = attach(&host, &[0]);
    for key in 1..=20 {
        let desk = Arc::clone(&vm.desk);
        let asked = tokio::spawn(async move { desk.answer(load(key, "acme/aes")).await });
        // Cut off at whatever point it has reached.
        tokio::time::sleep(Duration::from_micros(u64::from(key) * 50)).await;
        asked.abort();
        let _cut = asked.await;
        if vm.job(key).await.is_some() {
            let end = vm.ended(key).await;
            assert_eq!(end.result.unwrap().status, Status::Ok, "{key}");
        }
        until("a free region", async || {
            let state = host.state();
            state
                .regions
                .iter()
                .all(|(_key, region)| region.reserved.is_none())
                .then_some(())
        })
        .await;
    }
    until("no job that runs", async || {
        let state = host.state();
        (state.running == 0 && state.cancels.is_empty()).then_some(())
    })
    .await;
}

/// P16: no room for the job: the guest is refused, the operator sees why, the key is free again,
/// and a clear goes on.
#[tokio::test]
async fn p16_without_room_loads_stop_and_clears_go_on() {
    let site = Site::new();
    let full = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let host = site.parts(|parts| parts.store = Box::new(Full(Arc::clone(&full))));
    let _card = Card::start(&host);
    connect(&host);
    until("reports", async || {
        let state = host.state();
        state
            .regions
            .iter()
            .all(|(_k, region)| region.report.is_some())
            .then_some(())
    })
    .await;
    let vm = attach(&host, &[0]);
    let Reply::Error(refused) = vm.load(1, "acme/aes").await else {
        panic!("accepted without being durable");
    };
    assert_eq!(
        (refused.status, refused.detail),
        (Status::Unavailable, Detail::None)
    );
    assert!(vm.job(1).await.is_none(), "it was never accepted");
    let status = views::status(&host);
    assert_eq!(status.jobs, 0);
    assert!(
        status
            .alarms
            .iter()
            .any(|alarm| alarm.what.contains("job store")),
        "{:?}",
        status.alarms
    );
    let clear = Request::Clear(Clear {
        key: JobKey([2; 16]),
        slot: None,
    });
    assert!(matches!(vm.desk.answer(clear).await, Reply::Clear(_)));
    vm.ended(2).await;
    full.store(false, Ordering::SeqCst);
    assert!(matches!(vm.load(1, "acme/aes").await, Reply::Load(_)));
    assert_eq!(vm.ended(1).await.result.unwrap().status, Status::Ok);
    assert!(views::status(&host).alarms.is_empty());
}

/// A cancel that was answered well is a job that ends cancelled; one that comes too late is told so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g13_a_cancel_is_true_or_too_late() {
    let (_site, host, card) = host().await;
    let vm = attach(&host, &[0]);
    let (mut cancelled, mut late) = (0, 0);
    for key in 1..=40 {
        assert!(matches!(vm.load(key, "acme/aes").await, Reply::Load(_)));
        tokio::time::sleep(Duration::from_micros(u64::from(key) * 30)).await;
        let cancel = Request::Cancel(Cancel {
            key: JobKey([key; 16]),
        });
        let answer = vm.desk.answer(cancel).await;
        let end = vm.ended(key).await.result.unwrap();
        match answer {
            Reply::Cancel(_) => {
                cancelled += 1;
                assert_eq!(
                    end.detail,
                    Detail::Cancelled,
                    "job {key} was said to be cancelled"
                );
            }
            Reply::Error(error) => {
                late += 1;
                assert_eq!(error.detail, Detail::TooLate);
                assert_eq!(end.status, Status::Ok);
            }
            other => panic!("{other:?}"),
        }
        // Each load is a real one.
        let clear = Request::Clear(Clear {
            key: JobKey([key + 100; 16]),
            slot: None,
        });
        vm.desk.answer(clear).await;
        vm.ended(key + 100).await;
    }
    eprintln!("{cancelled} cancelled, {late} too late");
    assert_eq!(
        card.heard(|packet| matches!(packet, ToCard::Commit { .. })),
        late
    );
}

/// Whoever has the right to cancel decides, at whatever moment it speaks: the job's turn came
/// between the two.
#[tokio::test]
async fn g13_a_cancel_that_was_granted_is_kept() {
    let (_site, host, card) = host().await;
    let vm = attach(&host, &[0]);
    let turn = host.cards[0].turn(RegionIndex(1)).await.unwrap();
    assert!(matches!(vm.load(1, "acme/aes").await, Reply::Load(_)));
    until("the job in the queue", async || {
        (host.cards[0].queued() > 0).then_some(())
    })
    .await;
    let right: Vec<_> = host.state().cancels.drain().collect();
    drop(turn);
    until("its turn over", async || {
        (host.cards[0].queued() == 0).then_some(())
    })
    .await;
    let end = vm.ended(1).await.result.unwrap();
    assert_eq!((right.len(), end.detail), (1, Detail::Cancelled));
    assert_eq!(
        card.heard(|packet| matches!(packet, ToCard::Offer { .. })),
        0
    );
}

/// Once the daemon leaves no job begins, not even one that was being accepted.
#[tokio::test]
async fn no_job_begins_once_the_daemon_leaves() {
    let (_site, host, _card) = host().await;
    let vm = attach(&host, &[0]);
    host.state().leaving = true;
    let Reply::Error(refused) = vm.load(1, "acme/aes").await else {
        panic!("accepted");
    };
    assert_eq!(refused.status, Status::Unavailable);
    assert_eq!(host.state().running, 0);
}

/// D2: what a lost task had is given back.
#[tokio::test]
async fn d2_a_job_whose_task_is_lost_does_not_stay_open() {
    let (_site, host, card) = host().await;
    let vm = attach(&host, &[0]);
    card.deaf.store(true, Ordering::SeqCst);
    // A runtime of its own, which dies with its tasks.
    let desk = Arc::clone(&vm.desk);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(desk.answer(load(1, "acme/aes")));
    })
    .join()
    .unwrap();
    let end = vm.ended(1).await.result.unwrap();
    assert_eq!(end.status, Status::Failed);
    let state = host.state();
    assert_eq!(state.running, 0);
    assert!(state.cancels.is_empty());
    assert!(
        state
            .regions
            .iter()
            .all(|(_key, region)| region.reserved.is_none())
    );
}

/// R1: a VM that is gone leaves no job behind.
#[tokio::test]
async fn r1_a_generation_that_is_over_leaves_nothing_in_memory() {
    let (_site, host, card) = host().await;
    for _start in 0..5 {
        let vm = attach(&host, &[0]);
        assert!(matches!(vm.load(1, "acme/aes").await, Reply::Load(_)));
        vm.ended(1).await;
        card.deaf.store(true, Ordering::SeqCst);
        let again = Request::Clear(Clear {
            key: JobKey([2; 16]),
            slot: None,
        });
        assert!(matches!(vm.desk.answer(again).await, Reply::Clear(_)));
        // It ends in the middle of a job.
        host.end_generation(vm.registration.vm, None, "test", None);
        card.deaf.store(false, Ordering::SeqCst);
        until("a blank region that is nobody's", async || {
            let region = card.region(0);
            (region.tag.is_none() && host.state().running == 0).then_some(())
        })
        .await;
        until("a free region", async || {
            let state = host.state();
            let free = state
                .regions
                .iter()
                .all(|(_key, region)| region.reserved.is_none());
            free.then_some(())
        })
        .await;
    }
    let state = host.state();
    assert!(state.jobs.all().is_empty());
    assert!(state.ended.is_empty());
    assert!(state.live.is_empty());
}
