//! The real card's process against the simulated card. The tests play
//! `reconfd`, honest or taken over.
//!
//! A thread of the test runs the process where it may live, a child process
//! where it must die: `kill::child` is that child, and does nothing when the
//! test runner calls it.

// `cfg(test)` tells clippy that helpers in here may panic like tests.
#[cfg(test)]
mod client;
#[cfg(test)]
mod disk;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod invariants;
#[cfg(test)]
mod kill;
#[cfg(test)]
mod loads;
#[cfg(test)]
mod program;
#[cfg(test)]
mod restarts;
#[cfg(test)]
mod scrubs;
#[cfg(test)]
mod stage;
