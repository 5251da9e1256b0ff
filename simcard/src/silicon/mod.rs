//! The configuration logic of an AMD FPGA, as far as a stream of words meets
//! it: synchronisation, packets, registers, CRC, and the memory of frames.
//!
//! It knows nothing of the bus or of the shell around it. It is a device and no
//! checker: what a stream asks for, it does, also outside of any region, and
//! counts. Written from public descriptions of the 7-series and UltraScale
//! families; where they are silent, README.md says what this model does.

mod crc;
mod frames;
mod geometry;
mod geometry_file;
mod logic;
mod packets;
mod registers;

#[cfg(test)]
mod tests;

pub use frames::{Range, Written};
pub use geometry::{Family, Geometry};
pub use geometry_file::GeometryError;
pub use logic::Trouble;
pub(crate) use logic::{Ending, Logic, Moment};
pub use registers::Dangers;
