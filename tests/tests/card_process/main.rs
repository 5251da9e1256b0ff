//! The real card's process against the simulated card. The tests play
//! `reconfd`, honest or taken over.
//!
//! A thread of the test runs the process where it may live, a child process
//! where it must die: `kill::child` is that child, and does nothing when the
//! test runner calls it.

mod client;
mod disk;
mod faults;
mod hostile;
mod invariants;
mod kill;
mod loads;
mod program;
mod restarts;
mod scrubs;
mod stage;
