//! The whole host in one process against a card's process that does as the test
//! says: what becomes of jobs, regions and reservations when things go wrong in
//! the middle.

mod books;
mod card;
mod files;
mod jobs;
mod regions;
mod restarts;
pub(crate) mod site;

use std::sync::Arc;
use std::time::Duration;

use protocol::message::{ImageRef, JobInfo, JobKey, Load, Stage};
use protocol::reply::Reply;
use protocol::request::Request;

use super::desk::Desk;
use super::host::Host;
use super::pipeline::Who;
use super::registry::Registration;
use super::session::Guest as _;
use card::Card;
use site::{Site, attach, connect};

/// How long a test waits for what must come.
const SOON: Duration = Duration::from_secs(20);

/// Waits until `what` gives something.
async fn until<T>(story: &str, mut what: impl AsyncFnMut() -> Option<T>) -> T {
    let looked = async {
        loop {
            if let Some(found) = what().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(SOON, looked).await.expect(story)
}

/// A VM that is attached, and its desk.
struct Vm {
    registration: Registration,
    desk: Arc<Desk>,
}

impl Vm {
    fn new(host: &Arc<Host>, registration: Registration) -> Self {
        let who = Who {
            vm: registration.vm,
            generation: registration.generation.clone(),
            tenant: registration.tenant.clone(),
            tag: registration.tag(),
        };
        Self {
            registration,
            desk: Desk::new(Arc::clone(host), who),
        }
    }

    async fn load(&self, key: u8, image: &str) -> Reply {
        self.desk.answer(load(key, image)).await
    }

    /// How the job of this key stands.
    async fn job(&self, key: u8) -> Option<JobInfo> {
        let query = protocol::message::JobQuery {
            key: JobKey([key; 16]),
        };
        match self.desk.answer(Request::Job(query)).await {
            Reply::Job(info) => Some(info),
            _no_such_job => None,
        }
    }

    /// The job of this key once it ended.
    async fn ended(&self, key: u8) -> JobInfo {
        until("the job's end", async || {
            self.job(key).await.filter(|info| info.stage == Stage::Done)
        })
        .await
    }
}

fn load(key: u8, image: &str) -> Request {
    Request::Load(Load {
        key: JobKey([key; 16]),
        slot: None,
        image: ImageRef::Name(image.into()),
        if_not_loaded: false,
        force: false,
    })
}

/// A host with a card, its regions blank.
async fn host() -> (Site, Arc<Host>, Arc<Card>) {
    let site = Site::new();
    let host = site.host();
    let card = Card::start(&host);
    connect(&host);
    until("blank regions", async || {
        let state = host.state();
        state
            .regions
            .iter()
            .all(|(_key, region)| region.report.is_some() && region.reserved.is_none())
            .then_some(())
    })
    .await;
    (site, host, card)
}
