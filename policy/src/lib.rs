//! Who may load what, and why.
//!
//! Knows the files that operators write, the signed list of images, and the
//! decision that follows from both. Pure: bytes and the time are given to it,
//! verdicts come out. Must not open files or sockets, read a clock, or know a
//! device. The only room with signature code in it.
//!
//! Who wants a [`decide::Policy`] reads, in this order: [`files`] for what
//! the operator says, [`trust`] for what publishers signed, [`decide`] for the
//! verdict and its explanation. [`publish`] is the other side of [`trust`].

#![forbid(unsafe_code)]

pub mod decide;
pub mod files;
mod hex;
pub mod ids;
pub mod publish;
pub mod time;
pub mod trust;
pub mod tuf;

#[doc(hidden)]
pub mod fuzz;
#[cfg(test)]
mod testing;
