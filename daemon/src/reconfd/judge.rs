//! The decision, as `reconfd` asks for it: files read, policy pinned, the answer
//! put into the two worlds.
//!
//! Knows files and `policy`. Must not know jobs or cards.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use policy::decide::{
    Ask, CatalogueTrouble, Denial, Grant, GuestView, Policy, PolicyInputs,
    RegionKey as PolicyRegion, decide, explain, list, own_list,
};
use policy::ids::{CardAddress, ImageRef, TenantName, VmId};
use policy::trust::{Catalogue, Freshness};
use protocol::message::{Digest, FunctionId, ImageRef as AskedImage};
use protocol::status::{Detail, Status};
use uuid::Uuid;

use super::outcome::Failure;
use super::plan::{HostPlan, RegionKey};
pub use super::policy_files::FilesError;
use super::policy_files::{Standing, places_of, plan_of, read_policy};
use super::seal::Facts;
use crate::admin::ListView;
use crate::frames::Demand;
use crate::layout::Layout;
use crate::signed_list::{Look, Places, SignedList, now};

/// A load that is asked for.
#[derive(Debug, Clone)]
pub struct Question {
    /// The VM.
    pub vm: Uuid,
    /// Who owns it.
    pub tenant: String,
    /// Where to.
    pub region: RegionKey,
    /// Every region that the VM has: only of images that fit one of them may it learn more
    /// than "denied".
    pub slots: Vec<RegionKey>,
    /// What.
    pub image: AskedImage,
}

/// A load that is allowed, under the policy that was pinned for it.
#[derive(Debug, Clone)]
pub struct Granted {
    /// `publisher/name:version`.
    pub image: String,
    /// The image's digest.
    pub image_digest: [u8; 32],
    /// The target's path below `targets`.
    pub path: String,
    /// What the bytes must be.
    pub facts: Facts,
    /// What allowed it, for the audit.
    pub rule: String,
    /// Version of the signed list.
    pub list_version: u64,
    /// Names the host's files: verdicts about bytes hold for one revision.
    pub revision: u64,
}

/// An image that a VM may load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MayLoad {
    /// `publisher/name:version`.
    pub name: String,
    /// The image's digest.
    pub digest: Digest,
    /// The function that appears.
    pub function_id: FunctionId,
    /// Bytes.
    pub size: u64,
}

/// See the module.
pub struct Judge {
    host_file: PathBuf,
    /// What was read at start: regions that change need a restart.
    plan: HostPlan,
    /// Where each card of the plan is; the plan does not change while we run.
    cards: Vec<(CardAddress, Vec<u16>)>,
    list: Mutex<SignedList>,
    current: ArcSwap<Standing>,
}

impl Judge {
    /// Reads everything. A list that is missing or not believed is no error here: it denies.
    ///
    /// # Errors
    /// [`FilesError`].
    pub fn read(host_file: &Path, layout: &Layout) -> Result<(Self, HostPlan), FilesError> {
        let mut list = SignedList::new(Places {
            root: layout.root_file(),
            floor: layout.reconfd_floor(),
            list: layout.list(),
            signature: layout.list_signature(),
        });
        list.refresh();
        let standing = read_policy(host_file, list.catalogue())?;
        let cards = places_of(&standing.policy);
        let plan = plan_of(&standing.policy);
        let judge = Self {
            host_file: host_file.to_owned(),
            plan: plan.clone(),
            cards,
            list: Mutex::new(list),
            current: ArcSwap::from_pointee(standing),
        };
        Ok((judge, plan))
    }

