//! What operators and registrars ask at the admin socket, done.
//!
//! Knows registrations, regions and words for people. Must not know frames.

use std::path::PathBuf;
use std::sync::Arc;

use protocol::message::ImageRef;
use tokio::sync::oneshot;
use tracing::{info, warn};
use uuid::Uuid;

use super::admin_server::{Act, error};
use super::audit::Record;
use super::channel::{self, Place};
use super::chores;
use super::desk::Desk;
use super::host::Host;
use super::identity::{Generation, ProcessId};
use super::judge::Question;
use super::pipeline::Who;
use super::plan::RegionKey;
use super::registry::{Registration, Registry};
use super::views;
use super::watchdog;
use crate::admin::{AdminBody, AdminReply, AdminRequest, ChannelSpec, VmAttach, VmView};

/// Most lines of the audit in one answer.
const AUDIT_MAX: u32 = 10_000;

/// An answer that says no.
type No = (String, String);

fn no(what: impl Into<String>, remedy: impl Into<String>) -> No {
    (what.into(), remedy.into())
}

/// The admin socket's side of the host.
pub struct Operator {
    host: Arc<Host>,
}

impl Operator {
    /// For this host.
    #[must_use]
    pub fn new(host: Arc<Host>) -> Arc<Self> {
        Arc::new(Self { host })
    }

    async fn answer(&self, request: AdminRequest, by: u32) -> Result<AdminBody, No> {
        match request {
            AdminRequest::Status {} => Ok(AdminBody::Status(views::status(&self.host))),
            AdminRequest::Regions {} => Ok(AdminBody::Regions(views::regions(&self.host))),
            AdminRequest::Vms {} => Ok(AdminBody::Vms(views::vms(&self.host))),
            AdminRequest::Jobs {} => Ok(AdminBody::Jobs(views::jobs(&self.host))),
            AdminRequest::VmAttach(attach) => self.attach(attach, by).map(AdminBody::Attached),
            AdminRequest::VmDetach { vm } => {
                if self.host.end_generation(vm, "detached", Some(by)) {
                    Ok(AdminBody::Done(format!(
                        "VM {vm} is detached; its regions are scrubbed"
                    )))
                } else {
                    Err(no(
                        format!("VM {vm} is not attached"),
                        "see `reconfctl vms`",
                    ))
                }
            }
            AdminRequest::Explain { vm, image, slot } => {
                self.explain(vm, &image, slot).map(AdminBody::Explanation)
            }
            AdminRequest::Audit { last } => {
                let count = usize::try_from(last.min(AUDIT_MAX)).unwrap_or(usize::MAX);
                let host = Arc::clone(&self.host);
                let read = tokio::task::spawn_blocking(move || host.audit.last(count)).await;
                match read {
                    Ok(Ok(records)) => Ok(AdminBody::Audit(records)),
                    Ok(Err(error)) => Err(no(
                        format!("the audit cannot be read: {error}"),
                        "look at its file",
                    )),
                    Err(error) => Err(no(error.to_string(), "try again")),
                }
            }
            AdminRequest::RegionScrub { region } => {
                self.scrub(&region, by).await.map(AdminBody::Done)
            }
            AdminRequest::Stop { reason } => self.stop(Some(reason), by).map(AdminBody::Done),
            AdminRequest::Resume {} => self.stop(None, by).map(AdminBody::Done),
            AdminRequest::Reload {} => self.reload(by).map(AdminBody::Done),
        }
    }

