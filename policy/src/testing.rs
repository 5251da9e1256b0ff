//! What the tests of this crate share.

use std::path::PathBuf;

use crate::ids::{Digest, Family, FunctionId, ImageName, InterfaceId, Role, TargetPath};
use crate::time::UnixTime;
use crate::trust::Format;
use crate::trust::list::{self, ImageEntry, ImageList, VariantEntry};

/// A file of the shared folder; `None`, aloud, where the folder is missing.
pub(crate) fn shared(path: &str) -> Option<Vec<u8>> {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared"));
    if !root.is_dir() {
        eprintln!("SKIPPED: {path}: no folder {}", root.display());
        return None;
    }
    Some(std::fs::read(root.join(path)).unwrap())
}

/// The time of the tests: 2026-01-01.
pub(crate) const NOW: UnixTime = UnixTime(1_767_225_600);

/// The interface id of the regions of `shell`.
pub(crate) const INTERFACE: InterfaceId = InterfaceId(uuid::Uuid::from_u128(
    0x6d1f_0a3c_94be_4c27_8a15_5e0f_77c2_b9d4,
));

/// An entry with one bitstream, for [`INTERFACE`].
pub(crate) fn entry(name: &str) -> ImageEntry {
    let name = ImageName::parse(name).unwrap();
    let publisher = &name.title.publisher;
    // The first image lies where the tests of paths look for it.
    let path = if name.version.as_str() == "1.9" {
        "acme/left.gbs".to_owned()
    } else {
        format!("{publisher}/{}-{}.gbs", name.title.name(), name.version)
    };
    ImageEntry {
        role: Role::parse(&format!("publisher:{publisher}")).unwrap(),
        family: Family::parse(name.title.name()).unwrap(),
        epoch: 1,
        function_id: FunctionId(uuid::Uuid::from_u128(7)),
        variants: vec![VariantEntry {
            sha256: Digest::of(path.as_bytes()),
            path: TargetPath::parse(&path).unwrap(),
            size: 1000,
            format: Format::Gbs,
            interface_id: INTERFACE,
            region_type: None,
        }],
        name,
    }
}

/// `acme/aes` in two versions and `globex/fft`, valid for a day.
pub(crate) fn image_list(version: u64) -> ImageList {
    ImageList {
        reconf_images: list::FORMAT,
        version,
        issued: None,
        expires: UnixTime(NOW.0 + 86_400),
        images: ["acme/aes:1.9", "acme/aes:1.10", "globex/fft:1"]
            .map(entry)
            .to_vec(),
        revoked: Vec::new(),
    }
}
