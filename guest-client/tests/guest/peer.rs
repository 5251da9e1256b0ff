//! The host's end of a channel, step by step, as a test tells it.

use std::time::Duration;

use protocol::handshake::MINOR;
use protocol::message::{Ready, Slot};
use protocol::{
    Fresh, HostHandshake, HostStep, Kind, Reply, Request, Scanned, Scanner, Session, encode,
};
use reconf_client::{Client, Config, Result};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};

/// Numbers that a test can foresee.
#[derive(Debug, Default)]
pub(crate) struct Counter(u64);

impl Fresh for Counter {
    fn nonce(&mut self) -> [u8; 16] {
        self.0 += 1;
        u128::from(self.0).to_le_bytes()
    }

    fn session_id(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }
}

const PATIENCE: Duration = Duration::from_secs(60);

/// A host that does what the test says, and nothing by itself.
#[derive(Debug)]
pub(crate) struct Peer<S> {
    pub(crate) stream: S,
    scanner: Scanner,
    handshake: HostHandshake,
    fresh: Counter,
    pub(crate) session: u64,
    pub(crate) slots: Vec<Slot>,
    input: Vec<u8>,
    /// Hellos seen so far.
    pub(crate) hellos: usize,
}

/// What a host gets from a guest.
#[derive(Debug)]
pub(crate) enum Got {
    Opened,
    Request(u32, Request),
    /// A request that the handshake found stale; its session and number.
    Stale(u64, u32),
}

enum Frame {
    Step(HostStep, u32, u64, Option<Request>),
}

impl<S: AsyncRead + AsyncWrite + Unpin> Peer<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self {
            stream,
            scanner: Scanner::host(),
            handshake: HostHandshake::new(MINOR),
            fresh: Counter(100),
            session: 0,
            slots: vec![Slot(0)],
            input: Vec::new(),
            hellos: 0,
        }
    }

    /// A host process that starts anew on the same channel: it has forgotten
    /// every session.
    pub(crate) fn restart(&mut self) {
        self.scanner = Scanner::host();
        self.handshake = HostHandshake::new(MINOR);
        self.session = 0;
        self.fresh.0 += 1000;
    }

    pub(crate) async fn raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// The next thing the guest does that matters; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Got> {
        loop {
            let Frame::Step(step, sequence, session, request) = self.frame().await?;
            match step {
                HostStep::Welcome(welcome) => {
                    self.hellos += 1;
                    self.raw(&encode(Kind::WELCOME, 0, sequence, &welcome).unwrap())
                        .await;
                }
                HostStep::Opened(Session { id, .. }) => {
                    self.session = id.get();
                    self.ready().await;
                    return Some(Got::Opened);
                }
                HostStep::Request(_) => return Some(Got::Request(sequence, request.unwrap())),
                HostStep::Stale(_) => return Some(Got::Stale(session, sequence)),
                HostStep::Discarded | HostStep::Overrun | HostStep::Misdirected => {}
            }
        }
    }

    async fn ready(&mut self) {
        let ready = Ready {
            slots: self.slots.clone(),
            max_control: 4096,
            window: 1,
        };
        self.raw(&encode(Kind::READY, self.session, 0, &ready).unwrap())
            .await;
    }

    async fn frame(&mut self) -> Option<Frame> {
        loop {
            let mut rest = self.input.as_slice();
            while let Some(found) = self.scanner.next(&mut rest) {
                if let Scanned::Frame(frame) = found {
                    let step = self.handshake.on_frame(&frame, &mut self.fresh);
                    let request = match step {
                        HostStep::Request(_) => Some(Request::from_frame(&frame).unwrap()),
                        _ => None,
                    };
                    let header = frame.header;
                    let left = self.input.len() - rest.len();
                    self.input.drain(..left);
                    return Some(Frame::Step(step, header.sequence, header.session, request));
                }
            }
            self.input.clear();
            let mut more = [0; 512];
            // A guest that says nothing for this long has left the test's script.
            let read = tokio::time::timeout(PATIENCE, self.stream.read(&mut more));
            match read.await.expect("the guest says nothing") {
                Ok(0) | Err(_) => return None,
                Ok(n) => self.input.extend_from_slice(&more[..n]),
            }
        }
    }

    /// Waits for the guest to open a session.
    pub(crate) async fn open(&mut self) {
        loop {
            match self
                .next()
                .await
                .expect("the guest left before it opened a session")
            {
                Got::Opened => return,
                Got::Request(..) | Got::Stale(..) => {}
            }
        }
    }

    /// The next request; sessions that open before it are welcome.
    pub(crate) async fn request(&mut self) -> (u32, Request) {
        loop {
            match self.next().await.expect("the guest left before it asked") {
                Got::Request(sequence, request) => return (sequence, request),
                Got::Opened => {}
                Got::Stale(session, sequence) => panic!("stale: {session} {sequence}"),
            }
        }
    }

    pub(crate) async fn reply(&mut self, sequence: u32, reply: Reply) {
        let frame = reply.to_frame(self.session, sequence).unwrap();
        self.raw(&frame).await;
    }
}

/// A client and the host's end of its channel, the session open.
pub(crate) async fn connected(config: Config) -> (Client, Peer<DuplexStream>) {
    let (guest, host) = tokio::io::duplex(64 * 1024);
    let mut host = Peer::new(host);
    let (client, ()) = tokio::join!(Client::over(guest, config), host.open());
    (client.unwrap(), host)
}

/// A client that has not reached anybody yet, and the other end.
pub(crate) fn unconnected(
    config: Config,
) -> (tokio::task::JoinHandle<Result<Client>>, DuplexStream) {
    let (guest, host) = tokio::io::duplex(64 * 1024);
    (tokio::spawn(Client::over(guest, config)), host)
}
