//! The harness of the end-to-end tests, the demo and the benchmark: a whole
//! host on one machine, without root, without an FPGA and without a VM.
//!
//! May use every room. Nothing here is part of the product.

#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a harness talks to the person who runs it"
)]

pub mod bench;
pub mod chardev;
pub mod demo;
pub mod lab;
pub mod memory;
pub mod process;
pub mod raw;
pub mod rooms;
pub mod world;
