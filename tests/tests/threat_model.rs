//! docs/threat-model.md tells the truth: every test that it names exists. With
//! `UPDATE_DOCS=1` the rows get the names of all tests that carry their id.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// Where the tests stand in a row: `| id | what | how | tests | remains |`.
const TESTS: usize = 4;
const COLUMNS: usize = 7;

fn root() -> Result<PathBuf> {
    Ok(Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()?)
}

/// The name of every function in the tree.
fn functions() -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    let mut folders = vec![root()?];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            let name = path
                .file_name()
                .context("no name")?
                .to_string_lossy()
                .into_owned();
            if path.is_dir() && !name.starts_with('.') && name != "target" {
                folders.push(path);
            } else if path.extension().is_some_and(|ext| ext == "rs") {
                names.extend(functions_of(&std::fs::read_to_string(&path)?));
            }
        }
    }
    Ok(names)
}

fn functions_of(source: &str) -> Vec<String> {
    let name = |rest: &str| {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
        rest.get(..end.unwrap_or(rest.len()))
            .unwrap_or_default()
            .to_owned()
    };
    source.split("fn ").skip(1).map(name).collect()
}

/// Whether a test carries an id: alone, or after other ids.
fn carries(test: &str, id: &str) -> bool {
    let id = format!("{}_", id.to_lowercase().replace('-', "_"));
    let mut rest = test;
    loop {
        if rest.starts_with(&id) {
            return true;
        }
        // Ids are `g16_` or `xrt_11_`: letters, perhaps an underscore, digits.
        let after = rest.trim_start_matches(|c: char| c.is_ascii_lowercase());
        let digits = after.strip_prefix('_').unwrap_or(after);
        let tail = digits.trim_start_matches(|c: char| c.is_ascii_digit());
        let Some(next) = tail.strip_prefix('_').filter(|_| tail.len() < digits.len()) else {
            return false;
        };
        rest = next;
    }
}

fn update(text: &str, names: &BTreeSet<String>) -> String {
    let row = |line: &str| {
        let mut cells: Vec<String> = line.split('|').map(str::to_owned).collect();
        let id = cells
            .get(1)
            .map(|id| id.trim().to_owned())
            .unwrap_or_default();
        let is_row = cells.len() == COLUMNS && id.ends_with(|c: char| c.is_ascii_digit());
        if let (true, Some(cell)) = (is_row, cells.get_mut(TESTS)) {
            let tests: Vec<String> = names
                .iter()
                .filter(|name| carries(name, &id))
                .map(|n| format!("`{n}`"))
                .collect();
            *cell = format!(" {} ", tests.join(", "));
        }
        cells.join("|")
    };
    let lines: Vec<String> = text.lines().map(row).collect();
    lines.join("\n") + "\n"
}

#[test]
fn every_test_that_the_threat_model_names_exists() -> Result<()> {
    let path = root()?.join("docs/threat-model.md");
    let mut text = std::fs::read_to_string(&path)?;
    let names = functions()?;
    if std::env::var_os("UPDATE_DOCS").is_some() {
        text = update(&text, &names);
        std::fs::write(&path, &text)?;
    }
    let mut named = 0_usize;
    for line in text
        .lines()
        .filter(|line| line.split('|').count() == COLUMNS)
    {
        for test in line.split('|').nth(TESTS).unwrap_or_default().split(',') {
            let test = test.trim().trim_matches('`');
            if test.contains('_') {
                named = named.saturating_add(1);
                ensure!(names.contains(test), "{test} is named, and is no test");
            }
        }
    }
    ensure!(named > 50, "only {named} tests are named");
    Ok(())
}

#[test]
fn ids_are_found_in_names() {
    assert!(carries("g16_one", "G16"));
    assert!(carries("xrt_11_g16_one", "G16"));
    assert!(carries("xrt_11_g16_one", "XRT-11"));
    assert!(carries("d12_inv6_restarts", "INV6"));
    assert!(!carries("g1_huge", "G16"));
    assert!(!carries("g16_one", "G1"));
    assert!(!carries("the_g16_one", "G16"));
}

#[test]
fn a_row_gets_its_tests() {
    let names = ["g1_a".to_owned(), "g2_b".to_owned(), "x_g1_c".to_owned()].into();
    let text = "| id | what | how | tests | remains |\n| G1 | w | h | `old` | r |\n";
    let new = "| id | what | how | tests | remains |\n| G1 | w | h | `g1_a` | r |\n";
    assert_eq!(update(text, &names), new);
}
