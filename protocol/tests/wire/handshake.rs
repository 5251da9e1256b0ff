//! The two state machines, alone and against each other.

use reconf_protocol::handshake::{JUNK_BUDGET, MINOR, NotRising, Why};
use reconf_protocol::message::{Hello, Pong, Ready, Slot, Welcome};
use reconf_protocol::{
    GuestHandshake, GuestStep, HostHandshake, HostStep, Kind, Nonce, Reply, Scanned, Scanner,
    SequenceCheck, SequenceSource, Session, SessionId, encode,
};

use crate::make::{Counting, confirm, hello, ping};

/// One whole frame into the host.
pub(crate) fn host(handshake: &mut HostHandshake, fresh: &mut Counting, bytes: &[u8]) -> HostStep {
    let mut scanner = Scanner::host();
    let mut input = bytes;
    match scanner.next(&mut input) {
        Some(Scanned::Frame(frame)) => handshake.on_frame(&frame, fresh),
        other => panic!("not a frame: {other:?}"),
    }
}

/// One whole frame into the guest.
pub(crate) fn guest(handshake: &mut GuestHandshake, bytes: &[u8]) -> GuestStep {
    let mut scanner = Scanner::guest();
    let mut input = bytes;
    match scanner.next(&mut input) {
        Some(Scanned::Frame(frame)) => handshake.on_frame(&frame),
        other => panic!("not a frame: {other:?}"),
    }
}

/// Hello and confirm, as a guest that does everything right.
fn open(handshake: &mut HostHandshake, fresh: &mut Counting, nonce: Nonce) -> Session {
    let HostStep::Welcome(welcome) = host(handshake, fresh, &hello(nonce)) else {
        panic!("no welcome")
    };
    assert_eq!(welcome.guest_nonce, nonce);
    match host(handshake, fresh, &confirm(welcome.host_nonce)) {
        HostStep::Opened(session) => session,
        other => panic!("not opened: {other:?}"),
    }
}

fn welcome(guest_nonce: Nonce, host_nonce: Nonce, minor: u16) -> Vec<u8> {
    encode(
        Kind::WELCOME,
        0,
        0,
        &Welcome {
            guest_nonce,
            host_nonce,
            minor,
        },
    )
    .unwrap()
}

pub(crate) fn ready(session: u64) -> Vec<u8> {
    let ready = Ready {
        slots: vec![Slot(0)],
        max_control: 4096,
        window: 8,
    };
    encode(Kind::READY, session, 0, &ready).unwrap()
}

#[test]
fn nothing_is_answered_before_the_echo() {
    let (mut machine, mut fresh) = (HostHandshake::new(MINOR), Counting::default());
    for bytes in [
        ping(0, 1),
        ping(7, 1),
        confirm([0; 16]),
        welcome([1; 16], [2; 16], 0),
        ready(3),
    ] {
        assert_eq!(host(&mut machine, &mut fresh, &bytes), HostStep::Discarded);
    }
    assert_eq!(fresh.0, 0, "nor is a random number drawn");
    let step = host(&mut machine, &mut fresh, &hello([1; 16]));
    assert!(matches!(step, HostStep::Welcome(_)));
    assert_eq!(
        host(&mut machine, &mut fresh, &ping(0, 1)),
        HostStep::Discarded
    );
    assert_eq!(machine.session(), None);
}

#[test]
fn the_minor_version_is_the_lower_one() {
    for (ours, theirs, agreed) in [(3, 1, 1), (1, 3, 1), (2, 2, 2), (0, u16::MAX, 0)] {
        let (mut machine, mut fresh) = (HostHandshake::new(ours), Counting::default());
        let bytes = encode(
            Kind::HELLO,
            0,
            0,
            &Hello {
                nonce: [1; 16],
                minor: theirs,
            },
        )
        .unwrap();
        let HostStep::Welcome(sent) = host(&mut machine, &mut fresh, &bytes) else {
            panic!("no welcome")
        };
        assert_eq!(sent.minor, agreed);
        match host(&mut machine, &mut fresh, &confirm(sent.host_nonce)) {
            HostStep::Opened(session) => assert_eq!(session.minor, agreed),
            other => panic!("not opened: {other:?}"),
        }
    }
}

