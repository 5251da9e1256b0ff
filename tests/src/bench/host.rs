//! The host that is measured: a whole one with one simulated card, whose VMs
//! are this process. It plays QEMU itself, so that nothing stands between the
//! stopwatch and the host's end of a channel.
//!
//! Knows the world. Must not know what is measured.

use std::fmt::Write as _;
use std::fs;

use anyhow::{Context, Result, bail};
use protocol::message::{ImageRef, JobInfo, JobKey, Load, Slot, Watch};
use protocol::{Reply, Request, Status};
use uuid::Uuid;

use crate::raw::RawGuest;
use crate::world::{CardSetup, ImageSetup, Setup, World};

/// The region that all VMs of a bench are given.
const REGION: usize = 0;

/// A tenant who may load all images.
const TENANT: &str = "bench";

/// What the card of a bench is.
#[derive(Debug, Clone)]
pub(super) struct Bench {
    /// Bytes a second, or `instant`.
    pub(super) rate: &'static str,
    /// The images' names.
    pub(super) images: Vec<&'static str>,
    /// Bytes of each.
    pub(super) bytes: usize,
    /// How many VMs can be attached.
    pub(super) vms: usize,
}

/// Starts everything; no VM is attached yet.
pub(super) fn start(bench: &Bench) -> Result<World> {
    let mut world = World::make(Setup {
        cards: vec![CardSetup {
            rate: bench.rate.to_owned(),
            ..CardSetup::default()
        }],
        vms: Vec::new(),
        images: bench
            .images
            .iter()
            .map(|name| ImageSetup::new(name, simcard::functions::ADDER, bench.bytes))
            .collect(),
        grants: vec![(TENANT, &["bench/*"])],
        ..Setup::default()
    })?;
    more_functions(&world, bench.vms)?;
    // The images were just written. What the disk still owes must not be paid in the middle.
    rustix::fs::sync();
    world.start_card_process(0)?;
    world.start_daemon()?;
    world.settle()?;
    Ok(world)
}

/// Has the shell file name a user function of the region for each VM but the first, as shells do
/// in which several virtual functions end in one region. Only the first is there.
fn more_functions(world: &World, vms: usize) -> Result<()> {
    let path = world.places.root.join("etc/shells/card0.toml");
    let first = format!("{:?}", world.card(0)?.function(REGION));
    let mut all = first.clone();
    for vm in 1..vms {
        write!(all, ", {:?}", function(world, vm)?)?;
    }
    let text = fs::read_to_string(&path)?;
    fs::write(&path, text.replacen(&first, &all, 1)).context("the shell file")
}

/// The user function of a VM.
fn function(world: &World, vm: usize) -> Result<String> {
    let first = world.card(0)?.function(REGION);
    Ok(match vm {
        0 => first,
        _ => first.replace(".sock", &format!("-{vm}.sock")),
    })
}

fn uuid(vm: usize) -> Result<Uuid> {
    let number = u128::try_from(vm)?;
    Ok(Uuid::from_u128(
        0x5c1d_77a0_0000_4b3e_8000_0000_0000_0000 | number,
    ))
}

/// Attaches a VM, and opens a session on its channel.
pub(super) fn guest(world: &World, vm: usize) -> Result<RawGuest> {
    let pid = std::process::id().to_string();
    let arguments = [
        "vm".to_owned(),
        "attach".to_owned(),
        uuid(vm)?.to_string(),
        "--tenant".to_owned(),
        TENANT.to_owned(),
        "--function".to_owned(),
        function(world, vm)?,
        "--listen".to_owned(),
        "--pid".to_owned(),
        pid,
    ];
    world.reconfctl(&arguments)?.good()?;
    session(world, vm)
}

/// Connects to the host's end of a VM's channel as its QEMU would, and opens a session.
pub(super) fn session(world: &World, vm: usize) -> Result<RawGuest> {
    let uuid = uuid(vm)?;
    let channel = world.places.run().join(format!("vm/{uuid}/org.reconf.0"));
    let mut guest = RawGuest::open(&channel)?;
    guest.handshake()?;
    Ok(guest)
}

/// Has the guest hear what becomes of its jobs.
pub(super) fn watch(guest: &mut RawGuest) -> Result<()> {
    match guest.ask(&Request::Watch(Watch {
        slot: Some(Slot(0)),
    }))? {
        Reply::Watch(_) => Ok(()),
        other => bail!("a watch was answered with {other:?}"),
    }
}

/// The request for a load, written although the same image may be there.
pub(super) fn load(image: &str) -> Request {
    Request::Load(Load {
        key: JobKey(Uuid::new_v4().into_bytes()),
        slot: Some(Slot(0)),
        image: ImageRef::Name(image.to_owned()),
        if_not_loaded: false,
        force: true,
    })
}

/// What the host says next of the job that runs.
pub(super) fn news(guest: &mut RawGuest) -> Result<Option<JobInfo>> {
    let heard = guest.hear()?;
    match heard.reply {
        Some(Reply::Load(job)) => Ok(Some(job)),
        Some(Reply::Event(event)) => match event.what {
            protocol::message::EventKind::Progress(job) => Ok(Some(job)),
            _ => Ok(None),
        },
        other => bail!("the host said {other:?}"),
    }
}

/// Fails unless a job that ended ended well.
pub(super) fn insist(job: &JobInfo) -> Result<()> {
    let status = job.result.map(|result| result.status);
    anyhow::ensure!(status == Some(Status::Ok), "a load failed: {job:?}");
    Ok(())
}
