//! Hosts that send anything: the client never panics, and never waits past its
//! deadlines.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use proptest::prelude::*;
use protocol::message::{ListReply, Pong, Ready, Slot, Welcome};
use protocol::{Kind, Reply, encode};
use reconf_client::{Client, Config};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};
use tokio::time::Instant;

use crate::peer::{Got, Peer};

/// Bytes that look like a host's, or do not.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let frames = vec![
        encode(
            Kind::WELCOME,
            0,
            0,
            &Welcome {
                guest_nonce: [0; 16],
                host_nonce: [1; 16],
                minor: 0,
            },
        )
        .unwrap(),
        encode(
            Kind::READY,
            101,
            0,
            &Ready {
                slots: vec![Slot(0)],
                max_control: 4096,
                window: 1,
            },
        )
        .unwrap(),
        Reply::Ping(Pong { payload: 0 }).to_frame(101, 1).unwrap(),
        Reply::List(ListReply {
            entries: vec![],
            next: Some(1),
        })
        .to_frame(102, 1)
        .unwrap(),
        b"RCNF".to_vec(),
    ];
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        (
            prop::sample::select(frames),
            any::<prop::sample::Index>(),
            any::<u8>()
        )
            .prop_map(|(mut frame, at, xor)| {
                let at = at.index(frame.len());
                frame[at] ^= xor;
                frame
            }),
    ]
}

fn paused() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// From the first byte on.
    #[test]
    fn a_hostile_handshake_ends_in_time(pieces in prop::collection::vec(piece(), 0..20)) {
        paused().block_on(async {
            let (guest, mut host) = tokio::io::duplex(64 * 1024);
            let began = Instant::now();
            let client = tokio::spawn(Client::over(guest, Config::default()));
            for piece in &pieces {
                drop(host.write_all(piece).await);
            }
            // Nobody can foresee the nonce: no session comes of it.
            assert!(client.await.unwrap().is_err());
            assert!(began.elapsed() <= Duration::from_secs(5));
        });
    }

    /// Within a session, where the host knows what the guest waits for.
    #[test]
    fn a_hostile_session_ends_in_time(pieces in prop::collection::vec(piece(), 0..20)) {
        paused().block_on(async {
            let (guest, host) = tokio::io::duplex(64 * 1024);
            let mut host = Peer::new(host);
            let (client, ()) = tokio::join!(Client::over(guest, Config::default()), host.open());
            let client = client.unwrap();
            let began = Instant::now();
            let host = async {
                while let Some(Got::Request(..)) = host.next().await {
                    for piece in &pieces {
                        host.raw(piece).await;
                    }
                }
            };
            tokio::select! {
                answer = client.list(None) => drop(answer),
                () = host => panic!("the client left"),
            }
            // A reply's patience, one more session and one more reply.
            assert!(began.elapsed() <= Duration::from_secs(25), "{:?}", began.elapsed());
        });
    }
}

/// A stream that is always ready, and does not yield by itself as tokio's do.
struct Flood;

impl AsyncRead for Flood {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let len = buf.remaining();
        buf.put_slice(&vec![b'R'; len]);
        Poll::Ready(Ok(()))
    }
}

/// Junk without a pause must not keep the deadline from being seen.
#[test]
fn an_endless_flood_does_not_outrun_the_deadline() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let config = Config {
            handshake_timeout: Duration::from_millis(200),
            ..Config::default()
        };
        let flood = tokio::io::join(Flood, tokio::io::sink());
        let answer = tokio::time::timeout(Duration::from_secs(20), Client::over(flood, config));
        assert!(answer.await.expect("the client never gave up").is_err());
    });
}

/// A channel that sends back what it is sent: a terminal in its usual mode, or a
/// wrong wire.
#[tokio::test(start_paused = true)]
async fn an_echo_is_no_host() {
    let (guest, mut host) = tokio::io::duplex(64 * 1024);
    let echo = tokio::spawn(async move {
        let mut bytes = [0; 1024];
        while let Ok(n @ 1..) = host.read(&mut bytes).await {
            if host.write_all(&bytes[..n]).await.is_err() {
                return;
            }
        }
    });
    let began = Instant::now();
    assert!(Client::over(guest, Config::default()).await.is_err());
    assert_eq!(began.elapsed(), Duration::from_secs(5));
    echo.abort();
}
