//! The rooms keep their walls: arrows between crates run one way, and unsafe
//! code lives in one file.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use reconf_tests::rooms::{
    Breach, Dependency, Metadata, UNSAFE_FILE, UNSAFE_ROOM, breaches, has_unsafe,
};

fn root() -> Result<PathBuf> {
    Ok(Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()?)
}

fn workspace() -> Result<Metadata> {
    Metadata::of_workspace(&root()?)
}

#[test]
fn every_arrow_between_rooms_is_allowed() -> Result<()> {
    let found: Vec<String> = breaches(&workspace()?)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
    Ok(())
}

#[test]
fn the_checker_sees_a_forbidden_arrow() -> Result<()> {
    let mut metadata = workspace()?;
    let forbidden = [
        ("reconf-protocol", "reconf-policy", None),
        ("reconf-client", "reconf-daemon", None),
        ("reconf-simcard", "reconf-card-access", Some("dev")),
        ("reconf-card-access", "reconf-protocol", Some("build")),
    ];
    for (from, to, kind) in forbidden {
        let package = metadata
            .packages
            .iter_mut()
            .find(|package| package.name == from)
            .context("no such room")?;
        package.dependencies.push(Dependency {
            name: to.to_owned(),
            kind: kind.map(str::to_owned),
        });
        let breach = Breach::Arrow {
            from: from.to_owned(),
            to: to.to_owned(),
            kind: kind.unwrap_or("normal").to_owned(),
        };
        assert!(
            breaches(&metadata).contains(&breach),
            "{breach} was not seen"
        );
    }
    Ok(())
}

#[test]
fn the_checker_sees_rooms_come_and_go() -> Result<()> {
    let mut metadata = workspace()?;
    metadata
        .packages
        .retain(|package| package.name != "reconf-policy");
    metadata.packages.first_mut().context("no room")?.name = "reconf-misc".to_owned();
    let found = breaches(&metadata);
    assert!(found.contains(&Breach::UnknownRoom("reconf-misc".to_owned())));
    assert!(found.contains(&Breach::MissingRoom("reconf-policy".to_owned())));
    Ok(())
}

#[test]
fn every_crate_but_card_forbids_unsafe() -> Result<()> {
    for package in workspace()?.packages {
        if package.name == UNSAFE_ROOM {
            continue;
        }
        for target in package
            .targets
            .iter()
            .filter(|t| t.kind.iter().any(|k| k == "lib"))
        {
            let source = std::fs::read_to_string(&target.src_path)?;
            assert!(
                source.contains("#![forbid(unsafe_code)]"),
                "{} does not forbid unsafe code",
                target.src_path
            );
        }
    }
    Ok(())
}

#[test]
fn unsafe_lives_in_one_file() -> Result<()> {
    let mut files = Vec::new();
    sources(&root()?, &mut files)?;
    assert!(files.len() > 20, "the sources were not found");
    let mut with = Vec::new();
    for file in files {
        if has_unsafe(&std::fs::read_to_string(&file)?) {
            with.push(file.strip_prefix(root()?)?.display().to_string());
        }
    }
    assert_eq!(with, [UNSAFE_FILE]);
    Ok(())
}

#[test]
fn the_keyword_is_told_from_the_word() {
    assert!(has_unsafe("fn f() { unsafe { g() } }"));
    assert!(has_unsafe("let a = \"x\"; unsafe fn f() {}"));
    assert!(has_unsafe("/* /* a */ b */ unsafe impl Send for X {}"));
    assert!(has_unsafe("let r = r#\"a \" b\"#; unsafe {}"));
    assert!(!has_unsafe("#![forbid(unsafe_code)] // no unsafe here"));
    assert!(!has_unsafe(
        "/* unsafe */ let a = \"unsafe\"; let b = \"\\\"unsafe\";"
    ));
    assert!(!has_unsafe("let r = r#\"unsafe \" unsafe\"#;"));
}

/// Every Rust file of the workspace, built ones and other packages aside.
fn sources(dir: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path
            .file_name()
            .context("a file without a name")?
            .to_string_lossy()
            .into_owned();
        if path.is_dir() {
            if !name.starts_with('.') && name != "target" && name != "corpus" {
                sources(&path, files)?;
            }
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            files.push(path);
        }
    }
    Ok(())
}
