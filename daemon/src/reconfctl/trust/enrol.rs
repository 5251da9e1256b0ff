//! `trust enrol`: from here on this host believes these keys.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use policy::trust::{Floor, Root};
use serde::Serialize;

use super::super::Streams;
use super::super::exit::Failure;
use super::super::place::{Place, unreadable};
use super::super::show::clean;
use super::{FloorPlace, floor_places, small};
use crate::files::{FileError, Readers, create_directories, read_bounded, write_atomic};

/// What to do with another root that is enrolled already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Existing {
    Refuse,
    Replace,
}

/// What enrolling did.
#[derive(Debug, Serialize)]
pub(super) struct Enrolled {
    root: String,
    keys: usize,
    threshold: usize,
    floors: Vec<FloorMade>,
}

#[derive(Debug, Serialize)]
struct FloorMade {
    whose: String,
    path: PathBuf,
    /// The version below which nothing is believed.
    version: u64,
    kept: bool,
}

/// Root first, floors after: a floor of another root allows nothing, so that a crash in
/// between leaves a host that grants nothing until this is run again.
pub(super) fn enrol(place: &Place, root_file: &Path, how: Existing) -> Result<Enrolled, Failure> {
    let bytes = read_bounded(root_file, small()).map_err(|error| unreadable(&error))?;
    let root =
        Root::parse(&bytes).map_err(|error| Failure::files(error.to_string(), error.remedy()))?;
    let enrolled = place.layout.root_file();
    match read_bounded(&enrolled, small()) {
        Ok(before) if before == bytes => {}
        Err(FileError::Missing { .. }) => {}
        Ok(_) | Err(_) if how == Existing::Replace => {}
        Ok(_) => {
            return Err(Failure::files(
                format!("another root is enrolled already ({})", enrolled.display()),
                "compare them: reconfctl trust show; to put this one in its place, add --replace",
            ));
        }
        Err(error) => return Err(unreadable(&error)),
    }
    let state_dir = &place.layout.state_dir;
    for directory in [
        state_dir.clone(),
        state_dir.join("trust"),
        state_dir.join("cards"),
    ] {
        make_public_directory(&directory)?;
    }
    store(&enrolled, &bytes, Readers::All)?;
    let mut floors = Vec::new();
    for FloorPlace { whose, path } in floor_places(place) {
        let before = read_bounded(&path, small())
            .ok()
            .and_then(|bytes| Floor::parse(&bytes).ok());
        let floor = Floor::enrol(&root, before.as_ref());
        make_directory(&path)?;
        store(&path, &floor.to_bytes(), Readers::Owner)?;
        floors.push(FloorMade {
            whose,
            path,
            version: floor.version(),
            kept: before.is_some_and(|before| before == floor),
        });
    }
    Ok(Enrolled {
        root: root.digest().to_string(),
        keys: root.keys().len(),
        threshold: root.threshold(),
        floors,
    })
}

fn store(path: &Path, bytes: &[u8], readers: Readers) -> Result<(), Failure> {
    write_atomic(path, bytes, readers)
        .map_err(|error| Failure::io(&path.display().to_string(), &error))
}

fn make_directory(file: &Path) -> Result<(), Failure> {
    let directory = file.parent().unwrap_or(Path::new("/"));
    create_directories(directory)
        .map_err(|error| Failure::io(&directory.display().to_string(), &error))
}

/// Makes a directory that all processes look into and none writes to. It stays whoever's
/// enrols: who can change the root is believed in everything.
fn make_public_directory(directory: &Path) -> Result<(), Failure> {
    let failure = |error: std::io::Error| Failure::io(&directory.display().to_string(), &error);
    if directory.is_dir() {
        return Ok(());
    }
    if let Some(above) = directory.parent() {
        create_directories(above).map_err(failure)?;
    }
    std::fs::create_dir(directory).map_err(failure)?;
    std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o755)).map_err(failure)
}

impl Enrolled {
    pub(super) fn write(&self, streams: &mut Streams<'_>) -> std::io::Result<()> {
        let out = &mut *streams.out;
        writeln!(out, "enrolled  root {}", self.root)?;
        writeln!(
            out,
            "          {} key(s), {} must sign a list",
            self.keys, self.threshold
        )?;
        for floor in &self.floors {
            let what = if floor.kept {
                format!("kept: nothing below version {} is believed", floor.version)
            } else {
                "starts afresh: the next list is believed whatever its version".to_owned()
            };
            writeln!(out, "floor     {}: {what}", clean(&floor.whose))?;
        }
        writeln!(
            out,
            "next      reconfctl reload, if reconfd runs; then: reconfctl trust show"
        )
    }
}
