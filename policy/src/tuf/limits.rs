//! How much is ever read, followed or kept. Fixed: a repository cannot widen them.
//!
//! Knows numbers only. Each is far above what a large site needs and far below
//! what hurts a host; `docs/decisions/tuf.md` tells them to people.

/// Longest root, in bytes.
pub const ROOT_MAX: usize = 512 * 1024;
/// Longest timestamp, in bytes.
pub const TIMESTAMP_MAX: usize = 64 * 1024;
/// Longest snapshot, in bytes.
pub const SNAPSHOT_MAX: usize = 8 * 1024 * 1024;
/// Longest targets document, of the top or delegated, in bytes.
pub const TARGETS_MAX: usize = 8 * 1024 * 1024;
/// New roots that are followed in one update. What is left is followed in the next.
pub const ROOT_HOPS_MAX: u32 = 32;
/// Delegated roles that one search looks into.
pub const ROLES_VISITED_MAX: usize = 256;
/// Delegations that are remembered as verified in one update.
pub const EDGES_KEPT_MAX: usize = 4096;

/// Objects and lists within one another.
pub(super) const DEPTH_MAX: u32 = 24;
/// Values in one document, keys of objects included.
pub(super) const NODES_MAX: u32 = 1 << 20;
/// Signatures of one document.
pub(super) const SIGNATURES_MAX: usize = 128;
/// Longest signature, in bytes: RSA with 8192 bits.
pub(super) const SIGNATURE_MAX: usize = 1024;
/// Keys listed in one document.
pub(super) const KEYS_MAX: usize = 4096;
/// Longest public key as it is written, in bytes.
pub(super) const KEY_TEXT_MAX: usize = 4096;
/// Keys of one role.
pub(super) const ROLE_KEYS_MAX: usize = 128;
/// Roles that one document delegates to by name.
pub(super) const DELEGATIONS_MAX: usize = 4096;
/// Patterns, or prefixes of hashes, of one delegation.
pub(super) const PATTERNS_MAX: usize = 4096;
/// Longest name of a role, in bytes: encoded, it still is a file's name.
pub(super) const ROLE_NAME_MAX: usize = 80;
/// Longest path of a target, and longest pattern, in bytes.
pub(super) const PATH_MAX: usize = 255;
/// Longest key id, in bytes.
pub(super) const KEY_ID_MAX: usize = 128;
/// How far ahead of the clock a timestamp may say it was issued, in seconds.
pub(super) const ISSUED_AHEAD_MAX: u64 = 24 * 3600;
