//! Cards: access to their registers, the engines that program them, and the
//! journal of what each region holds.
//!
//! This room may know: PCI devices and how to reach them, programming
//! interfaces, regions by number, bytes to be written, owners as opaque tags.
//! It must not know: guests, grants, images by name, signatures, or any socket
//! but its device's own. It is the sole home of unsafe code, in `raw.rs`.
//!
//! The layers, from below:
//!
//! - [`device`]: one trait for a PCI device, whoever gives access to it;
//!   [`vfio`] and [`vfio_user`] implement it.
//! - [`dfl`]: the device feature list, walked and checked, and the engine that
//!   programs through its PR feature.
//! - [`hwicap`]: the engine that programs through an AXI HWICAP core, as AMD
//!   shells have it.
//! - [`engine`]: what the daemon programs against, with [`Programming`] as the
//!   guard object of one load.
//! - [`journal`]: what each region was meant to hold, across crashes.
//! - [`sealed`]: bytes that nobody can change any more.
//!
//! Left for later, with their places: the user clock (between `begin` and
//! `identity` of an engine), alarms and scrubbers (beside [`engine`]), the
//! bus-mastering check (a reader of configuration space beside [`pci`]).
#![deny(unsafe_code)]

mod address;
mod clock;
pub mod device;
pub mod dfl;
pub mod engine;
#[doc(hidden)]
pub mod fuzz;
pub mod hwicap;
pub mod journal;
mod open;
mod patience;
pub mod pci;
#[expect(
    unsafe_code,
    reason = "memory maps and VFIO's calls; every block says why it is sound"
)]
mod raw;
pub mod sealed;
#[cfg(test)]
mod testing;
pub mod vfio;
pub mod vfio_user;

pub use address::{AddressError, CardAddress, PciAddress};
pub use clock::{Clock, SystemClock};
pub use device::{Device, DeviceError, DeviceIdentity};
pub use engine::{
    Access, Capabilities, Engine, EngineError, Identity, Payload, ProgramError, Programming,
    RegionFacts, RegionId, ResetState, WordOrder, Written,
};
pub use journal::{Journal, OwnerTag};
pub use open::{OpenError, OpenOptions, open_card, open_hwicap};
pub use sealed::{MemfdWriter, SealError, SealedMap, SealedMemfd};
