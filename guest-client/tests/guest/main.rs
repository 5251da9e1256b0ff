//! The client against hosts of our own making: honest, slow, lossy, hostile.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::print_stderr,
    reason = "a test stops where something is not as it has to be"
)]

mod blocking;
mod command;
mod command_jobs;
mod command_shows;
mod hostile;
mod jobs;
mod model;
mod peer;
mod reconnect;
mod session;
mod watches;
