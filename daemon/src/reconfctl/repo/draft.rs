//! What a publisher writes: names and paths. All that can be measured is measured;
//! a container that names no interface id or function leaves both to be stated.
//!
//! ```toml
//! [[image]]
//! name = "acme/aes:1.0"
//! variants = [{ path = "acme/aes-1.0-dcp.gbs" }]
//!
//! [[image]]
//! name = "acme/fir:1.0"
//! function_id = "8a6e5f3c-90bd-4b1e-8f1f-6d3b2b1f7d10"
//! variants = [{ path = "acme/fir-1.0.bit", interface_id = "4a1b3f0e-52c7-4c1e-9a55-0d6ce2a7b801" }]
//!
//! [[revoked]]
//! image = "acme/aes:0.9"
//! ```

use std::path::Path;

use policy::ids::{
    Family, FunctionId, ImageName, InterfaceId, RegionType, Role, RoleKind, TargetPath,
};
use policy::trust::LIST_MAX;
use policy::trust::list::{ImageList, RevokedEntry};
use serde::Deserialize;

use super::super::exit::Failure;
use super::super::place::unreadable;
use crate::files::read_bounded;

/// A list before it is measured.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct Draft {
    #[serde(default, rename = "image")]
    pub(super) images: Vec<DraftImage>,
    /// As in `images.json`.
    #[serde(default)]
    pub(super) revoked: Vec<RevokedEntry>,
    /// The version of a list that was an `images.json`; the next one is higher.
    #[serde(skip)]
    pub(super) version: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DraftImage {
    pub(super) name: ImageName,
    /// Left out: `publisher:` and the publisher of the name.
    role: Option<Role>,
    /// Left out: the name without its version.
    family: Option<Family>,
    /// Left out: 1.
    epoch: Option<u64>,
    /// Needed where the bitstreams do not name it.
    pub(super) function_id: Option<FunctionId>,
    pub(super) variants: Vec<DraftVariant>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DraftVariant {
    /// Below `targets`.
    pub(super) path: TargetPath,
    /// Needed where the bitstream does not name it.
    pub(super) interface_id: Option<InterfaceId>,
    /// Only regions of this type.
    pub(super) region_type: Option<RegionType>,
}

impl DraftImage {
    pub(super) fn role(&self) -> Role {
        self.role.clone().unwrap_or_else(|| Role {
            kind: RoleKind::Publisher,
            publisher: self.name.title.publisher.clone(),
        })
    }

    pub(super) fn family(&self) -> Result<Family, Failure> {
        match &self.family {
            Some(family) => Ok(family.clone()),
            None => Family::parse(&self.name.title.to_string()).map_err(|error| {
                Failure::files(
                    error.to_string(),
                    format!("state the family of {}", self.name),
                )
            }),
        }
    }

    pub(super) fn epoch(&self) -> u64 {
        self.epoch.unwrap_or(1)
    }
}

/// Reads a list: `images.json` by its ending, TOML otherwise.
pub(in super::super) fn read(file: &Path) -> Result<Draft, Failure> {
    let max = u64::try_from(LIST_MAX).unwrap_or(u64::MAX);
    let bytes = read_bounded(file, max).map_err(|error| unreadable(&error))?;
    if file
        .extension()
        .is_some_and(|extension| extension == "json")
    {
        from_json(file, &bytes)
    } else {
        from_toml(file, &bytes)
    }
}

fn from_toml(file: &Path, bytes: &[u8]) -> Result<Draft, Failure> {
    let wrong = |place: &str, what: &str| {
        let error = format!("{}:{place} {what}", file.display());
        Failure::files(error, "see docs/operator.md, \"Publishing\"")
    };
    let text = std::str::from_utf8(bytes).map_err(|error| wrong("", &error.to_string()))?;
    toml::from_str(text).map_err(|error| {
        let (line, column) = line_and_column(text, error.span().map_or(0, |span| span.start));
        wrong(&format!("{line}:{column}:"), error.message())
    })
}

fn from_json(file: &Path, bytes: &[u8]) -> Result<Draft, Failure> {
    let list: ImageList = serde_json::from_slice(bytes).map_err(|error| {
        let error = format!(
            "{}:{}:{}: {error}",
            file.display(),
            error.line(),
            error.column()
        );
        Failure::files(error, "write it as docs/images.md says, or as TOML")
    })?;
    let images = list.images.into_iter().map(|image| DraftImage {
        name: image.name,
        role: Some(image.role),
        family: Some(image.family),
        epoch: Some(image.epoch),
        function_id: Some(image.function_id),
        variants: image
            .variants
            .into_iter()
            .map(|variant| DraftVariant {
                path: variant.path,
                interface_id: Some(variant.interface_id),
                region_type: variant.region_type,
            })
            .collect(),
    });
    Ok(Draft {
        images: images.collect(),
        revoked: list.revoked,
        version: list.version,
    })
}

/// Both from 1, a column being a character.
fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count().saturating_add(1);
    let column = before
        .rsplit('\n')
        .next()
        .unwrap_or_default()
        .chars()
        .count();
    (line, column.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Draft, Failure> {
        from_toml(Path::new("list.toml"), text.as_bytes())
    }

    #[test]
    fn what_is_left_out_follows_from_the_name() {
        let draft =
            parse("[[image]]\nname = \"acme/aes:1.0\"\nvariants = [{ path = \"a.gbs\" }]\n")
                .unwrap();
        let image = &draft.images[0];
        assert_eq!(image.role().to_string(), "publisher:acme");
        assert_eq!(image.family().unwrap().to_string(), "acme/aes");
        assert_eq!(image.epoch(), 1);
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        for (text, place) in [
            ("[[image]]\nnmae = \"acme/aes:1.0\"\n", "list.toml:2:1: "),
            ("[[image]]\nname = \"é\" \n", "list.toml:2:8: "),
            (
                "[[image]]\nname = \"acme/aes:1\"\nvariants = [{ path = \"../x\" }]\n",
                "list.toml:3:",
            ),
            ("[[image]\n", "list.toml:1:"),
            ("version = 3\n", "list.toml:1:1: "),
        ] {
            let failure = parse(text).unwrap_err();
            assert!(
                failure.error.starts_with(place),
                "{text}: {}",
                failure.error
            );
        }
    }
}
