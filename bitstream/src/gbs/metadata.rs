//! The JSON inside a GBS.
//!
//! Knows the fields that matter here and every spelling that the vendor's
//! tools write. Unknown fields are let pass, since the vendor adds some; a
//! known field of a wrong kind is refused, and so is a key given twice.

use std::collections::BTreeMap;

use ::uuid::Uuid;
use serde_json::Number;

use super::{Clock, Clocks, HEADER_LEN, MAGIC_NO, SchemaVersion};
use crate::error::ContainerError;
use crate::json::Json;
use crate::uuid::parse_uuid;

const NAME_MAX: usize = 255;
/// 10 GHz: above every clock of every card.
const KHZ_MAX: u32 = 10_000_000;
const WATTS_MAX: u32 = 10_000;

pub(super) struct Metadata {
    pub(super) version: SchemaVersion,
    pub(super) interface_id: Uuid,
    pub(super) accelerator: Uuid,
    pub(super) name: String,
    pub(super) clocks: Clocks,
    pub(super) power: u32,
}

type Object = BTreeMap<String, Json>;

pub(super) fn read(text: &[u8]) -> Result<Metadata, ContainerError> {
    let tree = Json::parse(text).map_err(|error| syntax(text, &error))?;
    let top = object(&tree, "the top")?;
    let image = object(get(top, "afu-image")?, "afu-image")?;

    let magic = number(
        get_in(image, "magic-no", "afu-image.magic-no")?,
        "afu-image.magic-no",
    )?;
    if magic.as_u64() != Some(u64::from(MAGIC_NO)) {
        return Err(ContainerError::MagicNumber {
            found: magic.to_string(),
        });
    }
    let clusters = match get_in(
        image,
        "accelerator-clusters",
        "afu-image.accelerator-clusters",
    )? {
        Json::List(list) => list.as_slice(),
        other => return Err(wrong("afu-image.accelerator-clusters", "a list", other)),
    };
    let [cluster] = clusters else {
        return Err(ContainerError::ClusterCount {
            found: clusters.len(),
        });
    };
    let cluster = object(cluster, "afu-image.accelerator-clusters[0]")?;
    whole(
        get_in(
            cluster,
            "total-contexts",
            "accelerator-clusters[0].total-contexts",
        )?,
        "accelerator-clusters[0].total-contexts",
        u32::MAX,
    )?;

    Ok(Metadata {
        version: version(get(top, "version")?)?,
        interface_id: id(image, "interface-uuid", "afu-image.interface-uuid")?,
        accelerator: id(
            cluster,
            "accelerator-type-uuid",
            "accelerator-clusters[0].accelerator-type-uuid",
        )?,
        name: name(get_in(cluster, "name", "accelerator-clusters[0].name")?)?,
        clocks: Clocks {
            high: clock(
                image,
                "clock-frequency-high",
                "afu-image.clock-frequency-high",
            )?,
            low: clock(
                image,
                "clock-frequency-low",
                "afu-image.clock-frequency-low",
            )?,
        },
        power: match image.get("power") {
            None => 0,
            Some(value) => whole(value, "afu-image.power", WATTS_MAX)?,
        },
    })
}

/// Where in the file the JSON parser stopped.
fn syntax(text: &[u8], error: &serde_json::Error) -> ContainerError {
    let before = text.split_inclusive(|&byte| byte == b'\n');
    let line_start: usize = before
        .take(error.line().saturating_sub(1))
        .map(<[u8]>::len)
        .sum();
    let at = line_start
        .saturating_add(error.column().saturating_sub(1))
        .min(text.len());
    ContainerError::MetadataSyntax {
        at: at.saturating_add(HEADER_LEN),
        why: error.to_string(),
    }
}

fn field(field: &'static str, why: impl Into<String>) -> ContainerError {
    ContainerError::Field {
        field,
        why: why.into(),
    }
}

fn wrong(name: &'static str, want: &str, found: &Json) -> ContainerError {
    field(name, format!("is {}, and should be {want}", found.kind()))
}

fn get<'a>(object: &'a Object, key: &'static str) -> Result<&'a Json, ContainerError> {
    get_in(object, key, key)
}

fn get_in<'a>(
    object: &'a Object,
    key: &str,
    path: &'static str,
) -> Result<&'a Json, ContainerError> {
    object.get(key).ok_or_else(|| field(path, "is missing"))
}

