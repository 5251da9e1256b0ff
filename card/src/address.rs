//! How a card is named in the files that people write.
//!
//! There is one spelling for each card, so that two equal addresses are equal
//! strings: `pci:0000:3b:00.0`, the domain always written and the digits in
//! lower case as the kernel prints them, or `vfio-user:/path`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Longest path that fits a Unix socket address, without its closing NUL.
const MAX_SOCKET_PATH: usize = 107;

/// Where a card is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CardAddress {
    /// A PCI function of this machine, reached through kernel VFIO.
    Pci(PciAddress),
    /// A device served on a Unix socket, reached through vfio-user.
    VfioUser(PathBuf),
}

/// A PCI function: domain, bus, device and function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PciAddress {
    domain: u32,
    bus: u8,
    device: u8,
    function: u8,
}

/// Why a string is no card address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It begins with neither `pci:` nor `vfio-user:`.
    #[error("a card's address begins with \"pci:\" or \"vfio-user:\"")]
    Scheme,
    /// What follows `pci:` is not in the one accepted form.
    #[error("a PCI address is written like 0000:3b:00.0, with its domain and in lower case")]
    Pci,
    /// What follows `vfio-user:` is no absolute path that fits a socket.
    #[error("a vfio-user address is an absolute path of at most {MAX_SOCKET_PATH} bytes")]
    Path,
}

impl FromStr for CardAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if let Some(pci) = text.strip_prefix("pci:") {
            return pci.parse().map(Self::Pci);
        }
        let path = text
            .strip_prefix("vfio-user:")
            .ok_or(AddressError::Scheme)?;
        if !path.starts_with('/') || path.len() > MAX_SOCKET_PATH || path.contains('\0') {
            return Err(AddressError::Path);
        }
        Ok(Self::VfioUser(Path::new(path).to_owned()))
    }
}

impl fmt::Display for CardAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pci(pci) => write!(f, "pci:{pci}"),
            Self::VfioUser(path) => write!(f, "vfio-user:{}", path.display()),
        }
    }
}

impl FromStr for PciAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let mut fields = text.split(':');
        let (Some(domain), Some(bus), Some(slot), None) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            return Err(AddressError::Pci);
        };
        let (device, function) = slot.split_once('.').ok_or(AddressError::Pci)?;
        // Domains above ffff exist (Intel VMD begins at 10000); the kernel
        // writes them without leading zeros.
        let widest = domain.len() == 4 || (domain.len() <= 8 && !domain.starts_with('0'));
        if domain.len() < 4 || !widest {
            return Err(AddressError::Pci);
        }
        let address = Self {
            domain: hex(domain)?,
            bus: narrow(bus, 2, 0xff)?,
            device: narrow(device, 2, 0x1f)?,
            function: narrow(function, 1, 7)?,
        };
        Ok(address)
    }
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            domain,
            bus,
            device,
            function,
        } = self;
        write!(f, "{domain:04x}:{bus:02x}:{device:02x}.{function}")
    }
}

/// Lower-case hexadecimal digits and nothing else (`from_str_radix` would take
/// a sign).
fn hex(digits: &str) -> Result<u32, AddressError> {
    let plain = digits
        .bytes()
        .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if !plain {
        return Err(AddressError::Pci);
    }
    u32::from_str_radix(digits, 16).map_err(|_not_a_number| AddressError::Pci)
}

/// A field of exactly `width` digits that is at most `max`.
fn narrow(digits: &str, width: usize, max: u8) -> Result<u8, AddressError> {
    if digits.len() != width {
        return Err(AddressError::Pci);
    }
    u8::try_from(hex(digits)?)
        .ok()
        .filter(|value| *value <= max)
        .ok_or(AddressError::Pci)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The spellings that broke a discovery tool, from cases/CYB-11.
    #[test]
    fn cyb_11_one_spelling_of_a_pci_address() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../shared/cases/CYB-11/bdf.txt"
        );
        let Ok(text) = std::fs::read_to_string(path) else {
            eprintln!("SKIPPED: {path} is not here");
            return;
        };
        let good: Vec<&str> = text
            .split('\n')
            .filter(|line| line.parse::<PciAddress>().is_ok())
            .collect();
        assert_eq!(good, ["0000:d8:00.0", "10000:d8:00.0"]);
        for line in good {
            assert_eq!(line.parse::<PciAddress>().unwrap().to_string(), line);
        }
    }

    #[test]
    fn addresses_are_read_back_as_written() {
        for text in [
            "pci:0000:3b:00.0",
            "pci:10000:ff:1f.7",
            "vfio-user:/run/card0.sock",
        ] {
            assert_eq!(text.parse::<CardAddress>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn other_forms_are_refused_with_their_reason() {
        let long = format!("vfio-user:/{}", "x".repeat(MAX_SOCKET_PATH));
        for (text, error) in [
            ("", AddressError::Scheme),
            ("0000:3b:00.0", AddressError::Scheme),
            ("pci:", AddressError::Pci),
            ("pci:0000:3b:+0.0", AddressError::Pci),
            ("pci:00000:3b:00.0", AddressError::Pci),
            ("pci:0000:3b:00.0:", AddressError::Pci),
            ("vfio-user:card0.sock", AddressError::Path),
            ("vfio-user:/a\0b", AddressError::Path),
            (long.as_str(), AddressError::Path),
        ] {
            assert_eq!(text.parse::<CardAddress>(), Err(error), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_accepted_is_the_one_spelling(text in "[0-9a-fA-F:. ]{0,16}") {
            if let Ok(address) = text.parse::<PciAddress>() {
                prop_assert_eq!(address.to_string(), text);
            }
        }
    }
}
