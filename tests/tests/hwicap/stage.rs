//! One AMD card with two regions and two tenants, and what its frames tell.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bitstream::device::{Device, FrameIndex, RegionFrames};
use reconf_tests::world::{
    CardKind, CardSetup, HwicapRegion, HwicapSetup, ImageSetup, Partial, Setup, VmSetup, World,
};
use serde_json::{Value, json};
use simcard::functions::BLANK;
use uuid::Uuid;

/// Alice has the region `north`, Bob `south`.
pub(crate) const ALICE: usize = 0;
pub(crate) const BOB: usize = 1;

pub(crate) const NORTH: Uuid = Uuid::from_u128(0x4a1b_3f0e_52c7_4c1e_9a55_0d6c_e2a7_b801);
pub(crate) const SOUTH: Uuid = Uuid::from_u128(0x4a1b_3f0e_52c7_4c1e_9a55_0d6c_e2a7_b802);

/// The answer of a card's process is waited for this long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A region: what the shell file says of it, and its blank image.
pub(crate) struct Site {
    pub(crate) frames: Vec<String>,
    pub(crate) blank: Vec<u8>,
}

impl Site {
    /// Named by hand, with a made blank image.
    pub(crate) fn made(device: Device, frames: &[&str]) -> Result<Self> {
        let region = RegionFrames::parse(device, frames)?;
        Ok(Self {
            blank: Partial::build(device, &region, BLANK, 0)?.to_bytes(),
            frames: region.to_lines(device),
        })
    }

    /// Learnt from a genuine partial, its blank image made of it too.
    pub(crate) fn learnt(genuine: &[u8]) -> Result<Self> {
        let (device, region) = fenced(genuine)?;
        Ok(Self {
            frames: region.to_lines(device),
            blank: Partial::read(genuine)?.blank()?.to_bytes(),
        })
    }
}

/// What a file writes by the fence's word: without a region everything is accepted that no region
/// has to be known for.
pub(crate) fn fenced(file: &[u8]) -> Result<(Device, RegionFrames)> {
    let bitstream::Container::Xilinx(stream) = bitstream::parse(file)? else {
        anyhow::bail!("no configuration stream");
    };
    let fenced = bitstream::fence::check(&stream, None, None)?;
    Ok((fenced.device(), fenced.frames().clone()))
}

/// A file of the shared folder; `None`, aloud, where the folder is missing.
#[expect(clippy::print_stderr, reason = "a test that skips says so")]
pub(crate) fn shared(name: &str) -> Option<Vec<u8>> {
    let path = format!(
        "{}/../../shared/bitstreams/{name}",
        env!("CARGO_MANIFEST_DIR")
    );
    let file = std::fs::read(&path).ok();
    if file.is_none() {
        eprintln!("SKIPPED: no {path}");
    }
    file
}

pub(crate) fn z7020() -> Result<Device> {
    Device::named("xc7z020").context("the device")
}

/// Two regions of an XC7Z020, one with memory, over both halves.
pub(crate) fn sites() -> Result<[Site; 2]> {
    let device = z7020()?;
    let north = [
        "logic top row 0 columns 34-35",
        "logic bottom row 0 columns 34-43",
        "bram bottom row 0 column 3",
    ];
    Ok([
        Site::made(device, &north)?,
        Site::made(device, &["logic bottom row 1 columns 48-51"])?,
    ])
}

/// One card, two tenants with a region each. `genuine` are files that the card cannot read a
/// function in: they are known to it by their digest.
pub(crate) fn setup(
    device: &str,
    sites: [Site; 2],
    images: Vec<ImageSetup>,
    known: &[(Vec<u8>, Uuid)],
) -> Result<Setup> {
    let mut table = String::new();
    for (file, function) in known {
        let digest = policy::ids::Digest::of(&Partial::read(file)?.payload());
        writeln!(table, "{} {function}", digest.hex())?;
    }
    let [north, south] = sites;
    let region = |interface_id, site: Site| HwicapRegion {
        interface_id,
        frames: site.frames,
        blank: site.blank,
    };
    Ok(Setup {
        cards: vec![CardSetup {
            table,
            kind: CardKind::Hwicap(HwicapSetup {
                device: device.to_owned(),
                regions: [region(NORTH, north), region(SOUTH, south)],
            }),
            ..CardSetup::default()
        }],
        vms: vec![
            VmSetup::new("alice", "blue", 0, 0),
            VmSetup::new("bob", "green", 0, 1),
        ],
        images,
        grants: vec![("blue", &["acme/*"]), ("green", &["acme/*"])],
        ..Setup::default()
    })
}

