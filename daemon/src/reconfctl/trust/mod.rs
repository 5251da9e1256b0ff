//! `trust`: the enrolled root, and the floors that keep old lists out.
//!
//! Knows which files there are. What makes a list believable is `policy`'s.

mod enrol;
mod state;

use std::path::PathBuf;

use policy::time::UnixTime;
use policy::trust::SMALL_MAX;

use super::args::{Global, Trust};
use super::exit::Exit;
use super::place::{self, Place};
use super::time::now;
use super::{Stopped, Streams};
use crate::layout::card_name;

use enrol::{Existing, enrol};
pub(super) use state::state;

pub(super) fn run(
    command: Trust,
    global: &Global,
    streams: &mut Streams<'_>,
) -> Result<Exit, Stopped> {
    let place = place::of(&global.host_file)?;
    match command {
        Trust::Enrol { root, replace } => {
            let how = if replace {
                Existing::Replace
            } else {
                Existing::Refuse
            };
            let enrolled = enrol(&place, &root, how)?;
            if global.json {
                let value = serde_json::json!({ "ok": true, "enrolled": enrolled });
                writeln!(streams.out, "{value}")?;
            } else {
                enrolled.write(streams)?;
            }
            Ok(Exit::Done)
        }
        Trust::Show => {
            let state = state(&place, UnixTime(now()));
            if global.json {
                let value = serde_json::json!({ "ok": state.in_order(), "trust": state });
                writeln!(streams.out, "{value}")?;
            } else {
                state.write(streams)?;
            }
            Ok(if state.in_order() {
                Exit::Done
            } else {
                Exit::No
            })
        }
    }
}

/// Longest root and floor that is read, in bytes.
fn small() -> u64 {
    u64::try_from(SMALL_MAX).unwrap_or(u64::MAX)
}

/// Whose floor it is, and where it lies.
struct FloorPlace {
    whose: String,
    path: PathBuf,
}

/// `reconfd`'s floor and one for each card of `host.toml`: each process believes its own.
fn floor_places(place: &Place) -> Vec<FloorPlace> {
    let layout = &place.layout;
    let reconfd = FloorPlace {
        whose: "reconfd".to_owned(),
        path: layout.reconfd_floor(),
    };
    let cards = place.host.cards.iter().map(|card| {
        let address = card.address.to_string();
        FloorPlace {
            path: layout.card_floor(&card_name(&address)),
            whose: format!("card {address}"),
        }
    });
    std::iter::once(reconfd).chain(cards).collect()
}
