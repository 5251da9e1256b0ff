//! The rooms of the workspace and the arrows between them, as law.
//!
//! Reads what `cargo metadata` says and what the sources hold. Must not know
//! what any room does.

use std::collections::BTreeSet;
use std::fmt;

use anyhow::{Context, Result};
use serde::Deserialize;

/// Every room, and the rooms it may use. An arrow that is not here is forbidden.
pub const ALLOWED: &[(&str, &[&str])] = &[
    ("reconf-protocol", &[]),
    ("reconf-bitstream", &[]),
    ("reconf-policy", &[]),
    ("reconf-simcard", &[]),
    ("reconf-card-access", &["reconf-bitstream"]),
    (
        "reconf-daemon",
        &[
            "reconf-protocol",
            "reconf-policy",
            "reconf-bitstream",
            "reconf-card-access",
        ],
    ),
    ("reconf-client", &["reconf-protocol", "reconf-bitstream"]),
    (
        "reconf-tests",
        &[
            "reconf-protocol",
            "reconf-bitstream",
            "reconf-policy",
            "reconf-simcard",
            "reconf-card-access",
            "reconf-daemon",
            "reconf-client",
        ],
    ),
];

/// Rooms that a room's own tests may use besides. None so far: a test that
/// needs two rooms lives in `tests/`.
pub const ALLOWED_IN_TESTS: &[(&str, &[&str])] = &[];

/// The room that may hold `unsafe`, and its one file.
pub const UNSAFE_ROOM: &str = "reconf-card-access";
/// See [`UNSAFE_ROOM`].
pub const UNSAFE_FILE: &str = "card/src/raw.rs";

/// What `cargo metadata --no-deps` says, as far as it matters here.
#[derive(Debug, Deserialize)]
pub struct Metadata {
    /// The workspace's packages.
    pub packages: Vec<Package>,
}

/// A package.
#[derive(Debug, Deserialize)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// What it names in Cargo.toml.
    pub dependencies: Vec<Dependency>,
    /// What it builds.
    pub targets: Vec<Target>,
}

/// An arrow out of a package.
#[derive(Debug, Deserialize)]
pub struct Dependency {
    /// The package it points to.
    pub name: String,
    /// `None` for a normal one, else `dev` or `build`.
    pub kind: Option<String>,
}

/// A crate that a package builds.
#[derive(Debug, Deserialize)]
pub struct Target {
    /// `lib`, `bin`, `test`, …
    pub kind: Vec<String>,
    /// The crate's root file.
    pub src_path: String,
}

impl Metadata {
    /// Asks cargo about the workspace whose root is `root`.
    ///
    /// # Errors
    /// cargo cannot be run, or answers something else.
    pub fn of_workspace(root: &std::path::Path) -> Result<Self> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = std::process::Command::new(cargo)
            .args([
                "metadata",
                "--format-version",
                "1",
                "--no-deps",
                "--offline",
            ])
            .current_dir(root)
            .output()
            .context("cargo metadata")?;
        anyhow::ensure!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).context("what cargo metadata printed")
    }
}

/// A breach of the law.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Breach {
    /// A room uses another that it must not use.
    Arrow {
        /// The room.
        from: String,
        /// What it uses.
        to: String,
        /// `normal`, `dev` or `build`.
        kind: String,
    },
    /// A package that the table does not know.
    UnknownRoom(String),
    /// A room of the table that is not there.
    MissingRoom(String),
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arrow { from, to, kind } => {
                write!(f, "{from} must not depend on {to} (as a {kind} dependency)")
            }
            Self::UnknownRoom(name) => write!(f, "{name} is no room of docs/development/rooms.md"),
            Self::MissingRoom(name) => write!(f, "the room {name} is missing"),
        }
    }
}

fn allowed<'a>(table: &'a [(&str, &[&'a str])], room: &str) -> &'a [&'a str] {
    table
        .iter()
        .find(|(name, _)| *name == room)
        .map_or(&[], |(_, rooms)| rooms)
}

/// Every breach in a workspace.
#[must_use]
pub fn breaches(metadata: &Metadata) -> BTreeSet<Breach> {
    let rooms: BTreeSet<&str> = ALLOWED.iter().map(|(name, _)| *name).collect();
    let mut found = BTreeSet::new();
    for package in &metadata.packages {
        if !rooms.contains(package.name.as_str()) {
            found.insert(Breach::UnknownRoom(package.name.clone()));
        }
        for arrow in &package.dependencies {
            // Only arrows between rooms: others' crates are deny.toml's business.
            if !rooms.contains(arrow.name.as_str()) {
                continue;
            }
            let kind = arrow.kind.as_deref().unwrap_or("normal");
            let in_tests = kind == "dev"
                && allowed(ALLOWED_IN_TESTS, &package.name).contains(&arrow.name.as_str());
            if !in_tests && !allowed(ALLOWED, &package.name).contains(&arrow.name.as_str()) {
                found.insert(Breach::Arrow {
                    from: package.name.clone(),
                    to: arrow.name.clone(),
                    kind: kind.to_owned(),
                });
            }
        }
    }
    for room in rooms {
        if !metadata.packages.iter().any(|package| package.name == room) {
            found.insert(Breach::MissingRoom(room.to_owned()));
        }
    }
    found
}

/// Whether Rust source holds the keyword `unsafe`, comments and texts aside.
#[must_use]
pub fn has_unsafe(source: &str) -> bool {
    code_only(source)
        .split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .any(|word| word == "unsafe")
}

/// The source with comments and string literals blanked. Knows line comments,
/// nested block comments, strings with escapes and raw strings: enough to look
/// for a keyword.
fn code_only(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let skip = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            block_comment(rest)
        } else if first == '"' {
            string(rest)
        } else if first == 'r'
            && rest
                .trim_start_matches("r#")
                .trim_start_matches('#')
                .starts_with('"')
            && rest.starts_with("r#")
        {
            raw_string(rest)
        } else if rest.starts_with("'\"'") {
            3
        } else {
            out.push(first);
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
            continue;
        };
        out.push(' ');
        rest = rest.get(skip..).unwrap_or_default();
    }
    out
}

fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0_usize);
    let bytes = rest.as_bytes();
    while let Some(pair) = bytes.get(at..at.saturating_add(2)) {
        match pair {
            b"/*" => (depth, at) = (depth.saturating_add(1), at.saturating_add(2)),
            b"*/" => {
                (depth, at) = (depth.saturating_sub(1), at.saturating_add(2));
                if depth == 0 {
                    return at;
                }
            }
            _ => at = at.saturating_add(1),
        }
    }
    rest.len()
}

fn string(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at.saturating_add(1),
            _ => {}
        }
    }
    rest.len()
}

fn raw_string(rest: &str) -> usize {
    let hashes = rest.chars().skip(1).take_while(|c| *c == '#').count();
    let end = format!("\"{}", "#".repeat(hashes));
    let open = hashes.saturating_add(2);
    rest.get(open..)
        .and_then(|inner| inner.find(&end))
        .map_or(rest.len(), |at| {
            at.saturating_add(open).saturating_add(end.len())
        })
}