/// An image for a region of [`sites`], made.
pub(crate) fn made(
    name: &'static str,
    function: Uuid,
    interface: Uuid,
    frames: &[String],
) -> Result<ImageSetup> {
    let device = z7020()?;
    let region = RegionFrames::parse(device, frames)?;
    let file = Partial::build(device, &region, function, 77)?.to_bytes();
    Ok(ImageSetup::bit(name, function, interface, file))
}

/// The frames that were written on the card since it was told to forget, as addresses.
pub(crate) fn written(world: &World) -> Result<BTreeSet<u32>> {
    let (device, mut far) = (device_of(world)?, BTreeSet::new());
    let geometry = device.geometry().context("the device's geometry")?;
    for range in world.card(0)?.written_frames()? {
        for index in range.first..range.first.saturating_add(range.count) {
            let address = geometry.address(FrameIndex(index));
            far.insert(address.context("a frame of the device")?.raw());
        }
        // The card counts by a table of its own: both must mean the same frames.
        ensure!(
            range.ends()?.iter().all(|end| far.contains(end)),
            "{range:?}"
        );
    }
    Ok(far)
}

/// Words that the card's configuration logic took so far, from whomever.
pub(crate) fn words(world: &World) -> Result<u64> {
    world.card(0)?.hwicap_count("words")
}

pub(crate) fn device_of(world: &World) -> Result<Device> {
    match &world.setup.cards.first().context("a card")?.kind {
        CardKind::Hwicap(design) => Device::named(&design.device).context("the device"),
        CardKind::Dfl => anyhow::bail!("a card without frames"),
    }
}

/// A set of frames, as addresses.
pub(crate) fn addresses(device: Device, region: &RegionFrames) -> Result<BTreeSet<u32>> {
    let RegionFrames::Set(set) = region else {
        anyhow::bail!("a set of frames");
    };
    let geometry = device.geometry().context("the device's geometry")?;
    set.iter()
        .map(|index| Ok(geometry.address(index).context("a frame")?.raw()))
        .collect()
}

/// Loads, and compares what the card wrote with the fence's word.
pub(crate) fn load_and_compare(
    world: &World,
    vm: usize,
    image: &str,
    file: &[u8],
    function: Uuid,
) -> Result<()> {
    world.card(0)?.forget_frames()?;
    let loaded = world.must(vm, &["load", image])?;
    ensure!(
        at(&loaded, "/job/result/status") == &json!("ok"),
        "{loaded}"
    );
    let (device, region) = fenced(file)?;
    let (want, have) = (addresses(device, &region)?, written(world)?);
    let (missing, excess): (Vec<_>, Vec<_>) = (
        want.difference(&have).collect(),
        have.difference(&want).collect(),
    );
    ensure!(
        missing.is_empty() && excess.is_empty(),
        "not written {missing:x?}, beside it {excess:x?}"
    );
    ensure!(world.user_function(vm, 0)?.id()? == Some(function));
    Ok(())
}

/// The end of a job in the audit.
pub(crate) fn outcome_of(world: &World, image: &str) -> Result<Value> {
    let audit = world.audit()?;
    let ended = |record: &&Value| {
        at(record, "/phase") == &json!("outcome") && at(record, "/image") == &json!(image)
    };
    audit
        .iter()
        .rfind(ended)
        .cloned()
        .context("the job's end in the audit")
}

pub(crate) fn at<'a>(object: &'a Value, pointer: &str) -> &'a Value {
    object.pointer(pointer).unwrap_or(&Value::Null)
}
