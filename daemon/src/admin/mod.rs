//! What operators and registrars say to `reconfd`: one JSON object a line, both
//! ways, over the admin socket. Each request gets exactly one answer.
//!
//! Knows names that operators use. Must not know sockets; those who may speak
//! here are checked by peer credentials before a line is read.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Longest request line, in bytes.
pub const MAX_LINE: usize = 64 * 1024;

/// A request line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum AdminRequest {
    /// Is all well?
    Status {},
    /// Every region of every card.
    Regions {},
    /// Every VM that is attached.
    Vms {},
    /// Every job that is kept.
    Jobs {},
    /// Registers a start of a VM: who owns it, what it holds, where its channel is.
    VmAttach(VmAttach),
    /// Ends the generation of a VM; its regions are scrubbed.
    VmDetach {
        /// The VM.
        vm: Uuid,
    },
    /// Why would this VM get that image, or not? Step by step.
    Explain {
        /// The VM.
        vm: Uuid,
        /// `publisher/name[:version]` or `sha256:…`.
        image: String,
        /// The guest's slot; may be left out where it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        slot: Option<u16>,
    },
    /// The last lines of the audit trail.
    Audit {
        /// How many.
        last: u32,
    },
    /// Makes a region blank. Of a region with an owner the owner keeps it.
    RegionScrub {
        /// `card/region`, or the region's name where only one has it.
        region: String,
    },
    /// Deny all new loads; what runs goes on.
    Stop {
        /// Why, for the audit and for `status`.
        #[serde(default)]
        reason: String,
    },
    /// Allow loads again.
    Resume {},
    /// Read host.toml, shell files, grants and the signed list again.
    Reload {},
}

/// See [`AdminRequest::VmAttach`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VmAttach {
    /// The VM's UUID.
    pub vm: Uuid,
    /// A name for people.
    #[serde(default)]
    pub name: String,
    /// Who owns the VM.
    pub tenant: String,
    /// Its user functions, in the order of the slots unless guest addresses say otherwise.
    pub functions: Vec<AttachedFunction>,
    /// Its channel.
    pub channel: ChannelSpec,
    /// The process that serves the channel (QEMU). Where it is given, only it is accepted as
    /// the peer, and its end ends the generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
}

/// One user function of a VM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttachedFunction {
    /// Its address on the host, as the shell file names it.
    pub address: String,
    /// Its address in the guest, if known: `0000:00:05.0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest_pci: Option<String>,
}

/// A channel in QEMU's chardev style.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ChannelSpec {
    /// We listen and QEMU connects (libvirt's `mode='connect'`). Without a path:
    /// `<run_dir>/vm/<uuid>/org.reconf.0`.
    Listen {
        /// Where.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
    },
    /// QEMU listens and we connect (libvirt's `mode='bind'`).
    Connect {
        /// Where.
        path: String,
    },
}

/// An answer line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AdminReply {
    /// It was not done.
    Error {
        /// Always `false`.
        ok: bool,
        /// What happened, to what.
        error: String,
        /// What to do next.
        remedy: String,
    },
    /// It was done; the body depends on the request.
    Ok {
        /// Always `true`.
        ok: bool,
        /// What was asked for.
        #[serde(flatten)]
        body: AdminBody,
    },
}

/// The bodies of good answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AdminBody {
    /// Nothing more to say than what was done.
    Done(String),
    /// [`AdminRequest::Status`].
    Status(StatusView),
    /// [`AdminRequest::Regions`].
    Regions(Vec<RegionView>),
    /// [`AdminRequest::Vms`].
    Vms(Vec<VmView>),
    /// [`AdminRequest::Jobs`].
    Jobs(Vec<JobView>),
    /// [`AdminRequest::VmAttach`]: the registration as it stands now.
    Attached(VmView),
    /// [`AdminRequest::Explain`]: the steps of the decision, as `policy` writes them.
    Explanation(serde_json::Value),
    /// [`AdminRequest::Audit`]: records, oldest first.
    Audit(Vec<serde_json::Value>),
}

/// One screen: is all well, and if not, what and what next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusView {
    /// Nothing needs the operator.
    pub healthy: bool,
    /// `reconfd`'s version.
    pub version: String,
    /// Since when it runs, seconds of Unix time.
    pub since: u64,
    /// The reason of `stop`, while new loads are denied.
    pub stopped: Option<String>,
    /// The signed list in force.
    pub list: ListView,
    /// Every card of host.toml.
    pub cards: Vec<CardView>,
    /// VMs attached.
    pub vms: u32,
    /// Channels with an open session.
    pub sessions: u32,
    /// Jobs that wait or run.
    pub jobs: u32,
    /// What needs attention, with the command that comes next.
    pub alarms: Vec<AlarmView>,
}

/// The signed list in force, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListView {
    /// Its version.
    pub version: Option<u64>,
    /// When it expires, seconds of Unix time.
    pub expires: Option<u64>,
    /// Images in it.
    pub images: u32,
    /// Why no list is in force.
    pub problem: Option<String>,
}

/// A card of host.toml.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardView {
    /// The name that operators use.
    pub name: String,
    /// Its address.
    pub address: String,
    /// Its process is connected and has told its regions.
    pub connected: bool,
    /// Jobs in its queue.
    pub queued: u32,
}

/// Something for the operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlarmView {
    /// What is wrong, with what.
    pub what: String,
    /// The command, or the deed, that comes next.
    pub next: String,
}

/// A region.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegionView {
    /// `card/region`.
    pub region: String,
    /// Blank, active, quarantined, writing, unknown or absent (its card is not connected).
    pub content: String,
    /// The image in it, if this host loaded it by name.
    pub image: Option<String>,
    /// The digest that is active.
    pub digest: Option<String>,
    /// The function in it.
    pub function: Option<Uuid>,
    /// Whether the guest reaches it.
    pub guest_access: bool,
    /// The VM that owns it.
    pub vm: Option<Uuid>,
    /// The tenant that owns the VM.
    pub tenant: Option<String>,
    /// The guest's number for it.
    pub slot: Option<u16>,
    /// The job that has it reserved.
    pub job: Option<String>,
    /// Scrubs that failed in a row.
    pub scrub_failures: u16,
    /// Since when, seconds of Unix time.
    pub since: u64,
}

/// A VM that is attached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmView {
    /// Its UUID.
    pub vm: Uuid,
    /// Its name for people.
    pub name: String,
    /// Its tenant.
    pub tenant: String,
    /// This start of it.
    pub generation: String,
    /// Its slots: the regions in order.
    pub slots: Vec<SlotView>,
    /// Its channel.
    pub channel: ChannelSpec,
    /// `waiting`, `connected` or `session`.
    pub channel_state: String,
    /// The process behind the channel.
    pub pid: Option<u32>,
}

/// A slot of a VM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotView {
    /// The guest's number.
    pub slot: u16,
    /// `card/region`.
    pub region: String,
    /// The user functions that end in it.
    pub functions: Vec<String>,
    /// The guest's address of the first, if known.
    pub guest_pci: Option<String>,
}

/// A job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobView {
    /// The guest's key, hex.
    pub key: String,
    /// Its number between our processes, hex; it stands in the audit.
    pub job: String,
    /// The VM.
    pub vm: Uuid,
    /// `load` or `clear`.
    pub kind: String,
    /// The guest's slot.
    pub slot: u16,
    /// The image as resolved.
    pub image: Option<String>,
    /// How far it is.
    pub stage: String,
    /// How it ended: the guest's code, and the operator's story.
    pub result: Option<String>,
}