#[test]
fn an_old_session_lives_until_the_new_one_is_confirmed() {
    let (mut machine, mut fresh) = (HostHandshake::new(MINOR), Counting::default());
    let first = open(&mut machine, &mut fresh, [1; 16]);
    let HostStep::Welcome(offer) = host(&mut machine, &mut fresh, &hello([2; 16])) else {
        panic!("no welcome")
    };
    let step = host(&mut machine, &mut fresh, &ping(first.id.get(), 1));
    assert_eq!(step, HostStep::Request(first));
    let HostStep::Opened(second) = host(&mut machine, &mut fresh, &confirm(offer.host_nonce))
    else {
        panic!("not opened")
    };
    assert_ne!(first.id, second.id);
    let step = host(&mut machine, &mut fresh, &ping(first.id.get(), 2));
    assert_eq!(step, HostStep::Stale(Why::OtherSession));
    let step = host(&mut machine, &mut fresh, &ping(second.id.get(), 1));
    assert_eq!(step, HostStep::Request(second));
}

#[test]
fn only_the_last_welcome_can_be_confirmed_and_only_once() {
    let (mut machine, mut fresh) = (HostHandshake::new(MINOR), Counting::default());
    let nonces: Vec<Nonce> = (0..2)
        .map(|_| match host(&mut machine, &mut fresh, &hello([1; 16])) {
            HostStep::Welcome(welcome) => welcome.host_nonce,
            other => panic!("no welcome: {other:?}"),
        })
        .collect();
    assert_eq!(
        host(&mut machine, &mut fresh, &confirm(nonces[0])),
        HostStep::Discarded
    );
    let step = host(&mut machine, &mut fresh, &confirm(nonces[1]));
    assert!(matches!(step, HostStep::Opened(_)));
    assert_eq!(
        host(&mut machine, &mut fresh, &confirm(nonces[1])),
        HostStep::Discarded
    );
}

#[test]
fn g7_a_recorded_session_opens_nothing_and_repeats_are_stale() {
    let (mut machine, mut fresh) = (HostHandshake::new(MINOR), Counting::default());
    let HostStep::Welcome(offer) = host(&mut machine, &mut fresh, &hello([1; 16])) else {
        panic!("no welcome")
    };
    let HostStep::Opened(session) = host(&mut machine, &mut fresh, &confirm(offer.host_nonce))
    else {
        panic!("not opened")
    };
    let id = session.id.get();
    let recording = [
        hello([1; 16]),
        confirm(offer.host_nonce),
        ping(id, 1),
        ping(id, 5),
    ];
    for (sequence, step) in [
        (1, HostStep::Request(session)),
        (
            1,
            HostStep::Stale(Why::NotRising(NotRising { last: 1, got: 1 })),
        ),
        (5, HostStep::Request(session)),
        (
            4,
            HostStep::Stale(Why::NotRising(NotRising { last: 5, got: 4 })),
        ),
        (
            0,
            HostStep::Stale(Why::NotRising(NotRising { last: 5, got: 0 })),
        ),
        (u32::MAX, HostStep::Request(session)),
    ] {
        assert_eq!(host(&mut machine, &mut fresh, &ping(id, sequence)), step);
    }
    // On the same channel: the old session lives on, and nothing new opens.
    for bytes in &recording {
        let step = host(&mut machine, &mut fresh, bytes);
        assert!(
            !matches!(step, HostStep::Opened(_) | HostStep::Request(_)),
            "{step:?}"
        );
    }
    // After a restart of the host, with other random numbers.
    let (mut machine, mut fresh) = (HostHandshake::new(MINOR), Counting(100));
    for bytes in &recording[1..] {
        assert_eq!(host(&mut machine, &mut fresh, bytes), HostStep::Discarded);
    }
    for bytes in &recording {
        let step = host(&mut machine, &mut fresh, bytes);
        assert!(
            matches!(step, HostStep::Welcome(_) | HostStep::Discarded),
            "{step:?}"
        );
    }
    assert_eq!(machine.session(), None);
}

