//! Which VM holds which regions: the registrar's records.
//!
//! Pure: knows VMs, generations, user functions and slots. Must not know what a
//! guest says, or how the records are kept (`registrations`).

use std::collections::BTreeMap;
use std::path::{Component, Path};

use serde::{Deserialize, Serialize};
use thiserror::Error;
use uuid::Uuid;

use super::identity::{BootId, Generation, ProcessId, owner_tag};
use super::plan::{HostPlan, RegionKey};
use crate::admin::{AttachedFunction, ChannelSpec};
use crate::ipc::OwnerTag;

/// One start of one VM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Registration {
    /// The VM.
    pub vm: Uuid,
    /// Its name for people.
    pub name: String,
    /// Who owns it.
    pub tenant: String,
    /// This start of it.
    pub generation: Generation,
    /// The boot of the host in which it was made.
    pub boot: BootId,
    /// Its user functions.
    pub functions: Vec<AttachedFunction>,
    /// Its channel.
    pub channel: ChannelSpec,
    /// The process behind the channel, if the registrar named one.
    pub process: Option<ProcessId>,
}

impl Registration {
    /// The tag under which `reconf-card` knows this VM and generation.
    #[must_use]
    pub fn tag(&self) -> OwnerTag {
        owner_tag(self.vm, &self.generation)
    }
}

/// A region that a VM holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotPlan {
    /// The guest's number.
    pub slot: u16,
    /// Where it lives.
    pub region: RegionKey,
    /// The guest's address of it, if known.
    pub guest_pci: Option<String>,
    /// The VM's functions that end in it.
    pub functions: Vec<String>,
}

/// Why a VM cannot be attached.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AttachError {
    /// No function was named.
    #[error("no user function was named")]
    NoFunctions,
    /// The function is in no shell file.
    #[error("{0} ends in no region that a shell file of this host names")]
    UnknownFunction(String),
    /// The same function twice.
    #[error("{0} is named twice")]
    Twice(String),
    /// Another VM holds it (I9).
    #[error("{function} is held by VM {vm} of tenant {tenant}")]
    Held {
        /// The function.
        function: String,
        /// Who holds it.
        vm: Uuid,
        /// Whose VM that is.
        tenant: String,
    },
    /// The VM is attached already.
    #[error("VM {0} is attached already")]
    Attached(Uuid),
    /// A guest's address that is none.
    #[error("{0} is no PCI address of a guest")]
    GuestAddress(String),
    /// A channel's path that could mean two things.
    #[error("the channel's path {0} is not absolute, or goes through `..`")]
    ChannelPath(String),
    /// Another VM's channel is at that path.
    #[error("the channel at {path} belongs to VM {vm}")]
    ChannelTaken {
        /// The path.
        path: String,
        /// Whose it is.
        vm: Uuid,
    },
}

impl AttachError {
    /// What the operator does next.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::NoFunctions => "name each user function that the VM was given with --function",
            Self::UnknownFunction(_) => {
                "write the address as the shell file does (`reconfctl regions`, `reconfctl check`), or add it there and `reconfctl reload`"
            }
            Self::Twice(_) => "name it once",
            Self::GuestAddress(_) => {
                "write domain, bus, device and function as the guest does: 0000:00:05.0"
            }
            Self::ChannelPath(_) => "write the whole path, from / on",
            Self::Held { .. } => "detach that VM first: `reconfctl vm detach`",
            Self::Attached(_) => {
                "detach it first if this is a new start of it: `reconfctl vm detach`"
            }
            Self::ChannelTaken { .. } => "give each VM a channel of its own",
        }
    }
}

/// All registrations.
#[derive(Debug, Default)]
pub struct Registry {
    vms: BTreeMap<Uuid, Registration>,
}

impl Registry {
    /// Checks a registration against the host's plan and the other VMs, and takes it in.
    ///
    /// # Errors
    /// See [`AttachError`]; nothing was changed.
    pub fn attach(&mut self, plan: &HostPlan, new: Registration) -> Result<(), AttachError> {
        if self.vms.contains_key(&new.vm) {
            return Err(AttachError::Attached(new.vm));
        }
        if new.functions.is_empty() {
            return Err(AttachError::NoFunctions);
        }
        for (number, function) in new.functions.iter().enumerate() {
            let address = &function.address;
            if let Some(guest) = &function.guest_pci {
                if !is_guest_pci(guest) {
                    return Err(AttachError::GuestAddress(guest.clone()));
                }
                let before = new.functions.iter().take(number);
                if before
                    .clone()
                    .any(|other| other.guest_pci.as_ref() == Some(guest))
                {
                    return Err(AttachError::Twice(guest.clone()));
                }
            }
            if plan.region_of(address).is_none() {
                return Err(AttachError::UnknownFunction(address.clone()));
            }
            if new
                .functions
                .iter()
                .take(number)
                .any(|other| other.address == *address)
            {
                return Err(AttachError::Twice(address.clone()));
            }
            if let Some(holder) = self.holder_of(address) {
                return Err(AttachError::Held {
                    function: address.clone(),
                    vm: holder.vm,
                    tenant: holder.tenant.clone(),
                });
            }
        }
        if let Some(path) = channel_path(&new.channel)
            && let Some(other) = self
                .vms
                .values()
                .find(|other| channel_path(&other.channel) == Some(path))
        {
            return Err(AttachError::ChannelTaken {
                path: path.display().to_string(),
                vm: other.vm,
            });
        }
        self.vms.insert(new.vm, new);
        Ok(())
    }

