//! A `reconfd` that was taken over, as the card's process meets it.

use std::os::fd::AsFd as _;
use std::path::Path;

use anyhow::{Result, ensure};
use card::SealedMemfd;
use daemon::ipc::socket::Socket;
use daemon::ipc::{FromCard, JobEnd, JobId, OwnerTag, Packet, RegionIndex, TargetPath, ToCard};
use policy::ids::Digest;
use reconf_tests::process::wait_for;
use uuid::Uuid;

use crate::stage::PATIENCE;

/// Whoever sits at the card's socket, with a signed file in its hands.
pub(crate) struct Impostor(Socket);

impl Impostor {
    pub(crate) fn connect(path: &Path) -> Result<Self> {
        let impostor = Self(wait_for("the card's socket", PATIENCE, || {
            Ok(Socket::connect(path).ok())
        })?);
        impostor.say(&ToCard::Hello, None)?;
        Ok(impostor)
    }

    fn say(&self, message: &ToCard, beside: Option<&SealedMemfd>) -> Result<()> {
        let bytes = Packet::from(message).to_bytes();
        Ok(self.0.send(&bytes, beside.map(|memory| memory.as_fd()))?)
    }

    /// Offers the file, says `Go` at once, and waits for the end.
    pub(crate) fn load(&self, region: u16, file: &[u8], target: &str) -> Result<JobEnd> {
        let job = JobId(*Uuid::new_v4().as_bytes());
        let offer = ToCard::Offer {
            job,
            region: RegionIndex(region),
            digest: Digest::of(file).0,
            tag: OwnerTag([7; 32]),
            target: TargetPath::new(target.to_owned())?,
        };
        self.say(&offer, Some(&SealedMemfd::from_reader(file, 1 << 30)?))?;
        loop {
            ensure!(self.0.wait_readable(PATIENCE)?, "no answer");
            let (bytes, _beside) = self.0.receive()?;
            match FromCard::try_from(&Packet::from_bytes(&bytes)?)? {
                FromCard::Done(end) if end.job == job => return Ok(end),
                FromCard::Written { .. } => anyhow::bail!("it was written"),
                _ => {}
            }
        }
    }
}
