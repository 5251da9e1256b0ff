//! The three files that operators write.
//!
//! Knows their keys and grammar. Must not open them: bytes come in, and the
//! name under which the caller found them, for messages. A key that is not
//! known, a table given twice, a value out of range: each refuses the whole
//! file at line and column, with the nearest key that is known, for a setting
//! that is ignored in silence protects nobody.

mod design;
mod error;
mod grants;
mod host;
mod limits;
mod read;
mod shell;
mod size;

pub use design::{Hwicap, Placed};
pub use error::{FileError, Problem};
pub use grants::{GrantRule, Grants, Operation};
pub use host::{Capability, CardEntry, Engine, Host, LogLevel, Registrars, Requirements};
pub use limits::Limits;
pub use shell::{Blank, Fence, Region, RegionFacts, Shell};
pub use size::{ByteSize, Rate};

/// Longest of these files that is read, in bytes.
pub const FILE_MAX: usize = 1024 * 1024;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_hwicap;
