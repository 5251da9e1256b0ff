//! A picture of a card for people and tests: what is in each region and who
//! reaches it, as the card itself knows it, not as registers tell it.

use serde::Serialize;
use uuid::Uuid;

use crate::card::{Card, PciFunction};
use crate::csr::Level;
use crate::region::{Access, Fabric};
use crate::regions::RegionId;

/// The card now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct State {
    /// Serial number, sixteen hex digits.
    pub serial: String,
    /// The interface id that payloads must carry.
    pub interface_id: Uuid,
    /// The device, of a card whose frames are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// A fault made the card vanish.
    pub gone: bool,
    /// By number.
    pub regions: Vec<RegionState>,
    /// The management function.
    pub management: FunctionState,
}

/// One region now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RegionState {
    /// Its number.
    pub region: u8,
    /// The AFU id; none after power-up and during or after a reconfiguration that did not end well.
    pub function: Option<Uuid>,
    /// A word for the function: `none`, `blank`, `adder`, `counter`, `crc32`, `cipher`, `unknown`.
    pub name: &'static str,
    /// Who reaches the function: `host` or `guest`.
    pub access: AccessState,
    /// Held in reset, and acknowledged by the port.
    pub in_reset: bool,
    /// The configuration engine works on it.
    pub frozen: bool,
    /// Its user function.
    pub user: FunctionState,
}

/// Who reaches a region's function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccessState {
    /// The management function.
    Host,
    /// The user function.
    Guest,
}

/// A PCI function now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FunctionState {
    /// Whether a vfio-user client is connected.
    pub connected: bool,
    /// Whether its driver let it master the bus.
    pub bus_master: bool,
}

impl Card {
    /// What the card is like now.
    pub fn state(&mut self) -> State {
        let mut regions = Vec::with_capacity(RegionId::ALL.len());
        for id in RegionId::ALL {
            let user = self.function_state(PciFunction::User(id));
            let region = self.settled_regions().of(id);
            regions.push(RegionState {
                region: id.number(),
                function: region.function().id(),
                name: region.function().name(),
                access: match region.access() {
                    Access::Host => AccessState::Host,
                    Access::Guest => AccessState::Guest,
                },
                in_reset: region.in_reset(),
                frozen: region.fabric == Fabric::Frozen,
                user,
            });
        }
        State {
            serial: format!("{:016x}", self.serial()),
            interface_id: self.interface_id(),
            device: self.device().map(str::to_owned),
            gone: self.is_gone(),
            regions,
            management: self.function_state(PciFunction::Management),
        }
    }

    fn function_state(&self, function: PciFunction) -> FunctionState {
        let (space, connected) = self.bus_view(function);
        FunctionState {
            connected: connected > 0,
            bus_master: space.bus_master() == Level::High,
        }
    }
}
