//! The guest's side of reconf: ask the host to change the function in a slot.
//!
//! Knows the channel, the protocol and a tenant's needs. Must not know cards,
//! regions, policies or anything else of the host: a guest names slots and
//! images, and the host decides.
//!
//! [`Client`] is asynchronous (tokio), [`blocking::Client`] is not; both do the
//! same. [`cli`] is the `reconf` command.
//!
//! ```no_run
//! use reconf_client::{Config, ImageRef, Load, blocking::Client, job_key};
//!
//! # fn main() -> reconf_client::Result<()> {
//! let client = Client::connect(Config::default())?;
//! let key = job_key()?;
//! client.load(Load {
//!     key,
//!     slot: None,
//!     image: ImageRef::Name("acme/aes:1.2".into()),
//!     if_not_loaded: true,
//!     force: false,
//! })?;
//! let job = client.wait(key, |job| println!("{:?} {}/{}", job.stage, job.done, job.total))?;
//! println!("{:?}", job.result);
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

pub mod blocking;
pub mod cli;

mod backoff;
mod channel;
mod client;
mod config;
mod error;
mod line;
mod link;
mod random;
mod refusal;
pub mod text;
mod watch;

pub use channel::{AGENT_SOCKET, Duplex, ENVIRONMENT, PORT, Places, SearchReport, Tried};
pub use client::Client;
pub use config::Config;
pub use error::{Error, Result};
pub use protocol::message::{
    Clear, Digest, ErrorReply, Event, EventKind, FunctionId, ImageEntry, ImageRef, JobInfo, JobKey,
    JobKind, JobResult, Load, Slot, SlotInfo, SlotState, Stage,
};
pub use protocol::status::{Detail, Status};
pub use random::job_key;
pub use watch::Watch;
