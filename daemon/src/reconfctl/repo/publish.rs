//! `repo publish`: measured, signed, and put where hosts pull from.

use std::fs::File;
use std::path::Path;

use policy::ids::Digest;
use policy::time::UnixTime;
use policy::trust::list::{FORMAT, ImageEntry, ImageList, VariantEntry};
use policy::trust::{LIST_FILE, LIST_MAX, SIGNATURE_FILE, TARGETS_DIR, image_digest};
use rustix::fs::{FlockOperation, flock};
use serde::Serialize;

use super::super::Streams;
use super::super::args::Publish;
use super::super::exit::Failure;
use super::super::place::unreadable;
use super::super::time::{now, relative};
use super::draft::{self, Draft, DraftImage};
use super::measure::measure;
use super::regions::Regions;
use super::{clean, keys};
use crate::files::{Readers, read_bounded, write_atomic};

/// What was signed.
#[derive(Debug, Serialize)]
pub(super) struct Published {
    version: u64,
    expires: UnixTime,
    list: String,
    images: Vec<PublishedImage>,
    revoked: usize,
}

#[derive(Debug, Serialize)]
struct PublishedImage {
    name: String,
    digest: Digest,
    /// The list before had other bits under this name.
    changed: bool,
    #[serde(flatten)]
    entry: ImageEntry,
}

/// Nothing is written before everything was measured, signed and found believable.
pub(super) fn run(publish: &Publish) -> Result<Published, Failure> {
    let keys = publish
        .keys
        .iter()
        .map(|path| keys::read_signing_key(path))
        .collect::<Result<Vec<_>, _>>()?;
    let draft = draft::read(&publish.list)?;
    let mut regions = Regions::read(&publish.regions)?;
    // Two that publish at once would sign two lists of one version.
    let _lock = lock(&publish.dir)?;
    let list_file = publish.dir.join(LIST_FILE);
    let before = published_before(&list_file)?;
    let list = measured(&draft, publish, before.as_ref(), &mut regions)?;
    regions.all_used()?;

    let bytes = policy::publish::list(&list).map_err(|error| keys::refused(&error))?;
    let signers: Vec<_> = keys.iter().collect();
    let signature =
        policy::publish::sign(&bytes, &signers).map_err(|error| keys::refused(&error))?;
    // A host that reads in between finds a signature that does not fit, keeps what it has,
    // and looks again.
    for (file, bytes) in [
        (publish.dir.join(SIGNATURE_FILE), &signature),
        (list_file, &bytes),
    ] {
        write_atomic(&file, bytes, Readers::All)
            .map_err(|error| Failure::io(&file.display().to_string(), &error))?;
    }
    Ok(Published {
        version: list.version,
        expires: list.expires,
        list: Digest::of(&bytes).to_string(),
        revoked: list.revoked.len(),
        images: list
            .images
            .into_iter()
            .map(|entry| PublishedImage::new(entry, before.as_ref()))
            .collect(),
    })
}

fn lock(directory: &Path) -> Result<File, Failure> {
    let what = directory.display().to_string();
    let opened = File::open(directory).map_err(|error| Failure::io(&what, &error))?;
    flock(&opened, FlockOperation::NonBlockingLockExclusive).map_err(|error| {
        let error = format!("{what}: cannot be locked: {error}");
        Failure::files(
            error,
            "wait until the other `reconfctl repo publish` has ended",
        )
    })?;
    Ok(opened)
}

/// The list that is there now. One that cannot be read is not passed over: its version
/// would be signed a second time.
fn published_before(file: &Path) -> Result<Option<ImageList>, Failure> {
    let max = u64::try_from(LIST_MAX).unwrap_or(u64::MAX);
    let bytes = match read_bounded(file, max) {
        Ok(bytes) => bytes,
        Err(error) if error.is_missing() => return Ok(None),
        Err(error) => return Err(unreadable(&error)),
    };
    serde_json::from_slice(&bytes).map(Some).map_err(|error| {
        Failure::files(
            format!("{}: cannot tell its version: {error}", file.display()),
            "put the list that was published last there; versions must never be used twice",
        )
    })
}

fn measured(
    draft: &Draft,
    publish: &Publish,
    before: Option<&ImageList>,
    regions: &mut Regions,
) -> Result<ImageList, Failure> {
    let last = draft.version.max(before.map_or(0, |list| list.version));
    let version = last.checked_add(1).ok_or_else(|| {
        Failure::files(
            "the list's version cannot rise any more",
            "start anew with a new root",
        )
    })?;
    let issued = UnixTime(now());
    let targets = publish.dir.join(TARGETS_DIR);
    let images = draft.images.iter();
    let images = images.map(|image| entry(image, &targets, regions));
    Ok(ImageList {
        reconf_images: FORMAT,
        version,
        issued: Some(issued),
        expires: issued.after(publish.expires),
        images: images.collect::<Result<_, _>>()?,
        revoked: draft.revoked.clone(),
    })
}

fn entry(image: &DraftImage, targets: &Path, regions: &mut Regions) -> Result<ImageEntry, Failure> {
    let mut variants = Vec::new();
    let mut function = None;
    for variant in &image.variants {
        let measured = measure(targets, image, variant, regions)?;
        let (first, path) = function.get_or_insert((measured.function_id, &variant.path));
        if *first != measured.function_id {
            let error = format!(
                "{}: {path} holds the function {first}, {} holds {}",
                image.name, variant.path, measured.function_id
            );
            return Err(Failure::files(
                error,
                "an image is one function: publish two images",
            ));
        }
        variants.push(VariantEntry {
            path: variant.path.clone(),
            sha256: measured.sha256,
            size: measured.size,
            format: measured.format,
            interface_id: measured.interface_id,
            region_type: variant.region_type.clone(),
        });
    }
    let (function_id, _path) = function.ok_or_else(|| {
        Failure::files(
            format!("{}: no variants", image.name),
            "name at least one bitstream",
        )
    })?;
    Ok(ImageEntry {
        name: image.name.clone(),
        role: image.role(),
        family: image.family()?,
        epoch: image.epoch(),
        function_id,
        variants,
    })
}

impl PublishedImage {
    fn new(entry: ImageEntry, before: Option<&ImageList>) -> Self {
        let digest = image_digest(&entry);
        let earlier = before
            .into_iter()
            .flat_map(|list| &list.images)
            .find(|image| image.name == entry.name);
        Self {
            name: entry.name.to_string(),
            digest,
            changed: earlier.is_some_and(|image| image_digest(image) != digest),
            entry,
        }
    }
}

impl Published {
    pub(super) fn write(&self, streams: &mut Streams<'_>) -> std::io::Result<()> {
        let out = &mut *streams.out;
        writeln!(
            out,
            "signed  version {}, expires {} ({})",
            self.version,
            self.expires,
            relative(self.expires.0, now())
        )?;
        for image in &self.images {
            let changed = if image.changed {
                "  CHANGED under the same name"
            } else {
                ""
            };
            writeln!(out, "image   {}{changed}", clean(&image.name))?;
            writeln!(out, "        {}", image.digest)?;
            writeln!(
                out,
                "        role {}, function {}",
                image.entry.role, image.entry.function_id
            )?;
            for variant in &image.entry.variants {
                writeln!(
                    out,
                    "        {}: {} bytes, fits {}, {}",
                    variant.path, variant.size, variant.interface_id, variant.sha256
                )?;
            }
        }
        if self.revoked > 0 {
            writeln!(out, "revoked {} entries", self.revoked)?;
        }
        Ok(())
    }
}
