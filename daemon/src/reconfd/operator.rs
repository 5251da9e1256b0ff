//! What operators and registrars ask at the admin socket, done.
//!
//! Knows registrations, regions and words for people. Must not know frames.

mod explain;

use std::io;
use std::path::Path;
use std::sync::Arc;

use protocol::message::EventKind;
use tracing::info;
use uuid::Uuid;

use super::admin_server::{Act, error};
use super::attend::Reservation;
use super::audit::Record;
use super::chores;
use super::enliven::{NotAlive, enliven};
use super::host::{Ended, Host};
use super::identity::{Generation, ProcessId};
use super::regions::NotNow;
use super::registry::{Registration, Registry, check_named_path};
use super::views;
use crate::admin::{AdminBody, AdminReply, AdminRequest, ChannelSpec, VmAttach, VmView};
use crate::files::{Readers, write_atomic};

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
            // What waits for the disk does it where nobody else waits.
            AdminRequest::VmAttach(attach) => self
                .aside(move |operator| operator.attach(attach, by))
                .await
                .map(AdminBody::Attached),
            AdminRequest::VmDetach { vm } => self
                .aside(move |operator| operator.detach(vm, by))
                .await
                .map(AdminBody::Done),
            AdminRequest::Explain { vm, image, slot } => {
                self.explain(vm, &image, slot).map(AdminBody::Explanation)
            }
            AdminRequest::Audit { last } => self
                .aside(move |operator| operator.audit(last))
                .await
                .map(AdminBody::Audit),
            AdminRequest::RegionScrub { region } => {
                self.scrub(&region, by).await.map(AdminBody::Done)
            }
            AdminRequest::Stop { reason } => {
                // In force at once, however slow the disk is.
                self.host.state().stopped = Some(reason.clone());
                self.aside(move |operator| operator.stop(&reason, by))
                    .await
                    .map(AdminBody::Done)
            }
            AdminRequest::Resume {} => self
                .aside(move |operator| operator.resume(by))
                .await
                .map(AdminBody::Done),
            AdminRequest::Reload {} => self
                .aside(move |operator| operator.reload(Some(by)))
                .await
                .map(AdminBody::Done),
        }
    }

    /// Does `what` where it may wait.
    async fn aside<T: Send + 'static>(
        &self,
        what: impl FnOnce(Self) -> Result<T, No> + Send + 'static,
    ) -> Result<T, No> {
        let operator = Self {
            host: Arc::clone(&self.host),
        };
        tokio::task::spawn_blocking(move || what(operator))
            .await
            .unwrap_or_else(|lost| Err(no(lost.to_string(), "look at reconfd's log, try again")))
    }

    fn audit(&self, last: u32) -> Result<Vec<serde_json::Value>, No> {
        let count = usize::try_from(last.min(AUDIT_MAX)).unwrap_or(usize::MAX);
        self.host.audit.last(count).map_err(|error| {
            no(
                format!("the audit cannot be read: {error}"),
                format!("look at {}", self.host.layout.audit().display()),
            )
        })
    }

    fn detach(&self, vm: Uuid, by: u32) -> Result<String, No> {
        match self.host.end_generation(vm, None, "detached", Some(by)) {
            Ended::Durably => Ok(format!("VM {vm} is detached; its regions are scrubbed")),
            Ended::NotDurably(error) => Err(no(
                format!(
                    "VM {vm} is detached, but a crash now would bring it back: {}: {error}",
                    self.host.layout.registrations().display()
                ),
                "make room; any later attach or detach writes it",
            )),
            Ended::NotThere => Err(no(
                format!("VM {vm} is not attached"),
                "see `reconfctl vms`",
            )),
        }
    }

    fn attach(&self, attach: VmAttach, by: u32) -> Result<VmView, No> {
        let host = &self.host;
        if host.state().leaving {
            return Err(no("reconfd stops", "attach again once it runs"));
        }
        let registration = self.registration(attach)?;
        if let ChannelSpec::Listen { path: Some(path) } = &registration.channel
            && *path == host.layout.admin_socket().display().to_string()
        {
            return Err(no("that is the admin socket", "give the VM another path"));
        }
        host.state()
            .registry
            .attach(&host.plan, registration.clone())
            .map_err(|error| no(error.to_string(), error.remedy()))?;
        if let Err(error) = host.save_registrations() {
            host.state().registry.detach(registration.vm);
            return Err(no(
                format!(
                    "{}: {error}: nothing was attached",
                    host.layout.registrations().display()
                ),
                "make room, then attach again",
            ));
        }
        if let Err(error) = enliven(host, &registration) {
            let what = error.to_string();
            let only = Some(&registration.generation);
            let _ended = host.end_generation(registration.vm, only, &what, Some(by));
            return Err(no(
                what,
                match error {
                    NotAlive::NoChannel(_) => "give another path, or remove what is there",
                    NotAlive::Gone(_) => "give the pid of the running QEMU",
                    NotAlive::Unwatched(_) | NotAlive::Detached => "try again",
                },
            ));
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

    /// A registration as it is asked for, under a new generation.
    fn registration(&self, attach: VmAttach) -> Result<Registration, No> {
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
        check_named_path(&attach.channel).map_err(|error| no(error.to_string(), error.remedy()))?;
        policy::ids::TenantName::parse(&attach.tenant)
            .map_err(|error| no(error.to_string(), "name the tenant as grants.toml does"))?;
        Ok(Registration {
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
        })
    }

    async fn scrub(&self, label: &str, by: u32) -> Result<String, No> {
        let host = &self.host;
        let key = host.plan.find(label).ok_or_else(|| {
            no(
                format!("no region, or more than one, is called {label}"),
                "write card/region: see `reconfctl regions`",
            )
        })?;
        let (keep, user) = {
            let state = host.state();
            let report = state
                .regions
                .get(key)
                .and_then(|region| region.report.as_ref());
            let owner = report.and_then(|report| {
                let mut holders = state.registry.holders(&host.plan, key);
                holders.find(|vm| report.tag == Some(vm.tag()))
            });
            let in_use = report.is_some_and(|report| report.guest_access);
            let slot = owner.filter(|_owner| in_use).and_then(|owner| {
                let slots = &state.live.get(&owner.vm)?.slots;
                let slot = slots.iter().find(|slot| slot.region == key)?;
                Some((owner.vm, slot.slot))
            });
            (owner.map(Registration::tag), slot)
        };
        let why = format!("asked for by an operator, uid {by}");
        let reserved = host.state().regions.reserve_for_host(key, &why);
        let region = host.plan.label(key);
        if let Err(NotNow::Busy(other)) = &reserved {
            return Err(no(
                format!("{region} is reserved: {}", other.what),
                "wait for that to end: `reconfctl jobs`",
            ));
        }
        reserved
            .map_err(|_unknown| no(format!("{region} is unknown"), "see `reconfctl regions`"))?;
        info!(region, by, "an operator asks for a scrub");
        // A task of its own: whoever asked may hang up.
        let reservation = Reservation::of(Arc::clone(host), key);
        let end = tokio::spawn(async move {
            if let Some((vm, slot)) = user {
                let host = reservation.host();
                let notice = host.limits.notice;
                let notice_ms = u32::try_from(notice.as_millis()).unwrap_or(u32::MAX);
                host.tell(vm, slot, EventKind::Leaving { notice_ms });
                tokio::time::sleep(notice).await;
            }
            chores::scrub(reservation, &why, keep).await
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
                "look at the card: `reconfctl status`",
            )),
            Err(error) => Err(no(error.to_string(), "try again")),
        }
    }

    /// Keeps the stop over a restart: only `resume` ends it.
    fn stop(&self, reason: &str, by: u32) -> Result<String, No> {
        let path = self.host.layout.stopped();
        let record = serde_json::json!({ "reason": reason }).to_string();
        let stored = write_atomic(&path, record.as_bytes(), Readers::Group);
        self.note("stop", Some(reason.to_owned()), by);
        stored
            .map(|()| "new loads are denied; what runs goes on".to_owned())
            .map_err(|error| not_lasting(&path, &error))
    }

    fn resume(&self, by: u32) -> Result<String, No> {
        let path = self.host.layout.stopped();
        let removed = match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
        self.host.state().stopped = None;
        self.note("resume", None, by);
        removed
            .map(|()| "loads are decided again".to_owned())
            .map_err(|error| not_lasting(&path, &error))
    }

    fn note(&self, event: &'static str, reason: Option<String>, by: u32) {
        self.host.note(&Record {
            event,
            reason,
            by_uid: Some(by),
            ..Record::default()
        });
    }

    /// Reads the operator's files again; `by` nobody, for a signal.
    ///
    /// # Errors
    /// The old files stay in force.
    pub(super) fn reload(&self, by: Option<u32>) -> Result<String, No> {
        let result = self.host.judge.reload();
        self.host.note(&Record {
            event: "reload",
            outcome: Some(if result.is_ok() { "done" } else { "refused" }.to_owned()),
            reason: Some(result.clone().unwrap_or_else(|what| what)),
            by_uid: by,
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

fn not_lasting(path: &Path, error: &io::Error) -> No {
    no(
        format!(
            "done, but it would not outlive a restart: {}: {error}",
            path.display()
        ),
        "make room and say it again",
    )
}

impl Act for Operator {
    async fn act(&self, request: AdminRequest, by_uid: u32) -> AdminReply {
        match self.answer(request, by_uid).await {
            Ok(body) => AdminReply::Ok { ok: true, body },
            Err((what, remedy)) => error(&what, &remedy),
        }
    }
}
