//! How much memory a process has, from the kernel's own count.

use anyhow::{Context, Result};

/// Bytes of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Resident, shared pages counted in full.
    pub resident: u64,
    /// Proportional: shared pages divided among those who share them.
    pub proportional: u64,
    /// Pages of its own only.
    pub private: u64,
}

/// Reads `/proc/PID/smaps_rollup`.
///
/// # Errors
/// The process is gone, or another user's.
pub fn of(pid: u32) -> Result<Memory> {
    let path = format!("/proc/{pid}/smaps_rollup");
    let text = std::fs::read_to_string(&path).with_context(|| path.clone())?;
    let kilobytes = |name: &str| -> Result<u64> {
        let line = text
            .lines()
            .find(|line| line.split(':').next() == Some(name));
        let number = line.and_then(|line| line.split_whitespace().nth(1));
        let number: u64 = number
            .with_context(|| format!("{path} has no {name}"))?
            .parse()?;
        Ok(number.saturating_mul(1024))
    };
    Ok(Memory {
        resident: kilobytes("Rss")?,
        proportional: kilobytes("Pss")?,
        private: kilobytes("Private_Dirty")?.saturating_add(kilobytes("Private_Clean")?),
    })
}