#[test]
fn a_session_never_gets_the_number_of_the_one_before_nor_zero() {
    struct Stuck(u64);
    impl reconf_protocol::Fresh for Stuck {
        fn nonce(&mut self) -> Nonce {
            [4; 16]
        }
        fn session_id(&mut self) -> u64 {
            self.0
        }
    }
    for stuck in [0, 1, 5, u64::MAX] {
        let mut machine = HostHandshake::new(MINOR);
        let mut last = None;
        for _ in 0..4 {
            let mut scanner = Scanner::host();
            let stream = [hello([1; 16]), confirm([4; 16])].concat();
            let mut input = stream.as_slice();
            while let Some(found) = scanner.next(&mut input) {
                let Scanned::Frame(frame) = found else {
                    panic!("not a frame")
                };
                machine.on_frame(&frame, &mut Stuck(stuck));
            }
            let session = machine.session();
            assert!(session.is_some() && session != last, "{stuck}: {session:?}");
            last = session;
        }
    }
}

#[test]
fn g4_junk_counts_once_for_each_budget() {
    let (mut machine, mut fresh) = (HostHandshake::new(MINOR), Counting::default());
    assert_eq!(machine.on_discarded(JUNK_BUDGET), HostStep::Discarded);
    assert_eq!(machine.on_discarded(1), HostStep::Overrun);
    assert_eq!(
        machine.on_discarded(JUNK_BUDGET),
        HostStep::Discarded,
        "the budget began anew"
    );
    // Frames before the echo cost what they weigh.
    let bytes = ping(0, 1);
    assert_eq!(host(&mut machine, &mut fresh, &bytes), HostStep::Overrun);
    let fit = JUNK_BUDGET / u64::try_from(bytes.len()).unwrap();
    for _ in 0..fit {
        assert_eq!(host(&mut machine, &mut fresh, &bytes), HostStep::Discarded);
    }
    assert_eq!(host(&mut machine, &mut fresh, &bytes), HostStep::Overrun);
    assert_eq!(machine.on_discarded(u64::MAX), HostStep::Overrun);
    // A session that opens starts with a whole budget.
    assert_eq!(machine.on_discarded(JUNK_BUDGET), HostStep::Discarded);
    open(&mut machine, &mut fresh, [1; 16]);
    assert_eq!(machine.on_discarded(JUNK_BUDGET), HostStep::Discarded);
}

#[test]
fn an_echoing_channel_is_never_answered() {
    let (mut machine, mut fresh) = (HostHandshake::new(MINOR), Counting::default());
    let session = open(&mut machine, &mut fresh, [1; 16]);
    let id = session.id.get();
    let pong = Reply::Ping(Pong { payload: 1 }).to_frame(id, 1).unwrap();
    let error = Reply::Error(reconf_protocol::message::ErrorReply::denied());
    for bytes in [
        pong,
        error.to_frame(id, 1).unwrap(),
        error.to_frame(9, 1).unwrap(),
        ready(id),
    ] {
        assert_eq!(
            host(&mut machine, &mut fresh, &bytes),
            HostStep::Misdirected
        );
    }
}

#[test]
fn handshake_frames_inside_a_session_are_no_handshake() {
    let (mut machine, mut fresh) = (HostHandshake::new(MINOR), Counting::default());
    let session = open(&mut machine, &mut fresh, [1; 16]);
    let bytes = encode(
        Kind::HELLO,
        99,
        3,
        &Hello {
            nonce: [2; 16],
            minor: 0,
        },
    )
    .unwrap();
    let step = host(&mut machine, &mut fresh, &bytes);
    assert_eq!(step, HostStep::Stale(Why::OtherSession));
    let step = host(&mut machine, &mut fresh, &confirm([9; 16]));
    assert_eq!(step, HostStep::Discarded);
    assert_eq!(machine.session(), Some(session));
}

