//! The other end of the card's socket: says what it likes, hears everything.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use daemon::ipc::socket::Socket;
use daemon::ipc::{
    CardStage, Content, FromCard, IdentityCheck, IpcError, JobEnd, JobId, Outcome, OwnerTag,
    Packet, RegionIndex, RegionReport, TargetPath, ToCard,
};

use crate::stage::Image;

/// No test waits longer for one packet.
const PATIENCE: Duration = Duration::from_secs(60);

static JOBS: AtomicU64 = AtomicU64::new(1);

/// A job number that was never used.
pub(crate) fn new_job() -> JobId {
    let number = JOBS.fetch_add(1, Ordering::Relaxed);
    let mut job = [0; 16];
    job[..8].copy_from_slice(&number.to_le_bytes());
    job[8..12].copy_from_slice(&std::process::id().to_le_bytes());
    JobId(job)
}

pub(crate) fn tag(number: u8) -> OwnerTag {
    OwnerTag([number; 32])
}

/// See the module.
pub(crate) struct Client {
    socket: Socket,
    /// The last report of each region.
    pub regions: BTreeMap<u16, RegionReport>,
    /// Stages that were told of the current job.
    pub stages: Vec<CardStage>,
}

/// The end of a job, to be judged.
#[derive(Debug)]
#[must_use]
pub(crate) struct End(pub JobEnd);

impl End {
    /// It went well.
    pub(crate) fn done(self) -> JobEnd {
        assert_eq!(self.0.outcome, Outcome::Done, "{:?}", self.0);
        self.0
    }

    /// It ended so.
    pub(crate) fn is(self, outcome: Outcome) -> JobEnd {
        assert_eq!(self.0.outcome, outcome, "{:?}", self.0);
        self.0
    }
}

impl Client {
    /// Connects, as soon as somebody listens.
    pub(crate) fn connect(path: &Path) -> Self {
        let until = Instant::now().checked_add(PATIENCE).unwrap();
        let socket = loop {
            match Socket::connect(path) {
                Ok(socket) => break socket,
                Err(error) => assert!(Instant::now() < until, "{error}"),
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        Self {
            socket,
            regions: BTreeMap::new(),
            stages: Vec::new(),
        }
    }

    pub(crate) fn say(&self, message: &ToCard) {
        self.say_with(message, None);
    }

    pub(crate) fn say_with(&self, message: &ToCard, beside: Option<&OwnedFd>) {
        self.say_bytes(&Packet::from(message).to_bytes(), beside)
            .unwrap();
    }

    pub(crate) fn say_bytes(
        &self,
        bytes: &[u8; 512],
        beside: Option<&OwnedFd>,
    ) -> Result<(), IpcError> {
        self.socket.send(bytes, beside.map(AsFd::as_fd))
    }

    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// The next packet; `None` at the end of the connection.
    pub(crate) fn hear(&mut self) -> Option<FromCard> {
        assert!(self.socket.wait_readable(PATIENCE).unwrap(), "no answer");
        let (bytes, _) = match self.socket.receive() {
            Ok(received) => received,
            Err(IpcError::Closed) => return None,
            Err(error) => panic!("{error}"),
        };
        let message = FromCard::try_from(&Packet::from_bytes(&bytes).unwrap()).unwrap();
        match &message {
            FromCard::Region(report) => {
                self.regions.insert(report.region.0, report.clone());
            }
            FromCard::Progress { stage, .. } => self.stages.push(*stage),
            FromCard::Written { .. } | FromCard::Done(_) => {}
        }
        Some(message)
    }

    /// Whether the other end hung up; what comes before the end is heard.
    pub(crate) fn hung_up(&mut self) -> bool {
        while self.hear().is_some() {}
        true
    }

    pub(crate) fn hello(&mut self) {
        self.say(&ToCard::Hello);
        while self.regions.len() < 2 {
            self.hear().unwrap();
        }
    }

    pub(crate) fn end_of(&mut self, job: JobId) -> End {
        loop {
            match self.hear().expect("the connection ended") {
                FromCard::Done(end) if end.job == job => return End(end),
                _ => {}
            }
        }
    }

    /// The end of the job, or "written".
    pub(crate) fn written(&mut self, job: JobId) -> Result<IdentityCheck, End> {
        loop {
            match self.hear().expect("the connection ended") {
                FromCard::Done(end) if end.job == job => return Err(End(end)),
                FromCard::Written { job: of, identity } if of == job => return Ok(identity),
                _ => {}
            }
        }
    }

    pub(crate) fn offer_message(job: JobId, region: u16, image: &Image, tag: OwnerTag) -> ToCard {
        ToCard::Offer {
            job,
            region: RegionIndex(region),
            digest: image.digest(),
            tag,
            target: TargetPath::new(image.path.clone()).unwrap(),
        }
    }

    /// Offers, and says `Go`.
    pub(crate) fn begin(&mut self, region: u16, image: &Image, tag: OwnerTag) -> JobId {
        let job = new_job();
        self.stages.clear();
        let offer = Self::offer_message(job, region, image, tag);
        self.say_with(&offer, Some(&image.sealed()));
        self.say(&ToCard::Go { job });
        job
    }

    /// A whole load.
    pub(crate) fn load(&mut self, region: u16, image: &Image, tag: OwnerTag) -> End {
        let job = self.begin(region, image, tag);
        if let Err(end) = self.written(job) {
            return end;
        }
        self.say(&ToCard::Commit { job });
        self.end_of(job)
    }

    pub(crate) fn scrub(&mut self, region: u16, keep: Option<OwnerTag>) -> End {
        let job = new_job();
        self.say(&ToCard::Scrub {
            job,
            region: RegionIndex(region),
            keep,
        });
        self.end_of(job)
    }

    pub(crate) fn reset(&mut self, region: u16, tag: OwnerTag) -> End {
        let job = new_job();
        self.say(&ToCard::Reset {
            job,
            region: RegionIndex(region),
            tag,
        });
        self.end_of(job)
    }

    pub(crate) fn reopen(&mut self, region: u16, tag: OwnerTag, digest: [u8; 32]) -> End {
        let job = new_job();
        self.say(&ToCard::Reopen {
            job,
            region: RegionIndex(region),
            tag,
            digest,
        });
        self.end_of(job)
    }

    /// Waits until the region is told to hold `content`.
    pub(crate) fn until(&mut self, region: u16, content: Content) -> RegionReport {
        loop {
            if let Some(report) = self.regions.get(&region)
                && report.content == content
            {
                return report.clone();
            }
            self.hear().expect("the connection ended");
        }
    }

    pub(crate) fn report(&self, region: u16) -> &RegionReport {
        &self.regions[&region]
    }
}
