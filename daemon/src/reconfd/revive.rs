//! The VMs of before a restart: those that still run come back to life, the
//! others end.
//!
//! Runs before any card is connected. Must not be needed for what is active:
//! nothing is done to a region here.

use std::sync::Arc;

use tracing::{error, info, warn};

use super::audit::Record;
use super::duties::Memory;
use super::enliven::{NotAlive, enliven};
use super::host::Host;
use super::registrations::{self, Stored};
use super::registry::Registration;

/// Proof that the VMs of before are known. To a host that knows of no VM yet every owner is over:
/// it must not hear of a region.
#[derive(Debug)]
pub(super) struct Revived(());

/// Brings the registrations of before to life, or ends them.
pub(super) fn revive(host: &Arc<Host>) -> Revived {
    let (alive, over, memory) = match registrations::load(&host.layout.registrations(), &host.boot)
    {
        Stored::Good { alive, over, lost } => {
            let memory = if lost { Memory::Lost } else { Memory::Whole };
            (alive, over, memory)
        }
        Stored::Missing => {
            info!("no registrations yet");
            (Vec::new(), Vec::new(), Memory::Blank)
        }
        Stored::Lost(why) => {
            error!(
                why,
                "the registrations are lost: regions with an owner are held until attached again"
            );
            (Vec::new(), Vec::new(), Memory::Lost)
        }
    };
    host.state().memory = memory;
    for registration in alive {
        bring_back(host, registration);
    }
    for registration in over {
        info!(vm = %registration.vm, "a VM of before is over");
        host.note(&Record {
            event: "detach",
            vm: Some(registration.vm),
            tenant: Some(registration.tenant.clone()),
            generation: Some(registration.generation.short().to_owned()),
            reason: Some("its process or the host's boot ended while reconfd was away".to_owned()),
            ..Record::default()
        });
        let mut state = host.state();
        if state.memory != Memory::Whole {
            state.ended.insert(registration.tag());
        }
    }
    if let Err(error) = host.save_registrations() {
        warn!(%error, "the registrations cannot be written");
    }
    forget_jobs(host);
    Revived(())
}

fn bring_back(host: &Arc<Host>, registration: Registration) {
    let (vm, generation) = (registration.vm, registration.generation.clone());
    let mut state = host.state();
    let attached = state.registry.attach(&host.plan, registration.clone());
    if attached.is_err() {
        // It may still run: whatever it owns is held, not scrubbed.
        state.memory = Memory::Lost;
    }
    drop(state);
    let why = match attached.map(|()| enliven(host, &registration)) {
        Ok(Ok(())) => return,
        Ok(Err(gone @ NotAlive::Gone(_))) => {
            let _ended = host.end_generation(vm, Some(&generation), &gone.to_string(), None);
            return;
        }
        // What it has it keeps: to end it would scrub a region that is in use.
        Ok(Err(trouble)) => trouble.to_string(),
        Err(error) => error.to_string(),
    };
    error!(%vm, why, "a VM of before is not wholly back");
    if let Some(live) = host.state().live.get_mut(&vm) {
        live.trouble = Some(why.clone());
    }
    host.note(&Record {
        event: "not-revived",
        vm: Some(vm),
        tenant: Some(registration.tenant),
        generation: Some(generation.short().to_owned()),
        reason: Some(why),
        ..Record::default()
    });
}

/// Jobs of generations that are over.
fn forget_jobs(host: &Host) {
    let gone = {
        let mut state = host.state();
        let alive: Vec<_> = state
            .registry
            .all()
            .map(|vm| (vm.vm, vm.generation.clone()))
            .collect();
        state.jobs.retain_generations(|vm, generation| {
            alive.iter().any(|(a, g)| *a == vm && g == generation)
        })
    };
    host.forget(&gone);
}
