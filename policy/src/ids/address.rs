//! Where a card or one of its functions is reached.

use std::fmt;
use std::sync::Arc;

use super::{IdError, IdKind, text_form};

/// A PCI function. Written `0000:3b:00.0`: the domain always, in lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PciAddress {
    /// The domain; above 0xffff behind some storage controllers.
    pub domain: u32,
    /// The bus.
    pub bus: u8,
    /// The device, 0 to 31.
    pub device: u8,
    /// The function, 0 to 7.
    pub function: u8,
}

impl PciAddress {
    /// Reads the address without its `pci:`.
    #[must_use]
    pub fn parse(text: &str) -> Option<PciAddress> {
        let (domain, rest) = text.split_once(':')?;
        let (bus, rest) = rest.split_once(':')?;
        let (device, function) = rest.split_once('.')?;
        let device = u8::try_from(hex(device, 2, 2)?).ok().filter(|d| *d < 32)?;
        let function = u8::try_from(hex(function, 1, 1)?).ok().filter(|f| *f < 8)?;
        // A fifth digit of the domain only where four do not do: one spelling each.
        let domain = hex(domain, 4, 8).filter(|d| domain.len() == 4 || *d > 0xffff)?;
        let address = PciAddress {
            domain,
            bus: u8::try_from(hex(bus, 2, 2)?).ok()?,
            device,
            function,
        };
        (address.to_string() == text).then_some(address)
    }
}

/// `min` to `max` lower-case hex digits.
fn hex(text: &str, min: usize, max: usize) -> Option<u32> {
    let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if (min..=max).contains(&text.len()) && text.bytes().all(digit) {
        u32::from_str_radix(text, 16).ok()
    } else {
        None
    }
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PciAddress {
            domain,
            bus,
            device,
            function,
        } = self;
        write!(f, "{domain:04x}:{bus:02x}:{device:02x}.{function}")
    }
}

/// The path of a vfio-user server's socket: absolute, with nothing in it that
/// would give one socket two spellings, short enough for a socket address.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SocketPath(Arc<str>);

impl SocketPath {
    /// Longest path, in bytes: what fits in a Unix socket's address.
    pub const MAX: usize = 107;

    /// Reads the path.
    #[must_use]
    pub fn parse(text: &str) -> Option<SocketPath> {
        let part = |part: &str| !matches!(part, "" | "." | "..");
        let rest = text.strip_prefix('/')?;
        let fits = text.len() <= SocketPath::MAX
            && rest.split('/').all(part)
            && !text.chars().any(|c| c.is_control() || c.is_whitespace());
        fits.then(|| SocketPath(text.into()))
    }

    /// The path.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SocketPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where a PCI device is reached: `pci:0000:3b:00.0`, or `vfio-user:/path`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CardAddress {
    /// On this host's PCI bus.
    Pci(PciAddress),
    /// Served by a process, at this socket.
    VfioUser(SocketPath),
}

/// A user function's address has the same two forms.
pub type FunctionAddress = CardAddress;

impl CardAddress {
    /// Reads an address.
    ///
    /// # Errors
    ///
    /// [`IdError`] where the text does not follow the grammar.
    pub fn parse(text: &str) -> Result<CardAddress, IdError> {
        let address = match text.split_once(':') {
            Some(("pci", rest)) => PciAddress::parse(rest).map(CardAddress::Pci),
            Some(("vfio-user", rest)) => SocketPath::parse(rest).map(CardAddress::VfioUser),
            _ => None,
        };
        address.ok_or_else(|| IdError::new(IdKind::Address, text))
    }
}

impl fmt::Display for CardAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CardAddress::Pci(address) => write!(f, "pci:{address}"),
            CardAddress::VfioUser(path) => write!(f, "vfio-user:{path}"),
        }
    }
}

text_form!(CardAddress);
