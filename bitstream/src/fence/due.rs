//! Which register may be written now, whatever is written to it.
//!
//! The device's own state tells it: how far start-up is, how long the last
//! command has had, and whether frames are being copied.

use super::machine::{Machine, Power};
use super::reason::Reason;
use crate::xilinx::{Command, Register};

impl Machine<'_, '_> {
    /// Between a restore and the start, and from a copy's command to the next
    /// one, genuine files write few registers; after the start, three.
    pub(super) fn due(&mut self, register: Register, value: Option<u32>) -> Result<(), Reason> {
        if self.nops < self.wait {
            let why = "the device is given less time for a command than genuine files give it";
            return Err(Reason::Order(why));
        }
        self.wait = 0;
        match self.power {
            Power::Started | Power::Running | Power::Closed => {
                return self.after_start(register, value);
            }
            Power::Restored => {
                let few = [
                    Register::CMD,
                    Register::MASK,
                    Register::CTL0,
                    Register::CTL1,
                ];
                if !few.contains(&register) {
                    let why = "something else than the start follows the restore of flip-flops";
                    return Err(Reason::Order(why));
                }
            }
            Power::Untouched | Power::Stopped => {}
        }
        let few = [Register::CMD, Register::FAR, Register::MFWR, Register::CRC];
        if self.command == Command::MFW && !few.contains(&register) {
            return Err(Reason::Order("something comes between copies of a frame"));
        }
        Ok(())
    }

    /// After the start come the parking address, with which the device carries
    /// it out, a checksum, and the end: all three, once, in this order.
    fn after_start(&mut self, register: Register, value: Option<u32>) -> Result<(), Reason> {
        let park = self.device.map(|device| device.family().park());
        let ends = register == Register::CMD && value == Some(Command::DESYNC.0);
        self.power = match (self.power, register, ends) {
            (Power::Started, Register::FAR, _) if value == park => Power::Running,
            (Power::Running, Register::CRC, _) | (Power::Closed, _, true) => Power::Closed,
            (Power::Started, _, true) => return Err(Reason::LeftStopped),
            (Power::Running, _, true) => return Err(Reason::NoCrc),
            _ => return Err(Reason::Order("something follows the start of the device")),
        };
        Ok(())
    }
}