fn object<'a>(value: &'a Json, path: &'static str) -> Result<&'a Object, ContainerError> {
    match value {
        Json::Object(object) => Ok(object),
        other => Err(wrong(path, "an object", other)),
    }
}

fn number<'a>(value: &'a Json, path: &'static str) -> Result<&'a Number, ContainerError> {
    match value {
        Json::Number(number) => Ok(number),
        other => Err(wrong(path, "a number", other)),
    }
}

fn whole(value: &Json, path: &'static str, max: u32) -> Result<u32, ContainerError> {
    let number = number(value, path)?;
    number
        .as_u64()
        .and_then(|n| u32::try_from(n).ok())
        .filter(|n| *n <= max)
        .ok_or_else(|| {
            field(
                path,
                format!("is {number}, and should be whole, 0 to {max}"),
            )
        })
}

fn version(value: &Json) -> Result<SchemaVersion, ContainerError> {
    let number = number(value, "version")?;
    match number.as_u64() {
        Some(1) => Ok(SchemaVersion::V1),
        Some(640) => Ok(SchemaVersion::V640),
        Some(650) => Ok(SchemaVersion::V650),
        _ => Err(field(
            "version",
            format!("is {number}; 1, 640 and 650 are known"),
        )),
    }
}

fn id(object: &Object, key: &str, path: &'static str) -> Result<Uuid, ContainerError> {
    match get_in(object, key, path)? {
        Json::Text(text) => parse_uuid(text).map_err(|error| field(path, format!("is {error}"))),
        other => Err(wrong(path, "a UUID", other)),
    }
}

fn name(value: &Json) -> Result<String, ContainerError> {
    const PATH: &str = "accelerator-clusters[0].name";
    match value {
        Json::Text(text) if text.len() > NAME_MAX => Err(field(
            PATH,
            format!("has {} bytes, above {NAME_MAX}", text.len()),
        )),
        Json::Text(text) if text.chars().any(char::is_control) => {
            Err(field(PATH, "holds control characters"))
        }
        Json::Text(text) => Ok(text.clone()),
        other => Err(wrong(PATH, "text", other)),
    }
}

/// A number of MHz, `"auto"`, `"auto-N"`, or the number as text.
fn clock(object: &Object, key: &str, path: &'static str) -> Result<Option<Clock>, ContainerError> {
    let bad = |found: &str| {
        field(
            path,
            format!("is {found:?}; MHz (0 to 10000), \"auto\" or \"auto-N\" are known"),
        )
    };
    let Some(value) = object.get(key) else {
        return Ok(None);
    };
    let clock = match value {
        Json::Number(number) => {
            let text = number.to_string();
            khz(&text).map(Clock::Khz).ok_or_else(|| bad(&text))?
        }
        Json::Text(text) if text == "auto" => Clock::Auto,
        Json::Text(text) => match text.strip_prefix("auto-") {
            Some(limit) => khz(limit).map(Clock::AutoUpTo),
            None => khz(text).map(Clock::Khz),
        }
        .ok_or_else(|| bad(text))?,
        other => return Err(wrong(path, "a number or text", other)),
    };
    Ok(Some(clock))
}

/// MHz in decimal notation, to kHz, without a detour over floating point.
fn khz(text: &str) -> Option<u32> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || whole.len() > 5 || fraction.len() > 17 {
        return None;
    }
    let thousandths: String = fraction.chars().chain("00".chars()).take(3).collect();
    let khz = whole.parse::<u32>().ok()?.checked_mul(1000)?;
    let khz = khz.checked_add(thousandths.parse().ok()?)?;
    (khz <= KHZ_MAX).then_some(khz)
}

#[cfg(test)]
mod tests {
    use super::khz;

    #[test]
    fn clocks_are_decimal_numbers() {
        assert_eq!(khz("200"), Some(200_000));
        assert_eq!(khz("312.5"), Some(312_500));
        assert_eq!(khz("0.001"), Some(1));
        assert_eq!(khz("10000"), Some(10_000_000));
        for bad in [
            "",
            "-1",
            "+1",
            "1e3",
            ".5",
            "5.",
            "10000.001",
            "99999999999",
            "٣",
            "1_0",
        ] {
            assert_eq!(khz(bad), None, "{bad}");
        }
    }
}
