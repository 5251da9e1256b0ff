//! Device feature lists (DFL): how Intel's and OFS's cards tell what they have,
//! and the engine that programs through the PR feature found there.
//!
//! It knows register maps. Facts and sequences come from the public drivers
//! and guides, and from traces of the vendor's own RTL.

mod damage;
mod engine;
mod features;
mod gate;
mod header;
mod loader;
mod registers;
mod topology;
mod walk;

pub use damage::{Place, WalkError};
pub use engine::{DflEngine, Waits};
pub use features::{Feature, Parameter};
pub use topology::{AccessSwitch, Afu, Fme, NotProgrammable, Port, PrFeature, Topology};
pub use walk::walk;
