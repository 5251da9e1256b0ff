//! `reconfd`: guest channels, the decision, jobs, audit.
//!
//! | file | what |
//! |---|---|
//! | `pipeline` | one request, one way; `authorize`, `errand`, `records` are its parts |
//! | `channel`, `session`, `desk` | from a VM's channel to an answer |
//! | `judge`, `seal` | may it be loaded, and are these the bytes |
//! | `cards`, `turns`, `program` | the card's process, whose turn, the conversation |
//! | `registry`, `regions`, `jobs`, `plan` | what is held, pure |
//! | `jobstore`, `audit` | what outlives the process |
//! | `host`, `chores`, `operator` | what all share, what is owed, what operators ask |
//! | `start`, `cli` | assembly |

pub mod abuse;
pub mod admin_server;
mod attend;
pub mod audit;
pub mod authorize;
pub mod cards;
pub mod channel;
pub mod chores;
pub mod cli;
pub mod desk;
pub mod duties;
mod enliven;
mod errand;
pub mod host;
pub mod identity;
pub mod jobs;
pub mod jobstore;
pub mod judge;
pub mod listening;
pub mod operator;
mod orphans;
pub mod outcome;
pub mod pipeline;
pub mod plan;
mod policy_files;
mod process_lock;
mod program;
mod records;
pub mod regions;
pub mod registrations;
pub mod registry;
pub mod repeats;
mod reports;
mod revive;
pub mod seal;
mod sealing;
pub mod session;
mod start;
pub mod troubles;
pub mod turns;
mod views;
mod watchdog;

#[cfg(test)]
pub(crate) mod tests;
