//! `reconf-card`: the process that holds one card.
//!
//! It knows the card, its journal, the signed metadata as it reads them
//! itself, and one connection to `reconfd`, of which it believes nothing. It
//! must not know guests, grants, or the network; a region's owner is an opaque
//! tag to it.
//!
//! Read [`pipeline`] first: it is one load from the offer to the guest's
//! access. Around it:
//!
//! - [`process`] puts everything together, [`cli`] starts it;
//! - [`link`], [`inbox`], [`outlet`]: the connection, threads apart from
//! - [`worker`], the serial loop, with [`jobs`] as what each packet means and [`tell`] as what is
//!   answered;
//! - [`reconcile`] at the start, [`scrub`] and [`reopen`] on their own ways;
//! - [`trusted`], [`image`], [`known`] and [`fitted`]: what is believed of
//!   metadata and bytes, and proven of bytes for a region;
//! - [`region`], [`ledger`], [`mod@bench`]: state, its journal, and the tools;
//! - [`steps`]: where tests kill it.

mod bench;
pub mod cli;
mod ending;
mod fitted;
mod image;
mod inbox;
mod jobs;
mod known;
mod ledger;
mod link;
mod lock;
mod outlet;
mod pipeline;
mod process;
mod reconcile;
mod region;
mod reopen;
mod scrub;
mod setup;
mod steps;
mod tell;
mod trusted;
mod worker;
mod write;

pub use lock::LockError;
pub use process::{Controls, Options, Process, StartError};
pub use steps::{Step, Steps, Unwatched};
pub use worker::CardGone;
