//! The host's side: `reconfd`, `reconf-card` and `reconfctl`.
//!
//! Knows sockets, files and processes, and assembles the pure rooms. Must not
//! know signature mathematics (`policy`), registers (`card`) or container
//! formats (`bitstream`).

#![forbid(unsafe_code)]

pub mod admin;
pub mod card_process;
pub mod contents;
pub mod fence;
pub mod files;
pub mod frames;
pub mod hex;
pub mod ipc;
pub mod layout;
pub mod reconfctl;
pub mod reconfd;
pub mod signed_list;
pub mod sync;
