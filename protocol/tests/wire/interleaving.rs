//! Both sides of the handshake, with losses and restarts in any order.

use proptest::prelude::*;
use reconf_protocol::handshake::MINOR;
use reconf_protocol::{
    GuestHandshake, GuestStep, HostHandshake, HostStep, Kind, SequenceSource, encode,
};

use crate::handshake::{guest, host, ready};
use crate::make::{Counting, confirm, ping};

/// What may happen on a channel, in any order.
#[derive(Debug, Clone, Copy)]
enum Act {
    /// A guest process (re)starts and says hello.
    Hello,
    /// It says hello once more.
    Again,
    /// The guest reads the oldest frame that the host sent.
    Read,
    /// The host reads the oldest frame that the guest sent.
    Serve,
    /// The guest pings, if it has a session.
    Ping,
    /// What the host sent is lost (the port was closed).
    Lose,
    /// `reconfd` restarts.
    Restart,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        1 => Just(Act::Hello),
        1 => Just(Act::Again),
        4 => Just(Act::Read),
        4 => Just(Act::Serve),
        2 => Just(Act::Ping),
        1 => Just(Act::Lose),
        1 => Just(Act::Restart),
    ]
}

/// Both sides and the bytes between them.
struct World {
    host: HostHandshake,
    fresh: Counting,
    guest: GuestHandshake,
    starts: u8,
    sequence: SequenceSource,
    to_host: Vec<Vec<u8>>,
    to_guest: Vec<Vec<u8>>,
}

impl World {
    fn new() -> Self {
        Self {
            host: HostHandshake::new(MINOR),
            fresh: Counting::default(),
            guest: GuestHandshake::new([0; 16], MINOR),
            starts: 200,
            sequence: SequenceSource::default(),
            to_host: Vec::new(),
            to_guest: Vec::new(),
        }
    }

    fn say_hello(&mut self) {
        self.to_host
            .push(encode(Kind::HELLO, 0, 0, &self.guest.hello()).unwrap());
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Hello => {
                self.starts = self.starts.wrapping_add(1);
                self.guest = GuestHandshake::new([self.starts; 16], MINOR);
                self.say_hello();
            }
            Act::Again => self.say_hello(),
            Act::Read if !self.to_guest.is_empty() => self.read(),
            Act::Serve if !self.to_host.is_empty() => self.serve(),
            Act::Ping => {
                if let Some(session) = self.guest.session() {
                    let sequence = self.sequence.draw().unwrap();
                    self.to_host.push(ping(session.id.get(), sequence));
                }
            }
            Act::Lose => self.to_guest.clear(),
            Act::Restart => self.host = HostHandshake::new(MINOR),
            Act::Read | Act::Serve => {}
        }
    }

    fn serve(&mut self) {
        let bytes = self.to_host.remove(0);
        let before = self.host.session();
        match host(&mut self.host, &mut self.fresh, &bytes) {
            HostStep::Welcome(body) => {
                assert_eq!(self.host.session(), before, "a hello alone changes nothing");
                self.to_guest
                    .push(encode(Kind::WELCOME, 0, 0, &body).unwrap());
            }
            HostStep::Opened(session) => {
                assert_ne!(Some(session), before);
                self.to_guest.push(ready(session.id.get()));
            }
            HostStep::Request(session) => assert_eq!(before, Some(session)),
            HostStep::Stale(_) => assert!(before.is_some()),
            HostStep::Discarded => {}
            HostStep::Overrun | HostStep::Misdirected => panic!("guests here behave"),
        }
    }

    fn read(&mut self) {
        let bytes = self.to_guest.remove(0);
        let before = self.guest.session();
        match guest(&mut self.guest, &bytes) {
            GuestStep::Confirm(body) => self.to_host.push(confirm(body.host_nonce)),
            GuestStep::Opened(..) => {
                assert_eq!(before, None);
                self.sequence = SequenceSource::default();
            }
            GuestStep::Reply(_) => panic!("the host answers no pings here"),
            GuestStep::Discarded => assert_eq!(self.guest.session(), before),
        }
    }

    fn settle(&mut self) {
        while !self.to_host.is_empty() || !self.to_guest.is_empty() {
            self.act(Act::Serve);
            self.act(Act::Read);
        }
    }
}

proptest! {
    #[test]
    fn whatever_happened_a_hello_opens_a_session_that_both_sides_share(
        acts in proptest::collection::vec(act(), 0..60),
    ) {
        let mut world = World::new();
        for act in acts {
            world.act(act);
        }
        world.act(Act::Hello);
        world.settle();
        let session = world.guest.session();
        prop_assert!(session.is_some());
        prop_assert_eq!(session, world.host.session());
        world.act(Act::Ping);
        let bytes = world.to_host.remove(0);
        let step = host(&mut world.host, &mut world.fresh, &bytes);
        prop_assert_eq!(Some(step), session.map(HostStep::Request));
    }
}
