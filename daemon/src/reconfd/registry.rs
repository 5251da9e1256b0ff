//! Which VM holds which regions: the registrar's records.
//!
//! Pure but for two functions that read and write one file. Knows VMs,
//! generations, user functions and slots. Must not know what a guest says.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use uuid::Uuid;

use super::identity::{BootId, Generation, ProcessId, owner_tag};
use super::plan::{HostPlan, RegionKey};
use crate::admin::{AttachedFunction, ChannelSpec};
use crate::ipc::OwnerTag;

/// Longest registrations file, in bytes.
const MAX_FILE: u64 = 8 * 1024 * 1024;

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
                path: path.to_owned(),
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

fn channel_path(channel: &ChannelSpec) -> Option<&str> {
    match channel {
        ChannelSpec::Listen { path } => path.as_deref(),
        ChannelSpec::Connect { path } => Some(path),
    }
}

/// What the file held at start.
#[derive(Debug)]
pub enum Stored {
    /// It was read: these are alive, and these are over (another boot, or their process ended).
    Good {
        /// Alive.
        alive: Vec<Registration>,
        /// Over.
        over: Vec<Registration>,
    },
    /// There was none, or it could not be read: regions with an owner are held until their VM
    /// is attached again.
    Lost(String),
}

/// Reads the registrations and checks each against the kernel.
#[must_use]
pub fn load(path: &Path, boot: &BootId) -> Stored {
    let bytes = match crate::files::read_bounded(path, MAX_FILE) {
        Ok(bytes) => bytes,
        Err(error) => return Stored::Lost(error.to_string()),
    };
    match serde_json::from_slice::<Vec<Registration>>(&bytes) {
        Err(error) => Stored::Lost(error.to_string()),
        Ok(all) => {
            let (alive, over) = all
                .into_iter()
                .partition(|vm| vm.boot == *boot && vm.process.is_none_or(ProcessId::is_alive));
            Stored::Good { alive, over }
        }
    }
}

/// Writes the registrations; durable when it returns.
///
/// # Errors
/// What the system says; the file of before is then still there.
pub fn save(path: &Path, registry: &Registry) -> std::io::Result<()> {
    let all: Vec<&Registration> = registry.all().collect();
    let mut bytes = serde_json::to_vec_pretty(&all)?;
    bytes.push(b'\n');
    crate::files::write_atomic(path, &bytes, crate::files::Readers::Group)
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::two_cards;
    use super::*;

    fn registration(functions: &[(&str, Option<&str>)]) -> Registration {
        let boot = BootId::current().unwrap();
        Registration {
            vm: Uuid::new_v4(),
            name: "one".into(),
            tenant: "acme".into(),
            generation: Generation::new(&boot),
            boot,
            functions: functions
                .iter()
                .map(|(address, guest)| AttachedFunction {
                    address: (*address).into(),
                    guest_pci: guest.map(Into::into),
                })
                .collect(),
            channel: ChannelSpec::Listen { path: None },
            process: None,
        }
    }

    #[test]
    fn i9_a_function_has_one_holder() {
        let plan = two_cards();
        let mut registry = Registry::default();
        let one = registration(&[("vf:0.0", None)]);
        registry.attach(&plan, one.clone()).unwrap();
        let two = registration(&[("vf:0.0", None)]);
        assert!(
            matches!(registry.attach(&plan, two.clone()), Err(AttachError::Held { vm, .. }) if vm == one.vm)
        );
        assert!(registry.get(two.vm).is_none());
        registry.detach(one.vm).unwrap();
        registry.attach(&plan, two).unwrap();
    }

    #[test]
    fn a_region_of_two_holders_is_nobodys_to_program() {
        let plan = two_cards();
        let mut registry = Registry::default();
        let one = registration(&[("vf:0.0", None)]);
        let region = plan.region_of("vf:0.0").unwrap();
        registry.attach(&plan, one.clone()).unwrap();
        assert!(registry.sole_holder(&plan, region, one.vm));
        registry
            .attach(&plan, registration(&[("vf:0.0b", None)]))
            .unwrap();
        assert!(!registry.sole_holder(&plan, region, one.vm));
    }

    #[test]
    fn slots_follow_the_guests_addresses() {
        let plan = two_cards();
        let vm = registration(&[
            ("vf:1.0", Some("0000:00:07.0")),
            ("vf:0.1", Some("0000:00:05.0")),
        ]);
        let slots = Registry::slots(&plan, &vm);
        assert_eq!(plan.label(slots[0].region), "card0/r1");
        assert_eq!(slots[1].slot, 1);
        let shared = registration(&[("vf:0.0", None), ("vf:0.0b", None), ("vf:1.1", None)]);
        let slots = Registry::slots(&plan, &shared);
        assert_eq!(slots.len(), 2, "two functions of one region make one slot");
        assert_eq!(slots[0].functions.len(), 2);
    }

    #[test]
    fn i3_the_same_name_is_not_the_same_vm() {
        let plan = two_cards();
        let mut registry = Registry::default();
        let one = registration(&[("vf:0.0", None)]);
        registry.attach(&plan, one.clone()).unwrap();
        let later = registration(&[("vf:0.1", None)]);
        assert_eq!(one.name, later.name);
        registry.attach(&plan, later.clone()).unwrap();
        assert_ne!(one.tag(), later.tag());
        assert!(registry.alive(one.vm, &later.generation).is_none());
    }

    #[test]
    fn what_was_saved_is_checked_against_the_kernel() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("registrations.json");
        let boot = BootId::current().unwrap();
        assert!(matches!(load(&path, &boot), Stored::Lost(_)));
        let plan = two_cards();
        let mut registry = Registry::default();
        let mut dead = registration(&[("vf:0.0", None)]);
        dead.process = Some(ProcessId {
            pid: std::process::id(),
            started: 1,
        });
        let mut alive = registration(&[("vf:0.1", None)]);
        alive.process = Some(ProcessId::of(std::process::id()).unwrap());
        registry.attach(&plan, dead.clone()).unwrap();
        registry.attach(&plan, alive.clone()).unwrap();
        save(&path, &registry).unwrap();
        let Stored::Good { alive: kept, over } = load(&path, &boot) else {
            panic!("lost")
        };
        assert_eq!((kept, over), (vec![alive], vec![dead]));
        std::fs::write(&path, b"[{").unwrap();
        assert!(matches!(load(&path, &boot), Stored::Lost(_)));
    }
}
