//! A strict vfio-user client.
use std::path::Path;
use std::time::Duration;
use crate::device::DeviceError;
/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub struct Deadlines {
    /// To connect and to agree on the protocol.
    pub connect: Duration,
    /// For each answer.
    pub answer: Duration,
}
impl Default for Deadlines {
    fn default() -> Self {
        Self { connect: Duration::from_secs(2), answer: Duration::from_secs(5) }
    }
}
/// A device served over vfio-user.
#[derive(Debug)]
pub struct VfioUserDevice {}
impl VfioUserDevice {
    /// Connects.
    pub fn open(_path: &Path, _deadlines: Deadlines) -> Result<Self, DeviceError> { todo!() }
}
