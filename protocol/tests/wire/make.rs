//! Bytes to feed, and receivers driven to their end.

use std::path::PathBuf;

use reconf_protocol::message::{Confirm, Hello, Ping};
use reconf_protocol::{FrameError, Fresh, Kind, Nonce, Request, Scanned, Scanner, encode};

/// A hello as it goes over the wire.
pub(crate) fn hello(nonce: Nonce) -> Vec<u8> {
    encode(Kind::HELLO, 0, 0, &Hello { nonce, minor: 0 }).unwrap()
}

/// A confirm as it goes over the wire.
pub(crate) fn confirm(host_nonce: Nonce) -> Vec<u8> {
    encode(Kind::CONFIRM, 0, 0, &Confirm { host_nonce }).unwrap()
}

/// A ping as it goes over the wire.
pub(crate) fn ping(session: u64, sequence: u32) -> Vec<u8> {
    Request::Ping(Ping { payload: 1 })
        .to_frame(session, sequence)
        .unwrap()
}

/// What a scanner came upon, owned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    Frame(Kind, Vec<u8>),
    Broken(FrameError),
    Resynced(u64),
}

/// Feeds a stream in pieces of these sizes (over and over), then tells what
/// was seen.
pub(crate) fn scan(scanner: &mut Scanner, mut stream: &[u8], sizes: &[usize]) -> Vec<Seen> {
    let mut seen = Vec::new();
    let mut sizes = sizes.iter().cycle();
    while !stream.is_empty() {
        let size = sizes
            .next()
            .copied()
            .unwrap_or(usize::MAX)
            .clamp(1, stream.len());
        let (mut piece, rest) = stream.split_at(size);
        stream = rest;
        drain(scanner, &mut piece, &mut seen);
        assert!(piece.is_empty(), "every byte is taken");
    }
    seen
}

/// Everything to be had from this input.
pub(crate) fn drain(scanner: &mut Scanner, input: &mut &[u8], seen: &mut Vec<Seen>) {
    while let Some(found) = scanner.next(input) {
        seen.push(match found {
            Scanned::Frame(frame) => Seen::Frame(frame.header.kind, frame.body.to_vec()),
            Scanned::Broken(error) => Seen::Broken(error),
            Scanned::Resynced { discarded } => Seen::Resynced(discarded),
        });
    }
}

/// Gives up until nothing is awaited.
pub(crate) fn abandon(scanner: &mut Scanner) -> Vec<Seen> {
    let mut seen = Vec::new();
    while scanner.pending().is_some() {
        scanner.abandon_partial();
        drain(scanner, &mut &[][..], &mut seen);
    }
    seen
}

/// Only the frames.
pub(crate) fn frames(seen: &[Seen]) -> Vec<Kind> {
    seen.iter()
        .filter_map(|one| match one {
            Seen::Frame(kind, _) => Some(*kind),
            Seen::Broken(_) | Seen::Resynced(_) => None,
        })
        .collect()
}

/// Numbers that a test can foretell.
#[derive(Debug, Default)]
pub(crate) struct Counting(pub(crate) u8);

impl Fresh for Counting {
    fn nonce(&mut self) -> Nonce {
        self.0 = self.0.wrapping_add(1);
        [self.0; 16]
    }

    fn session_id(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        u64::from(self.0)
    }
}

/// A file given beside the repository, or `None`, said aloud.
pub(crate) fn shared(path: &str) -> Option<Vec<u8>> {
    let whole = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared")).join(path);
    match std::fs::read(&whole) {
        Ok(bytes) => Some(bytes),
        Err(error) => {
            eprintln!("SKIPPED: {}: {error}", whole.display());
            None
        }
    }
}
