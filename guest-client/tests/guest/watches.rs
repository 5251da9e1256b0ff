//! Events beside requests.

use std::time::Duration;

use protocol::message::{Event, EventKind, Pong, WatchReply};
use protocol::{Reply, Request};
use reconf_client::{Client, Config, Error, FunctionId, Slot, Watch};
use tokio::io::DuplexStream;
use tokio::time::Instant;

use crate::peer::{Got, Peer, connected};

fn event(number: u64) -> Event {
    Event {
        number,
        slot: Slot(0),
        what: EventKind::Cleared,
    }
}

/// A watch that runs, and its number.
async fn watched(client: &Client, host: &mut Peer<DuplexStream>) -> (Watch, u32) {
    let host = async {
        let (sequence, request) = host.request().await;
        assert!(matches!(request, Request::Watch(_)));
        host.reply(
            sequence,
            Reply::Watch(WatchReply {
                slots: vec![Slot(0)],
            }),
        )
        .await;
        sequence
    };
    let (watch, sequence) = tokio::join!(client.watch(None), host);
    (watch.unwrap(), sequence)
}

#[tokio::test(start_paused = true)]
async fn events_come_beside_requests() {
    let (client, mut host) = connected(Config::default()).await;
    let (mut watch, number) = watched(&client, &mut host).await;
    assert_eq!(watch.slots(), [Slot(0)]);
    let loaded = Event {
        number: 1,
        slot: Slot(0),
        what: EventKind::Loaded {
            function_id: FunctionId([5; 16]),
            guest_pci: Some("0000:00:05.0".into()),
        },
    };
    let host = async {
        host.reply(number, Reply::Event(event(0))).await;
        let (sequence, request) = host.request().await;
        let Request::Ping(ping) = request else {
            panic!("{request:?}")
        };
        host.reply(number, Reply::Event(loaded.clone())).await;
        host.reply(number + 9, Reply::Event(event(7))).await;
        host.reply(
            sequence,
            Reply::Ping(Pong {
                payload: ping.payload,
            }),
        )
        .await;
        host.reply(number, Reply::Event(event(2))).await;
    };
    let (pong, ()) = tokio::join!(client.ping(), host);
    pong.unwrap();
    assert_eq!(watch.next().await.unwrap(), event(0));
    assert_eq!(watch.next().await.unwrap(), loaded);
    // The event of a watch that nobody began is dropped.
    assert_eq!(watch.next().await.unwrap(), event(2));
}

/// A port tells nothing when its host goes away: silence is asked about, and
/// the watch ends where there is no answer.
#[tokio::test(start_paused = true)]
async fn a_watch_ends_when_the_host_is_gone_without_a_sign() {
    let (client, mut host) = connected(Config::default()).await;
    let (mut watch, _) = watched(&client, &mut host).await;
    let began = Instant::now();
    let host = async {
        for _ in 0..3 {
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
        }
        host.request().await;
    };
    let (answer, ()) = tokio::join!(watch.next(), host);
    assert!(matches!(
        answer,
        Err(Error::Lost {
            request: "watch",
            ..
        })
    ));
    // Four looks, 5 s apart, and 10 s of patience with the last.
    assert_eq!(began.elapsed(), Duration::from_secs(30));
}

#[tokio::test(start_paused = true)]
async fn a_watch_outlives_its_client_and_nobody_is_asked_after_it() {
    let (client, mut host) = connected(Config::default()).await;
    let (mut watch, number) = watched(&client, &mut host).await;
    drop(client);
    host.reply(number, Reply::Event(event(0))).await;
    assert_eq!(watch.next().await.unwrap(), event(0));
    drop(watch);
    // The task ends, and with it the channel.
    assert!(host.next().await.is_none());
}

/// Who does not read loses events, not the session: the numbers tell.
#[tokio::test(start_paused = true)]
async fn g12_a_slow_watcher_loses_events_and_holds_nobody_up() {
    let (client, mut host) = connected(Config::default()).await;
    let (mut watch, number) = watched(&client, &mut host).await;
    let host = async {
        for n in 0..1000 {
            host.reply(number, Reply::Event(event(n))).await;
        }
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
        for n in 1000..1002 {
            host.reply(number, Reply::Event(event(n))).await;
        }
        while let Some(Got::Request(..)) = host.next().await {}
    };
    let guest = async {
        client.ping().await.unwrap();
        let mut numbers = vec![];
        while let Ok(Ok(event)) = tokio::time::timeout(Duration::from_secs(1), watch.next()).await {
            numbers.push(event.number);
        }
        numbers
    };
    let numbers = tokio::select! {
        numbers = guest => numbers,
        () = host => panic!("the client left"),
    };
    assert!(numbers.len() < 1000, "{}", numbers.len());
    assert!(numbers.is_sorted(), "{numbers:?}");
}