    fn attach(&self, attach: VmAttach, by: u32) -> Result<VmView, No> {
        let host = &self.host;
        let process = attach
            .pid
            .map(|pid| {
                ProcessId::of(pid).map_err(|error| {
                    no(
                        format!("process {pid}: {error}"),
                        "give the pid of the running QEMU",
                    )
                })
            })
            .transpose()?;
        policy::ids::TenantName::parse(&attach.tenant)
            .map_err(|error| no(error.to_string(), "name the tenant as grants.toml does"))?;
        let registration = Registration {
            vm: attach.vm,
            name: attach.name,
            tenant: attach.tenant,
            generation: Generation::new(&host.boot),
            boot: host.boot.clone(),
            functions: attach.functions,
            channel: match attach.channel {
                ChannelSpec::Listen { path: None } => ChannelSpec::Listen {
                    path: Some(host.layout.vm_channel(attach.vm).display().to_string()),
                },
                other => other,
            },
            process,
        };
        host.state()
            .registry
            .attach(&host.plan, registration.clone())
            .map_err(|error| no(error.to_string(), error.remedy()))?;
        if let Err(error) = host.save_registrations() {
            host.state().registry.detach(registration.vm);
            return Err(no(
                format!("the registrations cannot be written: {error}"),
                "make room, then attach again",
            ));
        }
        if let Err(what) = enliven(host, &registration) {
            host.end_generation(registration.vm, "its channel could not be opened", Some(by));
            return Err(no(what, "give another path, or remove what is there"));
        }
        host.note(&Record {
            event: "attach",
            vm: Some(registration.vm),
            tenant: Some(registration.tenant.clone()),
            generation: Some(registration.generation.short().to_owned()),
            reason: Some(
                registration
                    .functions
                    .iter()
                    .map(|function| function.address.clone())
                    .collect::<Vec<_>>()
                    .join(" "),
            ),
            by_uid: Some(by),
            ..Record::default()
        });
        for slot in Registry::slots(&host.plan, &registration) {
            host.attend(slot.region);
        }
        views::vm(host, registration.vm)
            .ok_or_else(|| no("the VM is gone again", "attach it again"))
    }

    fn explain(&self, vm: Uuid, image: &str, slot: Option<u16>) -> Result<serde_json::Value, No> {
        let host = &self.host;
        let image = ImageRef::parse(image).map_err(|error| {
            no(
                error.to_string(),
                "write publisher/name, publisher/name:version or sha256:HEX",
            )
        })?;
        let (question, why_not) = {
            let state = host.state();
            let registration = state
                .registry
                .get(vm)
                .ok_or_else(|| no(format!("VM {vm} is not attached"), "see `reconfctl vms`"))?;
            let slots = Registry::slots(&host.plan, registration);
            let chosen = match (slot, slots.as_slice()) {
                (None, [only]) => only.clone(),
                (None, _) => {
                    return Err(no(
                        format!("VM {vm} has {} slots", slots.len()),
                        "add --slot N",
                    ));
                }
                (Some(number), _) => slots
                    .iter()
                    .find(|slot| slot.slot == number)
                    .cloned()
                    .ok_or_else(|| {
                        no(
                            format!("VM {vm} has no slot {number}"),
                            "see `reconfctl vms`",
                        )
                    })?,
            };
            let mut why_not = Vec::new();
            if let Some(reason) = &state.stopped {
                why_not.push(format!("new loads are stopped on this host: {reason}"));
            }
            if !state.registry.sole_holder(&host.plan, chosen.region, vm) {
                why_not
                    .push("another VM holds a user function that ends in this region".to_owned());
            }
            if let Some(held) = state
                .regions
                .get(chosen.region)
                .and_then(|region| region.held.clone())
            {
                why_not.push(format!("the region is held: {held}"));
            }
            let question = Question {
                vm,
                tenant: registration.tenant.clone(),
                region: chosen.region,
                slots: slots.iter().map(|slot| slot.region).collect(),
                image,
            };
            (question, why_not)
        };
        let mut explanation = host
            .judge
            .explain(&question)
            .map_err(|failure| no(failure.reason, "write the image as the list does"))?;
        if let Some(object) = explanation.as_object_mut() {
            // What lies outside the policy and stands in the way all the same.
            object.insert("also-in-the-way".to_owned(), serde_json::json!(why_not));
        }
        Ok(explanation)
    }

