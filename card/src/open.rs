//! From a card's address to its engine.

use std::sync::Arc;

use crate::address::CardAddress;
use crate::clock::{Clock, SystemClock};
use crate::device::{Device, DeviceError};
use crate::dfl::{self, DflEngine, NotProgrammable, WalkError};
use crate::engine::Engine;
use crate::hwicap::{HwicapEngine, Layout, NotUsable};
use crate::vfio::KernelDevice;
use crate::vfio_user::{self, VfioUserDevice};

/// How a card is opened.
#[derive(Clone)]
pub struct OpenOptions {
    /// Deadlines of the vfio-user transport.
    pub transport: vfio_user::Deadlines,
    /// Deadlines of the engine's waits.
    pub waits: dfl::Waits,
    /// The clock of these waits.
    pub clock: Arc<dyn Clock>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            transport: vfio_user::Deadlines::default(),
            waits: dfl::Waits::default(),
            clock: Arc::new(SystemClock::new()),
        }
    }
}

impl std::fmt::Debug for OpenOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenOptions")
            .field("transport", &self.transport)
            .field("waits", &self.waits)
            .finish_non_exhaustive()
    }
}

/// Why a card cannot be used. Other cards are not touched by it.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The device could not be opened.
    #[error("{address}: {source}")]
    Device {
        /// Which card.
        address: CardAddress,
        /// What went wrong.
        source: DeviceError,
    },
    /// The device's feature list is damaged.
    #[error("{address}: {source}")]
    Walk {
        /// Which card.
        address: CardAddress,
        /// What is wrong with it.
        source: WalkError,
    },
    /// The card is sound, and lacks what it takes to program it.
    #[error("{address} is not programmable: {reason}")]
    NotProgrammable {
        /// Which card.
        address: CardAddress,
        /// What it lacks.
        reason: NotProgrammable,
    },
    /// The card is not what its shell file says.
    #[error("{address}: {source}")]
    NotUsable {
        /// Which card.
        address: CardAddress,
        /// What differs.
        source: NotUsable,
    },
}

/// Opens a card, reads what it is and makes its engine. Nothing is written to
/// it, and it is not reset but by kernel VFIO, which resets what it opens.
///
/// # Errors
/// [`OpenError`].
pub fn open_card(
    address: &CardAddress,
    options: &OpenOptions,
) -> Result<Box<dyn Engine>, OpenError> {
    let mut device = open_device(address, options)?;
    let topology = dfl::walk(&mut *device).map_err(|source| OpenError::Walk {
        address: address.clone(),
        source,
    })?;
    let engine = DflEngine::new(device, &topology, options.waits, Arc::clone(&options.clock))
        .map_err(|reason| OpenError::NotProgrammable {
            address: address.clone(),
            reason,
        })?;
    Ok(Box::new(engine))
}

/// Opens a card whose shell file states `layout`, and makes its engine. The
/// core is brought to rest and the device asked for its IDCODE; regions are
/// left as they are, and the card is not reset.
///
/// # Errors
/// [`OpenError`].
pub fn open_hwicap(
    address: &CardAddress,
    layout: &Layout,
    options: &OpenOptions,
) -> Result<Box<dyn Engine>, OpenError> {
    let device = open_device(address, options)?;
    let clock = Arc::clone(&options.clock);
    let engine = HwicapEngine::new(device, layout, options.waits, clock);
    let engine = engine.map_err(|source| OpenError::NotUsable {
        address: address.clone(),
        source,
    })?;
    Ok(Box::new(engine))
}

fn open_device(address: &CardAddress, options: &OpenOptions) -> Result<Box<dyn Device>, OpenError> {
    let device: Result<Box<dyn Device>, DeviceError> = match address {
        CardAddress::VfioUser(path) => match VfioUserDevice::open(path, options.transport) {
            Ok(device) => Ok(Box::new(device)),
            Err(error) => Err(error),
        },
        CardAddress::Pci(pci) => match KernelDevice::open(*pci) {
            Ok(device) => Ok(Box::new(device)),
            Err(error) => Err(error),
        },
    };
    device.map_err(|source| OpenError::Device {
        address: address.clone(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_opened_says_which_card_and_why() {
        let options = OpenOptions::default();
        let open = |text: &str| open_card(&text.parse().unwrap(), &options).map(|_engine| ());
        let error = open("pci:ffff:ff:1f.7").unwrap_err();
        assert!(
            error.to_string().contains("no PCI function ffff:ff:1f.7"),
            "{error}"
        );
        let error = open("vfio-user:/nowhere/card0.sock").unwrap_err();
        assert!(matches!(error, OpenError::Device { .. }), "{error}");
        assert!(error.to_string().contains("vfio-user:/nowhere/card0.sock"));
    }
}
