//! A card's process that does what a good one does, unless the test says
//! otherwise.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::super::host::Host;
use super::super::identity::unix_now;
use crate::ipc::socket::{Listener, Socket};
use crate::ipc::{
    CardStage, Content, FromCard, HardwareWords, IdentityCheck, IpcError, JobEnd, JobId, Outcome,
    OwnerTag, Packet, RegionIndex, RegionReport, ToCard,
};

/// See the module.
pub(super) struct Card {
    inner: Mutex<Inner>,
    /// Nothing is answered while this is set; it is done afterwards.
    pub(super) deaf: AtomicBool,
}

#[derive(Default)]
struct Inner {
    regions: Vec<RegionReport>,
    offers: HashMap<JobId, (RegionIndex, OwnerTag, [u8; 32])>,
    refuse: Option<Outcome>,
    heard: Vec<ToCard>,
}

impl Card {
    /// Listens where `host` looks for its card.
    pub(super) fn start(host: &Host) -> Arc<Self> {
        let regions = (0..2)
            .map(|index| RegionReport {
                region: RegionIndex(index),
                of: 2,
                content: Content::Blank,
                digest: [0; 32],
                tag: None,
                function: None,
                guest_access: false,
                scrub_failures: 0,
                since: unix_now(),
            })
            .collect();
        let card = Arc::new(Self {
            inner: Mutex::new(Inner {
                regions,
                ..Inner::default()
            }),
            deaf: AtomicBool::new(false),
        });
        let path = host.layout.card_socket(&host.plan.cards()[0].name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _none = std::fs::remove_file(&path);
        let listener = Listener::bind(&path).unwrap();
        let served = Arc::clone(&card);
        std::thread::spawn(move || {
            while let Ok(socket) = listener.accept() {
                let _ended = served.serve(&socket);
            }
        });
        card
    }

    /// Every scrub, reset, reopen and go from now on ends like this.
    pub(super) fn refuse(&self, outcome: Option<Outcome>) {
        self.inner.lock().unwrap().refuse = outcome;
    }

    /// What was heard that `which` picks.
    pub(super) fn heard(&self, which: impl Fn(&ToCard) -> bool) -> usize {
        let inner = self.inner.lock().unwrap();
        inner.heard.iter().filter(|packet| which(packet)).count()
    }

    /// Changes what a region holds; told at the next hello.
    pub(super) fn set(&self, region: usize, change: impl FnOnce(&mut RegionReport)) {
        change(&mut self.inner.lock().unwrap().regions[region]);
    }

    /// What a region holds.
    pub(super) fn region(&self, region: usize) -> RegionReport {
        self.inner.lock().unwrap().regions[region].clone()
    }

    fn serve(&self, socket: &Socket) -> Result<(), IpcError> {
        let mut waiting = VecDeque::new();
        loop {
            let time = std::time::Duration::from_millis(2);
            if socket.wait_readable(time)? {
                let (bytes, _memfd) = socket.receive()?;
                let packet = ToCard::try_from(&Packet::from_bytes(&bytes)?)?;
                self.inner.lock().unwrap().heard.push(packet.clone());
                waiting.push_back(packet);
            }
            if self.deaf.load(Ordering::SeqCst) {
                continue;
            }
            for packet in waiting.drain(..) {
                let answers = self.inner.lock().unwrap().answer(&packet);
                for answer in answers {
                    socket.send(&Packet::from(&answer).to_bytes(), None)?;
                }
            }
        }
    }
}

impl Inner {
    fn answer(&mut self, packet: &ToCard) -> Vec<FromCard> {
        match packet.clone() {
            ToCard::Hello => self.regions.iter().cloned().map(FromCard::Region).collect(),
            ToCard::Offer {
                job,
                region,
                digest,
                tag,
                ..
            } => {
                self.offers.insert(job, (region, tag, digest));
                Vec::new()
            }
            ToCard::Go { job } => match self.refuse {
                Some(outcome) => self.end(job, self.offers[&job].0, outcome, |_region| ()),
                None => vec![FromCard::Written {
                    job,
                    identity: IdentityCheck::Checked,
                }],
            },
            ToCard::Commit { job } => {
                let (region, tag, digest) = self.offers[&job];
                self.end(job, region, Outcome::Done, |report| {
                    report.content = Content::Active;
                    report.tag = Some(tag);
                    report.digest = digest;
                    report.function = Some([7; 16]);
                    report.guest_access = true;
                })
            }
            ToCard::Abort { job } => {
                let region = self.offers[&job].0;
                self.end(job, region, Outcome::NotCommitted, |_region| ())
            }
            ToCard::Scrub { job, region, keep } => self.deed(job, region, |report| {
                report.content = Content::Blank;
                report.tag = keep;
                report.function = None;
                report.guest_access = false;
            }),
            ToCard::Reset { job, region, .. } => self.deed(job, region, |_region| ()),
            ToCard::Reopen { job, region, .. } => {
                self.deed(job, region, |report| report.guest_access = true)
            }
        }
    }

    fn deed(
        &mut self,
        job: JobId,
        region: RegionIndex,
        change: impl FnOnce(&mut RegionReport),
    ) -> Vec<FromCard> {
        match self.refuse {
            Some(outcome) => self.end(job, region, outcome, |_region| ()),
            None => self.end(job, region, Outcome::Done, change),
        }
    }

    fn end(
        &mut self,
        job: JobId,
        region: RegionIndex,
        outcome: Outcome,
        change: impl FnOnce(&mut RegionReport),
    ) -> Vec<FromCard> {
        let report = &mut self.regions[usize::from(region.0)];
        change(report);
        report.since = unix_now();
        let end = JobEnd {
            job,
            region,
            outcome,
            stage: CardStage::Writing,
            words: HardwareWords::default(),
            text: "as the test says".into(),
            device_ns: 0,
            sync_ns: 0,
            syncs: 0,
        };
        vec![FromCard::Region(report.clone()), FromCard::Done(end)]
    }
}
