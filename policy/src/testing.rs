//! What the tests of this crate share.

use std::path::PathBuf;

/// A file of the shared folder; `None`, aloud, where the folder is missing.
pub(crate) fn shared(path: &str) -> Option<Vec<u8>> {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared"));
    if !root.is_dir() {
        eprintln!("SKIPPED: {path}: no folder {}", root.display());
        return None;
    }
    Some(std::fs::read(root.join(path)).unwrap())
}