    async fn scrub(&self, label: &str, by: u32) -> Result<String, No> {
        let host = &self.host;
        let key = host.plan.find(label).ok_or_else(|| {
            no(
                format!("no region, or more than one, is called {label}"),
                "write card/region: see `reconfctl regions`",
            )
        })?;
        let keep = {
            let state = host.state();
            let owner = state
                .regions
                .get(key)
                .and_then(|region| region.report.as_ref()?.tag);
            owner.filter(|tag| {
                state
                    .registry
                    .holders(&host.plan, key)
                    .any(|vm| vm.tag() == *tag)
            })
        };
        info!(region = label, by, "an operator asks for a scrub");
        let (told, end) = oneshot::channel();
        let (scrubber, why) = (
            Arc::clone(host),
            format!("asked for by an operator, uid {by}"),
        );
        tokio::spawn(async move {
            let result = chores::scrub_now(&scrubber, key, &why, keep).await;
            let _nobody_waits = told.send(result);
        });
        match end.await {
            Ok(Ok(())) => Ok(format!("{} is blank", host.plan.label(key))),
            Ok(Err(failure)) => Err(no(
                format!(
                    "{}: {} ({})",
                    host.plan.label(key),
                    failure.reason,
                    failure.outcome
                ),
                "wait for what has it reserved, or look at the card: `reconfctl status`",
            )),
            Err(error) => Err(no(error.to_string(), "try again")),
        }
    }

    fn stop(&self, reason: Option<String>, by: u32) -> Result<String, No> {
        let path = self.host.layout.stopped();
        // Kept over a restart: only `resume` ends it.
        let stored = match &reason {
            Some(reason) => crate::files::write_atomic(
                &path,
                serde_json::json!({ "reason": reason })
                    .to_string()
                    .as_bytes(),
                crate::files::Readers::Group,
            ),
            None => match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            },
        };
        self.host.state().stopped.clone_from(&reason);
        self.host.note(&Record {
            event: if reason.is_some() { "stop" } else { "resume" },
            reason: reason.clone(),
            by_uid: Some(by),
            ..Record::default()
        });
        match (stored, reason) {
            (Err(error), _) => Err(no(
                format!(
                    "done, but it would not outlive a restart: {}: {error}",
                    path.display()
                ),
                "make room and say it again",
            )),
            (Ok(()), Some(_)) => Ok("new loads are denied; what runs goes on".to_owned()),
            (Ok(()), None) => Ok("loads are decided again".to_owned()),
        }
    }

    fn reload(&self, by: u32) -> Result<String, No> {
        let result = self.host.judge.reload();
        self.host.note(&Record {
            event: "reload",
            outcome: Some(if result.is_ok() { "done" } else { "refused" }.to_owned()),
            reason: Some(result.clone().unwrap_or_else(|what| what)),
            by_uid: Some(by),
            ..Record::default()
        });
        result.map_err(|what| {
            no(
                what,
                "mend the file (`reconfctl check`) and reload again; the old files stay in force",
            )
        })
    }
}

impl Act for Operator {
    async fn act(&self, request: AdminRequest, by_uid: u32) -> AdminReply {
        match self.answer(request, by_uid).await {
            Ok(body) => AdminReply::Ok { ok: true, body },
            Err((what, remedy)) => error(&what, &remedy),
        }
    }
}

/// Opens the channel of a registration that was taken in, and watches its process.
///
/// # Errors
/// The channel's socket cannot be made.
pub fn enliven(host: &Arc<Host>, registration: &Registration) -> Result<(), String> {
    let (place, listener) = match &registration.channel {
        ChannelSpec::Connect { path } => (Place::Connect(PathBuf::from(path)), None),
        ChannelSpec::Listen { path } => {
            let path = path
                .as_ref()
                .map_or_else(|| host.layout.vm_channel(registration.vm), PathBuf::from);
            let listener = channel::listen(&path).map_err(|error| error.to_string())?;
            (Place::Listen(path), Some(listener))
        }
    };
    let over = host.enliven(registration);
    let who = Who {
        vm: registration.vm,
        generation: registration.generation.clone(),
        tenant: registration.tenant.clone(),
        tag: registration.tag(),
    };
    let desk = Desk::new(Arc::clone(host), who);
    tokio::spawn(channel::run(
        place,
        listener,
        registration.process,
        desk,
        over.clone(),
    ));
    if let Some(process) = registration.process
        && let Err(error) = watchdog::watch(
            Arc::clone(host),
            registration.vm,
            &registration.generation,
            process,
            over,
        )
    {
        warn!(vm = %registration.vm, %error, "the VM's process cannot be watched");
    }
    Ok(())
}

/// The regions of a VM, for those who must look at them again.
#[must_use]
pub fn regions_of(host: &Host, registration: &Registration) -> Vec<RegionKey> {
    Registry::slots(&host.plan, registration)
        .into_iter()
        .map(|slot| slot.region)
        .collect()
}
