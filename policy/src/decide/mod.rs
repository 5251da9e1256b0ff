//! The decision: may this VM load this image into this region now?
//!
//! Knows the operator's files and the verified catalogue, pinned together as
//! one [`Policy`]. Must not know sessions, jobs or devices. Deny is what
//! remains when nothing allows; every verdict carries its reason.
//!
//! There is one path through the checks. [`decide`] walks it in silence,
//! [`explain()`] walks it aloud, [`list`] walks it for every image, and
//! [`check_target`], the second verification, shares its last part: they
//! cannot come to differ.
//!
//! Only loads are decided here. A slot's owner may always clear and reset it:
//! that needs no catalogue, no grant and no clock, so that a region can be made
//! safe when everything else is lost.

mod denial;
mod evaluate;
mod explain;
mod judge;
mod own_list;
mod policy;
mod second;

pub use denial::{CatalogueTrouble, Denial, GuestView, OwnList};
pub use evaluate::{Ask, Grant, GrantedVariant, Listed, Rule, decide, list};
pub use explain::{Check, Explanation, Outcome, Step, Verdict, explain};
pub use own_list::own_list;
pub use policy::{Loads, Policy, PolicyInputs, RegionKey, Revision};
pub use second::{SecondVerdict, check_target};

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_views;
