//! Any sequence of jobs, faults, restarts and power cuts: what may never be
//! is never, and in the end everything works again.

use daemon::ipc::{Content, Outcome, RegionIndex, ToCard};
use proptest::prelude::*;
use simcard::{Kind, PrError, Stage as At, Times};

use crate::client::{Client, new_job, tag};
use crate::stage::{Running, Stage, guest_reaches};

/// What a test does next.
#[derive(Debug, Clone, Copy)]
enum Act {
    Load {
        region: u16,
        image: usize,
        tag: u8,
        consent: bool,
    },
    Scrub {
        region: u16,
        keep: Option<u8>,
    },
    Reset {
        region: u16,
        tag: u8,
    },
    Reopen {
        region: u16,
        tag: u8,
        image: usize,
    },
    Fault(Kind),
    Restart,
    Reconnect,
    PowerCycle,
}

fn act() -> impl Strategy<Value = Act> {
    let region = 0u16..2;
    let owner = 1u8..3;
    let image = 0usize..2;
    let fault = prop_oneof![
        Just(Kind::Hang),
        Just(Kind::WrongIdentity),
        Just(Kind::AccessIgnored),
        Just(Kind::CreditsStuck { credit: Some(1) }),
        Just(Kind::PrError {
            bits: PrError::Crc.bit(),
            at: At::Complete
        }),
    ];
    prop_oneof![
        8 => (region.clone(), image.clone(), owner.clone(), any::<bool>())
            .prop_map(|(region, image, tag, consent)| Act::Load { region, image, tag, consent }),
        4 => (region.clone(), proptest::option::of(owner.clone()))
            .prop_map(|(region, keep)| Act::Scrub { region, keep }),
        1 => (region.clone(), owner.clone()).prop_map(|(region, tag)| Act::Reset { region, tag }),
        2 => (region, owner, image)
            .prop_map(|(region, tag, image)| Act::Reopen { region, tag, image }),
        2 => fault.prop_map(Act::Fault),
        2 => Just(Act::Restart),
        1 => Just(Act::Reconnect),
        1 => Just(Act::PowerCycle),
    ]
}

/// What is known of a region from outside.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    /// Whose logic may be in it, since it was last shown blank.
    tenant: Option<u8>,
    /// The function that was last consented to.
    consented: Option<uuid::Uuid>,
}

struct World {
    stage: Stage,
    running: Option<Running>,
    client: Client,
    known: [Known; 2],
}

impl World {
    fn new() -> Self {
        let limits = "wait_max_ms = 100\ncommit_wait_ms = 50\nscrub_tries = 2";
        let (stage, running, client) = Stage::with_filler(limits, 256).into_ready();
        Self {
            stage,
            running: Some(running),
            client,
            known: [Known::default(); 2],
        }
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Load {
                region,
                image,
                tag: owner,
                consent,
            } => self.load(region, image, owner, consent),
            Act::Scrub { region, keep } => {
                let _outcome = self.client.scrub(region, keep.map(tag)).0.outcome;
            }
            Act::Reset { region, tag: owner } => {
                let _outcome = self.client.reset(region, tag(owner)).0.outcome;
            }
            Act::Reopen {
                region,
                tag: owner,
                image,
            } => {
                let digest = self.stage.images[image].digest();
                let end = self.client.reopen(region, tag(owner), digest);
                if end.0.outcome == Outcome::Done {
                    let known = self.known[usize::from(region)];
                    assert_eq!(known.tenant, Some(owner));
                    assert_eq!(known.consented, Some(self.stage.images[image].function));
                }
            }
            Act::Fault(kind) => self.stage.inject(kind, Times::Once),
            Act::Restart => {
                self.running.take().unwrap().stop().unwrap();
                self.running = Some(self.stage.start());
                self.client = self.stage.connect();
            }
            Act::Reconnect => self.client = self.stage.connect(),
            Act::PowerCycle => {
                // A host and its card lose power together.
                self.running.take().unwrap().stop().unwrap();
                self.stage.card.as_ref().unwrap().card().power_cycle();
                self.running = Some(self.stage.start());
                self.client = self.stage.connect();
            }
        }
    }

    fn load(&mut self, region: u16, image: usize, owner: u8, consent: bool) {
        let image = self.stage.images[image].clone();
        let job = self.client.begin(region, &image, tag(owner));
        if self.client.written(job).is_err() {
            return;
        }
        let known = &mut self.known[usize::from(region)];
        // INV2: nobody else's logic was there since the last scrub.
        assert!(known.tenant.is_none_or(|tenant| tenant == owner), "INV2");
        known.tenant = Some(owner);
        known.consented = consent.then_some(image.function);
        let last = if consent {
            ToCard::Commit { job }
        } else {
            ToCard::Abort { job }
        };
        self.client.say(&last);
        let end = self.client.end_of(job);
        assert!(consent || end.0.outcome != Outcome::Done, "INV1");
    }

    /// What must hold after each act.
    fn check(&mut self) {
        for region in 0..2 {
            let card = self.stage.region(region);
            let known = &mut self.known[region];
            if card.name == "blank" || card.function.is_none() {
                known.tenant = None;
                known.consented = None;
            }
            // INV1: whoever is reached was consented to.
            if guest_reaches(&card) && card.function.is_some() {
                assert_eq!(card.function, known.consented, "INV1: {card:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn inv1_inv2_in_any_order_of_events(acts in proptest::collection::vec(act(), 1..14)) {
        let mut world = World::new();
        for act in acts {
            world.act(act);
            world.check();
        }
        // And nothing is stuck: an operator's scrub, and everyone may load.
        world.stage.clear_faults();
        for region in 0..2 {
            while world.client.report(region).content != Content::Blank {
                let _outcome = world.client.scrub(region, None).0.outcome;
            }
            world.client.scrub(region, None).done();
            let image = world.stage.images[0].clone();
            world.client.load(region, &image, tag(3)).done();
        }
    }
}

#[test]
fn d12_a_hundred_quick_reconnects_disturb_nothing() {
    let (stage, _running, mut client) = Stage::ready();
    client.load(0, &stage.images[0], tag(1)).done();
    let before = (stage.stats(0), stage.region(0));
    for turn in 0..100 {
        let client = stage.connect();
        if turn % 3 == 0 {
            client.say(&ToCard::Abort { job: new_job() });
        }
        drop(client);
    }
    let mut client = stage.connect();
    assert_eq!(client.report(0).content, Content::Active);
    assert_eq!(before, (stage.stats(0), stage.region(0)));
    let job = new_job();
    client.say(&ToCard::Reset {
        job,
        region: RegionIndex(0),
        tag: tag(1),
    });
    client.end_of(job).done();
}
