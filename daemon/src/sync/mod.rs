//! Fetching a repository in TUF format, and keeping what was verified of it.
//!
//! Knows sources (HTTP, a directory) and files. Must not judge: every document
//! is verified by `policy::tuf`, and what is stored are the very bytes that were.
//! `reconf-tuf-client` is this code with a small command line, so that the
//! official conformance suite for TUF clients can measure it.

mod client;
mod http;
mod source;
mod store;
mod updater;

pub use client::main;
pub use http::Http;
pub use source::{Directory, Fetched, Place, Source, SourceError};
pub use store::Store;
pub use updater::{SyncError, Updater, enrol};
