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
use super::watchdog;
use crate::admin::{
    AdminBody, AdminReply, AdminRequest, AlarmView, CardView, ChannelSpec, JobView, RegionView,
    SlotView, StatusView, VmAttach, VmView,
};
use crate::hex;
use crate::ipc::Content;

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
            AdminRequest::Status {} => Ok(AdminBody::Status(self.status())),
            AdminRequest::Regions {} => Ok(AdminBody::Regions(self.regions())),
            AdminRequest::Vms {} => Ok(AdminBody::Vms(self.vms())),
            AdminRequest::Jobs {} => Ok(AdminBody::Jobs(self.jobs())),
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
        self.view(&registration.vm)
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

    fn status(&self) -> StatusView {
        let host = &self.host;
        let list = host.judge.view();
        let mut alarms = Vec::new();
        if let Some(problem) = &list.problem {
            alarms.push(AlarmView {
                what: format!("signed list: {problem}"),
                next: "reconfctl trust show".to_owned(),
            });
        }
        let state = host.state();
        if let Some(reason) = &state.stopped {
            alarms.push(AlarmView {
                what: format!("new loads are stopped: {reason}"),
                next: "reconfctl resume".to_owned(),
            });
        }
        let cards: Vec<CardView> = host
            .plan
            .cards()
            .iter()
            .zip(&host.cards)
            .map(|(plan, link)| CardView {
                name: plan.name.clone(),
                address: plan.address.clone(),
                connected: link.connected(),
                queued: u32::try_from(link.queued()).unwrap_or(u32::MAX),
            })
            .collect();
        for card in cards.iter().filter(|card| !card.connected) {
            alarms.push(AlarmView {
                what: format!("the process of card {} is not connected", card.name),
                next: format!(
                    "start reconf-card --card {} and look at its log",
                    card.address
                ),
            });
        }
        for (key, region) in state.regions.iter() {
            let label = host.plan.label(key);
            if let Some(why) = &region.held {
                alarms.push(AlarmView {
                    what: format!("region {label} is held: {why}"),
                    next: format!("reconfctl region scrub {label}"),
                });
            }
        }
        StatusView {
            healthy: alarms.is_empty(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            since: host.since,
            stopped: state.stopped.clone(),
            list,
            cards,
            vms: u32::try_from(state.live.len()).unwrap_or(u32::MAX),
            sessions: u32::try_from(state.live.values().filter(|live| live.session).count())
                .unwrap_or(u32::MAX),
            jobs: state.running,
            alarms,
        }
    }

    fn regions(&self) -> Vec<RegionView> {
        let host = &self.host;
        let state = host.state();
        state
            .regions
            .iter()
            .map(|(key, region)| {
                let report = region.report.as_ref();
                let owner = report.and_then(|report| report.tag).and_then(|tag| {
                    state
                        .registry
                        .holders(&host.plan, key)
                        .find(|vm| vm.tag() == tag)
                });
                // Before its first load a VM holds a region without owning its content.
                let holder = owner.or_else(|| state.registry.holders(&host.plan, key).next());
                let slot = holder.and_then(|vm| {
                    state
                        .live
                        .get(&vm.vm)?
                        .slots
                        .iter()
                        .find(|slot| slot.region == key)
                });
                let active = report.is_some_and(|report| report.content == Content::Active);
                RegionView {
                    region: host.plan.label(key),
                    content: report
                        .map_or("absent", |report| content_word(report.content))
                        .to_owned(),
                    image: region.image.as_ref().map(|image| image.name.clone()),
                    digest: report
                        .filter(|_| active)
                        .map(|report| hex::encode(&report.digest)),
                    function: report
                        .and_then(|report| report.function)
                        .map(Uuid::from_bytes),
                    guest_access: report.is_some_and(|report| report.guest_access),
                    vm: holder.map(|vm| vm.vm),
                    tenant: holder.map(|vm| vm.tenant.clone()),
                    slot: slot.map(|slot| slot.slot),
                    job: region
                        .reserved
                        .as_ref()
                        .map(|reserved| reserved.what.clone()),
                    scrub_failures: report.map_or(0, |report| report.scrub_failures),
                    since: report.map_or(0, |report| report.since),
                }
            })
            .collect()
    }

    fn vms(&self) -> Vec<VmView> {
        let all: Vec<Uuid> = self.host.state().registry.all().map(|vm| vm.vm).collect();
        all.iter().filter_map(|vm| self.view(vm)).collect()
    }

    fn view(&self, vm: &Uuid) -> Option<VmView> {
        let state = self.host.state();
        let registration = state.registry.get(*vm)?;
        let live = state.live.get(vm)?;
        Some(VmView {
            vm: *vm,
            name: registration.name.clone(),
            tenant: registration.tenant.clone(),
            generation: registration.generation.as_str().to_owned(),
            slots: live
                .slots
                .iter()
                .map(|slot| SlotView {
                    slot: slot.slot,
                    region: self.host.plan.label(slot.region),
                    functions: slot.functions.clone(),
                    guest_pci: slot.guest_pci.clone(),
                })
                .collect(),
            channel: registration.channel.clone(),
            channel_state: if live.session { "session" } else { "waiting" }.to_owned(),
            pid: registration.process.map(|process| process.pid),
        })
    }

    fn jobs(&self) -> Vec<JobView> {
        let state = self.host.state();
        state
            .jobs
            .all()
            .into_iter()
            .map(|job| JobView {
                key: job.record.key.clone(),
                job: job.record.id.clone(),
                vm: job.record.vm,
                kind: job.record.kind.clone(),
                slot: job.record.slot,
                image: job.record.image.clone(),
                stage: format!("{:?}", job.stage).to_lowercase(),
                result: job.result.map(|result| {
                    let words = job
                        .record
                        .result
                        .as_ref()
                        .map_or("", |stored| stored.words.as_str());
                    format!("{}: {words}", result.status.name())
                }),
            })
            .collect()
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
    if let Some(process) = registration.process {
        if let Err(error) = watchdog::watch(
            Arc::clone(host),
            registration.vm,
            &registration.generation,
            process,
            over,
        ) {
            warn!(vm = %registration.vm, %error, "the VM's process cannot be watched");
        }
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

fn content_word(content: Content) -> &'static str {
    match content {
        Content::Unknown => "unknown",
        Content::Blank => "blank",
        Content::Writing => "writing",
        Content::Active => "active",
        Content::Quarantined => "quarantined",
    }
}