    /// Takes a VM out.
    pub fn detach(&mut self, vm: Uuid) -> Option<Registration> {
        self.vms.remove(&vm)
    }

    /// A VM.
    #[must_use]
    pub fn get(&self, vm: Uuid) -> Option<&Registration> {
        self.vms.get(&vm)
    }

    /// A VM, if this generation of it is alive.
    #[must_use]
    pub fn alive(&self, vm: Uuid, generation: &Generation) -> Option<&Registration> {
        self.vms
            .get(&vm)
            .filter(|registration| registration.generation == *generation)
    }

    /// Every VM.
    pub fn all(&self) -> impl Iterator<Item = &Registration> {
        self.vms.values()
    }

    fn holder_of(&self, function: &str) -> Option<&Registration> {
        self.vms
            .values()
            .find(|vm| vm.functions.iter().any(|held| held.address == function))
    }

    /// Who holds a region: every VM that has one of its functions.
    pub fn holders<'a>(
        &'a self,
        plan: &'a HostPlan,
        region: RegionKey,
    ) -> impl Iterator<Item = &'a Registration> {
        self.vms.values().filter(move |vm| {
            vm.functions
                .iter()
                .any(|held| plan.region_of(&held.address) == Some(region))
        })
    }

    /// A VM's slots: one a region, in the order of the guest's PCI addresses where all are
    /// known, else in the order given.
    #[must_use]
    pub fn slots(plan: &HostPlan, vm: &Registration) -> Vec<SlotPlan> {
        let mut functions: Vec<&AttachedFunction> = vm.functions.iter().collect();
        if functions
            .iter()
            .all(|function| function.guest_pci.is_some())
        {
            functions.sort_by(|one, two| one.guest_pci.cmp(&two.guest_pci));
        }
        let mut slots: Vec<SlotPlan> = Vec::new();
        for function in functions {
            let Some(region) = plan.region_of(&function.address) else {
                continue;
            };
            if let Some(slot) = slots.iter_mut().find(|slot| slot.region == region) {
                slot.functions.push(function.address.clone());
            } else {
                let slot = u16::try_from(slots.len()).unwrap_or(u16::MAX);
                slots.push(SlotPlan {
                    slot,
                    region,
                    guest_pci: function.guest_pci.clone(),
                    functions: vec![function.address.clone()],
                });
            }
        }
        slots
    }

    /// Whether the VM is the only one with functions that end in the region.
    #[must_use]
    pub fn sole_holder(&self, plan: &HostPlan, region: RegionKey, vm: Uuid) -> bool {
        self.holders(plan, region).all(|holder| holder.vm == vm)
    }
}

fn channel_path(channel: &ChannelSpec) -> Option<&Path> {
    match channel {
        ChannelSpec::Listen { path } => path.as_deref().map(Path::new),
        ChannelSpec::Connect { path } => Some(Path::new(path)),
    }
}

/// Whether the path that a registrar named is absolute and without `..`, so that two paths that
/// differ are two places (links aside). Our own stand where host.toml says.
///
/// # Errors
/// [`AttachError::ChannelPath`].
pub fn check_named_path(channel: &ChannelSpec) -> Result<(), AttachError> {
    let Some(path) = channel_path(channel) else {
        return Ok(());
    };
    let climbs = path
        .components()
        .any(|part| matches!(part, Component::ParentDir));
    if path.is_absolute() && !climbs {
        Ok(())
    } else {
        Err(AttachError::ChannelPath(path.display().to_string()))
    }
}

/// `0000:00:05.0`: the guest is shown it, and slots are ordered by it, so that there is one way
/// to write it.
fn is_guest_pci(text: &str) -> bool {
    let hex = |part: &str, len: usize| {
        part.len() == len
            && part
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let mut parts = text.split([':', '.']);
    let shape = [4usize, 2, 2, 1]
        .into_iter()
        .all(|len| parts.next().is_some_and(|part| hex(part, len)));
    let separators: String = text.chars().filter(|c| matches!(c, ':' | '.')).collect();
    shape && parts.next().is_none() && separators == "::."
}

#[cfg(test)]
pub(crate) mod tests;
