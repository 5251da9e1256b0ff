//! `trust show`: what each process of this host believes, by the very checks it makes.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use policy::time::UnixTime;
use policy::trust::{Catalogue, Floor, Freshness, LIST_MAX, Root, TrustError, verify};
use serde::Serialize;

use super::super::Streams;
use super::super::place::{Place, unreadable};
use super::super::show::{Paint, clean};
use super::super::time::{now, relative};
use super::{FloorPlace, floor_places, small};
use crate::files::{FileError, read_bounded, read_trusted};
use crate::hex;

/// What this host trusts, each part read or its problem.
#[derive(Debug, Serialize)]
pub(in super::super) struct State {
    root: Part<RootView>,
    floors: Vec<FloorView>,
}

/// A part that is in order, or why it is not.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Part<T> {
    Good(T),
    Bad(Problem),
}

#[derive(Debug, Serialize)]
pub(in super::super) struct Problem {
    pub(in super::super) file: PathBuf,
    pub(in super::super) code: String,
    pub(in super::super) problem: String,
    pub(in super::super) remedy: String,
}

#[derive(Debug, Serialize)]
struct RootView {
    digest: String,
    version: u64,
    threshold: usize,
    keys: Vec<String>,
}

#[derive(Debug, Serialize)]
struct FloorView {
    whose: String,
    /// The version below which nothing is believed.
    floor: Option<u64>,
    /// The list as this floor's owner sees it.
    list: Part<ListView>,
}

#[derive(Debug, Serialize)]
struct ListView {
    version: u64,
    digest: String,
    expires: UnixTime,
    images: usize,
}

/// Looks at all of it with the very checks that the processes make, and changes nothing.
pub(in super::super) fn state(place: &Place, now: UnixTime) -> State {
    let layout = &place.layout;
    let root_file = layout.root_file();
    let root = read_trusted(&root_file, small())
        .map_err(|error| Problem::enrol(&root_file, &error))
        .and_then(|bytes| Root::parse(&bytes).map_err(|error| Problem::trust(&root_file, &error)));
    let floors = floor_places(place)
        .into_iter()
        .map(|FloorPlace { whose, path }| {
            let floor = read_trusted(&path, small())
                .map_err(|error| Problem::enrol(&path, &error))
                .and_then(|bytes| {
                    Floor::parse(&bytes).map_err(|error| Problem::trust(&path, &error))
                });
            let version = floor.as_ref().ok().map(Floor::version);
            let list = match (&root, floor) {
                (Ok(root), Ok(floor)) => list(place, root, &floor, now),
                (Err(_), Ok(_)) => Err(Problem::no_root(&path)),
                (_, Err(problem)) => Err(problem),
            };
            FloorView {
                whose,
                floor: version,
                list: list.into(),
            }
        })
        .collect();
    let root = root.map(|root| RootView {
        digest: root.digest().to_string(),
        version: root.version(),
        threshold: root.threshold(),
        keys: root.keys().iter().map(|key| hex::encode(&key.0)).collect(),
    });
    State {
        root: root.into(),
        floors,
    }
}

fn list(place: &Place, root: &Root, floor: &Floor, now: UnixTime) -> Result<ListView, Problem> {
    let (list, signature) = (place.layout.list(), place.layout.list_signature());
    let max = u64::try_from(LIST_MAX).unwrap_or(u64::MAX);
    let bytes = read_bounded(&list, max).map_err(|error| Problem::pull(&list, &error))?;
    let signed =
        read_bounded(&signature, small()).map_err(|error| Problem::pull(&signature, &error))?;
    let catalogue =
        verify(root, floor, &bytes, &signed, now).map_err(|error| Problem::trust(&list, &error))?;
    ListView::of(&catalogue, &list, now)
}

impl ListView {
    fn of(catalogue: &Catalogue, file: &Path, now: UnixTime) -> Result<Self, Problem> {
        match catalogue.freshness(now) {
            Freshness::Fresh { until } => Ok(Self {
                version: catalogue.version(),
                digest: catalogue.digest().to_string(),
                expires: until,
                images: catalogue.images().count(),
            }),
            Freshness::Expired { since } => Err(Problem {
                file: file.to_path_buf(),
                code: "catalogue-expired".to_owned(),
                problem: format!(
                    "version {} of the list expired at {since}",
                    catalogue.version()
                ),
                remedy: "Publish or pull a list that expires later, with a higher version."
                    .to_owned(),
            }),
        }
    }
}

