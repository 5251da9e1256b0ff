//! The publisher's side of a world: a key, images, a signed list.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use bitstream::gbs::{Clocks, Draft};
use policy::publish::{self, SigningKey};
use policy::time::UnixTime;
use serde_json::{Value, json};
use uuid::Uuid;

use super::setup::ImageSetup;

/// Who signs.
#[derive(Debug)]
pub struct Publisher {
    key: SigningKey,
    repository: PathBuf,
    version: u64,
    images: Vec<Value>,
    /// What the next list revokes, as entries of `images.json`.
    pub revoked: Vec<Value>,
}

impl Publisher {
    /// A new key, and an empty repository.
    ///
    /// # Errors
    /// No randomness, or the directory cannot be made.
    pub fn new(repository: &Path) -> Result<Self> {
        fs::create_dir_all(repository.join("targets"))?;
        Ok(Self {
            key: SigningKey::generate()?,
            repository: repository.to_owned(),
            version: 0,
            images: Vec::new(),
            revoked: Vec::new(),
        })
    }

    /// The root that hosts enrol.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn root(&self) -> Result<Vec<u8>> {
        Ok(publish::root(1, &[self.key.public_key()], 1)?)
    }

    /// Writes the bitstreams of an image, one an interface id, and lists it.
    ///
    /// # Errors
    /// A bitstream cannot be made or written.
    pub fn add(&mut self, image: &ImageSetup, interfaces: &[Uuid]) -> Result<()> {
        let (publisher, _) = image.name.split_once('/').context("an image's name")?;
        let interfaces = match &image.interface_id {
            Some(own) => vec![*own],
            None => interfaces.to_vec(),
        };
        let mut variants = Vec::new();
        for interface in interfaces {
            let file = match &image.file {
                Some(file) => file.clone(),
                None => bitstream_file(interface, image.function, image.name, image.bytes)?,
            };
            let path = target_path(image.name, interface, image.format);
            let place = self.repository.join("targets").join(&path);
            fs::create_dir_all(place.parent().context("a target's folder")?)?;
            fs::write(&place, &file)?;
            variants.push(json!({
                "path": path,
                "sha256": policy::ids::Digest::of(&file),
                "size": file.len(),
                "format": image.format,
                "interface_id": interface,
            }));
        }
        self.images.push(json!({
            "name": image.name,
            "role": format!("publisher:{publisher}"),
            "family": image.name.split(':').next(),
            "epoch": 1,
            "function_id": image.function,
            "variants": variants,
        }));
        Ok(())
    }

    /// Signs the next version of the list and swaps it in.
    ///
    /// # Errors
    /// No host would believe the list, or it cannot be written.
    pub fn publish(&mut self, good_for: Duration) -> Result<u64> {
        self.version = self.version.saturating_add(1);
        let (list, signature) = self.signed(self.version, good_for)?;
        self.write(&list, &signature)?;
        Ok(self.version)
    }

    /// A signed list of any version, not written.
    ///
    /// # Errors
    /// No host would believe it.
    pub fn signed(&self, version: u64, good_for: Duration) -> Result<(Vec<u8>, Vec<u8>)> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        let list = serde_json::from_value(json!({
            "reconf_images": 1,
            "version": version,
            "issued": UnixTime(now.as_secs()),
            "expires": UnixTime(now.saturating_add(good_for).as_secs()),
            "images": self.images,
            "revoked": self.revoked,
        }))
        .context("the list")?;
        let bytes = publish::list(&list)?;
        let signature = publish::sign(&bytes, &[&self.key])?;
        Ok((bytes, signature))
    }

    /// Writes a list and its signature as they are.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn write(&self, list: &[u8], signature: &[u8]) -> Result<()> {
        for (name, bytes) in [("images.json", list), ("images.json.sig", signature)] {
            let fresh = self.repository.join(format!(".{name}"));
            fs::write(&fresh, bytes)?;
            fs::rename(&fresh, self.repository.join(name))?;
        }
        Ok(())
    }

    /// Where the GBS of an image lies.
    #[must_use]
    pub fn target(&self, name: &str, interface: Uuid) -> PathBuf {
        self.repository
            .join("targets")
            .join(target_path(name, interface, "gbs"))
    }
}

fn target_path(name: &str, interface: Uuid, format: &str) -> String {
    let folder = name.replace(':', "-");
    format!("{folder}/{}.{format}", interface.hyphenated())
}

/// A GBS that the simulated card takes.
///
/// # Errors
/// The name is too long for one.
pub fn bitstream_file(
    interface: Uuid,
    function: Uuid,
    name: &str,
    bytes: usize,
) -> Result<Vec<u8>> {
    // The image's own noise: two images of one function are different files.
    let seed = name.bytes().fold(0_u64, |seed, byte| {
        seed.wrapping_mul(31).wrapping_add(u64::from(byte))
    });
    let payload = simcard::payload::build(interface, function, bytes, seed);
    Ok(bitstream::gbs::build(&Draft {
        interface_id: interface,
        accelerator: function,
        name,
        clocks: Clocks::default(),
        power: 0,
        payload: &payload,
    })?)
}
