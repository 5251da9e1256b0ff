//! Writes a GBS: for tests, for the demo, and for people who publish.
//!
//! Knows the layout from the other side. Reads back what it wrote, so that
//! it never hands out a file that this crate would refuse.

use ::uuid::Uuid;
use serde_json::json;
use thiserror::Error;

use super::{Clock, Clocks, MAGIC, MAGIC_NO, parse};
use crate::error::ContainerError;

/// What goes into a new GBS.
#[derive(Debug, Clone)]
pub struct Draft<'a> {
    /// Which regions it fits.
    pub interface_id: Uuid,
    /// The function that appears.
    pub accelerator: Uuid,
    /// The function's name.
    pub name: &'a str,
    /// The user clocks.
    pub clocks: Clocks,
    /// Watts, 0 for "not stated".
    pub power: u32,
    /// The bytes for the card.
    pub payload: &'a [u8],
}

/// The draft would make a file that no one may load.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the draft makes no valid GBS: {0}")]
pub struct BuildError(#[from] pub ContainerError);

/// Writes the file.
///
/// # Errors
///
/// [`BuildError`] where the draft breaks a rule of the format: no payload, a
/// name that is too long or holds control characters, a clock out of range.
pub fn build(draft: &Draft<'_>) -> Result<Vec<u8>, BuildError> {
    let mut image = json!({
        "interface-uuid": draft.interface_id.hyphenated().to_string(),
        "magic-no": MAGIC_NO,
        "power": draft.power,
        "accelerator-clusters": [{
            "name": draft.name,
            "total-contexts": 1,
            "accelerator-type-uuid": draft.accelerator.hyphenated().to_string(),
        }],
    });
    if let Some(object) = image.as_object_mut() {
        let clocks = [
            ("clock-frequency-high", draft.clocks.high),
            ("clock-frequency-low", draft.clocks.low),
        ];
        for (key, clock) in clocks {
            if let Some(clock) = clock {
                object.insert(key.to_owned(), spell(clock));
            }
        }
    }
    let metadata = json!({"version": 1, "afu-image": image}).to_string();
    let too_long = ContainerError::MetadataTooLong { len: u32::MAX };
    let len = u32::try_from(metadata.len()).ok().ok_or(too_long)?;

    let mut file = Vec::new();
    file.extend_from_slice(&MAGIC);
    file.extend_from_slice(&len.to_le_bytes());
    file.extend_from_slice(metadata.as_bytes());
    file.extend_from_slice(draft.payload);
    parse(&file)?;
    Ok(file)
}

/// The spelling of the vendor's packager.
fn spell(clock: Clock) -> serde_json::Value {
    match clock {
        Clock::Khz(khz) if khz.is_multiple_of(1000) => json!(khz.checked_div(1000)),
        Clock::Khz(khz) => json!(f64::from(khz) / 1000.0),
        Clock::Auto => json!("auto"),
        Clock::AutoUpTo(khz) => json!(format!("auto-{}", f64::from(khz) / 1000.0)),
    }
}
