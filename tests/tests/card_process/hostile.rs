//! H6: a `reconfd` that is wholly taken over. It may refuse service; it cannot
//! load what nobody signed, and cannot open what was not committed.

use std::os::fd::OwnedFd;
use std::time::Duration;

use daemon::ipc::socket::Socket;
use daemon::ipc::{Content, FromCard, JobId, Outcome, Packet, RegionIndex, TargetPath, ToCard};
use simcard::RegionStats;

use crate::client::{Client, new_job, tag};
use crate::stage::{INTERFACE, Running, Stage, gbs, guest_reaches, seal};

/// A stage whose region 0 runs the adder for tag 1, and what the card says of it.
struct Target {
    stage: Stage,
    _running: Running,
    client: Client,
    before: [RegionStats; 2],
}

impl Target {
    fn new() -> Self {
        let (stage, running, mut client) = Stage::ready();
        client.load(0, &stage.images[0], tag(1)).done();
        let before = [stage.stats(0), stage.stats(1)];
        Self {
            stage,
            _running: running,
            client,
            before,
        }
    }

    /// Nothing was done to the card, and an honest `reconfd` finds everything in order.
    fn unharmed(&self) {
        assert_eq!(self.before, [self.stage.stats(0), self.stage.stats(1)]);
        assert!(guest_reaches(&self.stage.region(0)));
        let client = self.stage.connect();
        assert_eq!(client.report(0).content, Content::Active);
        assert_eq!(client.report(1).content, Content::Blank);
    }

    fn offer(&mut self, region: u16, beside: &OwnedFd, digest: [u8; 32], path: &str) -> Outcome {
        let job = new_job();
        let offer = ToCard::Offer {
            job,
            region: RegionIndex(region),
            digest,
            tag: tag(1),
            target: TargetPath::new(path).unwrap(),
        };
        self.client.say_with(&offer, Some(beside));
        self.client.say(&ToCard::Go { job });
        self.client.end_of(job).0.outcome
    }
}

#[test]
fn h6_bytes_that_can_change_or_are_no_memory() {
    let mut target = Target::new();
    let adder = target.stage.images[0].clone();
    let file = target.stage.path("adder.gbs");
    std::fs::write(&file, &adder.bytes).unwrap();
    let (reader, _writer) = std::io::pipe().unwrap();
    let unsealed = rustix::fs::memfd_create("x", rustix::fs::MemfdFlags::ALLOW_SEALING).unwrap();
    rustix::io::write(&unsealed, &adder.bytes).unwrap();
    let half = rustix::fs::memfd_create("x", rustix::fs::MemfdFlags::ALLOW_SEALING).unwrap();
    rustix::io::write(&half, &adder.bytes).unwrap();
    let seals = rustix::fs::SealFlags::WRITE | rustix::fs::SealFlags::SHRINK;
    rustix::fs::fcntl_add_seals(&half, seals).unwrap();
    let (socket, _other) = Socket::pair().unwrap();
    let socket = std::os::fd::AsFd::as_fd(&socket)
        .try_clone_to_owned()
        .unwrap();
    for beside in [
        std::fs::File::open(&file).unwrap().into(),
        reader.into(),
        unsealed,
        half,
        socket,
    ] {
        let outcome = target.offer(1, &beside, adder.digest(), &adder.path);
        assert_eq!(outcome, Outcome::Refused);
    }
    target.unharmed();
}

#[test]
fn inv5_h6_signed_words_for_other_bytes() {
    let mut target = Target::new();
    let [adder, counter] = [0, 1].map(|at| target.stage.images[at].clone());
    let evil = gbs(INTERFACE, simcard::functions::CIPHER, 64);
    let unsigned = policy::ids::Digest::of(&evil).0;
    for (bytes, digest, path) in [
        // The right digest, other bytes.
        (&evil, adder.digest(), adder.path.as_str()),
        // Their own digest, a signed path.
        (&evil, unsigned, adder.path.as_str()),
        // A path that is not signed, or no path at all.
        (&evil, unsigned, "acme/evil.gbs"),
        (&adder.bytes, adder.digest(), "acme/evil.gbs"),
        (&adder.bytes, adder.digest(), "../repo/acme/adder.gbs"),
        (&adder.bytes, adder.digest(), "/etc/passwd"),
        // A signed image under another's path.
        (&adder.bytes, adder.digest(), counter.path.as_str()),
    ] {
        let outcome = target.offer(1, &seal(bytes), digest, path);
        assert_eq!(outcome, Outcome::Refused, "{path}");
    }
    let outcome = target.offer(7, &adder.sealed(), adder.digest(), &adder.path);
    assert_eq!(outcome, Outcome::Refused, "no such region");
    target.unharmed();
}

