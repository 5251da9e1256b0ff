//! Device feature lists.
use std::time::Duration;
/// How long the engine waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waits {
    /// For a port to acknowledge a reset.
    pub port: Duration,
    /// For anything of the PR engine, each time; at most 8 s.
    pub engine: Duration,
}
impl Default for Waits {
    fn default() -> Self {
        Self { port: Duration::from_secs(1), engine: Duration::from_secs(8) }
    }
}
/// Why a card's feature list is not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WalkError {}
/// What a card lacks to be programmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotProgrammable {}
