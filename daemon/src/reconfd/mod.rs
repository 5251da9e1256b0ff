//! `reconfd`: guest channels, the decision, jobs, audit.
//!
//! | file | what |
//! |---|---|
//! | `pipeline` | one request, one way |
//! | `channel`, `session`, `desk` | from a VM's channel to an answer |
//! | `judge`, `seal` | may it be loaded, and are these the bytes |
//! | `cards`, `turns`, `program` | the card's process, whose turn, the conversation |
//! | `registry`, `regions`, `jobs`, `plan` | what is held, pure |
//! | `jobstore`, `audit` | what outlives the process |
//! | `host`, `chores`, `operator` | what all share, what is owed, what operators ask |
//! | `start`, `cli` | assembly |

pub mod abuse;
pub mod admin_server;
pub mod audit;
pub mod cards;
pub mod channel;
pub mod chores;
pub mod cli;
pub mod desk;
pub mod host;
pub mod identity;
pub mod jobs;
pub mod jobstore;
pub mod judge;
pub mod operator;
pub mod outcome;
pub mod pipeline;
pub mod plan;
mod program;
pub mod regions;
pub mod registry;
pub mod seal;
pub mod session;
mod start;
pub mod turns;
mod watchdog;
