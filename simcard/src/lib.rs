//! A simulated FPGA card, served as vfio-user PCI devices: with the DFL register
//! map in its classic shape, or as an AMD shell with an AXI HWICAP core.
//!
//! It shares no code with the room that drives cards, on purpose: a mistake
//! would be made twice. It knows registers and the vfio-user protocol, and
//! nothing of guests' requests, policy, or the rest of the project. The judges
//! of its DFL shape are Linux's own driver and register traces of a vendor's
//! RTL; those of its AMD shape are real partial bitstreams.
//!
//! In a test, without a process:
//!
//! ```
//! use reconf_simcard::{Card, Config, PciFunction, Space};
//!
//! let mut card = Card::new(Config::new(0x1234, uuid::Uuid::from_u128(1)));
//! let mut header = [0; 8];
//! card.read(PciFunction::Management, Space::Bar0, 0, &mut header);
//! assert_eq!(header[7] >> 4, 4); // an FME
//! ```

#![forbid(unsafe_code)]

mod bar;
mod card;
pub mod cli;
mod clock;
mod config;
pub mod control;
mod csr;
pub mod dfl;
mod fault;
mod fifo;
mod fme;
pub mod functions;
pub mod hwicap;
pub mod mark;
pub mod payload;
mod pci;
mod pr;
mod region;
mod regions;
mod run;
mod serve;
mod shape;
mod silicon;
mod slot;
mod state;
mod stats;
mod table;
mod vfio_user;

#[cfg(test)]
mod tests;

pub use card::{Card, PciFunction, Space};
pub use clock::{Clock, Hand};
pub use config::{BadFifoDepth, BadRate, Config, FifoDepth, OnClose, REGIONS, Rate, Shape};
pub use fault::{Fault, FaultRefused, Kind, MAX_FAULTS, PrError, Stage, Times};
pub use pci::CONFIG_SPACE;
pub use regions::RegionId;
pub use serve::{Handle, ServeError, Sockets, serve};
pub use shape::{DFL_IDS, HWICAP_IDS, PciIds};
pub use silicon::{Dangers, Family, Geometry, GeometryError, Range, Trouble, Written};
pub use state::{AccessState, FunctionState, RegionState, State};
pub use stats::{FunctionStats, RegionStats, Stats};
pub use table::{Digest, Table, TableError, padded_digest};
