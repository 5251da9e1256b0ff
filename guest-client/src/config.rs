//! How long the client waits for what.
//!
//! Knows durations only. Must not know channels or messages.

use std::time::Duration;

/// The client's patience. Every wait of the library ends by one of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// From the first attempt to reach the host to an open session. Default 5 s.
    pub handshake_timeout: Duration,
    /// How often `Hello` is said again while nobody answers. Default 500 ms.
    pub hello_interval: Duration,
    /// From a request to its reply. Default 10 s.
    pub reply_timeout: Duration,
    /// From [`Client::wait`](crate::Client::wait) to the end of the job, lost
    /// sessions included. Default 10 minutes.
    pub wait_timeout: Duration,
    /// Longest pause between two looks at a job that runs. Default 250 ms.
    pub poll_interval: Duration,
    /// While somebody watches and nothing happens, the host is asked this often
    /// whether the session still lives; a virtio port tells nothing when the
    /// host goes away. Default 5 s.
    pub keepalive: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            handshake_timeout: Duration::from_secs(5),
            hello_interval: Duration::from_millis(500),
            reply_timeout: Duration::from_secs(10),
            wait_timeout: Duration::from_secs(600),
            poll_interval: Duration::from_millis(250),
            keepalive: Duration::from_secs(5),
        }
    }
}