#[test]
fn h6_words_out_of_order() {
    let mut target = Target::new();
    let adder = target.stage.images[0].clone();
    let words: [fn(JobId) -> ToCard; 3] = [
        |job| ToCard::Go { job },
        |job| ToCard::Commit { job },
        |job| ToCard::Abort { job },
    ];
    for word in words {
        let job = new_job();
        target.client.say(&word(job));
        target.client.end_of(job).is(Outcome::Violation);
    }
    // A consent to what only waits for its Go.
    let job = new_job();
    let offer = Client::offer_message(job, 1, &adder, tag(1));
    target.client.say_with(&offer, Some(&adder.sealed()));
    target.client.say(&ToCard::Commit { job });
    target.client.end_of(job).is(Outcome::Violation);
    // A second offer for the same region, and a number that was used.
    let other = new_job();
    let second = Client::offer_message(other, 1, &adder, tag(1));
    target.client.say_with(&second, Some(&adder.sealed()));
    target.client.end_of(other).is(Outcome::Busy);
    target.client.say_with(&offer, Some(&adder.sealed()));
    target.client.end_of(job).is(Outcome::Violation);
    target.client.say(&ToCard::Abort { job });
    target.client.end_of(job).is(Outcome::NotCommitted);
    target.unharmed();
}

#[test]
fn h6_a_consent_before_the_card_spoke_is_none() {
    let mut target = Target::new();
    let adder = target.stage.images[0].clone();
    let job = target.client.begin(1, &adder, tag(1));
    target.client.say(&ToCard::Commit { job });
    target.client.end_of(job).is(Outcome::Violation);
    target.client.until(1, Content::Blank);
    assert_eq!(target.stage.stats(1).handovers, 0, "INV1");
}

#[test]
fn h6_packets_that_make_no_sense_end_the_connection() {
    let target = Target::new();
    let good = Packet::from(&ToCard::Go { job: new_job() }).to_bytes();
    let mut foreign = good;
    foreign[0] ^= 1;
    let mut newer = good;
    newer[4] = 2;
    let mut unknown = good;
    unknown[6] = 99;
    let mut ours = good;
    ours[6] = 12;
    let mut padding = good;
    padding[511] = 1;
    for bytes in [foreign, newer, unknown, ours, padding] {
        let mut client = target.stage.connect();
        client.say_bytes(&bytes, None).unwrap();
        assert!(client.hung_up());
    }
    for length in [0usize, 1, 511, 513, 4096] {
        let mut client = target.stage.connect();
        let bytes = vec![0x52; length];
        rustix::net::send(client.socket(), &bytes, rustix::net::SendFlags::NOSIGNAL).unwrap();
        assert!(client.hung_up(), "{length}");
    }
    // A descriptor where none belongs, and none where one does.
    let sealed = seal(b"x");
    let mut client = target.stage.connect();
    client.say_with(&ToCard::Go { job: new_job() }, Some(&sealed));
    assert!(client.hung_up());
    let adder = &target.stage.images[0];
    let mut client = target.stage.connect();
    client.say(&Client::offer_message(new_job(), 1, adder, tag(1)));
    assert!(client.hung_up());
    // Anything before hello.
    let mut client = Client::connect(&target.stage.path("link.sock"));
    client.say(&ToCard::Scrub {
        job: new_job(),
        region: RegionIndex(0),
        keep: None,
    });
    assert!(client.hung_up());
    target.unharmed();
}

#[test]
fn h6_a_flood_ends_the_connection_and_costs_bounded_memory() {
    let target = Target::new();
    let mut client = target.stage.connect();
    let mut sent = 0;
    let hello = Packet::from(&ToCard::Hello).to_bytes();
    while sent < 100_000 && client.say_bytes(&hello, None).is_ok() {
        sent += 1;
    }
    // It is cut off because it does not read, or because it says too much.
    assert!(sent < 100_000);
    assert!(client.hung_up());
    target.unharmed();
}

#[test]
fn h6_a_second_client_replaces_the_first_and_inherits_nothing() {
    let mut target = Target::new();
    let adder = target.stage.images[0].clone();
    let job = target.client.begin(1, &adder, tag(1));
    target.client.written(job).unwrap();
    // The second one knows the job's number, and consents.
    let mut thief = Client::connect(&target.stage.path("link.sock"));
    thief.say(&ToCard::Hello);
    thief.say(&ToCard::Commit { job });
    assert!(target.client.hung_up());
    thief.until(1, Content::Blank);
    assert_eq!(target.stage.stats(1).handovers, 0, "INV1");
}

#[test]
fn h6_another_owners_region_is_neither_reset_nor_taken() {
    let mut target = Target::new();
    let counter = target.stage.images[1].clone();
    target.client.reset(0, tag(2)).is(Outcome::NotScrubbed);
    target
        .client
        .scrub(0, Some(tag(2)))
        .is(Outcome::NotScrubbed);
    target
        .client
        .load(0, &counter, tag(2))
        .is(Outcome::NotScrubbed);
    target.unharmed();
}

#[test]
fn d2_an_offer_whose_connection_ended_is_not_begun_by_the_next() {
    let target = Target::new();
    let adder = &target.stage.images[0];
    let first = target.stage.connect();
    let job = new_job();
    first.say_with(
        &Client::offer_message(job, 1, adder, tag(1)),
        Some(&adder.sealed()),
    );
    std::thread::sleep(Duration::from_millis(200));
    drop(first);
    let mut second = target.stage.connect();
    second.say(&ToCard::Go { job });
    // Its end was nobody's to hear; the word about it is late, not answered.
    second.say(&ToCard::Hello);
    let answer = second.hear().unwrap();
    assert!(matches!(answer, FromCard::Region(_)), "{answer:?}");
    target.unharmed();
}
