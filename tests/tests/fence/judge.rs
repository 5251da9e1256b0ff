//! The fence's word against the oracle's.

use std::collections::BTreeMap;

use bitstream::Container;
use bitstream::device::{Device, FrameSet, RegionFrames};
use bitstream::fence;

use crate::legal::{Legal, Shape, region};
use crate::mutate::{self, Kind};
use crate::oracle::Oracle;
use crate::random::Dice;
use crate::stream::{FAR, Layout, Part, words};

/// The words that a device would get.
fn payload(file: &[u8]) -> Option<Vec<u32>> {
    match bitstream::parse(file) {
        Ok(Container::Xilinx(stream)) => Some(stream.words().iter().collect()),
        _ => None,
    }
}

/// What the fence says of a file: the frames that it writes, or why not.
fn verdict(
    file: &[u8],
    device: Device,
    region: Option<&FrameSet>,
) -> Result<FrameSet, &'static str> {
    let Ok(Container::Xilinx(stream)) = bitstream::parse(file) else {
        return Err("no-container");
    };
    let region = region.map(|region| RegionFrames::Set(region.clone()));
    match fence::check(&stream, Some(device), region.as_ref()) {
        Ok(fenced) => match fenced.frames() {
            RegionFrames::Set(set) => Ok(set.clone()),
            RegionFrames::Blocks(_) => panic!("{device} has a geometry"),
        },
        Err(refusal) => Err(refusal.code()),
    }
}

pub(crate) fn long() -> bool {
    std::env::var_os("RECONF_TEST_LONG").is_some()
}

/// Devices, and what of their streams was measured.
pub(crate) const DEVICES: [(&str, &[Shape]); 7] = [
    ("xc7a35t", &SERIES7),
    ("xc7z020", &SERIES7),
    ("xc7a100t", &SERIES7),
    ("xc7k160t", &[Shape::Plain, Shape::PlainCompressed]),
    ("xck26", &ULTRASCALE_PLUS),
    ("xczu7ev", &ULTRASCALE_PLUS),
    ("xcku5p", &ULTRASCALE_PLUS),
];
const SERIES7: [Shape; 4] = [
    Shape::Plain,
    Shape::ResetCompressed,
    Shape::PlainCompressed,
    Shape::Reset,
];
const ULTRASCALE_PLUS: [Shape; 2] = [Shape::Four, Shape::FourAndMore];

/// A legal stream of any device and shape, for a random region.
pub(crate) fn any_legal(dice: &mut Dice, device: &str, shape: Shape) -> Legal {
    let device = Device::named(device).expect("a device of the tables");
    let geometry = device.geometry().expect("the tests choose such devices");
    let whole = matches!(shape, Shape::Reset | Shape::ResetCompressed);
    let region = region(dice, geometry, whole);
    Legal::new(dice, device, region, shape)
}

/// Legal streams of random regions are accepted in every layout of a file, and
/// fence and oracle name exactly the region's frames.
#[test]
fn legal_streams_write_exactly_their_region() {
    let mut oracle = Oracle::start();
    let mut dice = Dice::new(1);
    for _ in 0..if long() { 100 } else { 4 } {
        for (device, shapes) in DEVICES {
            for shape in shapes {
                let legal = any_legal(&mut dice, device, *shape);
                let words = words(&legal.parts);
                let of = format!(
                    "{shape:?} of {device}, {:?}",
                    legal.region.to_lines(legal.geometry)
                );
                for layout in Layout::ALL {
                    let file = layout.file(&words);
                    let said = verdict(&file, legal.device, Some(&legal.region));
                    assert_eq!(said.as_ref(), Ok(&legal.region), "{layout:?}: {of}");
                }
                let deeds = oracle.run(legal.device, &words);
                let guilt = deeds.against(legal.device, &legal.region);
                assert!(guilt.is_empty(), "{guilt:?}: {of}");
                assert_eq!(deeds.written.len() as u64, legal.region.len(), "{of}");
                assert!(deeds.crc_checks > 0, "{of}");
            }
        }
    }
}

/// How many of one kind of mutants there were, and what became of them.
#[derive(Debug, Default)]
struct Tally {
    tried: u32,
    accepted: u32,
    /// Refused ones that the oracle was asked about too.
    asked: u32,
    /// Of these, how many would have done harm.
    guilty: u32,
}

/// A run over many mutants.
struct Trial {
    oracle: Oracle,
    tallies: BTreeMap<Kind, Tally>,
    /// How often each code of a refusal came.
    codes: BTreeMap<&'static str, u32>,
    /// What was accepted and would do harm.
    wrong: Vec<String>,
    count: u32,
}

/// Of this many refused mutants the oracle is asked about one.
const SAMPLE: u32 = 16;

impl Trial {
    fn new() -> Trial {
        Trial {
            oracle: Oracle::start(),
            tallies: BTreeMap::new(),
            codes: BTreeMap::new(),
            wrong: Vec::new(),
            count: 0,
        }
    }

