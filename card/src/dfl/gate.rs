//! The gate of a region: who reaches it, and whether it is in reset.
//!
//! A classic port has both: the access switch in the management unit, which a
//! guest cannot move, and the soft reset, which a guest moves as well while
//! access is its own. So there only access isolates. On OFS cards there is no
//! switch, the port's registers are the host's alone, and the soft reset is
//! the gate.

use crate::device::{DeviceError, live};
use crate::engine::{Access, EngineCause, RegionLeft, ResetState};
use crate::patience::Patience;

use super::engine::DflEngine;
use super::registers::{
    PORT_CTRL, PORT_CTRL_LATENCY, PORT_CTRL_SFTRST, PORT_CTRL_SFTRST_ACK, PORT_OFST_ACCESS_VF,
};
use super::topology::{AccessSwitch, Port, Shape};

impl DflEngine {
    /// `PORT_CTRL`, from a card that is there.
    pub(super) fn port_control(&mut self, port: &Port) -> Result<u64, DeviceError> {
        let place = port.place;
        live(
            self.device
                .load64(place.bar, place.offset.saturating_add(PORT_CTRL))?,
        )
    }

    pub(super) fn port_reset(&mut self, port: &Port) -> Result<ResetState, EngineCause> {
        let control = self.port_control(port)?;
        let (told, acknowledged) = (
            control & PORT_CTRL_SFTRST != 0,
            control & PORT_CTRL_SFTRST_ACK != 0,
        );
        Ok(match (told, acknowledged) {
            (true, true) => ResetState::Held,
            (true, false) => ResetState::Entering,
            // The acknowledgement alone says nothing: it is shared with others.
            (false, _) => ResetState::Released,
        })
    }

    pub(super) fn port_access(&mut self, port: &Port) -> Result<Access, EngineCause> {
        let guest = match self.switch(port) {
            Some(switch) => self.switch_word(switch)? & PORT_OFST_ACCESS_VF != 0,
            None => self.port_reset(port)? != ResetState::Held,
        };
        Ok(if guest { Access::Guest } else { Access::Host })
    }

    /// Whether no guest reaches the region, and none can change that.
    pub(super) fn is_shut(&mut self, port: &Port) -> Result<bool, EngineCause> {
        let access = self.port_access(port)?;
        Ok(access == Access::Host && self.port_reset(port)? == ResetState::Held)
    }

    /// Gives access to the host, and reads back that it is there.
    pub(super) fn take_access(&mut self, port: &Port) -> Result<(), EngineCause> {
        match self.move_access(port, Access::Host)? {
            Some(register) => Err(EngineCause::DecoupleFailed { register }),
            None => Ok(()),
        }
    }

    /// Gives access to the guest, and reads back that it is there.
    pub(super) fn give_access(&mut self, port: &Port) -> Result<(), EngineCause> {
        match self.move_access(port, Access::Guest)? {
            Some(register) => Err(EngineCause::AccessStuck { register }),
            None => Ok(()),
        }
    }

    /// Puts the region into reset and waits for the acknowledgement.
    pub(super) fn hold_reset(&mut self, port: &Port) -> Result<(), EngineCause> {
        let control = self.port_control(port)?;
        let other = control & PORT_CTRL_LATENCY;
        let unheard = control & PORT_CTRL_SFTRST != 0 && control & PORT_CTRL_SFTRST_ACK == 0;
        if unheard && self.switch(port).is_some() && self.port_access(port)? == Access::Host {
            // Told before and never acknowledged: told again, as an edge. Not
            // where the reset itself is what keeps the guest out.
            self.set_port_control(port, other)?;
        }
        self.set_port_control(port, other | PORT_CTRL_SFTRST)?;
        self.await_port(
            port,
            "the acknowledgement of the region's reset",
            |control| control & PORT_CTRL_SFTRST != 0 && control & PORT_CTRL_SFTRST_ACK != 0,
        )
    }

    /// Takes the region out of reset and waits until it is.
    pub(super) fn release_reset(&mut self, port: &Port) -> Result<(), EngineCause> {
        let control = self.port_control(port)?;
        self.set_port_control(port, control & PORT_CTRL_LATENCY)?;
        self.await_port(port, "the end of the region's reset", |control| {
            control & (PORT_CTRL_SFTRST | PORT_CTRL_SFTRST_ACK) == 0
        })
    }

    /// Shuts a region after something failed, as far as the card still lets
    /// itself be told, and says what the card then showed.
    pub(super) fn make_safe(&mut self, port: &Port) -> RegionLeft {
        let taken = self.take_access(port);
        let held = self.hold_reset(port);
        for error in [taken, held].into_iter().filter_map(Result::err) {
            tracing::warn!(region = port.number, %error, "shutting a region after a failure");
        }
        match self.port_access(port) {
            Ok(Access::Host) => RegionLeft::Shut,
            Ok(Access::Guest) | Err(_) => RegionLeft::Unproven,
        }
    }

    /// The switch that isolates this port; none where the reset does.
    fn switch(&self, port: &Port) -> Option<AccessSwitch> {
        match self.shape {
            Shape::Classic => port.switch,
            Shape::Ofs => None,
        }
    }

    fn switch_word(&mut self, switch: AccessSwitch) -> Result<u64, DeviceError> {
        live(self.device.load64(switch.place.bar, switch.place.offset)?)
    }

    /// Moves the switch; returns its register where it did not move.
    fn move_access(&mut self, port: &Port, to: Access) -> Result<Option<u64>, EngineCause> {
        let Some(switch) = self.switch(port) else {
            return Ok(None);
        };
        let word = self.switch_word(switch)?;
        let wanted = match to {
            Access::Host => word & !PORT_OFST_ACCESS_VF,
            Access::Guest => word | PORT_OFST_ACCESS_VF,
        };
        self.device
            .store64(switch.place.bar, switch.place.offset, wanted)?;
        let got = self.switch_word(switch)?;
        let moved = (got ^ wanted) & PORT_OFST_ACCESS_VF == 0;
        Ok(if moved { None } else { Some(got) })
    }

    fn set_port_control(&mut self, port: &Port, value: u64) -> Result<(), DeviceError> {
        let place = port.place;
        self.device
            .store64(place.bar, place.offset.saturating_add(PORT_CTRL), value)
    }

    fn await_port(
        &mut self,
        port: &Port,
        what: &'static str,
        done: impl Fn(u64) -> bool,
    ) -> Result<(), EngineCause> {
        let mut patience = Patience::new(self.clock.now().saturating_add(self.waits.port));
        loop {
            let register = self.port_control(port)?;
            if done(register) {
                return Ok(());
            }
            if !patience.another(&*self.clock) {
                return Err(EngineCause::Stuck { what, register });
            }
        }
    }
}
