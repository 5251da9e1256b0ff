//! AMD shells: programming through an AXI HWICAP core, isolation by a DFX
//! decoupler for each region.
//!
//! Nothing on such a card tells where these are, which regions there are, or
//! which bitstreams fit them: the operator's shell file does ([`Layout`]). The
//! engine checks what it can: that the registers answer, and that the device
//! behind the core is the one that was named.
//!
//! The core has registers of 32 bits. Words go into a write FIFO, as many as
//! it has room for; a bit then lets them through to the configuration logic.
//! That they went through proves nothing: the configuration logic has an error
//! flag of its own, and the region perhaps a register with its function's
//! identifier, fed by the region and readable while it is decoupled.
//!
//! May know registers and their order. Must not know frames or packets, but
//! for the two short sequences that every loader needs: asking for the IDCODE,
//! and ending synchronisation.

mod core;
mod engine;
mod layout;
mod loader;

#[cfg(test)]
mod tests;

pub use self::engine::{HwicapEngine, NotUsable};
pub use self::layout::{Layout, LayoutError, RegionLayout};
