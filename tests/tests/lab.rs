//! Code that is not ours meets the simulated card, in VMs. `./dev lab` prepares
//! what they boot; where that is missing, each test says so.

use anyhow::Result;
use reconf_tests::lab::{Tree, linux};

/// Whether long runs were asked for.
fn long() -> bool {
    std::env::var_os("RECONF_TEST_LONG").is_some()
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
