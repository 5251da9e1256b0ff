//! What a guest must never see (INV3), looked for in every byte that it received.

use anyhow::{Result, ensure};
use uuid::Uuid;

use super::World;
use super::setup::{CardKind, CardSetup, REGIONS};

/// Searches what each VM's guest received.
///
/// # Errors
/// Something was found; the message tells what, and in which VM.
pub(super) fn check(world: &World) -> Result<()> {
    for (number, vm) in world.vms.iter().enumerate() {
        let received = std::fs::read(&vm.received)?;
        for (what, canary) in canaries(world, number) {
            ensure!(
                !received
                    .windows(canary.len())
                    .any(|window| window == canary),
                "VM {} received {what}",
                vm.setup.name
            );
        }
    }
    Ok(())
}

/// The forbidden byte strings for one VM.
fn canaries(world: &World, number: usize) -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<(String, Vec<u8>)> = vec![
        (
            "a host path".into(),
            world.places.root.display().to_string().into(),
        ),
        ("a card's socket".into(), b".sock".to_vec()),
        ("a card's address".into(), b"vfio-user".to_vec()),
        ("a host path".into(), b"/state/".to_vec()),
    ];
    for region in REGIONS {
        all.push((format!("the name of region {region}"), region.into()));
    }
    for id in world.setup.cards.iter().flat_map(interface_ids) {
        all.push(("an interface id, as text".into(), id.to_string().into()));
        all.push(("an interface id".into(), id.as_bytes().to_vec()));
        all.push((
            "an interface id, reversed".into(),
            id.to_bytes_le().to_vec(),
        ));
    }
    let others = world
        .vms
        .iter()
        .enumerate()
        .filter(|(other, _)| *other != number);
    for (_, vm) in others {
        all.push((
            format!("the id of {}", vm.setup.name),
            vm.uuid.as_bytes().to_vec(),
        ));
        all.push((
            format!("the id of {}", vm.setup.name),
            vm.uuid.to_string().into(),
        ));
    }
    // The digest of a bitstream tells the region's kind: only the image's digest is the guest's.
    for image in &world.setup.images {
        for card in &world.setup.cards {
            let path = world.publisher.target(image.name, card.interface_id);
            if let Ok(file) = std::fs::read(path) {
                let digest = policy::ids::Digest::of(&file);
                all.push(("the digest of a variant".into(), digest.0.to_vec()));
            }
        }
    }
    for file in world
        .setup
        .images
        .iter()
        .filter_map(|image| image.file.as_ref())
    {
        let digest = policy::ids::Digest::of(file);
        all.push(("the digest of a variant".into(), digest.0.to_vec()));
    }
    // Of frames only the operator hears.
    all.push(("a frame's address".into(), b"FAR".to_vec()));
    all
}

fn interface_ids(card: &CardSetup) -> Vec<Uuid> {
    match &card.kind {
        CardKind::Dfl => vec![card.interface_id],
        CardKind::Hwicap(design) => design.regions.iter().map(|r| r.interface_id).collect(),
    }
}
