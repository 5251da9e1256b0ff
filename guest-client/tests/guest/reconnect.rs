//! A host's socket that closes and opens again.

use std::time::Duration;

use protocol::message::{Pong, ResetReply};
use protocol::{Reply, Request};
use reconf_client::{Client, Config, ImageRef, JobKey, Load, Places, Slot};
use tokio::net::{UnixListener, UnixStream};

use crate::peer::{Got, Peer};

struct Door {
    listener: UnixListener,
    places: Places,
    _directory: tempfile::TempDir,
}

fn door() -> Door {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("guest.sock");
    let listener = UnixListener::bind(&path).unwrap();
    Door {
        listener,
        places: Places::named(path),
        _directory: directory,
    }
}

impl Door {
    async fn accept(&self) -> Peer<UnixStream> {
        let (stream, _) = self.listener.accept().await.unwrap();
        Peer::new(stream)
    }

    /// Takes one request in and goes away without an answer.
    async fn swallow(&self) -> Request {
        self.accept().await.request().await.1
    }

    async fn connect(&self) -> Client {
        Client::connect_to(self.places.clone(), Config::default())
            .await
            .unwrap()
    }
}

async fn pong(host: &mut Peer<UnixStream>) {
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

/// The session broke while nobody asked anything: nobody notices.
#[tokio::test]
async fn xrt_08_a_host_that_restarted_is_reached_again_by_the_next_request() {
    let door = door();
    let (client, ()) = tokio::join!(door.connect(), async {
        door.accept().await.open().await;
    });
    // Let the client's task see the end of the stream.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let (answer, ()) = tokio::join!(client.reset(None), async {
        let mut host = door.accept().await;
        let (sequence, _) = host.request().await;
        host.reply(sequence, Reply::Reset(ResetReply { slot: Slot(0) }))
            .await;
    });
    assert_eq!(answer.unwrap(), Slot(0));
}

#[tokio::test]
async fn what_has_no_effect_is_asked_again_where_the_connection_broke() {
    let door = door();
    let guest = async { door.connect().await.ping().await };
    let host = async {
        door.swallow().await;
        pong(&mut door.accept().await).await;
    };
    let (answer, ()) = tokio::join!(guest, host);
    answer.unwrap();
}

/// The same as above for what has an effect and no key: it is not asked again,
/// although the host is there.
#[tokio::test]
async fn a_reset_is_not_asked_again_where_the_connection_broke() {
    let door = door();
    let guest = async {
        let client = door.connect().await;
        let error = client.reset(None).await.unwrap_err();
        assert!(error.is_unsure(), "{error}");
        client.ping().await.unwrap();
    };
    let host = async {
        assert!(matches!(door.swallow().await, Request::Reset(_)));
        // The next thing asked is the ping.
        pong(&mut door.accept().await).await;
    };
    tokio::join!(guest, host);
}

/// The connection breaks under a load, again and again: every repeat is the same
/// request, byte for byte, and a refusal of the last one is the answer.
#[tokio::test]
async fn xrt_07_every_repeat_of_a_load_carries_the_same_key() {
    let door = door();
    let load = Load {
        key: JobKey([9; 16]),
        slot: Some(Slot(0)),
        image: ImageRef::Name("acme/aes".into()),
        if_not_loaded: false,
        force: true,
    };
    let guest = async { door.connect().await.load(load.clone()).await };
    let host = async {
        for _ in 0..3 {
            assert_eq!(door.swallow().await, Request::Load(load.clone()));
        }
        let mut host = door.accept().await;
        let (sequence, request) = host.request().await;
        assert_eq!(request, Request::Load(load.clone()));
        let denied = protocol::message::ErrorReply::denied();
        host.reply(sequence, Reply::Error(denied)).await;
        // Nothing more is asked.
        let more = tokio::time::timeout(Duration::from_millis(100), host.next()).await;
        assert!(!matches!(more, Ok(Some(Got::Request(..)))));
    };
    let (answer, ()) = tokio::join!(guest, host);
    assert!(answer.unwrap_err().refusal().is_some());
}

/// The host's side takes the connection and drops it at once, as one does that
/// is starting: the handshake's deadline covers that.
#[tokio::test]
async fn a_connection_that_is_dropped_before_the_handshake_is_made_again() {
    let door = door();
    let config = Config {
        hello_interval: Duration::from_millis(20),
        ..Config::default()
    };
    let guest = Client::connect_to(door.places.clone(), config);
    let host = async {
        for _ in 0..3 {
            drop(door.accept().await);
        }
        door.accept().await.open().await;
    };
    let (client, ()) = tokio::join!(guest, host);
    client.unwrap();
}
