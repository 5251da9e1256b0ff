//! Nonces and job keys, from the kernel.
//!
//! Knows `getrandom`. Must not know what the bytes are for.

use protocol::message::JobKey;
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::error::{Error, Result};

/// `N` random bytes. Never blocks: in the first moments of a boot, before the
/// kernel has entropy, this is an error and not a wait without end.
pub(crate) fn bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    let mut rest = bytes.as_mut_slice();
    while !rest.is_empty() {
        match getrandom(&mut *rest, GetRandomFlags::NONBLOCK) {
            Ok(filled) => rest = rest.get_mut(filled..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(error) => return Err(Error::Random(error.into())),
        }
    }
    Ok(bytes)
}

/// A fresh job key.
///
/// # Errors
/// [`Error::Random`] where the kernel has no random bytes yet.
pub fn job_key() -> Result<JobKey> {
    bytes().map(JobKey)
}