impl Problem {
    fn new(file: &Path, code: &str, problem: String, remedy: &str) -> Self {
        Self {
            file: file.to_path_buf(),
            code: code.to_owned(),
            problem,
            remedy: remedy.to_owned(),
        }
    }

    fn trust(file: &Path, error: &TrustError) -> Self {
        Self::new(file, error.code(), error.to_string(), error.remedy())
    }

    /// A file that enrolling makes.
    fn enrol(file: &Path, error: &FileError) -> Self {
        match error {
            FileError::Missing { .. } => Self::new(
                file,
                "not-enrolled",
                format!("{}: not there: nothing is granted", file.display()),
                "Run `reconfctl trust enrol ROOT` with the root of whoever signs your images.",
            ),
            _ => Self::file(file, error),
        }
    }

    /// A file that is pulled from the repository.
    fn pull(file: &Path, error: &FileError) -> Self {
        match error {
            FileError::Missing { .. } => Self::new(
                file,
                "no-list",
                format!("{}: not there: nothing is granted", file.display()),
                "Put images.json and images.json.sig into the repository's folder.",
            ),
            _ => Self::file(file, error),
        }
    }

    fn file(file: &Path, error: &FileError) -> Self {
        let failure = unreadable(error);
        Self::new(file, "file", failure.error, &failure.remedy)
    }

    fn no_root(file: &Path) -> Self {
        Self::new(
            file,
            "not-enrolled",
            "the root that it belongs to is not in order".to_owned(),
            "Put the root in order first.",
        )
    }
}

impl<T> From<Result<T, Problem>> for Part<T> {
    fn from(result: Result<T, Problem>) -> Self {
        match result {
            Ok(good) => Self::Good(good),
            Err(bad) => Self::Bad(bad),
        }
    }
}

impl State {
    pub(super) fn in_order(&self) -> bool {
        self.problems().next().is_none()
    }

    pub(in super::super) fn problems(&self) -> impl Iterator<Item = &Problem> {
        let root = match &self.root {
            Part::Good(_) => None,
            Part::Bad(problem) => Some(problem),
        };
        let lists = self.floors.iter().filter_map(|floor| match &floor.list {
            Part::Good(_) => None,
            Part::Bad(problem) => Some(problem),
        });
        root.into_iter().chain(lists)
    }

    pub(super) fn write(&self, streams: &mut Streams<'_>) -> io::Result<()> {
        let paint = Paint::new(streams.colour);
        let out = &mut *streams.out;
        match &self.root {
            Part::Good(root) => {
                writeln!(out, "root    {}, version {}", root.digest, root.version)?;
                writeln!(
                    out,
                    "        {} of these keys must sign a list:",
                    root.threshold
                )?;
                for key in &root.keys {
                    writeln!(out, "        {key}")?;
                }
            }
            Part::Bad(problem) => problem.write("root  ", paint, out)?,
        }
        for floor in &self.floors {
            let version = floor
                .floor
                .map_or_else(|| "none".to_owned(), |version| version.to_string());
            writeln!(out, "floor   {}: version {version}", clean(&floor.whose))?;
            match &floor.list {
                Part::Good(list) => writeln!(
                    out,
                    "        {}: list version {}, {} image(s), expires {} ({})",
                    paint.good("in order"),
                    list.version,
                    list.images,
                    list.expires,
                    relative(list.expires.0, now())
                )?,
                Part::Bad(problem) => problem.write("      ", paint, out)?,
            }
        }
        Ok(())
    }
}

impl Problem {
    fn write(&self, head: &str, paint: Paint, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "{head}  {}: {}",
            paint.bad("NOT in order"),
            clean(&self.problem)
        )?;
        writeln!(out, "        next: {}", clean(&self.remedy))
    }
}