    fn judge(&mut self, kind: Kind, legal: &Legal, words: &[u32]) {
        let tally = self.tallies.entry(kind).or_default();
        tally.tried += 1;
        self.count += 1;
        let file = Layout::Big.file(words);
        let said = verdict(&file, legal.device, Some(&legal.region));
        if let Err(code) = said {
            *self.codes.entry(code).or_default() += 1;
            if !self.count.is_multiple_of(SAMPLE) {
                return;
            }
        }
        let sent = payload(&file).unwrap_or_else(|| words.to_vec());
        let deeds = self.oracle.run(legal.device, &sent);
        let guilt = deeds.against(legal.device, &legal.region);
        if let Ok(frames) = said {
            tally.accepted += 1;
            if !guilt.is_empty() || deeds.written.len() as u64 != frames.len() {
                let first: Vec<&String> = guilt.iter().take(4).collect();
                let device = legal.device;
                self.wrong.push(format!("{kind:?} of {device}: {first:?}"));
            }
        } else {
            tally.asked += 1;
            tally.guilty += u32::from(!guilt.is_empty());
        }
    }

    fn print(&self) {
        println!(
            "what was changed: tried, accepted, refused; of the refused: asked about, harmful"
        );
        for (kind, tally) in &self.tallies {
            let Tally {
                tried,
                accepted,
                asked,
                guilty,
            } = *tally;
            let refused = tried - accepted;
            let name = format!("{kind:?}");
            println!("{name:12} {tried:7} {accepted:7} {refused:7} {asked:7} {guilty:7}");
        }
        println!("{:?}", self.codes);
    }
}

/// No mutant is accepted that does harm; each kind is really tried; and what
/// is refused is refused for the reasons that there are.
#[test]
fn b4_b5_no_mutant_that_does_harm_is_accepted() {
    let (seed, rounds) = if long() { (0x10e6, 60) } else { (7, 1) };
    let mut trial = Trial::new();
    let mut dice = Dice::new(seed);
    for _ in 0..rounds {
        for (device, shapes) in DEVICES {
            for shape in shapes {
                let legal = any_legal(&mut dice, device, *shape);
                let foreign = any_legal(&mut dice, device, *shape);
                // Long streams take long, also here.
                let share = 1 + words(&legal.parts).len() / 8192;
                mutate::each(&mut dice, &legal, &foreign, share, |kind, words| {
                    trial.judge(kind, &legal, words);
                });
            }
        }
    }
    trial.print();
    let wrong = &trial.wrong;
    assert!(
        wrong.is_empty(),
        "{} accepted and harmful:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    for kind in Kind::ALL {
        let tally = trial.tallies.get(&kind);
        let refused = tally.map_or(0, |tally| tally.tried - tally.accepted);
        assert!(refused > 10, "{kind:?} was hardly tried");
    }
    let guilty: u32 = trial.tallies.values().map(|tally| tally.guilty).sum();
    assert!(guilty > 50, "the oracle sees no harm in anything");
    for code in CODES {
        assert!(
            trial.codes.contains_key(code),
            "nothing was refused as {code}"
        );
    }
}

/// What mutants of legal streams must at least be refused for.
const CODES: [&str; 27] = [
    "word-outside-sync",
    "unfinished",
    "not-a-packet",
    "read-packet",
    "reserved-operation",
    "forbidden-register",
    "forbidden-command",
    "forbidden-value",
    "word-count",
    "wrong-device",
    "before-idcode",
    "out-of-order",
    "crc-mismatch",
    "crc-missing",
    "bad-frame-address",
    "frame-length",
    "no-such-frame",
    "outside-region",
    "pad-not-empty",
    "left-in-buffer",
    "left-set",
    "left-stopped",
    "mask-content",
    "mask-incomplete",
    "restores-outside",
    "masks-differ",
    "unmeasured-arrangement",
];

/// The oracle is not blind: where the check is weakened, by holding a stream
/// against no region at all, the oracle objects in its place.
#[test]
fn the_oracle_objects_where_the_fence_is_weakened() {
    let mut oracle = Oracle::start();
    let mut dice = Dice::new(3);
    let mut objected = 0;
    for (device, shapes) in DEVICES {
        for shape in shapes {
            let theirs = any_legal(&mut dice, device, *shape);
            let mine = any_legal(&mut dice, device, *shape).region;
            let words = words(&theirs.parts);
            let file = Layout::Big.file(&words);
            assert!(verdict(&file, theirs.device, None).is_ok());
            if theirs.region.is_subset(&mine) {
                continue;
            }
            let strict = verdict(&file, theirs.device, Some(&mine));
            assert!(
                matches!(strict, Err("outside-region" | "restores-outside")),
                "{strict:?}"
            );
            let deeds = oracle.run(theirs.device, &words);
            assert!(!deeds.against(theirs.device, &mine).is_empty());
            objected += 1;
        }
    }
    assert!(objected > 10);
}

/// Every kind of address that the device does not have, with a frame for it.
#[test]
fn an_address_where_nothing_is_is_refused() {
    let mut dice = Dice::new(5);
    for device in ["xc7a35t", "xck26"] {
        let shape = if device == "xck26" {
            Shape::Four
        } else {
            Shape::Plain
        };
        let legal = any_legal(&mut dice, device, shape);
        let last = legal
            .parts
            .iter()
            .position(|part| part.register() == Some(FAR))
            .expect("it writes frames");
        let park = legal.device.family().park();
        let mut parts = legal.parts.clone();
        for far in mutate::nowhere(&legal) {
            if far == park || far == 0x0100_0000 {
                continue;
            }
            parts[last] = Part::write(FAR, far);
            let file = Layout::Big.file(&words(&parts));
            let said = verdict(&file, legal.device, None);
            assert!(said.is_err(), "{device}: {far:08x}");
        }
    }
}
