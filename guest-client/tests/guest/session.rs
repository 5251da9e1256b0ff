//! Opening a session, keeping it, losing it: on a paused clock.

use std::time::Duration;

use protocol::message::{
    DescribeReply, ErrorReply, ImageEntry, ListReply, Pong, ResetReply, SlotInfo, SlotState,
};
use protocol::{Kind, Reply, Request, encode};
use reconf_client::{Config, Detail, Digest, Error, FunctionId, JobKey, Slot, Status};
use tokio::time::Instant;

use crate::peer::{Got, Peer, connected, unconnected};

fn image(n: u32) -> ImageEntry {
    ImageEntry {
        slot: Slot(0),
        name: format!("acme/image:{n}"),
        digest: Digest([1; 32]),
        function_id: FunctionId([2; 16]),
        size: 4 << 20,
    }
}

fn refused(status: Status, detail: Detail) -> Reply {
    Reply::Error(ErrorReply::new(status, detail))
}

#[tokio::test(start_paused = true)]
async fn a_list_is_followed_over_its_pages() {
    let (client, mut host) = connected(Config::default()).await;
    let host = async {
        for (cursor, next) in [(0, Some(3)), (3, Some(4)), (4, None)] {
            let (sequence, request) = host.request().await;
            assert!(matches!(request, Request::List(list) if list.cursor == cursor));
            let page = ListReply {
                entries: vec![image(cursor)],
                next,
            };
            host.reply(sequence, Reply::List(page)).await;
        }
    };
    let (images, ()) = tokio::join!(client.list(None), host);
    assert_eq!(images.unwrap(), [image(0), image(3), image(4)]);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_goes_in_a_circle_or_never_ends_is_a_broken_protocol() {
    for step in [0, 1] {
        let (client, mut host) = connected(Config::default()).await;
        let host = async {
            let mut cursor = 0;
            loop {
                let Some(Got::Request(sequence, _)) = host.next().await else {
                    return;
                };
                cursor += step;
                let page = ListReply {
                    entries: vec![],
                    next: Some(cursor),
                };
                host.reply(sequence, Reply::List(page)).await;
            }
        };
        tokio::select! {
            answer = client.list(None) => assert!(matches!(answer, Err(Error::Protocol(_)))),
            () = host => panic!("the client left"),
        }
    }
}

/// The host may start later than the guest: hello is said until it is answered.
#[tokio::test(start_paused = true)]
async fn vser_04_hello_is_said_again_until_the_host_is_there() {
    let (client, stream) = unconnected(Config::default());
    let began = Instant::now();
    tokio::time::sleep(Duration::from_millis(2200)).await;
    let mut host = Peer::new(stream);
    host.open().await;
    client.await.unwrap().unwrap();
    assert_eq!(host.hellos, 5, "one at once and one every 500 ms");
    assert!(began.elapsed() < Duration::from_millis(2300));
}

#[tokio::test(start_paused = true)]
async fn a_silent_host_is_told_when_the_handshakes_deadline_is_over() {
    let (client, _stream) = unconnected(Config::default());
    let began = Instant::now();
    let answer = client.await.unwrap();
    assert!(matches!(answer, Err(Error::HostSilent { .. })));
    assert_eq!(began.elapsed(), Duration::from_secs(5));
}

/// Nobody takes bytes off the channel: the write itself would wait for ever.
#[tokio::test(start_paused = true)]
async fn vser_01_a_host_that_does_not_read_is_told_in_time() {
    let (guest, _host) = tokio::io::duplex(8);
    let began = Instant::now();
    let answer = reconf_client::Client::over(guest, Config::default()).await;
    assert!(matches!(answer, Err(Error::HostSilent { .. })));
    assert_eq!(began.elapsed(), Duration::from_secs(5));
}

/// Half a frame, an old session's whole reply, noise: what a dead opener of the
/// port left behind. The field's own bytes are tried too.
#[tokio::test(start_paused = true)]
async fn vser_03_what_an_earlier_process_left_behind_is_not_taken_for_an_answer() {
    let old = Reply::Ping(Pong { payload: 1 }).to_frame(77, 1).unwrap();
    let mut leftovers = vec![
        old[..old.len() - 3].to_vec(),
        [&old[..20], &old].concat(),
        [&old, &old[..HEADER]].concat(),
        vec![0xff; 5000],
    ];
    for name in ["stale.bin", "binary-noise.bin"] {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/cases/VSER-03/");
        match std::fs::read(format!("{path}{name}")) {
            Ok(bytes) => leftovers.push(bytes),
            Err(_) => eprintln!("SKIPPED: {path}{name} is not here"),
        }
    }
    for junk in leftovers {
        let (client, stream) = unconnected(Config::default());
        let mut host = Peer::new(stream);
        host.raw(&junk).await;
        host.open().await;
        let client = client.await.unwrap().unwrap();
        let host = async {
            let (sequence, request) = host.request().await;
            let Request::Ping(ping) = request else {
                panic!("{request:?}")
            };
            // The same number in an old session, an unknown number, garbage.
            host.raw(&old).await;
            host.reply(sequence + 40, Reply::Ping(Pong { payload: 2 }))
                .await;
            host.raw(b"RCNF garbage").await;
            host.reply(
                sequence,
                Reply::Ping(Pong {
                    payload: ping.payload,
                }),
            )
            .await;
        };
        let (answer, ()) = tokio::join!(client.ping(), host);
        answer.unwrap();
    }
}

const HEADER: usize = protocol::HEADER_LEN;

/// Every prefix of a frame may stand before the welcome.
#[tokio::test(start_paused = true)]
async fn g4_half_a_frame_before_the_welcome_changes_nothing() {
    let page = Reply::List(ListReply {
        entries: vec![image(1), image(2)],
        next: None,
    });
    let old = page.to_frame(9, 9).unwrap();
    for cut in 0..=old.len() {
        let (client, stream) = unconnected(Config::default());
        let mut host = Peer::new(stream);
        host.raw(&old[..cut]).await;
        let began = Instant::now();
        host.open().await;
        client.await.unwrap().unwrap();
        assert_eq!(began.elapsed(), Duration::ZERO, "cut at {cut}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_does_not_come_ends_the_wait_and_the_next_request_opens_a_session() {
    let (client, mut host) = connected(Config::default()).await;
    let began = Instant::now();
    let (answer, _) = tokio::join!(client.ping(), host.request());
    assert!(matches!(
        answer,
        Err(Error::NoReply {
            request: "ping",
            ..
        })
    ));
    assert_eq!(began.elapsed(), Duration::from_secs(10));

    host.restart();
    let host = async {
        host.open().await;
        let (sequence, request) = host.request().await;
        let Request::Ping(ping) = request else {
            panic!("{request:?}")
        };
        host.reply(
            sequence,
            Reply::Ping(Pong {
                payload: ping.payload,
            }),
        )
        .await;
    };
    let (answer, ()) = tokio::join!(client.ping(), host);
    answer.unwrap();
}

/// The host answered `stale`, so the request was certainly not done: even a
/// reset may be asked again, once.
#[tokio::test(start_paused = true)]
async fn a_stale_session_is_replaced_and_the_request_asked_once_more() {
    let (client, mut host) = connected(Config::default()).await;
    let host = async {
        let (sequence, _) = host.request().await;
        host.reply(sequence, refused(Status::Stale, Detail::None))
            .await;
        host.open().await;
        let (sequence, request) = host.request().await;
        assert!(matches!(request, Request::Reset(_)));
        host.reply(sequence, Reply::Reset(ResetReply { slot: Slot(0) }))
            .await;
    };
    let (answer, ()) = tokio::join!(client.reset(None), host);
    assert_eq!(answer.unwrap(), Slot(0));
}

#[tokio::test(start_paused = true)]
async fn a_host_that_finds_everything_stale_is_believed_the_second_time() {
    let (client, mut host) = connected(Config::default()).await;
    let host = async {
        for _ in 0..2 {
            let (sequence, _) = host.request().await;
            host.reply(sequence, refused(Status::Stale, Detail::None))
                .await;
        }
    };
    let (answer, ()) = tokio::join!(client.describe(None), host);
    assert!(matches!(answer, Err(Error::Refused(reply)) if reply.status == Status::Stale));
}

/// A reset has no key. Where its reply is lost, nobody asks for it again.
#[tokio::test(start_paused = true)]
async fn a_reset_is_never_asked_twice_blindly() {
    let (client, mut host) = connected(Config::default()).await;
    let host = async move {
        let (_, request) = host.request().await;
        assert!(matches!(request, Request::Reset(_)));
        drop(host);
    };
    let (answer, ()) = tokio::join!(client.reset(None), host);
    assert!(answer.unwrap_err().is_unsure());
}

#[tokio::test(start_paused = true)]
async fn busy_and_needed_slots_come_with_what_the_host_told() {
    let (client, mut host) = connected(Config::default()).await;
    let busy = ErrorReply {
        status: Status::Busy,
        detail: Detail::None,
        job: Some(JobKey([7; 16])),
        slots: vec![],
    };
    let needed = ErrorReply {
        status: Status::Protocol,
        detail: Detail::SlotNeeded,
        job: None,
        slots: vec![Slot(0), Slot(1)],
    };
    for expected in [busy, needed] {
        let host = async {
            let (sequence, _) = host.request().await;
            host.reply(sequence, Reply::Error(expected.clone())).await;
        };
        let (answer, ()) = tokio::join!(client.reset(None), host);
        assert_eq!(answer.unwrap_err().refusal(), Some(&expected));
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_of_another_kind_or_that_cannot_be_read_is_a_broken_protocol() {
    let (client, mut host) = connected(Config::default()).await;
    let began = Instant::now();
    let host = async {
        let (sequence, _) = host.request().await;
        host.reply(sequence, Reply::Ping(Pong { payload: 0 })).await;
        let (sequence, _) = host.request().await;
        // A describe's kind around a pong's body.
        let body = Pong { payload: u64::MAX };
        let frame = encode(Kind::DESCRIBE.reply(), host.session, sequence, &body).unwrap();
        host.raw(&frame).await;
    };
    let asked = async {
        assert!(matches!(
            client.describe(None).await,
            Err(Error::Protocol(_))
        ));
        assert!(matches!(
            client.describe(None).await,
            Err(Error::Protocol(_))
        ));
    };
    tokio::join!(asked, host);
    assert_eq!(
        began.elapsed(),
        Duration::ZERO,
        "an answer was at hand and was waited for"
    );
}

#[tokio::test(start_paused = true)]
async fn requests_of_clones_go_one_after_the_other() {
    let (client, mut host) = connected(Config::default()).await;
    let host = async {
        for expected in 1..=8 {
            let (sequence, request) = host.request().await;
            assert_eq!(sequence, expected);
            let Request::Describe(ask) = request else {
                panic!("{request:?}")
            };
            tokio::time::sleep(Duration::from_millis(5)).await;
            let slots = vec![slot(ask.slot.unwrap())];
            host.reply(sequence, Reply::Describe(DescribeReply { slots }))
                .await;
        }
    };
    let asks: Vec<_> = (0..8)
        .map(|n| {
            let client = client.clone();
            tokio::spawn(async move {
                let slots = client.describe(Some(Slot(n))).await.unwrap();
                assert_eq!(slots[0].slot, Slot(n));
            })
        })
        .collect();
    host.await;
    for ask in asks {
        ask.await.unwrap();
    }
}

fn slot(slot: Slot) -> SlotInfo {
    SlotInfo {
        slot,
        state: SlotState::Empty,
        image: None,
        digest: None,
        function_id: None,
        since: None,
        guest_pci: None,
        development: false,
        job: None,
    }
}
