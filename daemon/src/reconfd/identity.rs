//! Who a VM is: its UUID and this start of it.
//!
//! Knows the kernel's own words (boot id, process start time). Must not know
//! what a guest says: identity comes from the registrar and the kernel only.

use std::time::{SystemTime, UNIX_EPOCH};

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ipc::OwnerTag;

/// One start of a VM, compared for equality only.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Generation(String);

impl Generation {
    /// A new one: boot id, time of registration, and random bits.
    ///
    /// # Errors
    /// The kernel gives no boot id.
    pub fn new(boot: &BootId) -> Self {
        Self(format!(
            "{}.{}.{}",
            boot.0,
            unix_now(),
            Uuid::new_v4().simple()
        ))
    }

    /// For logs: enough to tell two apart.
    #[must_use]
    pub fn short(&self) -> &str {
        self.0
            .rsplit('.')
            .next()
            .and_then(|random| random.get(..8))
            .unwrap_or("?")
    }

    /// The whole token.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The owner of regions as `reconf-card` sees it: nothing can be read out of it.
#[must_use]
pub fn owner_tag(vm: Uuid, generation: &Generation) -> OwnerTag {
    let mut text = b"reconf owner\0".to_vec();
    text.extend_from_slice(vm.as_bytes());
    text.extend_from_slice(generation.0.as_bytes());
    let mut tag = [0u8; 32];
    tag.copy_from_slice(digest(&SHA256, &text).as_ref());
    OwnerTag(tag)
}

/// This boot of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BootId(String);

impl BootId {
    /// Reads it from the kernel.
    ///
    /// # Errors
    /// `/proc` is not there.
    pub fn current() -> std::io::Result<Self> {
        Ok(Self(
            std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?
                .trim()
                .to_owned(),
        ))
    }
}

/// A process, told apart from a later one with the same number (I8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessId {
    /// Its number.
    pub pid: u32,
    /// Its start, in clock ticks since boot.
    pub started: u64,
}

impl ProcessId {
    /// The process that has this number now.
    ///
    /// # Errors
    /// There is none, or `/proc` says something unexpected.
    pub fn of(pid: u32) -> std::io::Result<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
        // The command's name stands in parentheses and may hold anything, parentheses too.
        let started = stat
            .rsplit_once(')')
            .and_then(|(_name, rest)| rest.split_ascii_whitespace().nth(19))
            .and_then(|ticks| ticks.parse().ok())
            .ok_or_else(|| std::io::Error::other(format!("/proc/{pid}/stat has no start time")))?;
        Ok(Self { pid, started })
    }

    /// Whether it is still that process.
    #[must_use]
    pub fn is_alive(self) -> bool {
        Self::of(self.pid).is_ok_and(|now| now == self)
    }
}

/// Seconds of Unix time; 0 for a clock before 1970.
#[must_use]
pub fn unix_now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_starts_are_never_one() {
        let boot = BootId::current().unwrap();
        let (one, two) = (Generation::new(&boot), Generation::new(&boot));
        assert_ne!(one, two);
        let vm = Uuid::new_v4();
        assert_ne!(owner_tag(vm, &one), owner_tag(vm, &two));
        assert_ne!(owner_tag(vm, &one), owner_tag(Uuid::new_v4(), &one));
        assert_eq!(one.short().len(), 8);
    }

    #[test]
    fn i8_a_process_is_its_number_and_its_start() {
        let me = ProcessId::of(std::process::id()).unwrap();
        assert!(me.is_alive());
        assert!(
            !ProcessId {
                started: me.started + 1,
                ..me
            }
            .is_alive()
        );
        assert!(ProcessId::of(u32::MAX).is_err());
    }
}