    /// The policy in force, after a look whether the signed list changed. A new list meets the
    /// operator's files as they are in force: what is half edited on the disk waits for a reload,
    /// and keeps no revocation out.
    #[must_use]
    pub fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.standing().policy)
    }

    fn standing(&self) -> Arc<Standing> {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        if list.refresh() != Look::Same {
            self.renew(list.catalogue());
        }
        drop(list);
        self.current.load_full()
    }

    /// Puts another list beside the files in force.
    fn renew(&self, catalogue: Result<Arc<Catalogue>, CatalogueTrouble>) {
        let standing = self.current.load_full();
        let before = &standing.policy;
        let host = before.host().clone();
        let shells = host.cards.iter().map(|card| before.shell(&card.address));
        let inputs = PolicyInputs {
            shells: shells.flatten().cloned().collect(),
            grants: before.grants().clone(),
            host,
            catalogue,
            loads: before.loads(),
        };
        match Policy::new(inputs) {
            Ok(policy) => self.current.store(Arc::new(standing.with(policy))),
            Err(error) => tracing::error!(%error, "files that were good are not any more"),
        }
    }

    /// Reads the operator's files and the list again. Where a file is wrong the files stay as they
    /// were; a new list counts all the same.
    ///
    /// # Errors
    /// [`FilesError`]; or cards or regions changed, which needs a restart.
    pub fn reload(&self) -> Result<String, String> {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        let looked = list.read_again();
        self.renew(list.catalogue());
        let standing =
            read_policy(&self.host_file, list.catalogue()).map_err(|error| error.to_string())?;
        let policy = &standing.policy;
        if !plan_of(policy).has_shape_of(&self.plan) || places_of(policy) != self.cards {
            return Err(
                "the cards of host.toml, or the regions or user functions of a shell file changed: \
                 restart reconfd and reconf-card for that; nothing was changed"
                    .to_owned(),
            );
        }
        let said = match looked {
            Look::Trouble(trouble) => format!("files read; but {trouble}"),
            Look::Same | Look::New => format!("files read; policy revision {}", short(policy)),
        };
        self.current.store(Arc::new(standing));
        Ok(said)
    }

    /// May this be loaded?
    ///
    /// # Errors
    /// The answer in both worlds.
    pub fn decide(&self, question: &Question) -> Result<Granted, Failure> {
        let standing = self.standing();
        let policy = &standing.policy;
        let ask = self.ask(question)?;
        match decide(policy, &ask, now()) {
            Ok(grant) => {
                let demand = standing.demand(question.region);
                Ok(granted(policy, &ask, &grant, demand))
            }
            Err(denial) => Err(self.refused(policy, question, &ask, &denial)),
        }
    }

    /// The last look before the guest gets access: is what was granted still granted, bit by bit (P13)?
    ///
    /// # Errors
    /// Why not.
    pub fn still(&self, question: &Question, granted: &Granted) -> Result<(), Failure> {
        let exact = Question {
            image: AskedImage::Name(granted.image.clone()),
            ..question.clone()
        };
        let again = self.decide(&exact)?;
        if again.facts != granted.facts || again.image_digest != granted.image_digest {
            return Err(Failure::new(
                Status::Failed,
                Detail::Withdrawn,
                "policy-changed",
                format!(
                    "the signed list now has another bitstream for {}",
                    granted.image
                ),
            ));
        }
        Ok(())
    }

    /// What may this VM load into this region?
    ///
    /// # Errors
    /// Why nothing, whatever it is.
    pub fn list(&self, vm: Uuid, tenant: &str, region: RegionKey) -> Result<Vec<MayLoad>, Failure> {
        let policy = self.policy();
        let question = Question {
            vm,
            tenant: tenant.to_owned(),
            region,
            slots: vec![region],
            image: AskedImage::Digest(Digest([0; 32])),
        };
        let ask = self.ask(&question)?;
        let listed = list(&policy, ask.vm, ask.tenant.as_ref(), &ask.region, now())
            .map_err(|denial| self.refused(&policy, &question, &ask, &denial))?;
        Ok(listed
            .into_iter()
            .map(|image| MayLoad {
                name: image.name.to_string(),
                digest: Digest(image.digest.0),
                function_id: FunctionId(*image.function_id.0.as_bytes()),
                size: image.size,
            })
            .collect())
    }

    /// Step by step, for operators.
    ///
    /// # Errors
    /// The question itself makes no sense.
    pub fn explain(&self, question: &Question) -> Result<serde_json::Value, Failure> {
        let policy = self.policy();
        let ask = self.ask(question)?;
        let explanation = explain(&policy, &ask, now());
        serde_json::to_value(&explanation).map_err(|error| {
            Failure::new(Status::Failed, Detail::None, "explain", error.to_string())
        })
    }

    /// The list in force, for `status`.
    #[must_use]
    pub fn view(&self) -> ListView {
        let policy = self.policy();
        let list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        let mut problem = list.trouble().map(ToString::to_string);
        drop(list);
        match policy.catalogue() {
            Ok(catalogue) => {
                let expires = match catalogue.freshness(now()) {
                    Freshness::Fresh { until } => until,
                    Freshness::Expired { since } => {
                        problem.get_or_insert_with(|| format!("it expired at {since}"));
                        since
                    }
                };
                ListView {
                    version: Some(catalogue.version()),
                    expires: Some(expires.0),
                    images: u32::try_from(catalogue.images().count()).unwrap_or(u32::MAX),
                    problem,
                }
            }
            Err(trouble) => ListView {
                version: None,
                expires: None,
                images: 0,
                problem: problem.or_else(|| Some(trouble.to_string())),
            },
        }
    }

    fn ask(&self, question: &Question) -> Result<Ask, Failure> {
        let wrong =
            |what: String| Failure::new(Status::Denied, Detail::None, "malformed-question", what);
        let region = self
            .region(question.region)
            .ok_or_else(|| wrong("no such region".to_owned()))?;
        let image = match &question.image {
            AskedImage::Name(name) => {
                ImageRef::parse(name).map_err(|error| wrong(error.to_string()))?
            }
            AskedImage::Digest(digest) => ImageRef::Digest(policy::ids::Digest(digest.0)),
        };
        let tenant =
            TenantName::parse(&question.tenant).map_err(|error| wrong(error.to_string()))?;
        Ok(Ask {
            vm: VmId(question.vm),
            tenant: Some(tenant),
            region,
            image,
        })
    }

    fn region(&self, key: RegionKey) -> Option<PolicyRegion> {
        let (card, ports) = self.cards.get(key.card)?;
        let port = *ports.get(usize::from(key.region.0))?;
        Some(PolicyRegion {
            card: card.clone(),
            port,
        })
    }

    fn refused(&self, policy: &Policy, question: &Question, ask: &Ask, denial: &Denial) -> Failure {
        let slots: Vec<PolicyRegion> = question
            .slots
            .iter()
            .filter_map(|key| self.region(*key))
            .collect();
        let own = own_list(
            policy,
            ask.vm,
            ask.tenant.as_ref(),
            &slots,
            &ask.image,
            now(),
        );
        let (status, detail) = match denial.guest_view(own) {
            GuestView::Denied => (Status::Denied, Detail::None),
            GuestView::Revoked => (Status::Denied, Detail::Revoked),
            GuestView::WrongSlot => (Status::Denied, Detail::WrongSlot),
            GuestView::Unavailable => (Status::Unavailable, Detail::None),
            GuestView::Stopped => (Status::Unavailable, Detail::Stopped),
        };
        Failure::new(status, detail, denial.code(), denial.to_string())
    }
}

fn granted(policy: &Policy, ask: &Ask, grant: &Grant, demand: Demand) -> Granted {
    let interface_id = policy
        .region(&ask.region)
        .map_or(grant.variant.interface_id, |region| region.interface_id);
    Granted {
        image: grant.image.to_string(),
        image_digest: grant.image_digest.0,
        path: grant.variant.path.to_string(),
        facts: Facts {
            digest: grant.variant.sha256.0,
            size: grant.variant.size,
            interface_id: interface_id.0,
            function_id: grant.function_id.0,
            format: grant.variant.format,
            demand,
        },
        rule: format!("{}, role {}", grant.rule, grant.role),
        list_version: grant.list_version,
        revision: revision(policy),
    }
}

/// A short form of the policy's revision, compared for equality only.
fn revision(policy: &Policy) -> u64 {
    let digest = policy.revision().0.0;
    let (head, _tail) = digest.split_first_chunk::<8>().unwrap_or((&[0; 8], &[]));
    u64::from_le_bytes(*head)
}

fn short(policy: &Policy) -> String {
    format!("{:016x}", revision(policy))
}
