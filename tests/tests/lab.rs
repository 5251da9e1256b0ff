//! Code that is not ours meets the simulated card, in VMs. `./dev lab` prepares
//! what they boot; where that is missing, each test says so.

use anyhow::Result;
use reconf_tests::lab::{Tree, host, linux};
use reconf_tests::world::World;

/// Whether long runs were asked for.
fn long() -> bool {
    std::env::var_os("RECONF_TEST_LONG").is_some()
}

/// `reconf-card` reaches the card through the kernel's VFIO, in a VM with an IOMMU.
#[test]
fn a_host_programs_its_card_through_the_kernels_vfio() -> Result<()> {
    let Some(tree) = Tree::prepared() else {
        eprintln!("SKIPPED: the lab is not prepared (./dev lab)");
        return Ok(());
    };
    let folder = tempfile::tempdir()?;
    let lines = host::run(&tree, folder.path())?;
    let done: Vec<&String> = lines
        .iter()
        .filter(|line| line.starts_with("ok "))
        .collect();
    eprintln!("{} scenarios through the kernel's VFIO", done.len());
    assert_eq!(done.len(), host::count(), "{lines:#?}");
    assert!(
        lines.iter().any(|line| line == "fact kernel_warnings 0"),
        "{lines:#?}"
    );
    Ok(())
}

/// The same scenarios, process to process.
#[test]
fn a_host_programs_its_card_without_a_vm() -> Result<()> {
    let mut world = World::start(host::setup(None))?;
    for (name, play) in host::SCENARIOS {
        play(&mut world).map_err(|error| error.context(*name))?;
    }
    world.close()
}

#[test]
fn linux_lists_and_programs_the_card_and_agrees_on_every_error() -> Result<()> {
    let Some(tree) = Tree::prepared() else {
        eprintln!("SKIPPED: the lab is not prepared (./dev lab)");
        return Ok(());
    };
    let folder = tempfile::tempdir()?;
    let verdict = linux::judge(&tree, folder.path(), long())?;
    eprintln!(
        "{} cases judged by Linux's DFL driver, {} left to long runs",
        verdict.ran, verdict.left_out
    );
    assert!(
        verdict.differences.is_empty(),
        "Linux sees it differently:\n{}",
        verdict.differences.join("\n")
    );
    let interface = "69528db6eb31577a8c3668f9faa081f6";
    let nobody = "00000000000000000000000000000000";
    for (name, expected) in [
        ("ports_num", "2"),
        ("region1.compat_id", interface),
        ("region2.compat_id", interface),
        ("port0.id", "0"),
        ("port1.id", "1"),
        ("port0.afu_id", nobody),
        ("port1.afu_id", nobody),
        ("kernel_warnings", "0"),
    ] {
        assert_eq!(verdict.fact(name), Some(expected), "{name}");
    }
    Ok(())
}