#[test]
fn the_guest_believes_only_its_own_nonce() {
    let mut machine = GuestHandshake::new([1; 16], 2);
    for bytes in [
        welcome([2; 16], [3; 16], 0),
        welcome([1; 16], [3; 16], 3),
        encode(
            Kind::WELCOME,
            5,
            0,
            &Welcome {
                guest_nonce: [1; 16],
                host_nonce: [3; 16],
                minor: 0,
            },
        )
        .unwrap(),
        ready(8),
        Reply::Ping(Pong { payload: 1 }).to_frame(8, 1).unwrap(),
        hello([1; 16]),
    ] {
        assert_eq!(guest(&mut machine, &bytes), GuestStep::Discarded);
    }
    let GuestStep::Confirm(sent) = guest(&mut machine, &welcome([1; 16], [3; 16], 1)) else {
        panic!("no confirm")
    };
    assert_eq!(sent.host_nonce, [3; 16]);
    assert_eq!(guest(&mut machine, &ready(0)), GuestStep::Discarded);
    assert_eq!(machine.session(), None);
    let GuestStep::Opened(session, body) = guest(&mut machine, &ready(8)) else {
        panic!("not opened")
    };
    assert_eq!((session.id.get(), session.minor, body.window), (8, 1, 8));
}

#[test]
fn vser_03_replies_of_another_session_are_dropped() {
    let mut machine = GuestHandshake::new([1; 16], MINOR);
    guest(&mut machine, &welcome([1; 16], [3; 16], 0));
    guest(&mut machine, &ready(8));
    let session = Session {
        id: SessionId::new(8).unwrap(),
        minor: 0,
    };
    let pong = |id| Reply::Ping(Pong { payload: 1 }).to_frame(id, 1).unwrap();
    assert_eq!(guest(&mut machine, &pong(7)), GuestStep::Discarded);
    assert_eq!(guest(&mut machine, &pong(0)), GuestStep::Discarded);
    assert_eq!(guest(&mut machine, &pong(8)), GuestStep::Reply(session));
    assert_eq!(
        guest(&mut machine, &welcome([1; 16], [4; 16], 0)),
        GuestStep::Discarded
    );
    assert_eq!(machine.session(), Some(session));
}

#[test]
fn vser_04_a_hello_sent_twice_opens_one_session() {
    let (mut host_machine, mut fresh) = (HostHandshake::new(MINOR), Counting::default());
    let mut guest_machine = GuestHandshake::new([1; 16], MINOR);
    let welcomes: Vec<Vec<u8>> = (0..2)
        .map(
            |_| match host(&mut host_machine, &mut fresh, &hello([1; 16])) {
                HostStep::Welcome(body) => encode(Kind::WELCOME, 0, 0, &body).unwrap(),
                other => panic!("no welcome: {other:?}"),
            },
        )
        .collect();
    let mut opened = 0;
    for bytes in welcomes {
        let GuestStep::Confirm(body) = guest(&mut guest_machine, &bytes) else {
            panic!("no confirm")
        };
        let step = host(&mut host_machine, &mut fresh, &confirm(body.host_nonce));
        if let HostStep::Opened(session) = step {
            opened += 1;
            let step = guest(&mut guest_machine, &ready(session.id.get()));
            assert!(matches!(step, GuestStep::Opened(..)));
        }
    }
    assert_eq!(opened, 1);
    assert_eq!(guest_machine.session(), host_machine.session());
}

#[test]
fn sequence_numbers_end() {
    let mut source = SequenceSource::default();
    let mut check = SequenceCheck::default();
    for expected in 1..=3 {
        let drawn = source.draw().unwrap();
        assert_eq!(drawn, expected);
        assert_eq!(check.accept(drawn), Ok(()));
    }
    assert_eq!(check.accept(u32::MAX), Ok(()));
    assert!(check.accept(u32::MAX).is_err());
}
